/// Exponential backoff with jitter: how long to wait before the next attempt, and when to give up.
///
/// A value type; no clock, no thread, no heap.
public struct Backoff: Sendable, Hashable {
  /// The first delay.
  public var first: Nanoseconds
  /// The longest delay.
  public var most: Nanoseconds
  /// The factor by which each delay exceeds the one before it.
  public var factor: Double
  /// The random share of a delay, 0 to 1: many clients that lost the same server must not all reconnect at once.
  public var jitter: Double
  /// How long to keep trying without success before giving up; 0: for ever.
  public var giveUp: Nanoseconds

  /// Attempts since the last success.
  public private(set) var attempts = 0
  private var failingSince: Nanoseconds?
  private var randomState: UInt64

  /// Creates a backoff without any attempt. Values out of range are clamped.
  /// - Parameters:
  ///   - first: the first delay.
  ///   - most: the longest delay, at least `first`.
  ///   - factor: the factor by which each delay exceeds the one before it, at least 1.
  ///   - jitter: the random share of a delay, 0 to 1.
  ///   - giveUp: how long to keep trying without success; 0: for ever.
  ///   - seed: seeds the random numbers; the same seed gives the same delays.
  public init(
    first: Nanoseconds = .milliseconds(500), most: Nanoseconds = .milliseconds(8_000), factor: Double = 2,
    jitter: Double = 0.2, giveUp: Nanoseconds = 0, seed: UInt64
  ) {
    // At most half of the range: a delay is added to the current time.
    self.first = min(max(0, first), .max / 2)
    self.most = min(max(self.first, most), .max / 2)
    self.factor = max(1, factor)
    self.jitter = min(max(jitter, 0), 1)
    self.giveUp = max(0, giveUp)
    randomState = seed
  }

  /// The delay before the next attempt, after one has failed or its connection was lost; nil when it is time to give up.
  public mutating func next(at now: Nanoseconds) -> Nanoseconds? {
    let since = failingSince ?? now
    failingSince = since
    var delay = Double(first)
    for _ in 0..<min(attempts, 64) where delay < Double(most) { delay *= factor }
    delay = min(delay, Double(most))
    attempts += 1
    let result = Nanoseconds(delay * (1 - jitter * random()))
    guard giveUp == 0 || now &- since &+ result <= giveUp else { return nil }
    return result
  }

  /// The last attempt has succeeded for long enough: the next delay is the first again.
  public mutating func reset() {
    attempts = 0
    failingSince = nil
  }

  /// The next SplitMix64 number, in 0..<1.
  private mutating func random() -> Double {
    randomState &+= 0x9E37_79B9_7F4A_7C15
    var value = randomState
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    value ^= value >> 31
    return Double(value >> 11) / 9_007_199_254_740_992
  }
}
