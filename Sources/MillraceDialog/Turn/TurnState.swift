/// Where a turn stands. Finer than `DialogState`, which is the service's: this one also knows what is heard here.
public enum TurnState: UInt8, Sendable, Hashable, CaseIterable {
  /// Nothing has begun.
  case idle
  /// Waiting for the service to listen for the first time.
  case connecting
  /// The floor is the user's, and nobody speaks. Not a wait: it may last for ever.
  case listening
  /// The user speaks.
  case hearing
  /// The user has spoken; no answer yet.
  case thinking
  /// The answer comes, and may be heard already.
  case responding
  /// All of the answer has come, and is still being heard.
  case draining
  /// A voice over the answer, which makes room until it is clear whether it is one.
  case suspecting
  /// The answer is over here; the service is to listen again.
  case yielding
  /// The connection is lost.
  case reconnecting
  /// Good-bye is said.
  case closing
  /// Over.
  case closed

  /// True for states that must not last for ever: each has a deadline.
  public var isWait: Bool {
    switch self {
    case .idle, .listening, .closed: false
    default: true
    }
  }

  /// As events carry it.
  public var name: StaticString {
    switch self {
    case .idle: "idle"
    case .connecting: "connecting"
    case .listening: "listening"
    case .hearing: "hearing"
    case .thinking: "thinking"
    case .responding: "responding"
    case .draining: "draining"
    case .suspecting: "suspecting"
    case .yielding: "yielding"
    case .reconnecting: "reconnecting"
    case .closing: "closing"
    case .closed: "closed"
    }
  }
}
