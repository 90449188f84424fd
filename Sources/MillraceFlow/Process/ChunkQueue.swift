internal import MillraceCore

/// A bounded queue of byte chunks between two threads, in memory reserved once.
///
/// One thread uses `isWritable` and `write`, one other `count` to `drop`. Nothing waits, locks or allocates.
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
  ///   - count: chunks it holds, at least; rounded up to a power of two.
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

  /// The next chunk's memory, to be filled before `publish`. Only while `isWritable`.
  var space: UnsafeMutablePointer<UInt8> { unsafe memory + written % slots * chunkBytes }

  /// Hands the filled chunk over.
  func publish(_ count: Int) {
    writer.push(count)
    written &+= 1
  }

  // MARK: Reading thread

  /// Bytes of the oldest chunk; nil when there is none.
  var count: Int? { reader.peek { $0 } }

  /// The oldest chunk's bytes. Only while there is one.
  var bytes: UnsafePointer<UInt8> { unsafe UnsafePointer(memory + read % slots * chunkBytes) }

  /// Gives the oldest chunk's memory back.
  func drop() {
    guard reader.pop() != nil else { return }
    read &+= 1
  }
}
