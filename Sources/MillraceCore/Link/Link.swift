public import Synchronization

/// What a link does when it is full.
public enum LinkPolicy: String, Sendable, Hashable, CaseIterable {
  /// The writing node waits until there is room. Only behind sources that can wait.
  case block
  /// The oldest packet goes, the new one stays.
  case dropOldest
  /// The new packet goes.
  case dropNewest
  /// Only the newest packet stays.
  case latest
  /// The writing node fails.
  case fail
}

/// The memory of one link: a ring, its policy and its counters. Lives at a fixed address while its graph runs.
///
/// One worker writes, one reads; `deinit` frees what is still queued. The reader carries out `dropOldest` and `latest`: the
/// ring has slack above `limit`, so the ring never has two readers.
///
/// The ends of the ring have memory of their own: changing an end takes exclusive access to that end only, never to the whole
/// link, which another worker may be using at the same time.
@safe
@usableFromInline package struct Link: ~Copyable {
  // Writing side.
  @usableFromInline let writer: UnsafeMutablePointer<RingWriter<Packet>>
  @usableFromInline let policy: LinkPolicy
  @usableFromInline let limit: Int
  @usableFromInline let bound: Int
  @usableFromInline let consumer: Wake
  /// Where packets are copied to on their way in; nil: they enter as they are.
  @usableFromInline let copies: Unmanaged<BlockPool>?
  /// How the copies differ from what was put in; nil: they do not.
  let translation: UnsafePointer<LinkTranslation>?
  @usableFromInline let counters: UnsafeMutablePointer<LinkCounters>
  /// Bits of `LinkClosing`: nothing more comes.
  @usableFromInline let closing = Atomic<UInt8>(0)
  /// The reader takes nothing more: what is put in is discarded, and its writer never waits.
  @usableFromInline let isRefused = Atomic<Bool>(false)
  @usableFromInline let writerWaits = Atomic<Bool>(false)
  // Reading side.
  @usableFromInline let reader: UnsafeMutablePointer<RingReader<Packet>>
  @usableFromInline let producer: Wake
  @usableFromInline let prunes: Bool
  /// Both ends are on one worker.
  @usableFromInline let isLocal: Bool
  /// Bits of `LinkSuccession`: what follows when nothing more comes.
  @usableFromInline let succession = Atomic<UInt8>(0)
  private let ends: UnsafeMutableRawPointer

  /// Bytes of a cache line; two between ends on different workers, because the prefetcher fetches lines in pairs.
  private static var cacheLine: Int { 64 }

  /// Packets a dropping link may hold above its limit until its reader runs.
  static func slack(for limit: Int) -> Int { max(8, limit / 2) }

  /// Bytes between the two ends of a ring.
  private static func separation(isLocal: Bool) -> Int {
    isLocal ? MemoryLayout<RingWriter<Packet>>.stride : 2 * cacheLine
  }

  private static func endBytes(isLocal: Bool) -> Int {
    separation(isLocal: isLocal) + MemoryLayout<RingReader<Packet>>.stride
  }

  /// Makes an empty link.
  /// - Parameters:
  ///   - limit: packets it holds before the policy acts, at least 1.
  ///   - policy: what it does when it is full.
  ///   - burst: packets the writer may emit in one call after it saw room.
  ///   - counters: where it counts; they outlive the link.
  ///   - consumer: how to tell the reading cell.
  ///   - producer: how to tell the writing cell.
  ///   - copies: for a link that must not hold the writer's blocks: a pool that packets are copied into, and that outlives the
  ///     link. A packet for which it has no block is dropped.
  ///   - translation: how the copies differ from what was put in; it outlives the link, and only the writer may change it.
  @unsafe
  public init(
    limit: Int, policy: LinkPolicy, burst: Int, counters: UnsafeMutablePointer<LinkCounters>, consumer: Wake,
    producer: Wake, copies: BlockPool? = nil, translation: UnsafePointer<LinkTranslation>? = nil
  ) {
    precondition(limit > 0 && burst > 0, "a link holds at least one packet")
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

  /// Bytes a link takes with its counters, before it is made, without the blocks of its packets; the largest number where it would be
  /// more.
  /// - Parameter isLocal: both ends are on one worker.
  public static func byteCount(limit: Int, policy: LinkPolicy, burst: Int, isLocal: Bool) -> Int {
    let ring = RingStorage<Packet>.byteCount(
      minimumCapacity: bound(limit: limit, policy: policy, burst: burst), isShared: !isLocal)
    return [MemoryLayout<Link>.stride, MemoryLayout<LinkCounters>.stride, endBytes(isLocal: isLocal), ring]
      .clampedSum
  }

  // MARK: Writing side

  /// Where the memory lies that `put` and `take` touch: the two ends (beside each other where one worker has both), the indices they
  /// publish, the first slot, the counters. For whoever has it fetched into the cache before.
  public var lines:
    (end: UnsafeRawPointer, indices: UnsafeRawPointer, slot: UnsafeRawPointer, counters: UnsafeRawPointer)
  {
    let end = unsafe writer
    return unsafe (
      UnsafeRawPointer(end), UnsafeRawPointer(end.pointee.written), UnsafeRawPointer(end.pointee.slots),
      UnsafeRawPointer(counters)
    )
  }

  /// True when the writing node may run as far as this link is concerned.
  @inlinable
  public func hasRoom() -> Bool {
    unsafe policy != .block || writer.pointee.hasRoom(within: limit) || isRefused.load(ordering: .acquiring)
  }

  /// As `hasRoom`, and when it is false the reader will wake the writing cell after its next pop.
  @inlinable
  public func hasRoomOrAsks() -> Bool {
    if hasRoom() { return true }
    // Ask first, look again after: a pop in between is seen by one of the two.
    writerWaits.store(true, ordering: .sequentiallyConsistent)
    if unsafe producer.isRemote { atomicMemoryFence(ordering: .sequentiallyConsistent) }
    guard hasRoom() else { return false }
    writerWaits.store(false, ordering: .relaxed)
    return true
  }

  /// Appends a packet under the policy. Answers false when the packet was lost in a way that is the writer's fault.
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

  /// As `put`, for a link with blocks of its own.
  @usableFromInline
  func putCopy(of packet: borrowing Packet, in pool: Unmanaged<BlockPool>) -> Bool {
    if isRefused.load(ordering: .acquiring) {
      unsafe counters.pointee.discarded.add()
      return true
    }
    let isFailing = policy == .fail
    let most = policy == .dropNewest || isFailing ? limit : bound
    if unsafe !writer.pointee.hasRoom(within: most) {
      noteLost()
      return !isFailing && policy != .block
    }
    guard var copy = unsafe packet.copied(into: pool.takeUnretainedValue()) else {
      noteLost()
      return true
    }
    if let translation = unsafe translation { unsafe translation.pointee.apply(to: &copy) }
    enter(copy)
    return true
  }

  /// Packets queued at this moment, as the writer sees it: at least as many as there are.
  public func queuedCount() -> Int { unsafe writer.pointee.count }

  /// Counts a packet that could not even be made.
  public func noteLost() { unsafe counters.pointee.droppedNewest.add() }

  /// As `noteLost`, for a reader that is to hear of it: it is told as of a packet.
  public func tellLost() {
    noteLost()
    unsafe consumer.markNow()
  }

  /// Says that nothing more will come. The reader sees it after the last packet. Only the writer.
  public func end() { close(LinkClosing.ended) }

  /// Says that the writer has let go of the link for good. Unlike an end it ends nothing for the reader, which waits for the next link
  /// of its input. Only the writer.
  public func detach() { close(LinkClosing.detached) }

  private func close(_ how: UInt8) {
    closing.bitwiseOr(how, ordering: .acquiringAndReleasing)
    unsafe consumer.markNow()
  }

  // MARK: Reading side

  /// True when a packet can be taken. (It may still turn out stale.)
  ///
  /// A packet of a reply newer than `generation` stays in the link until the reading cell has heard of the interruption that
  /// made it: what the node still holds of the old reply must not meet it.
  @inlinable
  public func hasPacket(generation: UInt32) -> Bool {
    guard unsafe !reader.pointee.isEmpty else { return false }
    let front = unsafe reader.pointee.front.pointee.generation
    return front == 0 || front == generation || !Packet.isNewer(front, than: generation)
  }

  /// True when nothing is queued. Only the reader.
  public func isEmpty() -> Bool { unsafe reader.pointee.isEmpty }

  /// True when nothing is left and nothing will come.
  @inlinable
  public func isOver() -> Bool {
    // The end is published after the last packet: look at it first, at the ring second.
    let closing = closing.load(ordering: .acquiring)
    return unsafe closing != 0 && isInputEnd(closing) && reader.pointee.isEmpty
  }

  /// True when nothing will come but what waits already.
  @inlinable
  public func isEnding() -> Bool {
    let closing = closing.load(ordering: .acquiring)
    return closing != 0 && isInputEnd(closing)
  }

  /// Whether the reader's input ends with this link, now that nothing more comes through it.
  @usableFromInline
  func isInputEnd(_ closing: UInt8) -> Bool {
    let succession = succession.load(ordering: .acquiring)
    if succession & LinkSuccession.continues != 0 { return false }
    return closing & LinkClosing.ended != 0 || succession & LinkSuccession.finishes != 0
  }

  /// True when nothing is left and nothing will come, whatever follows for the reader's input.
  public func isSpent() -> Bool {
    unsafe closing.load(ordering: .acquiring) != 0 && reader.pointee.isEmpty
  }

  /// Another link of the same input follows this one: its end is not the input's. From the control side, before the writer can have
  /// ended the link for that reason.
  public func continues() {
    succession.bitwiseOr(LinkSuccession.continues, ordering: .acquiringAndReleasing)
  }

  /// No other link will follow: when this one is detached, the input ends. Only the reader, when its graph drains.
  public func finishes() {
    succession.bitwiseOr(LinkSuccession.finishes, ordering: .acquiringAndReleasing)
  }

  /// The reader takes nothing more. What waits is discarded by whoever frees the link, what comes is discarded at once. Only the
  /// reader.
  public func refuse() {
    isRefused.store(true, ordering: .releasing)
    if unsafe producer.isRemote { atomicMemoryFence(ordering: .sequentiallyConsistent) }
    if writerWaits.exchange(false, ordering: .acquiringAndReleasing) { unsafe producer.markNow() }
  }

  /// True for a link with blocks of its own, which may lead to another graph.
  public var copiesPackets: Bool { unsafe copies != nil }

  /// Takes the oldest packet that is still worth having, dropping what the policy or an interruption made worthless.
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

  /// Drops the packets at the front that an interruption made worthless; what comes behind one that stays is seen by `take`.
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

  /// A writer that need not hear of single packets is told at once when half of the link is free, and before that at the end of
  /// the reader's turn.
  @inlinable
  func wakeWriter() {
    guard policy == .block else { return }
    if unsafe producer.isRemote { atomicMemoryFence(ordering: .sequentiallyConsistent) }
    guard writerWaits.load(ordering: .relaxed) else { return }
    if unsafe producer.isPatient && reader.pointee.count > limit / 2 {
      unsafe producer.mark()
      return
    }
    writerWaits.store(false, ordering: .relaxed)
    unsafe producer.markNow()
  }

  /// Takes the oldest packet, whatever reply it belongs to: for readers that only watch.
  public func takeAny() -> Packet? {
    guard let packet = pop() else { return nil }
    unsafe counters.pointee.popped.add()
    return packet
  }

  /// Drops everything queued, because the reading node has ended or was isolated.
  public func discard() {
    while let packet = unsafe reader.pointee.pop() {
      _ = consume packet
      unsafe counters.pointee.discarded.add()
    }
    wakeWriter()
  }

  /// Drops everything queued, because the machine is overloaded.
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
  /// True when the packet belongs to an interrupted reply and may be thrown away.
  @inlinable
  borrowing func isStale(at current: UInt32) -> Bool {
    HeldReply(of: self).isVoid(at: current)
  }
}
