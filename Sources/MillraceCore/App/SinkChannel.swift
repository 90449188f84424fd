internal import Synchronization

/// The way from a graph to the program, behind one `app.sink`.
///
/// The node copies packets into blocks of the channel's own pool; the program copies them out, so that what it keeps holds nothing of the
/// graph. Several tasks may read: each packet goes to one of them. What is queued can still be read when the run has stopped.
@safe
package final class SinkChannel: AppChannel, @unchecked Sendable {
  private typealias Reader = CheckedContinuation<GraphPacket?, Never>

  /// Handles in the program's hands.
  private let handles = Atomic<Int>(0)
  /// Packets that found the queue full and no one who would read it.
  private let unread = Counter()
  /// The node waits for room.
  private let isBlocked = Atomic<Bool>(false)
  private let isStopped = Atomic<Bool>(false)

  // Under the program's lock.
  private var readers: [(number: Int, reader: Reader)] = []
  private var nextReader = 0

  /// A channel for packets of a shape, with a queue of so many.
  package init(_ place: Place, shape: OutputShape, capacity: Int) {
    super.init(
      place, .toProgram, format: shape.format, capacity: capacity,
      pool: BlockPool(blockBytes: Self.blockBytes(shape), blockCount: Self.blocks(capacity)))
  }

  /// Packets its queue holds, by checked parameters of an `app.sink`.
  package static func capacity(_ parameters: ParameterValues, _ format: Format) -> Int {
    parameters.has("capacity") ? parameters.integer("capacity") : AppDefaults.capacity(of: format.kind)
  }

  private static func blocks(_ capacity: Int) -> Int { capacity + 2 }

  private static func blockBytes(_ shape: OutputShape) -> Int {
    max(shape.packetBytes, shape.format == .event ? EventWriter.eventBytes : 1)
  }

  /// Bytes a channel takes, before it is made.
  package static func byteCount(_ shape: OutputShape, capacity: Int) -> Int {
    BlockPool.byteCount(blockBytes: blockBytes(shape), blockCount: blocks(capacity))
      .addingClamped(Link.byteCount(limit: capacity, policy: .block, burst: 1, isLocal: false))
  }

  // MARK: The node's side

  /// What the node is to do with its next packet.
  package enum Room {
    /// Put it in.
    case free
    /// Leave it where it is: the program wakes the node when it has read.
    case full
    /// Drop it: the queue is full and the program has no handle to read it with.
    case unread
  }

  /// Whether a packet may be put in. Only the node.
  package func room() -> Room {
    if unsafe link.pointee.hasRoomOrAsks() {
      isBlocked.store(false, ordering: .relaxed)
      return .free
    }
    guard handles.load(ordering: .acquiring) > 0 else { return .unread }
    isBlocked.store(true, ordering: .relaxed)
    return .full
  }

  /// Queues a copy of a packet. Only the node, after it saw room.
  package func put(_ packet: borrowing Packet) {
    guard let copy = packet.copied(into: pool) else {
      unsafe link.pointee.noteLost()
      return
    }
    _ = unsafe link.pointee.put(copy)
  }

  /// Counts a packet that was dropped because the program reads nothing. Only the node.
  package func noteUnread() { unread.add() }

  /// Nothing more will come. Only the node.
  package func end() { unsafe link.pointee.end() }

  /// True when a virtual clock has to wait for the program. Only the worker.
  package var holdsClock: Bool {
    guard isBlocked.load(ordering: .relaxed), handles.load(ordering: .acquiring) > 0 else { return false }
    return unsafe !link.pointee.hasRoom()
  }

  // MARK: The program's side

  /// Packets that the program never got: the queue was full and had no reader.
  package var droppedCount: Int { unsafe unread.current + counters.pointee.droppedNewest.current }

  /// The program has one more handle.
  package func open() { handles.add(1, ordering: .acquiringAndReleasing) }

  /// A handle is gone. With the last one the node stops to wait.
  package func close() {
    if handles.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { wakeNode() }
  }

  /// The oldest packet; nil when none is queued.
  package func tryNext() -> GraphPacket? {
    turn.lock()
    defer { turn.unlock() }
    return pop()
  }

  /// True when nothing is queued and nothing will come.
  package var isOver: Bool {
    turn.lock()
    defer { turn.unlock() }
    return isAtEnd
  }

  /// The next packet; waits for one. nil at the end, or when the task is cancelled.
  nonisolated(nonsending) package func next() async -> GraphPacket? {
    let (packet, number) = begin()
    if let packet { return packet }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { (reader: Reader) in
        turn.lock()
        // The handler takes the same lock: it has either not run yet, or this sees that it did.
        let answer = look(isCancelled: Task.isCancelled)
        if answer == nil { readers.append((number, reader)) }
        turn.unlock()
        if let answer { reader.resume(returning: answer) }
      }
    } onCancel: {
      turn.lock()
      let place = readers.firstIndex { $0.number == number }
      let reader = place.map { readers.remove(at: $0).reader }
      turn.unlock()
      reader?.resume(returning: nil)
    }
  }

  /// The run has stopped: nothing more comes.
  package func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    deliver()
  }

  private func begin() -> (GraphPacket?, number: Int) {
    turn.lock()
    defer { turn.unlock() }
    nextReader += 1
    return (readers.isEmpty ? pop() : nil, nextReader)
  }

  /// A packet, or the end; nil when there is neither, and news will come. Under the lock.
  private func look(isCancelled: Bool) -> GraphPacket?? {
    if isCancelled { return .some(nil) }
    awaitNews()
    if readers.isEmpty, let packet = pop() { return packet }
    return isAtEnd ? .some(nil) : nil
  }

  private func pop() -> GraphPacket? {
    guard let packet = unsafe link.pointee.take(generation: replies.current) else { return nil }
    return GraphPacket(packet, format: format)
  }

  private var isAtEnd: Bool {
    // The stop first, the packets second: what was put in before it is seen.
    unsafe isStopped.load(ordering: .sequentiallyConsistent) ? link.pointee.isEmpty() : link.pointee.isOver()
  }

  override func deliver() {
    turn.lock()
    var answers: [(Reader, GraphPacket?)] = []
    var hasAsked = false
    while !readers.isEmpty {
      if let packet = pop() {
        answers.append((readers.removeFirst().reader, packet))
      } else if isAtEnd {
        answers.append((readers.removeFirst().reader, nil))
      } else if hasAsked {
        break
      } else {
        awaitNews()
        hasAsked = true
      }
    }
    turn.unlock()
    for (reader, packet) in answers { reader.resume(returning: packet) }
  }
}
