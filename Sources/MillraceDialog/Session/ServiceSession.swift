public import MillraceCore

/// A dialogue with a service as a pure state machine: it takes what happened and when, and returns what to do.
///
/// It has no socket, no clock and no thread, so that every order of events is a unit test. `ServiceConnection` of `MillraceService` drives
/// one over a wire; calls come from one thread at a time, and time never runs backwards.
public protocol ServiceSession: Sendable {
  /// A message of the service.
  associatedtype Message: Sendable, Hashable
  /// A message to the service.
  associatedtype Request: Sendable, Hashable

  /// Handles an input at a time, and returns the actions it causes, in the order in which they are to be carried out. Every input is
  /// legal in every phase.
  mutating func handle(
    _ input: ServiceInput<Message>, at time: Nanoseconds
  ) -> [ServiceAction<Request>]

  /// When to call with `tick`; nil: never.
  var deadline: Nanoseconds? { get }
  /// What to do with the user's audio now.
  var uplink: VoiceUplink { get }
  /// True: what the user says is replaced by silence of the same length.
  var isMuted: Bool { get }
  /// True when images may be sent now.
  var takesPictures: Bool { get }
  /// True from the moment the session has asked the service to end the dialogue.
  var isEnding: Bool { get }
  /// True after the end: nothing is sent any more.
  var isClosed: Bool { get }
  /// The connection is lost, and the next attempt has not succeeded yet: a graph that drains does not wait for it.
  var isUnreachable: Bool { get }

  /// Nothing was read from the service, because the graph had no room: timeouts for its silence start again.
  mutating func excuseSilence(at time: Nanoseconds)
}

extension DialogError {
  /// The failure of a session that is ended with `DialogCommand.timeout` although nothing has gone wrong yet.
  public static func notReady(_ vendor: String) -> DialogError {
    DialogError(
      vendor: vendor, category: .network, reaction: .refuse, scope: .connection,
      text: "the service was not ready in the time that dialog.turn allows; raise its \"connect\"")
  }
}

extension ServiceSession {
  /// False: the service takes what is said as soon as it is said.
  public var isUnreachable: Bool { false }
}

/// An input of a service's session.
public enum ServiceInput<Message: Sendable & Hashable>: Sendable, Hashable {
  /// Start.
  case start
  /// The connection is open.
  case opened
  /// A valid message.
  case message(Message)
  /// An invalid message, and what is wrong with it.
  case invalidMessage(String)
  /// Audio of a reply. Its bytes stay outside.
  case audio
  /// An image of a reply. Its bytes stay outside.
  case image
  /// The endpoint has kept an image of the input `image` in place of the one it held: a later message to the service refers to it.
  case imageHeld
  /// The connection was lost, or could not be opened.
  case lost(DialogError)
  /// A command of the program, the user or `dialog.turn`, and the `id` under which it is to be answered.
  ///
  /// A command the service has no equivalent for is refused. `begin` also comes while the session is ending, and then waits for the end: a
  /// session that supports it posts the state `closed`, disconnects and does not return `end` where its dialogue has ended as intended; it
  /// waits, refuses other commands, and on `begin` starts as on `start`, with `connecting`. What fails still ends with `end`, as does a
  /// session that drains.
  case command(DialogCommand, id: String? = nil)
  /// The first sample of a reply was played.
  case audible
  /// An utterance was played to its end.
  case finished
  /// Another node cancelled the reply.
  case replyCancelled
  /// All audio of the reply was delivered.
  case delivered
  /// The first frame of the user's audio, or of a bot's reply, was sent since the stream began.
  case voiceBegan
  /// The user's audio has ended.
  case audioEnded
  /// A bot's reply that drives the service has been sent completely.
  case voiceEnded
  /// The first picture of the stream with replies is shown.
  case firstPicture
  /// The graph drains: its sources have ended, and what they had to say was handed over. What is under way is finished, and then the
  /// session ends.
  case sourcesEnded
  /// All inputs of the node have ended.
  case drain
  /// Time has passed.
  case tick
}

/// An action that a service's session asks for.
public enum ServiceAction<Request: Sendable & Hashable>: Sendable, Hashable {
  /// Open a new connection.
  case connect
  /// Close the connection, and ignore what still arrives over it.
  case disconnect
  /// Send a message.
  case send(Request)
  /// Post an event.
  case post(DialogEvent)
  /// Deliver the audio that just arrived.
  case deliver
  /// Deliver the image that just arrived to the output `image`; without this action it is discarded.
  case deliverImage
  /// Deliver the path of a received file to the output `file`.
  case deliverFile(String)
  /// The audio delivered so far is a complete utterance.
  case endUtterance
  /// Cancel the reply.
  case cancelReply
  /// Replies are a stream at this address, for other nodes to play; nil: it is over. The address is a secret, and is learnt before it is
  /// emitted.
  case stream(String?)
  /// Use this credential, a key or a token, for the next connection.
  case useCredential(String)
  /// The command that was just handled is refused: answered with this error where it has an `id`, otherwise posted as an `error`.
  case refuse(DialogError)
  /// The command that was just handled is answered by an `answer` event later. Without this action and without
  /// `refuse` it is answered at once, as carried out.
  case answerLater
  /// The session has ended; with an error when it failed.
  case end(DialogError?)
}

/// What to do with the user's audio.
public enum VoiceUplink: String, Sendable, Hashable, CaseIterable {
  /// Keep the latest of it until it may be sent.
  case keep
  /// Send it, after what was kept.
  case send
  /// Send silence of the same length instead.
  case silence
  /// Discard it, and what was kept.
  case drop
}
