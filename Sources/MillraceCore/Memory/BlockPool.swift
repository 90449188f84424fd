internal import Glibc
public import Synchronization

/// The header in front of the bytes of every block: its holder count, its pool and the description of its content.
///
/// The content fields (`position`, `duration`, `trimStart`, `trimEnd`) belong to the packet the block carries; they live
/// here so that they travel with the bytes through every share and `Packet` stays at 32 bytes.
@usableFromInline
@safe
struct BlockHeader: ~Copyable {
  @usableFromInline let holders = Atomic<Int32>(0)
  @usableFromInline let nextFree = Atomic<UInt32>(0)
  @usableFromInline let pool: Unmanaged<BlockPool>
  @usableFromInline let index: UInt32
  @usableFromInline var duration: Int32 = 0
  @usableFromInline var position: Int64 = 0
  @usableFromInline var trimStart: Int32 = 0
  @usableFromInline var trimEnd: Int32 = 0

  init(pool: Unmanaged<BlockPool>, index: UInt32) {
    unsafe self.pool = unsafe pool
    self.index = index
  }
}

/// A fixed number of memory blocks of equal size. Any thread takes and returns blocks without a lock.
///
/// What it does *not* do: it never grows and never waits; an empty pool answers `nil`. It must outlive its blocks: a block
/// references its pool unowned, so the owner keeps the pool until every block has returned (`hasAllBlocks`).
///
/// The memory of a block is not touched before its first use, and the block returned last is taken first. A pool sized for the
/// worst backlog therefore reserves address space for all its blocks, but pages only for as many as were ever in use at once.
@safe
public final class BlockPool: @unchecked Sendable {
  /// Bytes before the content of each block: one cache line, so that the content is aligned to a line.
  @usableFromInline static var headerSize: Int { 64 }

  /// Readable bytes behind the content of the last block, because vector code reads whole vectors. Behind every other block
  /// is the header of the next one.
  private static var slack: Int { 64 }

  /// Largest size of a block: 256 MiB, enough for an 8K picture in any pixel format.
  public static let maxBlockBytes = 1 << 28

  /// Largest number of blocks in a pool: the free list uses 32-bit indices, and 0 means none.
  public static let maxBlocks = Int(UInt32.max) - 1

  /// Usable bytes of each block.
  public let blockBytes: Int
  /// Blocks the pool owns.
  public let blockCount: Int

  @usableFromInline let stride: Int
  @usableFromInline let memory: UnsafeMutableRawPointer
  // Low half: index of the first free block plus 1 (0: none). High half: a counter that prevents the ABA problem.
  @usableFromInline let head = Atomic<UInt64>(0)
  // Blocks from this index on were never taken.
  @usableFromInline let untouched = Atomic<Int>(0)
  let refusals = Atomic<Int>(0)

  /// Creates a pool in one allocation, which takes microseconds at any size. For pools of a few megabytes: when the system is out
  /// of memory, the process ends, as it does when Swift's own heap is.
  /// - Parameters:
  ///   - blockBytes: usable bytes of each block, 1 to 256 MiB; rounded up to a multiple of 64.
  ///   - blockCount: blocks, at least 1.
  public convenience init(blockBytes: Int, blockCount: Int) {
    do throws(AllocationError) {
      try self.init(reserving: blockCount, blocksOf: blockBytes)
    } catch {
      fatalError("\(error)")
    }
  }

  /// Creates a pool, or throws when the system has no memory for it. For pools as large as a graph asks for.
  /// - Parameters:
  ///   - blockCount: blocks, at least 1.
  ///   - blockBytes: usable bytes of each block, 1 to 256 MiB; rounded up to a multiple of 64.
  /// - Throws: `AllocationError` when the system is out of memory.
  public init(reserving blockCount: Int, blocksOf blockBytes: Int) throws(AllocationError) {
    precondition(blockBytes > 0 && blockBytes <= Self.maxBlockBytes, "a block has 1 byte to 256 MiB")
    precondition(blockCount > 0 && blockCount <= Self.maxBlocks, "a pool has 1 to 4294967294 blocks")
    stride = Self.stride(blockBytes)
    self.blockBytes = stride - Self.headerSize
    self.blockCount = blockCount
    let byteCount = stride * blockCount + Self.slack
    // Swift's own allocator ends the process when the system is out of memory.
    var reserved: UnsafeMutableRawPointer?
    let status = unsafe posix_memalign(&reserved, 64, byteCount)
    guard status == 0, let reserved = unsafe reserved else {
      throw AllocationError(byteCount: byteCount, code: status)
    }
    unsafe memory = unsafe reserved
  }

  deinit {
    unsafe free(memory)
  }

  /// Bytes from one block to the next, its header included.
  private static func stride(_ blockBytes: Int) -> Int { ((blockBytes + 63) & ~63) + headerSize }

