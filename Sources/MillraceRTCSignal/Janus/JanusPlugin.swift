internal import MillraceDialog
internal import MillraceJSON

/// What a request of a plugin was for: decides what its refusal means.
enum JanusPurpose: Hashable, Sendable {
  /// Joining, watching, setting up: its refusal ends the signalling.
  case join
  /// The offer or answer of a session. Its refusal ends the session, or the signalling where there is only one.
  case describe
  /// A command, by its number.
  case command(Int)
  /// Anything whose refusal changes nothing, such as leaving.
  case other
}

/// What happened, for the machine of a plugin. Sessions and handles have the same numbers: 0 the main one.
enum JanusInput: Sendable {
  /// A handle is attached.
  case attached(Int)
  /// A message of the plugin that is no refusal.
  case event(Int, JSONValue, JanusDescription?)
  /// A request was refused. The machine of the session answers commands, and ends the signalling, by itself.
  case refused(Int, JanusPurpose, DialogError)
  /// The description of this side.
  case describe(Int, sdp: String)
  /// A new offer of this side, or the wish for one of the other.
  case restart(Int, sdp: String)
  /// A command, with its number; only those that `takes` has allowed.
  case command(Int, DialogCommand)
  /// This side has given a session up; its handle is detached already.
  case ended(Int)
  /// The other side has closed the connection of a session.
  case hungUp(Int)
}

/// What a plugin's machine asks for.
enum JanusAction: Sendable {
  /// Attach a further handle.
  case attach(Int)
  /// Send a message of the plugin.
  case send(Int, JSONValue, JanusDescription?, JanusPurpose)
  /// Detach a handle.
  case detach(Int)
  case report(SignalEvent)
  /// A command is carried out, or is not.
  case answer(Int, DialogError?)
  /// The signalling is over.
  case fail(DialogError)
}

/// The state machine of one plugin: pure, called by one thread.
protocol JanusPlugin: Sendable {
  /// Handles an input, and returns the actions it causes, in their order. Every input is legal at any time.
  mutating func handle(_ input: JanusInput) -> [JanusAction]
  /// What is sent before the handles are detached; nil: nothing.
  var leaveRequest: JSONValue? { get }
  /// True where a refused description ends one session and not the signalling.
  func survivesRefusal(of session: Int) -> Bool
}

extension JanusPlugin {
  var leaveRequest: JSONValue? { nil }
  func survivesRefusal(of session: Int) -> Bool { session != 0 }
}

extension JanusSettings {
  /// The machine of the plugin.
  func makePlugin() -> any JanusPlugin {
    switch plugin {
    case .echotest: return JanusEchoTest(media)
    case .audiobridge: return JanusAudioBridge(self)
    case .videoroom: return JanusVideoRoom(self)
    case .streaming: return JanusStreaming(self)
    case .textroom: return JanusTextRoomSetup()
    }
  }
}

extension JanusPluginName {
  /// True for a command that the plugin has something like.
  func takes(_ command: DialogCommand) -> Bool {
    switch (self, command) {
    case (_, .refreshAuth(let token)): token != nil
    case (.audiobridge, .mute(.audio, _, nil)): true
    case (.videoroom, .mute(.audio, _, .some)), (.videoroom, .mute(.video, _, .some)): true
    case (.videoroom, .subscribe(_, .audio, _)), (.videoroom, .subscribe(_, .video, _)): true
    case (.audiobridge, .extra("kick", _)), (.videoroom, .extra("kick", _)): true
    default: false
    }
  }
}
