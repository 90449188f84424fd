/// The state of a turn. Finer than `DialogState`, which is the service's: it also depends on what was played here.
public enum TurnState: UInt8, Sendable, Hashable, CaseIterable {
  /// Not started.
  case idle
  /// Waiting for the service to listen for the first time.
  case connecting
  /// The user may speak, and nobody does. Has no timeout.
  case listening
  /// The user is speaking.
  case hearing
  /// The user has spoken; no answer yet.
  case thinking
  /// The answer is arriving, and may already be playing.
  case responding
  /// The answer has arrived completely, and is still playing.
  case draining
  /// A voice over the answer, which is ducked until it is clear whether it is speech.
  case suspecting
  /// The answer has ended here; waiting for the service to listen again.
  case yielding
  /// The connection is lost.
  case reconnecting
  /// The session is being closed.
  case closing
  /// Closed.
  case closed

  /// True for states with a timeout.
  public var isWait: Bool {
    switch self {
    case .idle, .listening, .closed: false
    default: true
    }
  }

  /// Its name in events.
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
