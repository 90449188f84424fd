internal import COgg
internal import Glibc

/// The pages of an Ogg file in their order, found and checked by libogg. Bulk lane: reading may wait for the
/// disk.
///
/// Allocates until its buffer has the size of the largest page, not after.
@safe
struct OggPages: ~Copyable {
  /// What came next.
  enum Step: Equatable {
    /// A whole page with a right checksum: `page`.
    case page
    /// So many bytes that are no sound page.
    case skipped(Int)
    /// The end; so many bytes of an unfinished page were left over.
    case end(leftOver: Int)
    /// The operating system refused; its `errno`.
    case failed(Int32)
  }

  private let descriptor: Int32
  private let sync: UnsafeMutablePointer<ogg_sync_state>
  /// The page found last. Valid until the next call of `next`.
  let page: UnsafeMutablePointer<ogg_page>
  /// Bytes taken in so far, since the start or the last rewind.
  private(set) var byteCount = 0

  /// Bytes asked of the file at a time.
  private static let piece = 16_384

  /// Opens a regular file.
  init(_ path: String) throws(FileTrouble) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    if descriptor < 0 { throw .reading(path, code: errno) }
    var status = stat()
    _ = unsafe fstat(descriptor, &status)
    let kind = status.st_mode & S_IFMT
    guard kind == S_IFREG else {
      close(descriptor)
      if kind == S_IFDIR { throw .reading(path, code: EISDIR) }
      throw FileTrouble(
        text: "cannot read \"\(path)\": it is not a regular file", cure: "save the stream to a file first")
    }
    self.descriptor = descriptor
    unsafe sync = .allocate(capacity: 1)
    unsafe page = .allocate(capacity: 1)
    unsafe sync.initialize(to: ogg_sync_state())
    unsafe page.initialize(to: ogg_page())
    _ = unsafe ogg_sync_init(sync)
  }

  deinit {
    _ = unsafe ogg_sync_clear(sync)
    unsafe sync.deallocate()
    unsafe page.deallocate()
    close(descriptor)
  }

  /// Finds the next page.
  mutating func next() -> Step {
    while true {
      let found = unsafe ogg_sync_pageseek(sync, page)
      if found > 0 { return .page }
      if found < 0 { return .skipped(-found) }
      guard let room = unsafe ogg_sync_buffer(sync, Self.piece) else { return .failed(ENOMEM) }
      let count = unsafe read(descriptor, room, Self.piece)
      if count < 0 {
        if errno == EINTR { continue }
        return .failed(errno)
      }
      if count == 0 { return .end(leftOver: leftOver) }
      _ = unsafe ogg_sync_wrote(sync, count)
      byteCount += count
    }
  }

  /// Bytes in the buffer that begin like a page.
  private var leftOver: Int {
    let start = unsafe Int(sync.pointee.returned)
    let count = unsafe Int(sync.pointee.fill) - start
    let mark: StaticString = "OggS"
    for index in 0..<min(count, mark.utf8CodeUnitCount) {
      if unsafe sync.pointee.data[start + index] != mark.utf8Start[index] { return 0 }
    }
    return count
  }

  /// Goes back to the start of the file.
  mutating func rewind() {
    _ = lseek(descriptor, 0, SEEK_SET)
    _ = unsafe ogg_sync_reset(sync)
    byteCount = 0
  }

  var serial: Int32 { unsafe ogg_page_serialno(page) }
  var granule: Int64 { unsafe ogg_page_granulepos(page) }
  var beginsStream: Bool { unsafe ogg_page_bos(page) != 0 }
  var endsStream: Bool { unsafe ogg_page_eos(page) != 0 }

  /// The page's content. Valid until the next call of `next`.
  @unsafe
  var body: UnsafeBufferPointer<UInt8> {
    unsafe UnsafeBufferPointer(start: page.pointee.body, count: page.pointee.body_len)
  }
}
