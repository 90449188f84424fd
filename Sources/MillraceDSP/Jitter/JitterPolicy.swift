/// What a jitter buffer does for the next 10 ms.
public enum JitterStep: Sendable, Equatable {
  /// Play on at a speed: 1, or one that brings the delay to its target.
  case play(speed: Double)
  /// The audio that is due is lost, later audio is there: conceal the loss and advance in the stream.
  case concealLoss
  /// Nothing is there: conceal without advancing, so that late packets are not lost.
  case wait
}

/// The policy of a jitter buffer: decides step by step from what is there and how late it plays. Holds no audio.
///
/// When nothing is there it waits rather than skipping; the added delay is removed by playing faster. Time spent waiting is credited
/// to a following gap (a pause the sender did not send, or a loss), so that pauses add no delay. Pure; times in nanoseconds.
public struct JitterPolicy: Sendable, Equatable {
  /// Least and greatest target delay.
  public var limits: ClosedRange<Int64>
  /// Largest deviation from speed 1 used to reach the target.
  public static let correction = 0.35
  /// Delay above the target that is tolerated: half a packet.
  static let tolerance: Int64 = 10_000_000
  /// Duration of a step.
  public static let length: Int64 = 10_000_000

  /// Time waited since audio was last played.
  public private(set) var waited: Int64 = 0

  /// Makes a policy with delay limits in nanoseconds.
  public init(limits: ClosedRange<Int64>) { self.limits = limits }

  /// The next step.
  /// - Parameters:
  ///   - hasNext: the audio that is due is there.
  ///   - hasLater: later audio is there.
  ///   - delay: how much later the audio that is due plays than the fastest packet would allow.
  ///   - target: the delay the estimator asks for.
  public mutating func next(hasNext: Bool, hasLater: Bool, delay: Int64, target: Int64) -> JitterStep {
    guard hasNext else {
      if hasLater {
        waited = 0
        return .concealLoss
      }
      waited &+= Self.length
      return .wait
    }
    waited = 0
    let target = min(max(target, limits.lowerBound), limits.upperBound)
    if delay > target &+ Self.tolerance { return .play(speed: 1 + Self.correction) }
    if delay < target { return .play(speed: 1 - Self.correction) }
    return .play(speed: 1)
  }

  /// How much of a gap in the stream the waiting has already covered; consumed by the call.
  public mutating func credit(for gap: Int64) -> Int64 {
    let covered = min(max(0, gap), waited)
    waited &-= covered
    return covered
  }

  /// Restarts for a new stream.
  public mutating func reset() { waited = 0 }
}
