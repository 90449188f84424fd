public import MillraceCore
public import MillraceDialog

/// An input of a session.
public enum BailianInput: Sendable, Hashable {
  /// Start.
  case start
  /// The WebSocket is open.
  case opened
  /// A valid text message.
  case message(BailianMessage)
  /// An invalid text message, and what is wrong with it.
  case invalidMessage(String)
  /// A binary message. Its bytes stay outside.
  case audio
  /// The WebSocket was lost, or could not be opened.
  case lost(DialogError)
  /// A command of the program, the user or `dialog.turn`.
  case command(DialogCommand)
  /// The first sample of a reply was played.
  case audible
  /// An utterance was played to its end.
  case finished
  /// Another node cancelled the reply.
  case replyCancelled
  /// All audio of the reply was delivered.
  case delivered
  /// The user's audio has ended.
  case audioEnded
  /// The graph drains.
  case drain
  /// Time has passed.
  case tick
}

/// An action a session asks for.
public enum BailianAction: Sendable, Hashable {
  /// Open a new WebSocket, with a new task id.
  case connect
  /// Close the WebSocket, and ignore what still arrives.
  case disconnect
  /// Send a message.
  case send(BailianRequest)
  /// Post an event.
  case post(DialogEvent)
  /// Deliver the audio that just arrived.
  case deliver
  /// The audio delivered so far is a complete utterance.
  case endUtterance
  /// Cancel the reply.
  case cancelReply
  /// Use this key for the next connection.
  case useKey(String)
  /// The session has ended; with an error when it failed.
  case end(DialogError?)
}

/// What to do with the user's audio.
public enum BailianUplink: String, Sendable, Hashable, CaseIterable {
  /// Keep the latest of it until it may be sent.
  case keep
  /// Send it, after what was kept.
  case send
  /// Send silence of the same length instead.
  case silence
  /// Discard it, and what was kept.
  case drop
}

/// The rules of a session.
public struct BailianRules: Sendable, Hashable {
  /// The content of the message `Start`, with mode and formats.
  public var start: BailianStart
  /// True: playback reports what was heard, and the service is informed of it. False: delivered audio counts as heard.
  public var followsPlayback = true
  /// When to open the video channel.
  public var live = Live.command
  /// Backoff, and when to give up.
  public var reconnect: ReconnectPolicy

  /// Interval of heartbeats. The vendor's gateway closes after 60 s without a message from the service, and 50 s are recommended.
  public var heartBeat: Nanoseconds = .milliseconds(20_000)
  /// Timeout from the opening of the WebSocket to the first Listening.
  public var begin: Nanoseconds = .milliseconds(10_000)
  /// Longest time without any message from the service, heartbeats included.
  public var silence: Nanoseconds = .milliseconds(50_000)
  /// Longest time to play a reply that has arrived completely.
  public var playback: Nanoseconds = .milliseconds(300_000)
  /// After the end of the user's audio: this long without activity ends the dialogue; 0: never.
  public var linger: Nanoseconds = 0
  /// How long to wait for a new key after the service rejected the old one; 0: not at all.
  public var renew: Nanoseconds = 0
  /// Timeout of the service's answer to Stop.
  public var close: Nanoseconds = .milliseconds(2_000)

  /// When the video channel is opened: never, on the service's command, or at the start.
  public enum Live: String, Sendable, Hashable, CaseIterable {
    /// Never.
    case never
    /// On the command of the service.
    case command
    /// At the start of the dialogue.
    case start
  }

  /// Creates rules with the default times.
  public init(_ start: BailianStart, reconnect: ReconnectPolicy) {
    self.start = start
    self.reconnect = reconnect
  }
}
