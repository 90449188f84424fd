public import MillraceCore

/// What to do after a failure: the reaction of the error, and how often it was tried.
public struct ReconnectPolicy: Sendable, Hashable {
  /// The answer to one failure.
  public enum Decision: Sendable, Hashable {
    /// Nothing: the dialogue goes on.
    case goOn
    /// The same again on this connection, after so long.
    case retry(after: Nanoseconds)
    /// A new connection, after so long.
    case reconnect(after: Nanoseconds)
    /// The end, and whether it counts as a failure.
    case stop(isFailure: Bool)
  }

  /// How long the waits are, and when it is given up.
  public var backoff: Backoff
  /// False: a lost connection is the end.
  public var isOn: Bool

  /// A policy with its waits.
  public init(_ backoff: Backoff, isOn: Bool = true) {
    self.backoff = backoff
    self.isOn = isOn
  }

  /// Decides. An end that was asked for is never followed by a new connection, and nor is a refusal: the same again would be
  /// refused again, and some services close accounts for it.
  public mutating func decide(_ reaction: DialogError.Reaction, at now: Nanoseconds) -> Decision {
    switch reaction {
    case .goOn: return .goOn
    case .retry(let milliseconds):
      return .retry(after: .milliseconds(Int64(max(0, min(milliseconds, 3_600_000)))))
    case .refuse: return .stop(isFailure: true)
    case .ended: return .stop(isFailure: false)
    case .reconnect:
      guard isOn, let wait = backoff.next(at: now) else { return .stop(isFailure: true) }
      return .reconnect(after: wait)
    }
  }

  /// The dialogue has been of use: a full turn, or a while of quiet.
  public mutating func noteSuccess() { backoff.reset() }
}
