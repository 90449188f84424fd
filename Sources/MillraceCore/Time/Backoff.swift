/// How long to wait before the next attempt: longer each time, never in step with others, and not for ever.
///
/// A value; no clock, no thread, no heap.
public struct Backoff: Sendable, Hashable {
  /// The first wait.
  public var first: Nanoseconds
  /// The longest.
  public var most: Nanoseconds
  /// How much longer each is than the one before it.
  public var factor: Double
  /// The part of a wait that is left to chance, 0 to 1: many that lost the same server must not all come back at once.
  public var jitter: Double
  /// After so long without success there is no next attempt; 0: there always is.
  public var giveUp: Nanoseconds

  /// Attempts asked for since the last success.
  public private(set) var attempts = 0
  private var failingSince: Nanoseconds?
  private var dice: UInt64

  /// Makes a back-off that has had no attempt yet. What makes no sense is brought to the nearest that does.
  /// - Parameters:
  ///   - first: the first wait.
  ///   - most: the longest, at least `first`.
  ///   - factor: how much longer each is than the one before it, at least 1.
  ///   - jitter: the part of a wait that is left to chance, 0 to 1.
  ///   - giveUp: after so long without success there is no next attempt; 0: there always is.
  ///   - seed: of the chance; the same seed gives the same waits.
  public init(
    first: Nanoseconds = .milliseconds(500), most: Nanoseconds = .milliseconds(8_000), factor: Double = 2,
    jitter: Double = 0.2, giveUp: Nanoseconds = 0, seed: UInt64
  ) {
    // Half of all time at most: a wait is added to the time it is now.
    self.first = min(max(0, first), .max / 2)
    self.most = min(max(self.first, most), .max / 2)
    self.factor = max(1, factor)
    self.jitter = min(max(jitter, 0), 1)
    self.giveUp = max(0, giveUp)
    dice = seed
  }

  /// An attempt has failed, or what it gave was lost: the time to wait, or nil when it is time to give up.
  public mutating func next(at now: Nanoseconds) -> Nanoseconds? {
    let since = failingSince ?? now
    failingSince = since
    var wait = Double(first)
    for _ in 0..<min(attempts, 64) where wait < Double(most) { wait *= factor }
    wait = min(wait, Double(most))
    attempts += 1
    let result = Nanoseconds(wait * (1 - jitter * chance()))
    guard giveUp == 0 || now &- since &+ result <= giveUp else { return nil }
    return result
  }

  /// What was tried has worked for long enough to count: the next wait is the first again.
  public mutating func reset() {
    attempts = 0
    failingSince = nil
  }

  /// SplitMix64, in 0..<1.
  private mutating func chance() -> Double {
    dice &+= 0x9E37_79B9_7F4A_7C15
    var value = dice
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    value ^= value >> 31
    return Double(value >> 11) / 9_007_199_254_740_992
  }
}
