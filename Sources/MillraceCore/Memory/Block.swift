public import Synchronization

/// The owner's handle on one block of a pool. Dropping the last handle gives the block back.
///
/// A block may be written only while it has one holder; `share()` adds a holder for fan-out. The handle itself cannot be
/// copied: handing it on is a move, checked by the compiler.
@safe
public struct Block: ~Copyable, @unchecked Sendable {
  @usableFromInline let header: UnsafeMutablePointer<BlockHeader>

  @inlinable
  init(_ header: UnsafeMutablePointer<BlockHeader>) {
    unsafe self.header = unsafe header
  }

  @inlinable deinit {
    // A sole holder needs no read-modify-write: nobody else is there to add one.
    if unsafe header.pointee.holders.load(ordering: .acquiring) == 1
      || header.pointee.holders.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
    {
      unsafe header.pointee.pool._withUnsafeGuaranteedRef { unsafe $0.giveBack(header) }
    }
  }

  /// Adds a holder: the same bytes, read-only for everyone until one holder is left.
  @inlinable public borrowing func share() -> Block {
    unsafe header.pointee.holders.add(1, ordering: .relaxed)
    return unsafe Block(header)
  }

  /// True while this handle is the only one, so that the bytes may be written.
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

  /// The first `count` elements, to read.
  @inlinable
  @_lifetime(borrow self)
  public borrowing func samples<S: BitwiseCopyable>(of type: S.Type, count: Int) -> Span<S> {
    precondition(
      count >= 0 && count &* MemoryLayout<S>.stride <= byteCount, "more elements than the block holds")
    let first = unsafe UnsafePointer(start.assumingMemoryBound(to: S.self))
    return unsafe _overrideLifetime(Span(_unsafeStart: first, count: count), borrowing: self)
  }

  /// The first `count` elements, to write. Traps when the block is shared.
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
