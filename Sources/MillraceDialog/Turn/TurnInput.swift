public import MillraceCore

/// What a turn machine is told.
public enum TurnInput: Sendable, Hashable {
  // The service.
  /// The connection is there, is looked for again, is over for good.
  case connected, reconnecting, closed
  /// The service's own states.
  case serviceListening, serviceThinking, serviceResponding
  /// The service has heard the user begin, and end.
  case speechStarted, speechEnded
  /// A reply has begun.
  case replyStarted
  /// All of a reply has come, in so many utterances of sound.
  case replyEnded(utterances: Int)
  /// The service will not go on with the reply.
  case serviceInterrupted
  /// Something failed, and the service goes on.
  case failed
  /// The gate for breaking in is closed, or open again.
  case uninterruptible(Bool)
  /// The gate for the user's sound is closed, or open again.
  case muted(Bool)

  // Playback.
  /// Playback: the first sample of a reply was heard.
  case audible(reply: UInt32)
  /// Playback: a reply was heard to its end, so much of it.
  case finished(reply: UInt32, samples: Int, milliseconds: Int)
  /// Playback: a reply was cut off after so much of it.
  case cut(reply: UInt32, samples: Int, milliseconds: Int)
  /// The replies were voided on this machine by somebody else.
  case voided

  // The local voice detector; `ago`: how long ago it really began or ended.
  /// A detector beside the microphone heard a voice begin, so long ago.
  case voiceStarted(ago: Nanoseconds)
  /// The same for its end.
  case voiceEnded(ago: Nanoseconds)

  // The user.
  /// A session begins.
  case start
  /// The button goes down, or a tap.
  case press
  /// The button comes up.
  case release
  /// What was spoken is to be forgotten.
  case cancel
  /// The user's hand breaks the reply off.
  case interrupt
  /// A question or text in writing waits to be handed on.
  case ask
  /// The dialogue is to end.
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
