internal import MillraceCore

/// A bounded queue of byte chunks between two threads, with memory allocated once.
///
/// One thread calls `isWritable`, `space` and `publish`; another calls `count`, `bytes` and `drop`. Nothing blocks, locks or
/// allocates.
@safe
final class ChunkQueue: @unchecked Sendable {
  let chunkBytes: Int
  private let memory: UnsafeMutablePointer<UInt8>
  private let slots: Int
  private var writer: RingWriter<Int>
  private var written = 0
  private var reader: RingReader<Int>
  private var read = 0

  /// - Parameters:
  ///   - chunkBytes: bytes of the largest chunk.
  ///   - count: minimum capacity in chunks; rounded up to a power of two.
  init(chunkBytes: Int, count: Int) {
    let ring = Ring<Int>(minimumCapacity: count)
    slots = ring.writer.capacity
    writer = ring.writer
    reader = ring.reader
    self.chunkBytes = chunkBytes
    unsafe memory = .allocate(capacity: chunkBytes * slots)
  }

  deinit { unsafe memory.deallocate() }

  // MARK: Writing thread

  /// True while one more chunk fits.
  var isWritable: Bool { writer.hasRoom }

  /// Memory of the next chunk, to be filled before `publish`. Only while `isWritable`.
  var space: UnsafeMutablePointer<UInt8> { unsafe memory + written % slots * chunkBytes }

  /// Publishes the filled chunk to the reader.
  func publish(_ count: Int) {
    writer.push(count)
    written &+= 1
  }

  // MARK: Reading thread

  /// Size of the oldest chunk in bytes; nil if the queue is empty.
  var count: Int? { reader.peek { $0 } }

  /// Content of the oldest chunk. Only while there is one.
  var bytes: UnsafePointer<UInt8> { unsafe UnsafePointer(memory + read % slots * chunkBytes) }

  /// Releases the oldest chunk's memory.
  func drop() {
    guard reader.pop() != nil else { return }
    read &+= 1
  }
}
