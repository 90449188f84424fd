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
public struct Link: ~Copyable {
  // Writing side.
  @usableFromInline let writer: UnsafeMutablePointer<RingWriter<Packet>>
  @usableFromInline let policy: LinkPolicy
  @usableFromInline let limit: Int
  @usableFromInline let bound: Int
  @usableFromInline let consumer: Wake
  @usableFromInline let counters: UnsafeMutablePointer<LinkCounters>
  @usableFromInline let hasEnded = Atomic<Bool>(false)
  @usableFromInline let writerWaits = Atomic<Bool>(false)
  // Reading side.
  @usableFromInline let reader: UnsafeMutablePointer<RingReader<Packet>>
  @usableFromInline let producer: Wake
  @usableFromInline let prunes: Bool
  /// Both ends are on one worker.
  @usableFromInline let isLocal: Bool
  private let ends: UnsafeMutableRawPointer

  /// Bytes of a cache line; two between ends on different workers, because the prefetcher fetches lines in pairs.
  private static var cacheLine: Int { 64 }

  /// Packets a dropping link may hold above its limit until its reader runs.
  static func slack(for limit: Int) -> Int { max(8, limit / 2) }

  /// Makes an empty link.
  /// - Parameters:
  ///   - limit: packets it holds before the policy acts, at least 1.
  ///   - policy: what it does when it is full.
  ///   - burst: packets the writer may emit in one call after it saw room.
  ///   - counters: where it counts; they outlive the link.
  ///   - consumer: how to tell the reading cell.
  ///   - producer: how to tell the writing cell.
  @unsafe
  public init(
    limit: Int, policy: LinkPolicy, burst: Int, counters: UnsafeMutablePointer<LinkCounters>, consumer: Wake,
    producer: Wake
  ) {
    precondition(limit > 0 && burst > 0, "a link holds at least one packet")
    self.limit = policy == .latest ? 1 : limit
    prunes = policy == .dropOldest || policy == .latest
    bound = Self.bound(limit: limit, policy: policy, burst: burst)
    isLocal = unsafe !consumer.isRemote && !producer.isRemote
    let ring = Ring<Packet>(minimumCapacity: bound, isShared: !isLocal)
    let separation = isLocal ? MemoryLayout<RingWriter<Packet>>.stride : 2 * Self.cacheLine
    unsafe ends = .allocate(
      byteCount: separation + MemoryLayout<RingReader<Packet>>.stride,
      alignment: isLocal ? Self.cacheLine : 2 * Self.cacheLine)
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
    return limit + (prunes ? slack(for: limit) : 0) + burst
  }

  // MARK: Writing side

  /// True when the writing node may run as far as this link is concerned.
  @inlinable
  public func hasRoom() -> Bool {
    unsafe policy != .block || writer.pointee.hasRoom(within: limit)
  }

  /// As `hasRoom`, and when it is false the reader will wake the writing cell after its next pop.
  @inlinable
  public func hasRoomOrAsks() -> Bool {
    if hasRoom() { return true }
    // Ask first, look again after: a pop in between is seen by one of the two.
    writerWaits.store(true, ordering: .sequentiallyConsistent)
    if unsafe producer.isRemote { atomicMemoryFence(ordering: .sequentiallyConsistent) }
    guard unsafe writer.pointee.hasRoom(within: limit) else { return false }
    writerWaits.store(false, ordering: .relaxed)
    return true
  }

  /// Appends a packet under the policy. Answers false when the packet was lost in a way that is the writer's fault.
  @inlinable
  public func put(_ packet: consuming Packet) -> Bool {
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
    unsafe writer.pointee.push(packet)
    unsafe counters.pointee.pushed.add()
    unsafe consumer.mark()
    return true
  }

  /// Packets queued at this moment, as the writer sees it: at least as many as there are.
  public func queuedCount() -> Int { unsafe writer.pointee.count }

  /// Counts a packet that could not even be made.
  public func noteLost() { unsafe counters.pointee.droppedNewest.add() }

  /// Says that nothing more will come. The reader sees it after the last packet. Only the writer.
  public func end() {
    hasEnded.store(true, ordering: .releasing)
    unsafe consumer.mark()
  }

  // MARK: Reading side

  /// True when a packet can be taken. (It may still turn out stale.)
  @inlinable
  public func hasPacket() -> Bool { unsafe !reader.pointee.isEmpty }

  /// True when nothing is left and nothing will come.
  @inlinable
  public func isOver() -> Bool {
    // The end is published after the last packet: look at it first, at the ring second.
    unsafe hasEnded.load(ordering: .acquiring) && reader.pointee.isEmpty
  }

  /// Takes the oldest packet that is still worth having, dropping what the policy or an interruption made worthless.
  @inlinable
  public func take(generation: UInt32) -> Packet? {
    while true {
      let depth = unsafe reader.pointee.count
      if depth == 0 { return nil }
      unsafe counters.pointee.highWater.raise(to: depth)
      guard let packet = unsafe reader.pointee.pop() else { return nil }
      if isLocal { unsafe Ring.rewind(&writer.pointee, &reader.pointee) }
      wakeWriter()
      if prunes && depth > limit {
        unsafe counters.pointee.droppedOldest.add()
        continue
      }
      unsafe counters.pointee.popped.add()
      if packet.generation != 0 && packet.generation != generation && packet.isStale(at: generation) {
        unsafe counters.pointee.droppedStale.add()
        continue
      }
      return packet
    }
  }

  @inlinable
  func wakeWriter() {
    guard policy == .block else { return }
    if unsafe producer.isRemote { atomicMemoryFence(ordering: .sequentiallyConsistent) }
    if writerWaits.load(ordering: .relaxed) {
      writerWaits.store(false, ordering: .relaxed)
      unsafe producer.mark()
    }
  }

  /// Drops everything queued, counted as `reason`.
  public func discard() {
    while let packet = unsafe reader.pointee.pop() {
      _ = consume packet
      unsafe counters.pointee.discarded.add()
    }
    wakeWriter()
  }
}

extension Packet {
  /// True when the packet belongs to an interrupted reply and may be thrown away. Generations wrap around.
  @inlinable
  borrowing func isStale(at current: UInt32) -> Bool {
    generation != 0 && Int32(bitPattern: current &- generation) > 0 && !flags.contains(.uninterruptible)
  }
}

/// What happened on one link since its graph started. Every counter has one writer; any thread may read.
///
/// Lives at a fixed address beside its link, and outlives it for the report.
public struct LinkCounters: ~Copyable, Sendable {
  /// Packets that entered the ring.
  public let pushed = Counter()
  /// Packets that left it and were handed on (or were stale).
  public let popped = Counter()
  /// Packets refused because the link was full.
  public let droppedNewest = Counter()
  /// Packets removed to keep the link within its limit.
  public let droppedOldest = Counter()
  /// Packets of an interrupted reply.
  public let droppedStale = Counter()
  /// Packets thrown away when the reading node stopped or was isolated.
  public let discarded = Counter()
  /// Most packets ever queued at once, as seen by the reader.
  public let highWater = Counter()

  public init() {}
}
