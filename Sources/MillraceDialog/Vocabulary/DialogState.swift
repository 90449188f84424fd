/// Where a dialogue with a service stands, whoever the service is.
public enum DialogState: String, Sendable, Hashable, CaseIterable {
  /// Not begun.
  case idle
  /// A connection, a login or a room is being opened.
  case connecting
  /// The service hears the user. A reply that is still being played here is over: the service will not go on with it.
  ///
  /// A service that would take sound at any time has no such word; its node says it when the reply was heard to its end.
  case listening
  /// The user has been heard; the answer is being made.
  case thinking
  /// The answer comes.
  case responding
  /// The connection is lost and is being opened again; the dialogue goes on after it.
  case reconnecting
  /// Over, for good.
  case closed
}

/// How the user takes the floor.
public enum DialogMode: String, Sendable, Hashable, CaseIterable {
  /// Speaks while a button is held.
  case pushToTalk
  /// Begins with a tap; the service hears the end.
  case tapToTalk
  /// Speaks at any time, over the reply too.
  case duplex
}

/// Who cut a reply off.
public enum InterruptionSource: String, Sendable, Hashable, CaseIterable {
  /// The user spoke or asked for it.
  case user
  /// The service by itself.
  case service
  /// Something on this machine.
  case local
}
