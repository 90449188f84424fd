public import MillraceCore
public import MillraceDialog

/// What happens to a session.
public enum BailianInput: Sendable, Hashable {
  /// Begin.
  case start
  /// The WebSocket is there.
  case opened
  /// A text frame that could be read.
  case message(BailianMessage)
  /// A text frame that could not be read, and why.
  case garbled(String)
  /// A binary frame. Its bytes stay outside.
  case sound
  /// The WebSocket is gone, or never came to be.
  case lost(DialogError)
  /// What the program, the user's hand or `dialog.turn` asks for.
  case command(DialogCommand)
  /// The first sample of a reply is heard.
  case audible
  /// An utterance was heard to its end.
  case finished
  /// Replies were voided by somebody else.
  case voided
  /// All sound of the reply has been handed on.
  case delivered
  /// The user's sound has ended for good.
  case soundOver
  /// The graph ends, and lets what is inside of it flow out.
  case leaving
  /// Time has passed.
  case tick
}

/// What a session asks for.
public enum BailianAction: Sendable, Hashable {
  /// A new WebSocket, and a task id that was never used.
  case connect
  /// Says good-bye to the WebSocket; nothing more is read from it.
  case disconnect
  /// Says something to the service.
  case send(BailianRequest)
  /// Tells the graph of something.
  case post(DialogEvent)
  /// Hands the sound that just came on.
  case deliver
  /// What was handed on is a whole utterance.
  case endUtterance
  /// Nothing more of the reply may be heard.
  case voidReply
  /// The next connection uses this key.
  case useKey(String)
  /// It is over; with an error when it failed.
  case end(DialogError?)
}

/// What becomes of the user's sound.
public enum BailianUplink: String, Sendable, Hashable, CaseIterable {
  /// It is kept, the latest of it, until it may be sent.
  case keep
  /// It is sent, what was kept before it.
  case send
  /// As much silence is sent in its place.
  case silence
  /// It is let go of, and so is what was kept.
  case drop
}

/// How a session behaves.
public struct BailianRules: Sendable, Hashable {
  /// What `Start` says; mode and formats are in it.
  public var start: BailianStart
  /// True: playback tells what is heard, and the service is told so. False: what was handed on counts as heard.
  public var followsPlayback = true
  /// Asks for the film's channel by itself: when the dialogue begins, when the service sends the command for it, or never.
  public var live = Live.command
  /// How long to wait before a connection is tried again, and when to give up.
  public var reconnect: ReconnectPolicy

  /// Between two heartbeats. The vendor's gateway closes after 60 s without a message from the service, and advises 50.
  public var heartBeat: Nanoseconds = .milliseconds(20_000)
  /// From the WebSocket to the first Listening.
  public var begin: Nanoseconds = .milliseconds(10_000)
  /// Nothing at all from the service, not even a heartbeat's echo.
  public var silence: Nanoseconds = .milliseconds(50_000)
  /// For the last sample of a reply to be heard, once all of it has come.
  public var playback: Nanoseconds = .milliseconds(300_000)
  /// After the end of the user's sound: so long without anything, and the dialogue is ended; 0: it never is.
  public var linger: Nanoseconds = 0
  /// For a new key, when the service does not take the old one any more; 0: none is waited for.
  public var renew: Nanoseconds = 0
  /// For the service's good-bye.
  public var close: Nanoseconds = .milliseconds(2_000)

  /// When a film's channel is asked for: never, when the service commands it, or at the start.
  public enum Live: String, Sendable, Hashable, CaseIterable {
    case never, command, start
  }

  /// Rules with the usual times.
  public init(_ start: BailianStart, reconnect: ReconnectPolicy) {
    self.start = start
    self.reconnect = reconnect
  }
}
