internal import Glibc
package import MillraceCore

/// A fixed-size buffer for samples or bytes, aligned to a cache line.
///
/// Its memory is touched as far as it is used: one for the longest packet that may come costs no more than the packets that do.
@safe
package struct FrameBuffer: ~Copyable {
  private static let alignment = 64

  /// The first byte.
  package let start: UnsafeMutableRawPointer
  package let byteCount: Int
  private let memory: UnsafeMutableRawPointer

  /// Allocates memory of zeros. Out of memory, the process ends, as it does when Swift's own heap is.
  package init(byteCount: Int) {
    self.byteCount = byteCount
    // `calloc` does not write to memory that the system gives cleared. It aligns to 16 bytes.
    guard let memory = unsafe calloc(1, max(byteCount, 1) + Self.alignment) else {
      fatalError("no memory for a buffer of \(byteCount) bytes")
    }
    unsafe self.memory = unsafe memory
    unsafe start = unsafe memory.alignedUp(toMultipleOf: Self.alignment)
  }

  deinit { unsafe free(memory) }

  /// A writable view of the buffer or its first elements. It must not outlive the buffer, which the compiler cannot check.
  @unsafe
  @_lifetime(immortal)
  package func room<S: BitwiseCopyable>(for type: S.Type, count: Int? = nil) -> MutableSpan<S> {
    let all = byteCount / MemoryLayout<S>.stride
    precondition((count ?? all) <= all, "outside the buffer")
    let first = unsafe start.assumingMemoryBound(to: S.self)
    let span = unsafe MutableSpan(_unsafeStart: first, count: count ?? all)
    return unsafe _overrideLifetime(span, copying: ())
  }

  /// A writable view of `count` elements from `offset` on; the same rule applies.
  @unsafe
  @_lifetime(immortal)
  package func room<S: BitwiseCopyable>(for type: S.Type, from offset: Int, count: Int) -> MutableSpan<S> {
    precondition(
      offset >= 0 && count >= 0 && (offset + count) * MemoryLayout<S>.stride <= byteCount,
      "outside the buffer")
    let first = unsafe start.assumingMemoryBound(to: S.self) + offset
    let span = unsafe MutableSpan(_unsafeStart: first, count: count)
    return unsafe _overrideLifetime(span, copying: ())
  }

  /// A readable view of the first elements; the same rule as for `room` applies.
  @unsafe
  @_lifetime(immortal)
  package func contents<S: BitwiseCopyable>(of type: S.Type, count: Int) -> Span<S> {
    precondition(count >= 0 && count * MemoryLayout<S>.stride <= byteCount, "outside the buffer")
    let first = unsafe UnsafePointer(start.assumingMemoryBound(to: S.self))
    let span = unsafe Span(_unsafeStart: first, count: count)
    return unsafe _overrideLifetime(span, copying: ())
  }

  /// Zeroes a range, which is silence in either sample format.
  package mutating func clear(from offset: Int = 0, count: Int? = nil) {
    let count = count ?? byteCount - offset
    precondition(offset >= 0 && count >= 0 && offset + count <= byteCount, "outside the buffer")
    unsafe (start + offset).initializeMemory(as: UInt8.self, repeating: 0, count: count)
  }

  /// One byte.
  package subscript(offset: Int) -> UInt8 {
    precondition(offset >= 0 && offset < byteCount, "outside the buffer")
    return unsafe start.load(fromByteOffset: offset, as: UInt8.self)
  }

  /// Moves a range of bytes to the front; source and destination may overlap.
  package mutating func moveToFront(from offset: Int, count: Int) {
    precondition(offset >= 0 && count >= 0 && offset + count <= byteCount, "outside the buffer")
    unsafe start.copyMemory(from: start + offset, byteCount: count)
  }

  /// Copies bytes into the buffer.
  package mutating func copy(_ bytes: Span<UInt8>, to offset: Int) {
    precondition(offset >= 0 && offset + bytes.count <= byteCount, "outside the buffer")
    let target = unsafe start + offset
    unsafe bytes.withUnsafeBytes { from in
      guard let first = from.baseAddress else { return }
      unsafe target.copyMemory(from: first, byteCount: from.count)
    }
  }

  /// Copies a range of a packet's bytes into the buffer.
  package mutating func copy(_ packet: borrowing Packet, from source: Int, to offset: Int, count: Int) {
    let bytes = packet.samples(of: UInt8.self)
    precondition(source >= 0 && count >= 0 && source + count <= bytes.count, "outside the packet")
    copy(bytes.extracting(source..<source + count), to: offset)
  }

  /// Copies a range of bytes out of the buffer.
  package borrowing func copy(from offset: Int, count: Int, into bytes: inout MutableSpan<UInt8>) {
    precondition(offset >= 0 && count >= 0 && offset + count <= byteCount, "outside the buffer")
    precondition(count <= bytes.count, "more than the packet holds")
    let source = unsafe start + offset
    unsafe bytes.withUnsafeMutableBytes { to in
      guard let first = to.baseAddress else { return }
      unsafe first.copyMemory(from: source, byteCount: count)
    }
  }
}
