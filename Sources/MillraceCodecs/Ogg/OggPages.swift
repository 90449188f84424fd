internal import COgg
internal import Glibc
internal import MillraceCore
internal import MillraceFiles

/// Reads the pages of an Ogg stream in order, located and checked by libogg: from a file, which may block on the disk (bulk lane), or
/// from bytes fed to it.
///
/// Allocates only until its buffer has the size of the largest page.
@safe
struct OggPages: ~Copyable {
  /// The next item in the stream.
  enum Step: Equatable {
    /// A complete page with a valid checksum: `page`.
    case page
    /// This many bytes do not belong to a valid page.
    case skipped(Int)
    /// The end; this many bytes of an incomplete page were left over.
    case end(leftOver: Int)
    /// More bytes have to be fed.
    case needsMore
    /// A system call failed; its `errno`.
    case failed(Int32)
  }

  /// The file; negative if bytes are fed.
  private let descriptor: Int32
  private let sync: UnsafeMutablePointer<ogg_sync_state>
  /// The latest page. Valid until the next call of `next`.
  let page: UnsafeMutablePointer<ogg_page>
  /// Bytes read or fed since the start or the last rewind.
  private(set) var byteCount = 0
  /// Offset at which the latest page or invalid range starts.
  private(set) var foundAt = 0

  /// Bytes of pages that were checksummed and rejected, since the start or the last rewind.
  private(set) var refusedCount = 0

  /// Bytes read from the file at a time.
  private static let piece = 16_384
  /// Limits on checksumming a byte in vain, as a factor and in bytes, before a rejected page is skipped as a whole. Pages with false lengths
  /// can each start a few bytes after the previous one.
  private static let (patience, least) = (4, 1 << 20)

  /// Opens a regular file and claims it for as long as it is open.
  init(_ path: String) throws(NodeProblem) {
    try FileCheck.reading(path)
    descriptor = try OpenedFile(path, for: .reading).descriptor
    unsafe sync = .allocate(capacity: 1)
    unsafe page = .allocate(capacity: 1)
    unsafe sync.initialize(to: ogg_sync_state())
    unsafe page.initialize(to: ogg_page())
    _ = unsafe ogg_sync_init(sync)
  }

  /// Reads from bytes that are fed.
  init() {
    descriptor = -1
    unsafe sync = .allocate(capacity: 1)
    unsafe page = .allocate(capacity: 1)
    unsafe sync.initialize(to: ogg_sync_state())
    unsafe page.initialize(to: ogg_page())
    _ = unsafe ogg_sync_init(sync)
  }

  /// Appends bytes; call it only after `needsMore`. Bytes are lost if libogg is out of memory.
  mutating func feed(_ bytes: Span<UInt8>) {
    guard bytes.count > 0, let room = unsafe ogg_sync_buffer(sync, bytes.count) else { return }
    unsafe bytes.withUnsafeBytes { source in
      if let start = source.baseAddress {
        unsafe UnsafeMutableRawPointer(room).copyMemory(from: start, byteCount: bytes.count)
      }
    }
    _ = unsafe ogg_sync_wrote(sync, bytes.count)
    byteCount += bytes.count
  }

  deinit {
    _ = unsafe ogg_sync_clear(sync)
    unsafe sync.deallocate()
    unsafe page.deallocate()
    if descriptor >= 0 { FileLock.close(descriptor) }
  }

  /// Finds the next page.
  mutating func next() -> Step {
    while true {
      let start = unsafe Int(sync.pointee.returned)
      let place = byteCount - unread
      let claimed = claimedCount
      let found = unsafe Int(ogg_sync_pageseek(sync, page))
      if found != 0 { foundAt = place }
      if found > 0 { return .page }
      if found < 0 {
        var skipped = -found
        refusedCount += claimed
        if refusedCount > Self.patience * (place + claimed) + Self.least && claimed > skipped {
          skipped = claimed
          unsafe sync.pointee.returned = Int32(start + claimed)
        }
        return .skipped(skipped)
      }
      guard descriptor >= 0 else { return .needsMore }
      guard let room = unsafe ogg_sync_buffer(sync, Self.piece) else { return .failed(ENOMEM) }
      let count = unsafe read(descriptor, room, Self.piece)
      if count < 0 {
        if errno == EINTR { continue }
        return .failed(errno)
      }
      if count == 0 {
        foundAt = byteCount - unread
        return .end(leftOver: leftOver)
      }
      _ = unsafe ogg_sync_wrote(sync, count)
      byteCount += count
    }
  }

  /// Bytes in the buffer that are not consumed.
  private var unread: Int { unsafe Int(sync.pointee.fill) - Int(sync.pointee.returned) }

  /// Length of the next page by its header, if all of it is buffered and libogg is about to checksum it; otherwise 0.
  private var claimedCount: Int {
    let count = leftOver
    guard count >= Self.headerCount else { return 0 }
    let start = unsafe sync.pointee.data + Int(sync.pointee.returned)
    let segments = unsafe Int(start[Self.headerCount - 1])
    guard count >= Self.headerCount + segments else { return 0 }
    var claimed = Self.headerCount + segments
    for index in 0..<segments { claimed += unsafe Int(start[Self.headerCount + index]) }
    return claimed <= count ? claimed : 0
  }

  /// Size of a page header without its lacing values (RFC 3533 section 6).
  private static let headerCount = 27

  /// Buffered bytes that start like a page.
  var leftOver: Int {
    let start = unsafe Int(sync.pointee.returned)
    let count = unread
    let mark: StaticString = "OggS"
    for index in 0..<min(count, mark.utf8CodeUnitCount) {
      if unsafe sync.pointee.data[start + index] != mark.utf8Start[index] { return 0 }
    }
    return count
  }

  /// Seeks to the start of the file, or discards what was fed.
  mutating func rewind() {
    if descriptor >= 0 { _ = lseek(descriptor, 0, SEEK_SET) }
    _ = unsafe ogg_sync_reset(sync)
    (byteCount, foundAt, refusedCount) = (0, 0, 0)
  }

  var serial: Int32 { unsafe ogg_page_serialno(page) }
  var granule: Int64 { unsafe ogg_page_granulepos(page) }
  var beginsStream: Bool { unsafe ogg_page_bos(page) != 0 }
  var endsStream: Bool { unsafe ogg_page_eos(page) != 0 }

  /// The page's body. Valid until the next call of `next`.
  @unsafe
  var body: UnsafeBufferPointer<UInt8> {
    unsafe UnsafeBufferPointer(start: page.pointee.body, count: page.pointee.body_len)
  }
}
