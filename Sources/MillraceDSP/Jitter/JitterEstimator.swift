/// Estimates how long a receiver must wait so that almost every packet arrives in time.
///
/// A packet's delay is how much later it came than the fastest of the last two seconds. A histogram of these delays decays slowly;
/// its quantile is the target. Method and decay follow WebRTC's NetEq (modules/audio_coding/neteq, delay_manager), but every packet
/// counts, where NetEq takes the worst of 500 ms. On networks with bursts of delay that keeps the target 60 % lower at the cost of a
/// few more stretched packets (measured, see `millrace bench jitter`).
///
/// Pure; no allocation after `init`. One thread at a time. Media and arrival times are nanoseconds, each on its own clock.
@safe public struct JitterEstimator: ~Copyable, @unchecked Sendable {
  /// Bins of the histogram, each `bucket` nanoseconds wide; the last holds everything above.
  private static let buckets = 50
  /// Bin width: a usual packet length (NetEq's bucket).
  private static let bucket: Int64 = 20_000_000
  /// Fraction of the old histogram that remains per packet (NetEq's forget factor).
  private static let forgetting = 0.983
  /// How far back the fastest packet is searched.
  private static let window: Int64 = 2_000_000_000
  /// Initial delay, in bins, before anything is known about the network.
  private static let first = 2

  private let quantile: Double
  private let histogram: UnsafeMutablePointer<Double>
  private var count = 0
  /// Packets that may still become the fastest, oldest first, each slower than those before it.
  private var fastest: FastestPackets

  /// Makes an estimator for a quantile between 0 and 1.
  public init(quantile: Double) {
    precondition(quantile > 0 && quantile < 1, "the quantile must lie between 0 and 1")
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

  /// Transit time of the fastest packet of the last two seconds; nil before the first.
  public var base: Int64? { fastest.least }

  /// Records a packet whose audio begins at `media` and that arrived at `arrival`.
  public mutating func note(media: Int64, arrival: Int64) {
    let transit = arrival &- media
    fastest.add(transit, at: arrival)
    let delay = max(0, transit &- (fastest.least ?? transit))
    let value = Int(min(delay / Self.bucket, Int64(Self.buckets - 1)))
    count += 1
    // Each of the first packets weighs as much as all before it (NetEq's start weight 2).
    let kept = min(Self.forgetting, 1 - 2 / Double(count + 2))
    // Not a compound assignment: the compiler generates invalid code for it here under ThreadSanitizer.
    for index in 0..<Self.buckets { unsafe histogram[index] = histogram[index] * kept }
    unsafe histogram[value] = histogram[value] + 1 - kept
  }

  /// Nanoseconds to wait for the wanted fraction of packets: the upper edge of the quantile's bin.
  public var target: Int64 {
    var sum = 0.0
    for index in 0..<Self.buckets {
      sum += unsafe histogram[index]
      if sum >= quantile { return Int64(index + 1) * Self.bucket }
    }
    return Int64(Self.buckets) * Self.bucket
  }
}

/// The minimum over a time window, in amortised constant time per value.
@safe
struct FastestPackets: ~Copyable {
  private struct Value {
    var value: Int64 = 0
    var time: Int64 = 0
  }

  /// Two seconds of 10 ms packets of which each is slower than the one before; with more, the window is shorter.
  private static let capacity = 256

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
