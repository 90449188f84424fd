internal import Synchronization

/// A value that a live parameter takes. Choices travel as their index in the contract's list.
public enum LiveValue: Sendable, Hashable {
  case bool(Bool)
  case integer(Int)
  case number(Double)
  case choice(Int)
  /// A text, such as a path. Taken apart or let go of on the control side: both ask the heap.
  case string(String)

  /// The value as a number; false and true are 0 and 1, and a text is 0.
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

/// Something told to one node while it runs. Read before the node's packets.
public enum ControlMessage: ~Copyable, Sendable {
  /// A live parameter, by its index in the contract, takes a value; checked against the contract before it is sent. Nodes
  /// read it by `LiveParameter.update`, which compares the index.
  case set(parameter: Int, LiveValue)
  /// UTF-8 text, usually a JSON object, whose meaning is the node's own.
  case text(Packet)
  /// Somebody may be speaking over the reply: hold it or lower it. Only to nodes whose contract says `playsReplies`.
  case duck
  /// Nobody was: the reply goes on with the sample after the last one heard.
  case resume
}

/// A small queue of control messages to one node: any thread sends, the node's worker receives.
///
/// Senders take turns on a lock; the worker never does. It does not grow: a full mailbox refuses.
@safe
@usableFromInline package final class Mailbox: Sendable {
  /// What became of a message.
  package enum Answer: Sendable, Hashable {
    /// It is in the mailbox.
    case taken
    /// There is no room; send again when the node has read some.
    case full
    /// The node has ended, and reads no more.
    case closed
  }

  private let turn = Lock()
  private let closed = Atomic<Bool>(false)
  private nonisolated(unsafe) var writer: RingWriter<ControlMessage>
  @usableFromInline nonisolated(unsafe) var reader: RingReader<ControlMessage>

  /// Makes an empty mailbox for at least `capacity` messages.
  package init(capacity: Int = 16) {
    let ring = Ring<ControlMessage>(minimumCapacity: capacity)
    unsafe writer = ring.writer
    unsafe reader = ring.reader
  }

  /// Puts a message in. Any thread; takes a lock that only senders take. A mailbox that closes at this very moment may still take
  /// it: its worker finds it there, and tells it as lost.
  package func send(_ message: consuming ControlMessage) -> Answer {
    if isClosed { return .closed }
    turn.lock()
    let hasRoom = unsafe writer.hasRoom
    if hasRoom { unsafe writer.push(message) }
    turn.unlock()
    return hasRoom ? .taken : .full
  }

  /// True when the node takes no more messages. Any thread.
  package var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// Takes no more messages. Those that are there can still be received. Only the node's worker.
  package func close() { closed.store(true, ordering: .releasing) }

  /// Takes the oldest message. Only the node's worker may call this.
  @inlinable package func receive() -> ControlMessage? {
    unsafe reader.pop()
  }
}
