public import MillraceCore

/// What a turn machine is told.
public enum TurnInput: Sendable, Hashable {
  // The service.
  case connected, reconnecting, closed
  case serviceListening, serviceThinking, serviceResponding
  case speechStarted, speechEnded
  case replyStarted
  /// All of a reply has come, in so many utterances of sound.
  case replyEnded(utterances: Int)
  /// The service will not go on with the reply.
  case serviceInterrupted
  /// Something failed, and the service goes on.
  case failed
  case uninterruptible(Bool)
  case muted(Bool)

  // Playback.
  case audible(reply: UInt32)
  case finished(reply: UInt32, samples: Int, milliseconds: Int)
  case cut(reply: UInt32, samples: Int, milliseconds: Int)
  /// The replies were voided on this machine by somebody else.
  case voided

  // The local voice detector; `ago`: how long ago it really began or ended.
  case voiceStarted(ago: Nanoseconds)
  case voiceEnded(ago: Nanoseconds)

  // The user.
  case start
  /// The button goes down, or a tap.
  case press
  /// The button comes up.
  case release
  /// What was spoken is to be forgotten.
  case cancel
  case interrupt
  /// A question or text in writing waits to be handed on.
  case ask
  case hangUp

  /// Time has passed.
  case tick

  /// As events carry it: what caused a change.
  public var name: StaticString {
    switch self {
    case .connected: "connected"
    case .reconnecting: "reconnecting"
    case .closed: "closed"
    case .serviceListening: "serviceListening"
    case .serviceThinking: "serviceThinking"
    case .serviceResponding: "serviceResponding"
    case .speechStarted: "speechStarted"
    case .speechEnded: "speechEnded"
    case .replyStarted: "replyStarted"
    case .replyEnded: "replyEnded"
    case .serviceInterrupted: "serviceInterrupted"
    case .failed: "failed"
    case .uninterruptible: "uninterruptible"
    case .muted: "muted"
    case .audible: "audible"
    case .finished: "finished"
    case .cut: "cut"
    case .voided: "voided"
    case .voiceStarted: "voiceStarted"
    case .voiceEnded: "voiceEnded"
    case .start: "start"
    case .press: "press"
    case .release: "release"
    case .cancel: "cancel"
    case .interrupt: "interrupt"
    case .ask: "ask"
    case .hangUp: "hangUp"
    case .tick: "timeout"
    }
  }
}
