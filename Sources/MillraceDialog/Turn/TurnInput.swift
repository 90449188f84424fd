public import MillraceCore

/// An input of the turn machine.
public enum TurnInput: Sendable, Hashable {
  // The service.
  /// The service is connected, reconnecting, or closed for good.
  case connected, reconnecting, closed
  /// The service's own states.
  case serviceListening, serviceThinking, serviceResponding
  /// The service detected that the user started or stopped speaking.
  case speechStarted, speechEnded
  /// A reply began.
  case replyStarted
  /// A reply has arrived completely, with this many utterances of audio.
  case replyEnded(utterances: Int)
  /// The service has stopped its reply.
  case serviceInterrupted
  /// The reply failed, and the dialogue continues.
  case failed
  /// The service forbids or allows barge-in.
  case uninterruptible(Bool)
  /// The service mutes or unmutes the microphone.
  case muted(Bool)

  // Playback.
  /// The first sample of a reply was played.
  case audible(reply: UInt32)
  /// An utterance of a reply was played to its end, with this much audio.
  case finished(reply: UInt32, samples: Int, milliseconds: Int)
  /// Playback of a reply was cut off after this much audio.
  case cut(reply: UInt32, samples: Int, milliseconds: Int)
  /// Another node cancelled the replies.
  case replyCancelled

  // The local voice detector; `ago` is how long ago the voice really started or stopped.
  /// A voice started.
  case voiceStarted(ago: Nanoseconds)
  /// A voice stopped.
  case voiceEnded(ago: Nanoseconds)

  // The user.
  /// Start a session.
  case start
  /// The button was pressed, or tapped.
  case press
  /// The button was released.
  case release
  /// Discard what was spoken.
  case cancel
  /// Interrupt the reply; forced: even where the service does not allow it.
  case interrupt(isForced: Bool = false)
  /// A question or a text to speak waits to be sent; forced: a reply is interrupted for it even where the service does not allow it.
  case ask(isForced: Bool = false)
  /// End the dialogue.
  case hangUp

  /// Time has passed.
  case tick

  /// Its name in events, as the cause of a change.
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
    case .replyCancelled: "replyCancelled"
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
