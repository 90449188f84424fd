public import MillraceCore

/// Decides what to do after a failure, from the reaction of the error and the attempts so far.
public struct ReconnectPolicy: Sendable, Hashable {
  /// What to do after one failure.
  public enum Decision: Sendable, Hashable {
    /// Nothing: the dialogue continues.
    case `continue`
    /// Repeat the request on this connection, after a delay.
    case retry(after: Nanoseconds)
    /// Reconnect, after a delay.
    case reconnect(after: Nanoseconds)
    /// Stop, with or without a failure.
    case stop(isFailure: Bool)
  }

  /// The delays, and when to give up.
  public var backoff: Backoff
  /// False: a lost connection ends the dialogue.
  public var isOn: Bool

  /// Creates a policy.
  public init(_ backoff: Backoff, isOn: Bool = true) {
    self.backoff = backoff
    self.isOn = isOn
  }

  /// Decides. An intended end is never followed by a new connection, and neither is a refusal: the same request would be refused again,
  /// and some services block accounts for it.
  public mutating func decide(_ reaction: DialogError.Reaction, at now: Nanoseconds) -> Decision {
    switch reaction {
    case .continue: return .continue
    case .retry(let milliseconds):
      return .retry(after: .milliseconds(Int64(max(0, min(milliseconds, 3_600_000)))))
    case .refuse: return .stop(isFailure: true)
    case .ended: return .stop(isFailure: false)
    case .reconnect:
      guard isOn, let wait = backoff.next(at: now) else { return .stop(isFailure: true) }
      return .reconnect(after: wait)
    }
  }

  /// Resets the backoff after a connection that was of use: a complete turn, or a while without errors.
  public mutating func noteSuccess() { backoff.reset() }
}
