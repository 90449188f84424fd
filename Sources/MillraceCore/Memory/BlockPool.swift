internal import Glibc
public import Synchronization

/// What stands in front of the bytes of every block: who holds it, where it goes back to, and what describes its content.
///
/// The content fields (`position`, `duration`, `trimStart`, `trimEnd`) belong to the packet the block carries; they live
/// here because they travel with the bytes through every share, and keep `Packet` at 32 bytes.
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

/// A fixed number of equally large memory blocks, taken and given back without a lock from any thread.
///
/// What it does *not* do: it never grows and never waits; an empty pool is an answer (`nil`). It must outlive its blocks:
/// a block holds its pool unowned, so whoever owns the pool keeps it until every block is back (`isWhole`).
///
/// Memory of a block is not touched before its first use, and the block given back last is taken first. So a pool sized for the
/// worst backlog occupies address space for all its blocks, but pages only for as many as were ever out at once.
@safe
public final class BlockPool: @unchecked Sendable {
  /// Bytes before the content of each block: one cache line, so that content starts on a line.
  @usableFromInline static var headerSize: Int { 64 }

  /// Bytes behind the content of each block that can be read, though they mean nothing: vector code reads whole vectors. Behind
  /// all blocks but the last lies the next one's header.
  private static var slack: Int { 64 }

  /// The most bytes a block has: 256 MiB, a picture of 8K in any form and some more.
  public static let mostBlockBytes = 1 << 28

  /// The most blocks a pool has: they are counted in 32 bits, and 0 stands for none.
  public static let mostBlocks = Int(UInt32.max) - 1

  /// Usable bytes of each block.
  public let blockBytes: Int
  /// Blocks the pool owns.
  public let blockCount: Int

  @usableFromInline let stride: Int
  @usableFromInline let memory: UnsafeMutableRawPointer
  // Low half: index of the first free block plus 1 (0: none). High half: a counter that defeats ABA.
  @usableFromInline let head = Atomic<UInt64>(0)
  // Blocks from here on were never taken.
  @usableFromInline let untouched = Atomic<Int>(0)
  let refusals = Atomic<Int>(0)

  /// Makes a pool in one allocation, which takes microseconds whatever its size. For pools of a few megabytes; where the system has no
  /// memory, the process ends, as it does wherever Swift's own heap is refused.
  /// - Parameters:
  ///   - blockBytes: usable bytes of each block, 1 to 256 MiB; rounded up to a multiple of 64.
  ///   - blockCount: blocks, at least 1.
  public convenience init(blockBytes: Int, blockCount: Int) {
    do throws(MemoryRefusal) {
      try self.init(reserving: blockCount, blocksOf: blockBytes)
    } catch {
      fatalError("\(error)")
    }
  }

  /// Makes a pool, or throws the system's refusal of its memory: for pools as large as a graph asks for.
  /// - Parameters:
  ///   - blockCount: blocks, at least 1.
  ///   - blockBytes: usable bytes of each block, 1 to 256 MiB; rounded up to a multiple of 64.
  /// - Throws: the system's refusal.
  public init(reserving blockCount: Int, blocksOf blockBytes: Int) throws(MemoryRefusal) {
    precondition(blockBytes > 0 && blockBytes <= Self.mostBlockBytes, "a block holds 1 byte to 256 MiB")
    precondition(blockCount > 0 && blockCount <= Self.mostBlocks, "a pool has at least one block")
    stride = Self.stride(blockBytes)
    self.blockBytes = stride - Self.headerSize
    self.blockCount = blockCount
    let byteCount = stride * blockCount + Self.slack
    // Swift's own allocation ends the process where the system refuses.
    var reserved: UnsafeMutableRawPointer?
    let refusal = unsafe posix_memalign(&reserved, 64, byteCount)
    guard refusal == 0, let reserved = unsafe reserved else {
      throw MemoryRefusal(byteCount: byteCount, code: refusal)
    }
    unsafe memory = unsafe reserved
  }

  deinit {
    unsafe free(memory)
  }

  /// Bytes from one block to the next, its header included.
  private static func stride(_ blockBytes: Int) -> Int { ((blockBytes + 63) & ~63) + headerSize }

  /// Bytes a pool holds, headers included, before it is made; the largest number where it would be more.
  /// - Parameters:
  ///   - blockBytes: usable bytes of each block, 1 to 256 MiB.
  ///   - blockCount: blocks, at least 0.
  public static func byteCount(blockBytes: Int, blockCount: Int) -> Int {
    stride(blockBytes).multipliedClamped(by: blockCount)
  }

  /// Takes a free block, or answers nil when all are out. Any thread; no lock, no allocation; about 20 ns.
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

  /// Takes the next block that was never used; nil when all were.
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

  /// Times `take` found the pool empty.
  public var refusalCount: Int { refusals.load(ordering: .relaxed) }

  /// True while at least one block can be taken. Other threads may change it at once.
  @inlinable public var hasFree: Bool {
    UInt32(truncatingIfNeeded: head.load(ordering: .relaxed)) != 0
      || untouched.load(ordering: .relaxed) < blockCount
  }

  /// Blocks that were ever taken: the most that were out at once.
  public var touchedCount: Int { untouched.load(ordering: .relaxed) }

  /// Blocks that are free now, by walking the list. Exact only while nobody takes or gives back.
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

  /// True when every block is back. Exact only while nobody takes or gives back.
  public var isWhole: Bool { freeCount == blockCount }

  /// Bytes the pool holds, headers included, touched or not.
  public var byteCount: Int { stride * blockCount }
}

/// The system's refusal of memory, in words.
public struct MemoryRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  /// What was asked for.
  public let byteCount: Int
  /// The error number, such as `ENOMEM`.
  public let code: Int32

  public var description: String {
    "the system refused \(byteCount) bytes of memory: \(SystemError.text(code))"
  }
}