  /// Bytes a pool would take, headers included; `Int.max` on overflow.
  /// - Parameters:
  ///   - blockBytes: usable bytes of each block, 1 to 256 MiB.
  ///   - blockCount: blocks, at least 0.
  public static func byteCount(blockBytes: Int, blockCount: Int) -> Int {
    stride(blockBytes).multipliedClamped(by: blockCount)
  }

  /// Takes a free block; nil when all are in use. Any thread; no lock, no allocation; about 20 ns.
  @inlinable public func take() -> Block? {
    guard let header = unsafe takeHeader() else { return nil }
    return unsafe Block(header)
  }

  @inlinable
  func takeHeader() -> UnsafeMutablePointer<BlockHeader>? {
    var current = head.load(ordering: .acquiring)
    while true {
      let first = UInt32(truncatingIfNeeded: current)
      if first == 0 { return unsafe takeUntouched() }
      let header = unsafe header(at: first - 1)
      let following = unsafe UInt64(header.pointee.nextFree.load(ordering: .relaxed))
      let desired = ((current &>> 32) &+ 1) &<< 32 | following
      let (exchanged, seen) = head.weakCompareExchange(
        expected: current, desired: desired, successOrdering: .acquiring, failureOrdering: .acquiring)
      if exchanged {
        unsafe header.pointee.holders.store(1, ordering: .relaxed)
        unsafe header.pointee.duration = 0
        unsafe header.pointee.position = 0
        unsafe header.pointee.trimStart = 0
        unsafe header.pointee.trimEnd = 0
        return unsafe header
      }
      current = seen
    }
  }

  /// Takes the next block that was never used; nil when there is none.
  @usableFromInline
  func takeUntouched() -> UnsafeMutablePointer<BlockHeader>? {
    var index = untouched.load(ordering: .relaxed)
    while index < blockCount {
      let (exchanged, seen) = untouched.weakCompareExchange(
        expected: index, desired: index + 1, ordering: .relaxed)
      if exchanged {
        let header = unsafe header(at: UInt32(index))
        unsafe header.initialize(to: BlockHeader(pool: Unmanaged.passUnretained(self), index: UInt32(index)))
        unsafe header.pointee.holders.store(1, ordering: .relaxed)
        return unsafe header
      }
      index = seen
    }
    refusals.add(1, ordering: .relaxed)
    return nil
  }

  @inlinable
  func giveBack(_ header: UnsafeMutablePointer<BlockHeader>) {
    let place = unsafe UInt64(header.pointee.index + 1)
    var current = head.load(ordering: .relaxed)
    while true {
      unsafe header.pointee.nextFree.store(UInt32(truncatingIfNeeded: current), ordering: .relaxed)
      let desired = ((current &>> 32) &+ 1) &<< 32 | place
      let (exchanged, seen) = head.weakCompareExchange(
        expected: current, desired: desired, successOrdering: .releasing, failureOrdering: .relaxed)
      if exchanged { return }
      current = seen
    }
  }

  @inlinable
  func header(at index: UInt32) -> UnsafeMutablePointer<BlockHeader> {
    unsafe (memory + Int(index) * stride).assumingMemoryBound(to: BlockHeader.self)
  }

  /// How often `take` found the pool empty.
  public var exhaustedCount: Int { refusals.load(ordering: .relaxed) }

  /// True while at least one block is free. Another thread may change that at any moment.
  @inlinable public var hasFree: Bool {
    UInt32(truncatingIfNeeded: head.load(ordering: .relaxed)) != 0
      || untouched.load(ordering: .relaxed) < blockCount
  }

  /// Blocks that were ever taken, which is the most that were in use at once.
  public var touchedCount: Int { untouched.load(ordering: .relaxed) }

  /// Blocks that are free now. Walks the free list; exact only while no thread takes or returns a block.
  /// - Complexity: linear in the number of blocks.
  public var freeCount: Int {
    var count = blockCount - touchedCount
    var next = UInt32(truncatingIfNeeded: head.load(ordering: .acquiring))
    while next != 0 && count <= blockCount {
      count += 1
      next = unsafe header(at: next - 1).pointee.nextFree.load(ordering: .relaxed)
    }
    return count
  }

  /// True when every block has returned. Exact only while no thread takes or returns a block.
  public var hasAllBlocks: Bool { freeCount == blockCount }

  /// Bytes the pool reserves, headers included, touched or not.
  public var byteCount: Int { stride * blockCount }
}

/// The system could not provide the memory that was asked for.
public struct AllocationError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Bytes asked for.
  public let byteCount: Int
  /// The `errno`, such as `ENOMEM`.
  public let code: Int32

  public var description: String {
    "cannot allocate \(byteCount) bytes of memory: \(SystemError.text(code))"
  }
}
