/// How long a receiver has to wait so that almost every packet is there in time.
///
/// The delay of a packet is what it came later than the fastest of the last two seconds. A histogram of these delays forgets
/// slowly; its quantile is the target. The idea and the forgetting are those of WebRTC's NetEq (modules/audio_coding/neteq,
/// delay_manager); every packet counts, where NetEq takes the worst of 500 ms: on networks whose delays come in bursts that
/// keeps the target 60 % lower for a few more stretched packets (measured, see `millrace bench jitter`).
///
/// Pure; no allocation after `init`. One thread at a time. Times in nanoseconds on any one clock each.
@safe public struct JitterEstimator: ~Copyable, @unchecked Sendable {
  /// Values of the histogram, each `bucket` nanoseconds wide; the last takes everything above.
  private static let buckets = 50
  /// Width of a value: a packet's usual length (NetEq's bucket).
  private static let bucket: Int64 = 20_000_000
  /// Share of the old histogram that a packet leaves (NetEq's forget factor).
  private static let forgetting = 0.983
  /// How far back the fastest packet is looked for.
  private static let window: Int64 = 2_000_000_000
  /// Delay that is expected of a network nothing is known of yet.
  private static let first = 2

  private let quantile: Double
  private let histogram: UnsafeMutablePointer<Double>
  private var count = 0
  /// Packets that may still be the fastest, oldest first, each slower than the ones before it.
  private var fastest: FastestPackets

  /// Makes an estimator for a quantile of 0 to 1.
  public init(quantile: Double) {
    precondition(quantile > 0 && quantile < 1, "a quantile lies between 0 and 1")
    self.quantile = quantile
    unsafe histogram = .allocate(capacity: Self.buckets)
    unsafe histogram.initialize(repeating: 0, count: Self.buckets)
    fastest = FastestPackets(window: Self.window)
    reset()
  }

  deinit { unsafe histogram.deallocate() }

  /// Forgets the network.
  public mutating func reset() {
    for index in 0..<Self.buckets { unsafe histogram[index] = index == Self.first ? 1 : 0 }
    count = 0
    fastest.reset()
  }

  /// Time from media to arrival of the fastest packet of the last two seconds; nil before the first.
  public var base: Int64? { fastest.least }

  /// Notes a packet whose sound begins at `media` and that came at `arrival`.
  public mutating func note(media: Int64, arrival: Int64) {
    let transit = arrival &- media
    fastest.add(transit, at: arrival)
    let delay = max(0, transit &- (fastest.least ?? transit))
    let value = Int(min(delay / Self.bucket, Int64(Self.buckets - 1)))
    count += 1
    // At first every packet counts as much as all before it (NetEq's start weight 2).
    let kept = min(Self.forgetting, 1 - 2 / Double(count + 2))
    // Written out: of an operator that assigns, the compiler makes invalid code here under the thread sanitizer.
    for index in 0..<Self.buckets { unsafe histogram[index] = histogram[index] * kept }
    unsafe histogram[value] = histogram[value] + 1 - kept
  }

  /// Nanoseconds to wait for the wanted share of packets: the upper edge of the quantile's value.
  public var target: Int64 {
    var sum = 0.0
    for index in 0..<Self.buckets {
      sum += unsafe histogram[index]
      if sum >= quantile { return Int64(index + 1) * Self.bucket }
    }
    return Int64(Self.buckets) * Self.bucket
  }
}

/// The least of the values of a window of time, in constant time a value on average.
@safe
struct FastestPackets: ~Copyable {
  private struct Value {
    var value: Int64 = 0
    var time: Int64 = 0
  }

  /// Packets of two seconds at 2.5 ms each; where more come, the window is shorter.
  private static let capacity = 1_024

  private let window: Int64
  private let values: UnsafeMutablePointer<Value>
  private var first = 0
  private var count = 0

  init(window: Int64) {
    self.window = window
    unsafe values = .allocate(capacity: Self.capacity)
    unsafe values.initialize(repeating: Value(), count: Self.capacity)
  }

  deinit { unsafe values.deallocate() }

  var least: Int64? { count > 0 ? unsafe values[first].value : nil }

  mutating func reset() { (first, count) = (0, 0) }

  mutating func add(_ value: Int64, at time: Int64) {
    while count > 0, unsafe values[(first + count - 1) % Self.capacity].value >= value { count -= 1 }
    while count > 0, unsafe values[first].time < time &- window { dropFirst() }
    if count == Self.capacity { dropFirst() }
    unsafe values[(first + count) % Self.capacity] = Value(value: value, time: time)
    count += 1
  }

  private mutating func dropFirst() {
    first = (first + 1) % Self.capacity
    count -= 1
  }
}
