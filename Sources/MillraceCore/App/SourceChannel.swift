internal import Glibc
internal import Synchronization

/// The channel from the program into a graph, behind one `app.source`.
///
/// The program's data is copied into blocks of the channel's own pool and cut into packets; the node copies these into blocks of the graph
/// and emits them. The channel belongs to the run, so a restarted node finds what is queued. Sends from several threads are serialised,
/// each as a whole.
@safe
package final class SourceChannel: AppChannel, @unchecked Sendable {
  /// The type of the data that a program sends.
  package enum Payload: Sendable {
    case int16, float, bytes, text
  }

  /// Size in bytes of the largest packet; for PCM, of every packet.
  package let packetBytes: Int
  private let settings: SourceSettings
  /// Bytes of one sample of all channels; 1 for formats other than PCM.
  private let frameBytes: Int
  /// The graph drains: the channel accepts no more.
  private let isRefusing = Atomic<Bool>(false)
  /// The node found nothing and waits for the program. Used by its worker only.
  private var isAwaited = false

  // Under the program's lock.
  private var partial: Packet?
  private var filled = 0
  /// The reply that the partial packet belongs to.
  private var generation: UInt32 = 0
  /// Samples per channel before the partial packet.
  private var position: Int64 = 0
  /// Data was dropped before the partial packet.
  private var isBroken = false
  private var end: SourceProblem.Code?
  /// A send is in progress and may be waiting for room.
  private var isSending = false
  private var turns: [(number: Int, send: CheckedContinuation<Bool, Never>)] = []
  private var nextTurn = 0
  private var waiter: CheckedContinuation<Void, Never>?

  /// Creates a channel for packets of a shape.
  package init(_ place: Place, shape: OutputShape, settings: SourceSettings) {
    packetBytes = shape.packetBytes
    self.settings = settings
    frameBytes = shape.format.frameBytes ?? 1
    partial = nil
    super.init(
      place, .toNode, format: shape.format, capacity: settings.capacity,
      pool: BlockPool(blockBytes: shape.packetBytes, blockCount: Self.blocks(settings.capacity)))
  }

  deinit {
    // Returns its block while the pool, which ends with the channel, still exists.
    partial = nil
  }

  /// Blocks for the queue, the program's partial packet, the packet the node holds, and the last one at the end.
  private static func blocks(_ capacity: Int) -> Int { capacity + 4 }

  /// Bytes that a channel would take.
  package static func byteCount(packetBytes: Int, capacity: Int) -> Int {
    BlockPool.byteCount(blockBytes: packetBytes, blockCount: blocks(capacity))
      .addingClamped(Link.byteCount(limit: capacity, policy: .block, burst: 1, isLocal: false))
  }

  // MARK: The node's side

  /// Takes the oldest packet that is not stale. Only the node may call it.
  package func take(generation: UInt32) -> Packet? {
    guard let packet = unsafe link.pointee.take(generation: generation) else {
      isAwaited = true
      return nil
    }
    isAwaited = false
    return packet
  }

  /// True when `take` may return a packet. Only the node may call it.
  package func hasPacket(generation: UInt32) -> Bool {
    isAwaited = unsafe !link.pointee.hasPacket(generation: generation)
    return !isAwaited
  }

  /// True when the program has finished and the queue is empty. Only the node may call it.
  package var isOver: Bool {
    let isOver = unsafe link.pointee.isOver()
    if isOver { isAwaited = false }
    return isOver
  }

  /// Accepts no more from the program; what is queued can still be taken. Only the node may call it.
  package func refuse() {
    isRefusing.store(true, ordering: .sequentiallyConsistent)
    wake(0)
  }

  /// True when a virtual clock has to wait for the program. Only the worker may call it.
  ///
  /// What the program has sent counts only when the node has seen it: before that its wake-up may still be on the way.
  package var holdsClock: Bool {
    settings.holdsClock && isAwaited && !isRefusing.load(ordering: .relaxed)
  }

  // MARK: The program's side

  /// Packets dropped because the queue was full.
  package var droppedCount: Int { unsafe counters.pointee.droppedNewest.current }

  /// Sends without waiting; packets without room are dropped and counted.
  package func trySend(
    _ bytes: UnsafeRawBufferPointer, _ payload: Payload, ends: Bool
  ) throws(SourceProblem) -> SendResult {
    try check(payload, bytes.count)
    turn.lock()
    defer { turn.unlock() }
    var result = SendResult()
    guard !isSending else {
      // Another send is waiting for room, so the queue is full.
      result.dropped = max(1, bytes.count / packetBytes)
      for _ in 0..<result.dropped { unsafe link.pointee.countLost() }
      return result
    }
    var offset = 0
    if case .refused(let code) = unsafe advance(bytes, &offset, ends: ends, drops: true, &result) {
      throw .of(code, node)
    }
    return result
  }

  /// Sends everything. Waits for room, unless the source drops packets when it is full.
  nonisolated(nonsending) package func send<Element: BitwiseCopyable & Sendable>(
    _ elements: [Element], _ payload: Payload, ends: Bool
  ) async throws(SourceProblem) {
    try check(payload, elements.count * MemoryLayout<Element>.stride)
    guard await takeTurn() else { throw .of(.cancelled, node) }
    defer { passTurn() }
    var offset = 0
    while true {
      switch sendSome(elements, &offset, ends: ends) {
      case .done: return
      case .refused(let code): throw .of(code, node)
      case .full:
        guard !Task.isCancelled else {
          discardIncomplete()
          throw .of(.cancelled, node)
        }
        await waitForRoom()
      }
    }
  }

  /// Ends the source after what was sent. Remaining PCM is queued as a shorter packet.
  package func finish() {
    turn.lock()
    defer { turn.unlock() }
    guard end == nil else { return }
    filled -= filled % frameBytes
    // The link has room for one packet above its limit.
    if filled > 0 && !isRefusing.load(ordering: .sequentiallyConsistent) { push(endsUtterance: false) }
    end = .finished
    unsafe link.pointee.end()
    resumeAll()
  }

  /// Ends the channel because the run has stopped.
  /// - Parameter releasing: true when no worker accesses the node any more; what is queued is then discarded.
  package func stop(releasing: Bool) {
    turn.lock()
    defer { turn.unlock() }
    end = .stopped
    // The resumer may end before it serves this channel.
    cancelWake()
    if releasing { unsafe link.pointee.discard() }
    resumeAll()
  }

  private enum Step {
    case done, full
    case refused(SourceProblem.Code)
  }

  private func sendSome<Element>(_ elements: [Element], _ offset: inout Int, ends: Bool) -> Step {
    turn.lock()
    defer { turn.unlock() }
    var result = SendResult()
    return unsafe elements.withUnsafeBytes {
      unsafe advance($0, &offset, ends: ends, drops: settings.drops, &result)
    }
  }

  private var refusal: SourceProblem.Code? {
    if let end { return end }
    return isRefusing.load(ordering: .sequentiallyConsistent) ? .ended : nil
  }

  /// Fills and queues packets as long as there is room. Under the lock.
  private func advance(
    _ bytes: UnsafeRawBufferPointer, _ offset: inout Int, ends: Bool, drops: Bool, _ result: inout SendResult
  ) -> Step {
    if settings.isReply && filled > 0 && Packet.isNewer(replies.current, than: generation) { filled = 0 }
    while true {
      if let refusal { return .refused(refusal) }
      let isLast = offset == bytes.count
      let isCut = isLast && (ends || (filled > 0 && format.kind != .pcm))
      if filled == packetBytes || isCut {
        if unsafe link.pointee.hasRoom() {
          push(endsUtterance: isLast && ends)
          result.queued += 1
        } else if drops {
          dropPartial()
          result.dropped += 1
        } else {
          return .full
        }
        if isLast { return .done }
      } else if isLast {
        return .done
      } else {
        unsafe fill(bytes, &offset)
      }
    }
  }

  private func fill(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) {
    if filled == 0 { generation = replies.current }
    guard let packet = partial.take() ?? freshPacket(), let start = bytes.baseAddress else { return }
    let count = min(packetBytes - filled, bytes.count - offset)
    _ = unsafe memcpy(packet.block.start + filled, start + offset, count)
    filled += count
    offset += count
    partial = consume packet
  }

  private func freshPacket() -> Packet? {
    guard let block = pool.take() else { fatalError("the pool of source \"\(node)\" has no free block") }
    return Packet(block, byteCount: 0)
  }

  /// Queues the partial packet, or an empty one when there is none.
  private func push(endsUtterance: Bool) {
    guard var packet = partial.take() ?? freshPacket() else { return }
    packet.setByteCount(filled)
    let samples = duration(of: packet)
    packet.position = position
    packet.duration = samples
    if settings.isReply { packet.generation = filled > 0 ? generation : replies.current }
    if endsUtterance { packet.flags.insert(.endOfUtterance) }
    if isBroken { packet.flags.insert(.discontinuity) }
    isBroken = false
    position += Int64(samples)
    filled = 0
    _ = unsafe link.pointee.put(packet)
  }

  /// Drops the partial packet; what follows keeps its position.
  private func dropPartial() {
    unsafe link.pointee.countLost()
    isBroken = true
    guard var packet = partial.take() else { return }
    packet.setByteCount(filled)
    position += Int64(duration(of: packet))
    filled = 0
  }

  private func duration(of packet: borrowing Packet) -> Int {
    switch format {
    case .pcm: Int(packet.byteCount) / frameBytes
    case .opus(let rate, _): OpusDuration.samples(packet.samples(of: UInt8.self), rate: rate)
    default: 0
    }
  }

  /// Discards a packet that a cancelled send did not complete. Not for PCM, where the next send completes it.
  private func discardIncomplete() {
    guard format.kind != .pcm else { return }
    turn.lock()
    filled = 0
    turn.unlock()
  }

  private func check(_ payload: Payload, _ count: Int) throws(SourceProblem) {
    guard payload == format.payload else {
      throw SourceProblem(
        .wrongFormat,
        "source \"\(node)\" carries \(format), not \(payload.text); send \(format.payload.swift), or change the source's format"
      )
    }
    guard count <= packetBytes || format.isStream else {
      throw SourceProblem(
        .tooLarge,
        "\(count) bytes exceed the largest packet of source \"\(node)\", \(packetBytes) bytes; raise \"maxBytes\""
      )
    }
  }

  // MARK: Waiting

  /// Waits until no other send is in progress. False when the task was cancelled.
  private nonisolated(nonsending) func takeTurn() async -> Bool {
    guard let number = begin() else { return true }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { send in
        turn.lock()
        // The cancellation handler takes the same lock: either it has not run yet, or its effect is visible here.
        let answer: Bool? = Task.isCancelled ? false : isSending ? nil : true
        if answer == nil { turns.append((number, send)) }
        if answer == true { isSending = true }
        turn.unlock()
        if let answer { send.resume(returning: answer) }
      }
    } onCancel: {
      turn.lock()
      let place = turns.firstIndex { $0.number == number }
      let send = place.map { turns.remove(at: $0).send }
      turn.unlock()
      send?.resume(returning: false)
    }
  }

  /// Starts a send if none is in progress and returns nil; otherwise returns a number to wait with.
  private func begin() -> Int? {
    turn.lock()
    defer { turn.unlock() }
    guard isSending else {
      isSending = true
      return nil
    }
    nextTurn += 1
    return nextTurn
  }

  private func passTurn() {
    turn.lock()
    let next = turns.isEmpty ? nil : turns.removeFirst().send
    if next == nil { isSending = false }
    turn.unlock()
    next?.resume(returning: true)
  }

  /// Waits until there may be room, the source accepts no more, or the task is cancelled.
  private nonisolated(nonsending) func waitForRoom() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { send in
        turn.lock()
        let mustWait = isFull && !Task.isCancelled
        if mustWait { waiter = send }
        turn.unlock()
        if !mustWait { send.resume() }
      }
    } onCancel: {
      deliver()
    }
  }

  /// True when there is no room and a wake-up was requested. Under the lock.
  private var isFull: Bool {
    requestWake()
    return unsafe refusal == nil && !link.pointee.hasRoomOrRequestsWake()
  }

  override func deliver() {
    turn.lock()
    resumeAll()
    turn.unlock()
  }

  /// Resumes the waiting send, which checks again. Under the lock: resuming a task only schedules it.
  private func resumeAll() {
    waiter?.resume()
    waiter = nil
  }
}

extension Format {
  /// The type of data that a program sends for this format.
  fileprivate var payload: SourceChannel.Payload {
    switch self {
    case .pcm(_, _, .s16): .int16
    case .pcm(_, _, .f32): .float
    case .text, .event: .text
    default: .bytes
    }
  }

  /// True when the data may be cut anywhere.
  fileprivate var isStream: Bool {
    switch kind {
    case .pcm, .mp3, .ogg: true
    default: false
    }
  }
}

extension SourceChannel.Payload {
  fileprivate var text: String {
    switch self {
    case .int16: "16-bit samples"
    case .float: "float samples"
    case .bytes: "bytes"
    case .text: "text"
    }
  }

  fileprivate var swift: String {
    switch self {
    case .int16: "[Int16]"
    case .float: "[Float]"
    case .bytes: "[UInt8]"
    case .text: "a String"
    }
  }
}
