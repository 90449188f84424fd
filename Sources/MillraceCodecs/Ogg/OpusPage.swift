/// An Opus packet of a page, placed in samples at 48 kHz.
@unsafe
struct PagedPacket {
  /// The bytes, inside the demultiplexer; valid until its next page.
  var start: UnsafePointer<UInt8>?
  var count = 0
  /// Position of its first sample; negative during pre-skip.
  var position: Int64 = 0
  var samples = 0
  var trimStart = 0
  var trimEnd = 0
  /// True if data is missing before it, or another stream starts with it.
  var isRestart = false
}

/// The packets of one page: at most 255, since each needs at least one of a page's lacing values (RFC 3533 section 6).
@safe
struct OpusPage: ~Copyable {
  private let packets: UnsafeMutablePointer<PagedPacket>
  private(set) var count = 0
  private var taken = 0
  /// Total samples of all packets.
  private(set) var samples: Int64 = 0

  static let capacity = 256

  init() {
    unsafe packets = .allocate(capacity: Self.capacity)
    unsafe packets.initialize(repeating: PagedPacket(), count: Self.capacity)
  }

  deinit { unsafe packets.deallocate() }

  var isEmpty: Bool { taken == count }

  mutating func clear() {
    count = 0
    taken = 0
    samples = 0
  }

  @unsafe
  mutating func add(_ packet: PagedPacket) {
    guard count < Self.capacity else { return }
    unsafe packets[count] = unsafe packet
    unsafe samples += Int64(packet.samples)
    count += 1
  }

  @unsafe
  mutating func take() -> PagedPacket? {
    guard taken < count else { return nil }
    defer { taken += 1 }
    return unsafe packets[taken]
  }

  /// Assigns positions to all packets: the first one starts at `start`, its first `skip` samples are the rest of the pre-skip, and the last
  /// `trim` samples of the page are padding. A sample that is both counts as padding.
  mutating func place(from start: Int64, skip: Int64, trim: Int64, isRestart: Bool) {
    var position = start
    var skip = min(skip, samples - trim)
    for index in 0..<count {
      let length = unsafe packets[index].samples
      let skipped = min(Int64(length), max(0, skip))
      unsafe packets[index].position = position
      unsafe packets[index].trimStart = Int(skipped)
      unsafe packets[index].isRestart = isRestart && index == 0
      position += Int64(length)
      skip -= skipped
    }
    var trim = trim
    for index in stride(from: count - 1, through: 0, by: -1) where trim > 0 {
      let cut = unsafe min(Int64(packets[index].samples), trim)
      unsafe packets[index].trimEnd = Int(cut)
      trim -= cut
    }
  }
}
