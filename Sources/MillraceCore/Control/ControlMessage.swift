internal import Synchronization

/// A value to set a live parameter to. A choice is sent as its index in the contract's list.
public enum LiveValue: Sendable, Hashable {
  /// True or false.
  case bool(Bool)
  /// A whole number.
  case integer(Int)
  /// A number.
  case number(Double)
  /// The index of one of the contract's words.
  case choice(Int)
  /// A text, such as a path. Reading or releasing it uses the heap, so do that on the control side.
  case string(String)

  /// The value as a number: false and true are 0 and 1, a text is 0.
  @inlinable public var asNumber: Double {
    switch self {
    case .bool(let value): value ? 1 : 0
    case .integer(let value): Double(value)
    case .number(let value): value
    case .choice(let index): Double(index)
    case .string: 0
    }
  }
}

/// A message to one node while it runs. The node receives it before its packets.
public enum ControlMessage: ~Copyable, Sendable {
  /// Sets a live parameter, named by its index in the contract. The value was checked against the contract before it was sent.
  /// Nodes read it with `LiveParameter.update`, which compares the index.
  case set(parameter: Int, LiveValue)
  /// UTF-8 text, usually a JSON object, whose meaning the node defines.
  case text(Packet)
  /// The user may be speaking over the reply: pause it or lower it. Sent only to nodes whose contract sets `playsReplies`.
  case duck
  /// The user was not speaking: the reply continues with the sample after the last one played.
  case resume
}

/// A small queue of control messages to one node: any thread sends, the node's worker receives.
///
/// Senders share a lock that the worker never takes. The mailbox does not grow: a full one refuses messages.
@safe
@usableFromInline package final class Mailbox: Sendable {
  /// What happened to a message.
  package enum Answer: Sendable, Hashable {
    /// It is in the mailbox.
    case taken
    /// There is no room; send again after the node has read some messages.
    case full
    /// The node has ended and reads no more messages.
    case closed
  }

  private let turn = Lock()
  private let closed = Atomic<Bool>(false)
  private nonisolated(unsafe) var writer: RingWriter<ControlMessage>
  @usableFromInline nonisolated(unsafe) var reader: RingReader<ControlMessage>

  /// Creates an empty mailbox for at least `capacity` messages.
  package init(capacity: Int = 16) {
    let ring = Ring<ControlMessage>(minimumCapacity: capacity)
    unsafe writer = ring.writer
    unsafe reader = ring.reader
  }

  /// Queues a message. Any thread; takes a lock that only senders take. A mailbox that is just closing may still accept the
  /// message: its worker finds it and reports it as lost.
  package func send(_ message: consuming ControlMessage) -> Answer {
    if isClosed { return .closed }
    turn.lock()
    let hasRoom = unsafe writer.hasRoom
    if hasRoom { unsafe writer.push(message) }
    turn.unlock()
    return hasRoom ? .taken : .full
  }

  /// True when the mailbox accepts no more messages. Any thread.
  package var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// Accepts no more messages. Those queued can still be received. Only the node's worker may call it.
  package func close() { closed.store(true, ordering: .releasing) }

  /// Takes the oldest message; nil when there is none. Only the node's worker may call it.
  @inlinable package func receive() -> ControlMessage? {
    unsafe reader.pop()
  }
}
