/// What a jitter buffer does with the next 10 ms.
public enum JitterStep: Sendable, Equatable {
  /// Go on with the sound at a speed: 1, or what brings the delay to its target.
  case play(speed: Double)
  /// The sound that is due is lost: what comes after it is there. Conceal it and go on in the stream.
  case concealLoss
  /// Nothing is there: conceal, and stay where the stream is, so that what comes late is not lost.
  case wait
}

/// Decides step by step, from what is there and how late it plays: the policy of a jitter buffer, without the sound.
///
/// Where nothing is there it waits in the stream rather than to pass over it; the delay that this adds is taken back by playing
/// faster. Time spent waiting is credited to a gap that shows up behind it (a pause the sender did not send, or a loss), so
/// that pauses do not add delay. Pure; times in nanoseconds.
public struct JitterSteps: Sendable, Equatable {
  /// Least and greatest delay to aim at.
  public var limits: ClosedRange<Int64>
  /// How much faster or slower than 1 it plays to reach the target.
  public static let correction = 0.35
  /// Delay above the target that is left alone: half a packet.
  static let tolerance: Int64 = 10_000_000
  /// A step.
  public static let length: Int64 = 10_000_000

  /// Time waited since something was played.
  public private(set) var waited: Int64 = 0

  /// Steps between these limits, in nanoseconds.
  public init(limits: ClosedRange<Int64>) { self.limits = limits }

  /// The next step.
  /// - Parameters:
  ///   - hasNext: the sound that is due is there.
  ///   - hasLater: sound that comes after it is there.
  ///   - delay: how much later than the fastest packet allows the sound that is due plays.
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

  /// How much of a gap in the stream the waiting has covered; used up by the answer.
  public mutating func credit(for gap: Int64) -> Int64 {
    let covered = min(max(0, gap), waited)
    waited &-= covered
    return covered
  }

  /// The stream begins anew.
  public mutating func reset() { waited = 0 }
}
