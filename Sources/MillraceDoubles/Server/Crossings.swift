/// Messages of a client that may cross a change of state on the wire.
///
/// When a double changes its state by itself, for example because a voice interrupts a reply, messages may be on their way that were right
/// when the client sent them and are wrong when they arrive. They are not violations: the client could not have known. Each may arrive
/// once, until the client shows by another message that it has noticed the change.
///
/// ```swift
/// crossings.expect([.playbackStarted])       // the reply is cut off here
/// …
/// if state != .responding, !crossings.take(.playbackStarted) { server.violate("startedOutOfTurn", …) }
/// ```
public struct Crossings<Message: Hashable & Sendable>: Sendable, Hashable {
  private var expected: Set<Message> = []

  /// Expects no message.
  public init() {}

  /// Expects these messages, each once, and no others.
  public mutating func expect(_ messages: Set<Message>) { expected = messages }

  /// True when the message may still arrive.
  public func contains(_ message: Message) -> Bool { expected.contains(message) }

  /// True when the message was expected; it then is no longer.
  public mutating func take(_ message: Message) -> Bool { expected.remove(message) != nil }

  /// Expects no message any more: the client knows the current state.
  public mutating func clear() { expected = [] }
}
