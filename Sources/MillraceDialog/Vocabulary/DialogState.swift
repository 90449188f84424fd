/// The state of a dialogue, the same for every service.
public enum DialogState: String, Sendable, Hashable, CaseIterable {
  /// Not started.
  case idle
  /// Opening a connection, logging in, joining a room, or calling: a call that rings is `connecting`.
  case connecting
  /// The service listens to the user. A reply that is still playing here has ended for the service.
  ///
  /// A service that accepts audio at any time has no such message; its node reports this state when the reply was played to its end.
  case listening
  /// The user has spoken; the answer is being prepared.
  case thinking
  /// The answer is arriving.
  case responding
  /// The connection is lost and is being reopened; the dialogue continues afterwards.
  case reconnecting
  /// Closed. A node that lives on (`"afterEnd":"wait"`) is `connecting` next, on the command `begin`.
  case closed
}

/// How the user takes a turn.
public enum DialogMode: String, Sendable, Hashable, CaseIterable {
  /// Speaks while holding a button.
  case pushToTalk
  /// Starts with a tap; the service detects the end.
  case tapToTalk
  /// Speaks at any time, over the reply too.
  case duplex
}

/// Who interrupted a reply.
public enum InterruptionSource: String, Sendable, Hashable, CaseIterable {
  /// The user, by voice or command.
  case user
  /// The service by itself.
  case service
  /// Something on this machine.
  case local
}
