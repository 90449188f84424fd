public import Synchronization

/// What a link does when it is full.
public enum LinkPolicy: String, Sendable, Hashable, CaseIterable {
  /// The writing node waits for room. Only behind sources that can wait.
  case block
  /// The oldest packet is discarded, the new one is queued.
  case dropOldest
  /// The new packet is discarded.
  case dropNewest
  /// Only the newest packet is kept.
  case latest
  /// The writing node fails.
  case fail
}

/// One link: a ring, its policy and its counters. It has a fixed address while its graph runs.
///
/// One worker writes, one reads; `deinit` frees the packets still queued. The reader applies `dropOldest` and `latest`: the ring
/// has slack above `limit`, so it never needs a second reader.
///
/// The ends of the ring are allocated separately: changing one end takes exclusive access to that end only, never to the whole
/// link, which another worker may use at the same time.
@safe
@usableFromInline package struct Link: ~Copyable {
  // Writing side.
  @usableFromInline let writer: UnsafeMutablePointer<RingWriter<Packet>>
  @usableFromInline let policy: LinkPolicy
  @usableFromInline let limit: Int
  @usableFromInline let bound: Int
  @usableFromInline let consumer: Wake
  /// The pool that packets are copied into when they enter; nil: they are not copied.
  @usableFromInline let copies: Unmanaged<BlockPool>?
  /// How the copies are rewritten; nil: not at all.
  let translation: UnsafePointer<LinkTranslation>?
  @usableFromInline let counters: UnsafeMutablePointer<LinkCounters>
  /// Bits of `LinkClosing`: the link is closed.
  @usableFromInline let closing = Atomic<UInt8>(0)
  /// The reader takes no more packets: what is put in is discarded, and the writer never waits.
  @usableFromInline let isRefused = Atomic<Bool>(false)
  @usableFromInline let writerWaits = Atomic<Bool>(false)
  // Reading side.
  @usableFromInline let reader: UnsafeMutablePointer<RingReader<Packet>>
  @usableFromInline let producer: Wake
  @usableFromInline let prunes: Bool
  /// Both ends are on one worker.
  @usableFromInline let isLocal: Bool
  /// Bits of `LinkSuccession`: what happens to the input after the link has closed.
  @usableFromInline let succession = Atomic<UInt8>(0)
  private let ends: UnsafeMutableRawPointer

  /// Bytes of a cache line. Ends on different workers are two lines apart, because the prefetcher fetches lines in pairs.
  private static var cacheLine: Int { 64 }

  /// Packets that a link which drops the oldest may hold above its limit until its reader runs.
  static func slack(for limit: Int) -> Int { max(8, limit / 2) }

  /// Bytes between the two ends of a ring.
  private static func separation(isLocal: Bool) -> Int {
    isLocal ? MemoryLayout<RingWriter<Packet>>.stride : 2 * cacheLine
  }

  private static func endBytes(isLocal: Bool) -> Int {
    separation(isLocal: isLocal) + MemoryLayout<RingReader<Packet>>.stride
  }

  /// Creates an empty link.
  /// - Parameters:
  ///   - limit: packets it holds before the policy applies, at least 1.
  ///   - policy: what it does when it is full.
  ///   - burst: packets the writer may emit in one call after it saw room.
  ///   - counters: its statistics; they outlive the link.
  ///   - consumer: how to wake the reading cell.
  ///   - producer: how to wake the writing cell.
  ///   - copies: for a link that must not hold the writer's blocks: a pool that packets are copied into and that outlives the
  ///     link. When the pool has no free block, the packet is discarded.
  ///   - translation: how the copies are rewritten; it outlives the link, and only the writer may change it.
  @unsafe
  public init(
    limit: Int, policy: LinkPolicy, burst: Int, counters: UnsafeMutablePointer<LinkCounters>, consumer: Wake,
    producer: Wake, copies: BlockPool? = nil, translation: UnsafePointer<LinkTranslation>? = nil
  ) {
    precondition(limit > 0 && burst > 0, "limit and burst of a link must be at least 1")
    unsafe self.copies = unsafe copies.map { unsafe Unmanaged.passUnretained($0) }
    unsafe self.translation = unsafe translation
    self.limit = policy == .latest ? 1 : limit
    prunes = policy == .dropOldest || policy == .latest
    bound = Self.bound(limit: limit, policy: policy, burst: burst)
    isLocal = unsafe !consumer.isRemote && !producer.isRemote
    let ring = Ring<Packet>(minimumCapacity: bound, isShared: !isLocal)
    let separation = Self.separation(isLocal: isLocal)
    unsafe ends = .allocate(
      byteCount: Self.endBytes(isLocal: isLocal), alignment: isLocal ? Self.cacheLine : 2 * Self.cacheLine)
    unsafe writer = ends.bindMemory(to: RingWriter<Packet>.self, capacity: 1)
    unsafe reader = (ends + separation).bindMemory(to: RingReader<Packet>.self, capacity: 1)
    unsafe writer.initialize(to: ring.writer)
    unsafe reader.initialize(to: ring.reader)
    self.policy = policy
    unsafe self.counters = unsafe counters
    unsafe self.consumer = unsafe consumer
    unsafe self.producer = unsafe producer
  }

  deinit {
    unsafe writer.deinitialize(count: 1)
    unsafe reader.deinitialize(count: 1)
    unsafe ends.deallocate()
  }

  /// Packets the link can ever hold, slack and burst included; pools are sized by it.
  public static func bound(limit: Int, policy: LinkPolicy, burst: Int) -> Int {
    let limit = policy == .latest ? 1 : limit
    let prunes = policy == .dropOldest || policy == .latest
    return limit.addingClamped(prunes ? slack(for: limit) : 0).addingClamped(burst)
  }

  /// Bytes that a link would take with its counters, without the blocks of its packets; `Int.max` on overflow.
  /// - Parameter isLocal: both ends are on one worker.
  public static func byteCount(limit: Int, policy: LinkPolicy, burst: Int, isLocal: Bool) -> Int {
    let ring = RingStorage<Packet>.byteCount(
      minimumCapacity: bound(limit: limit, policy: policy, burst: burst), isShared: !isLocal)
    return [MemoryLayout<Link>.stride, MemoryLayout<LinkCounters>.stride, endBytes(isLocal: isLocal), ring]
      .clampedSum
  }

  // MARK: Writing side

  /// The addresses that `put` and `take` touch, for prefetching: the two ends (adjacent when one worker has both), the indices they
  /// publish, the first slot and the counters.
  public var lines:
    (end: UnsafeRawPointer, indices: UnsafeRawPointer, slot: UnsafeRawPointer, counters: UnsafeRawPointer)
  {
    let end = unsafe writer
    return unsafe (
      UnsafeRawPointer(end), UnsafeRawPointer(end.pointee.written), UnsafeRawPointer(end.pointee.slots),
      UnsafeRawPointer(counters)
    )
  }

  /// True when this link does not keep the writing node from running.
  @inlinable
  public func hasRoom() -> Bool {
    unsafe policy != .block || writer.pointee.hasRoom(within: limit) || isRefused.load(ordering: .acquiring)
  }

  /// As `hasRoom`; when false, the reader also wakes the writing cell after its next pop.
  @inlinable
  public func hasRoomOrRequestsWake() -> Bool {
    if hasRoom() { return true }
    // Set the flag first, then check again: either this check or the reader sees a pop in between.
    writerWaits.store(true, ordering: .sequentiallyConsistent)
    if unsafe producer.isRemote { atomicMemoryFence(ordering: .sequentiallyConsistent) }
    guard hasRoom() else { return false }
    writerWaits.store(false, ordering: .relaxed)
    return true
  }

  /// Appends a packet as the policy allows. False when the packet was discarded and that is the writer's fault.
  @inlinable
  public func put(_ packet: consuming Packet) -> Bool {
    if let copies = unsafe copies { return unsafe putCopy(of: packet, in: copies) }
    switch policy {
    case .dropNewest:
      if unsafe !writer.pointee.hasRoom(within: limit) {
        unsafe counters.pointee.droppedNewest.add()
        return true
      }
    case .fail:
      if unsafe !writer.pointee.hasRoom(within: limit) {
        unsafe counters.pointee.droppedNewest.add()
        return false
      }
    case .block, .dropOldest, .latest: break
    }
    if unsafe !writer.pointee.hasRoom(within: bound) {
      unsafe counters.pointee.droppedNewest.add()
      return policy != .block
    }
    enter(packet)
    return true
  }

  @inlinable @inline(__always)
  func enter(_ packet: consuming Packet) {
    unsafe writer.pointee.push(packet)
    unsafe counters.pointee.pushed.add()
    unsafe consumer.mark()
  }

  /// As `put`, for a link that copies packets.
  @usableFromInline
  func putCopy(of packet: borrowing Packet, in pool: Unmanaged<BlockPool>) -> Bool {
    if isRefused.load(ordering: .acquiring) {
      countLost()
      return true
    }
    let isFailing = policy == .fail
    let capacity = policy == .dropNewest || isFailing ? limit : bound
    if unsafe !writer.pointee.hasRoom(within: capacity) {
      countLost()
      return !isFailing && policy != .block
    }
    guard var copy = unsafe packet.copied(into: pool.takeUnretainedValue()) else {
      countLost()
      return true
    }
    if let translation = unsafe translation { unsafe translation.pointee.apply(to: &copy) }
    enter(copy)
    return true
  }

  /// Packets queued now, as the writer sees it: never fewer than there are.
  public func queuedCount() -> Int { unsafe writer.pointee.count }

  /// Counts a packet that never entered the link.
  public func countLost() { unsafe counters.pointee.droppedNewest.add() }

  /// As `countLost`, and wakes the reader as a packet would.
  public func countLostAndNotify() {
    countLost()
    unsafe consumer.markNow()
  }

  /// Ends the link: the reader sees the end after the last packet. Only the writer may call it.
  public func end() { close(LinkClosing.ended) }

  /// Detaches the writer from the link for good. Unlike `end`, this does not end the reader's input, which waits for its next link.
  /// Only the writer may call it.
  public func detach() { close(LinkClosing.detached) }

  private func close(_ bit: UInt8) {
    closing.bitwiseOr(bit, ordering: .acquiringAndReleasing)
    unsafe consumer.markNow()
  }

  // MARK: Reading side

  /// True when a packet is waiting. (It may still turn out to be stale.)
  ///
  /// A packet of a reply newer than `generation` stays in the link until the reading cell has been notified of the interruption that
  /// started the reply: it must not mix with what the node still holds of the old reply.
  @inlinable
  public func hasPacket(generation: UInt32) -> Bool {
    guard unsafe !reader.pointee.isEmpty else { return false }
    let front = unsafe reader.pointee.front.pointee.generation
    return front == 0 || front == generation || !Packet.isNewer(front, than: generation)
  }

  /// True when nothing is queued. Only the reader may call it.
  public func isEmpty() -> Bool { unsafe reader.pointee.isEmpty }

  /// True when the input has ended and the link is empty.
  @inlinable
  public func isOver() -> Bool {
    // The end is published after the last packet, so it is read before the ring.
    let closing = closing.load(ordering: .acquiring)
    return unsafe closing != 0 && isInputEnd(closing) && reader.pointee.isEmpty
  }

  /// True when the input has ended, although packets may still be queued.
  @inlinable
  public func isEnding() -> Bool {
    let closing = closing.load(ordering: .acquiring)
    return closing != 0 && isInputEnd(closing)
  }

  /// Whether the reader's input ends with this link, which has closed.
  @usableFromInline
  func isInputEnd(_ closing: UInt8) -> Bool {
    let succession = succession.load(ordering: .acquiring)
    if succession & LinkSuccession.expected != 0 { return false }
    return closing & LinkClosing.ended != 0 || succession & LinkSuccession.excluded != 0
  }

  /// True when the link has closed and is empty, whether or not the reader's input continues with another link.
  public func isSpent() -> Bool {
    unsafe closing.load(ordering: .acquiring) != 0 && reader.pointee.isEmpty
  }

  /// Another link of the same input follows this one, so its end does not end the input. Called on the control side, before the
  /// writer can have ended the link for that reason.
  public func expectSuccessor() {
    succession.bitwiseOr(LinkSuccession.expected, ordering: .acquiringAndReleasing)
  }

  /// No other link follows: when this one is detached, the input ends. Only the reader may call it, when its graph drains.
  public func expectNoSuccessor() {
    succession.bitwiseOr(LinkSuccession.excluded, ordering: .acquiringAndReleasing)
  }

  /// The reader takes no more packets. Queued packets are freed with the link, new ones are discarded at once. Only the reader may
  /// call it.
  public func refuse() {
    isRefused.store(true, ordering: .releasing)
    if unsafe producer.isRemote { atomicMemoryFence(ordering: .sequentiallyConsistent) }
    if writerWaits.exchange(false, ordering: .acquiringAndReleasing) { unsafe producer.markNow() }
  }

  /// True for a link that copies packets into its own blocks, which may lead to another graph.
  public var copiesPackets: Bool { unsafe copies != nil }

  /// Takes the oldest packet, after discarding those that the policy drops and stale ones; nil when there is none.
  @inlinable
  public func take(generation: UInt32) -> Packet? {
    while true {
      let depth = unsafe reader.pointee.count
      if depth == 0 { return nil }
      unsafe counters.pointee.highWater.raise(to: depth)
      let front = unsafe reader.pointee.front.pointee.generation
      if front != 0 && front != generation && Packet.isNewer(front, than: generation) { return nil }
      guard let packet = pop() else { return nil }
      if prunes && depth > limit {
        unsafe counters.pointee.droppedOldest.add()
        continue
      }
      unsafe counters.pointee.popped.add()
      if front != 0 && front != generation && packet.isStale(at: generation) {
        unsafe counters.pointee.droppedStale.add()
        continue
      }
      return packet
    }
  }

  /// Discards the stale packets at the front; those behind a packet that is kept are left to `take`.
  public func dropStale(generation: UInt32) {
    while unsafe !reader.pointee.isEmpty, unsafe reader.pointee.front.pointee.isStale(at: generation) {
      guard let packet = pop() else { return }
      _ = consume packet
      unsafe counters.pointee.popped.add()
      unsafe counters.pointee.droppedStale.add()
    }
  }

  /// Takes the oldest packet, whatever it is.
  @inlinable
  func pop() -> Packet? {
    guard let packet = unsafe reader.pointee.pop() else { return nil }
    if isLocal { unsafe Ring.rewind(&writer.pointee, &reader.pointee) }
    wakeWriter()
    return packet
  }

  /// Wakes a waiting writer. A writer with deferred wake-ups is woken at once only when half of the link is free, otherwise at the
  /// end of the reader's turn.
  @inlinable
  func wakeWriter() {
    guard policy == .block else { return }
    if unsafe producer.isRemote { atomicMemoryFence(ordering: .sequentiallyConsistent) }
    guard writerWaits.load(ordering: .relaxed) else { return }
    if unsafe producer.isDeferred && reader.pointee.count > limit / 2 {
      unsafe producer.mark()
      return
    }
    writerWaits.store(false, ordering: .relaxed)
    unsafe producer.markNow()
  }

  /// Takes the oldest packet of any reply, stale or not: for readers that only observe.
  public func takeAny() -> Packet? {
    guard let packet = pop() else { return nil }
    unsafe counters.pointee.popped.add()
    return packet
  }

  /// Discards everything queued: the reading node has ended or was isolated.
  public func discard() {
    while let packet = unsafe reader.pointee.pop() {
      _ = consume packet
      unsafe counters.pointee.discarded.add()
    }
    wakeWriter()
  }

  /// Discards everything queued: the machine is overloaded.
  public func shed() {
    while let packet = unsafe reader.pointee.pop() {
      _ = consume packet
      unsafe counters.pointee.popped.add()
      unsafe counters.pointee.droppedShed.add()
    }
    wakeWriter()
  }
}

extension Packet {
  /// True when the packet belongs to an interrupted reply and may be discarded.
  @inlinable
  borrowing func isStale(at current: UInt32) -> Bool {
    HeldReply(of: self).isStale(at: current)
  }
}
