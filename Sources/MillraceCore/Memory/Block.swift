public import Synchronization

/// An owning handle to one block of a pool. When the last handle is dropped, the block returns to its pool.
///
/// A block may be written only while it has a single holder; `share()` adds a holder for fan-out. The handle is non-copyable:
/// passing it on is a move, checked by the compiler.
@safe
public struct Block: ~Copyable, @unchecked Sendable {
  @usableFromInline let header: UnsafeMutablePointer<BlockHeader>

  @inlinable
  init(_ header: UnsafeMutablePointer<BlockHeader>) {
    unsafe self.header = unsafe header
  }

  @inlinable deinit {
    // A sole holder needs no read-modify-write: no other handle exists that could add one.
    if unsafe header.pointee.holders.load(ordering: .acquiring) == 1
      || header.pointee.holders.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
    {
      unsafe header.pointee.pool._withUnsafeGuaranteedRef { unsafe $0.giveBack(header) }
    }
  }

  /// Adds a holder of the same bytes. They are read-only until a single holder is left.
  @inlinable public borrowing func share() -> Block {
    unsafe header.pointee.holders.add(1, ordering: .relaxed)
    return unsafe Block(header)
  }

  /// True while this handle is the only holder, so the bytes may be written.
  @inlinable public var isUnique: Bool {
    unsafe header.pointee.holders.load(ordering: .acquiring) == 1
  }

  /// Usable bytes.
  @inlinable public var byteCount: Int {
    unsafe header.pointee.pool._withUnsafeGuaranteedRef { $0.blockBytes }
  }

  @usableFromInline
  var start: UnsafeMutableRawPointer {
    @inlinable get { unsafe UnsafeMutableRawPointer(header) + BlockPool.headerSize }
  }

  /// The first `count` elements, for reading. Traps when the block is smaller.
  @inlinable
  @_lifetime(borrow self)
  public borrowing func samples<S: BitwiseCopyable>(of type: S.Type, count: Int) -> Span<S> {
    precondition(
      count >= 0 && count &* MemoryLayout<S>.stride <= byteCount, "more elements than the block holds")
    let first = unsafe UnsafePointer(start.assumingMemoryBound(to: S.self))
    return unsafe _overrideLifetime(Span(_unsafeStart: first, count: count), borrowing: self)
  }

  /// The first `count` elements, for writing. Traps when the block is shared or smaller.
  @inlinable
  @_lifetime(&self)
  public mutating func mutableSamples<S: BitwiseCopyable>(of type: S.Type, count: Int) -> MutableSpan<S> {
    precondition(isUnique, "write to a shared block")
    precondition(
      count >= 0 && count &* MemoryLayout<S>.stride <= byteCount, "more elements than the block holds")
    let first = unsafe start.assumingMemoryBound(to: S.self)
    return unsafe _overrideLifetime(MutableSpan(_unsafeStart: first, count: count), mutating: &self)
  }
}
