internal import Synchronization

/// The channel from a graph to the program, behind one `app.sink`.
///
/// The node copies packets into blocks of the channel's own pool, and the program copies them out, so it never holds memory of the graph.
/// Several tasks may read; each packet goes to one of them. Queued packets can still be read after the run has stopped.
@safe
package final class SinkChannel: AppChannel, @unchecked Sendable {
  private typealias Reader = CheckedContinuation<GraphPacket?, Never>

  /// Handles that the program holds.
  private let handles = Atomic<Int>(0)
  /// Packets dropped because the queue was full and had no reader.
  private let unread = Counter()
  /// The node waits for room.
  private let isBlocked = Atomic<Bool>(false)
  private let isStopped = Atomic<Bool>(false)

  // Under the program's lock.
  private var readers: [(number: Int, reader: Reader)] = []
  private var nextReader = 0

  /// Creates a channel for packets of a shape, with a queue of `capacity` packets.
  package init(_ place: Place, shape: OutputShape, capacity: Int) {
    super.init(
      place, .toProgram, format: shape.format, capacity: capacity,
      pool: BlockPool(blockBytes: Self.blockBytes(shape), blockCount: Self.blocks(capacity)))
  }

  /// The capacity of the queue in packets, from the checked parameters of an `app.sink`.
  package static func capacity(_ parameters: ParameterValues, _ format: Format) -> Int {
    parameters.has("capacity") ? parameters.integer("capacity") : AppDefaults.capacity(of: format.kind)
  }

  private static func blocks(_ capacity: Int) -> Int { capacity + 2 }

  private static func blockBytes(_ shape: OutputShape) -> Int {
    max(shape.packetBytes, shape.format == .event ? EventWriter.eventBytes : 1)
  }

  /// Bytes that a channel would take.
  package static func byteCount(_ shape: OutputShape, capacity: Int) -> Int {
    BlockPool.byteCount(blockBytes: blockBytes(shape), blockCount: blocks(capacity))
      .addingClamped(Link.byteCount(limit: capacity, policy: .block, burst: 1, isLocal: false))
  }

  // MARK: The node's side

  /// What the node does with its next packet.
  package enum Room {
    /// Queue it.
    case free
    /// Leave it on the link: the program wakes the node after reading.
    case full
    /// Drop it: the queue is full and the program holds no handle.
    case unread
  }

  /// Whether a packet can be queued. Only the node may call it.
  package func room() -> Room {
    if unsafe link.pointee.hasRoomOrRequestsWake() {
      isBlocked.store(false, ordering: .relaxed)
      return .free
    }
    guard handles.load(ordering: .acquiring) > 0 else { return .unread }
    isBlocked.store(true, ordering: .relaxed)
    return .full
  }

  /// Queues a copy of a packet. Only the node may call it, after `room` was `free`.
  package func put(_ packet: borrowing Packet) {
    guard let copy = packet.copied(into: pool) else {
      unsafe link.pointee.countLost()
      return
    }
    _ = unsafe link.pointee.put(copy)
  }

  /// Counts a packet dropped because the sink has no reader. Only the node may call it.
  package func countUnread() { unread.add() }

  /// Ends the channel. Only the node may call it.
  package func end() {
    isBlocked.store(false, ordering: .relaxed)
    unsafe link.pointee.end()
  }

  /// True when a virtual clock has to wait for the program. Only the worker may call it.
  ///
  /// What the program has read counts only when the node has seen the room: before that its wake-up may still be on the way.
  package var holdsClock: Bool {
    isBlocked.load(ordering: .relaxed) && handles.load(ordering: .acquiring) > 0
  }

  // MARK: The program's side

  /// Packets that the program never received, because the queue was full and had no reader.
  package var droppedCount: Int { unsafe unread.current + counters.pointee.droppedNewest.current }

  /// Adds a handle.
  package func open() { handles.add(1, ordering: .acquiringAndReleasing) }

  /// Removes a handle. Without any, the node no longer waits for room.
  package func close() {
    if handles.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { wakeNode() }
  }

  /// Takes the oldest packet; nil when none is queued.
  package func tryNext() -> GraphPacket? {
    turn.lock()
    defer { turn.unlock() }
    return pop()
  }

  /// True when the channel has ended and is empty.
  package var isOver: Bool {
    turn.lock()
    defer { turn.unlock() }
    return isAtEnd
  }

  /// Waits for the next packet; nil at the end or when the task is cancelled.
  nonisolated(nonsending) package func next() async -> GraphPacket? {
    let (packet, number) = begin()
    if let packet { return packet }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { (reader: Reader) in
        turn.lock()
        // The cancellation handler takes the same lock: either it has not run yet, or its effect is visible here.
        let answer = poll(isCancelled: Task.isCancelled)
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

  /// Ends the channel because the run has stopped.
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

  /// A packet or the end; nil when there is neither and a wake-up was requested. Under the lock.
  private func poll(isCancelled: Bool) -> GraphPacket?? {
    if isCancelled { return .some(nil) }
    requestWake()
    if readers.isEmpty, let packet = pop() { return packet }
    return isAtEnd ? .some(nil) : nil
  }

  private func pop() -> GraphPacket? {
    guard let packet = unsafe link.pointee.take(generation: replies.current) else { return nil }
    return GraphPacket(packet, format: format)
  }

  private var isAtEnd: Bool {
    // The stop flag is read first, so packets queued before the stop are seen.
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
        requestWake()
        hasAsked = true
      }
    }
    turn.unlock()
    for (reader, packet) in answers { reader.resume(returning: packet) }
  }
}
