internal import COgg
internal import COpus
internal import MillraceCore

/// Extracts the Opus packets of an Ogg file and assigns their positions (RFC 7845), one chained stream after the other.
///
/// Other streams multiplexed with it are skipped. Positions continue through a chain: each stream's first audible sample follows the last
/// one of the previous stream. The pre-skip is a negative position in the first stream and `trimStart` in later ones.
///
/// Values from the file are bounded here: positions by `maximumPosition`, incomplete packets by `longestPacket`.
@safe
struct OpusDemuxer: ~Copyable {
  /// Why audio is missing; numbered from 0.
  enum Damage: Int, CaseIterable {
    /// Bytes that do not belong to a valid page.
    case noise
    /// A page is missing, by its sequence number.
    case missingPage
    /// A packet that is not valid Opus.
    case badPacket
    /// A granule position out of range; its page is placed after the previous one.
    case badPosition
    /// An unsupported stream: a channel mapping other than mono or stereo, or damaged headers.
    case badStream
    /// A gap too long to wait for. Reported by the paced reader, which continues at once.
    case longGap
  }

  /// The next item in the file.
  @unsafe
  enum Step {
    case opened(OpusHeader)
    case packet(PagedPacket)
    case damage(Damage)
    /// The file ends inside a page or without an end-of-stream page; `damagedBytes` are left of the page. `end` follows.
    case cut
    case end
    case failed(Int32)
    /// More bytes have to be fed; only for a fed stream.
    case needsMore
  }

  /// Granule positions from here on count as damage, in samples at 48 kHz: three years. Sums of such values stay far from the limits of
  /// 64 bits, even in nanoseconds.
  static let maximumPosition: Int64 = 1 << 42
  /// Most bytes buffered for an incomplete packet: an Opus packet has at most 48 frames of 1,275 bytes and their lengths (RFC 6716
  /// section 3.2). Longer tags, such as those with a picture, are skipped.
  private static let longestPacket = 131_072

  private enum Stage {
    case seekingHead, seekingTags, sound
  }

  private var pages: OggPages
  private let stream: UnsafeMutablePointer<ogg_stream_state>
  private var page = OpusPage()
  private var stage = Stage.seekingHead
  private var serial: Int32 = 0
  private var header = OpusHeader(channels: 1, preSkip: 0, inputRate: 0)
  private var hasEnded = false
  private var pendingDamage: Damage?
  /// Bytes lost to the latest damage; 0 where audio is missing without lost bytes.
  private(set) var damagedBytes = 0
  /// Position of the next packet in the stream's own count, including pre-skip; nil before the first audio page.
  private var cursor: Int64?
  /// First position of that count.
  private var base: Int64 = 0
  /// Start of this stream's audio in the count of the whole chain.
  private var chainStart: Int64 = 0
  /// End of the audio so far, in the same count.
  private var soundEnd: Int64 = 0
  private var isFirstStream = true
  private var isRestart = false
  private var hasReportedTruncation = false

  /// Opens a file and claims it for as long as it is open.
  init(_ path: String) throws(NodeProblem) {
    pages = try OggPages(path)
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: ogg_stream_state())
    _ = unsafe ogg_stream_init(stream, 0)
  }

  deinit {
    _ = unsafe ogg_stream_clear(stream)
    unsafe stream.deallocate()
  }

  /// Demultiplexes a stream that is fed.
  init() {
    pages = OggPages()
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: ogg_stream_state())
    _ = unsafe ogg_stream_init(stream, 0)
  }

  /// Appends bytes of the stream; call it only after `needsMore`.
  mutating func feed(_ bytes: Span<UInt8>) { pages.feed(bytes) }

  /// Discards the fed stream: another one starts, with its own positions.
  mutating func reset() {
    rewind()
    page.clear()
    (isFirstStream, isRestart, hasEnded, pendingDamage) = (true, false, false, nil)
    (chainStart, soundEnd) = (0, 0)
  }

  /// Bytes read so far.
  var byteCount: Int { pages.byteCount }
  /// Offset of the latest item: a packet's page, or a damaged range.
  var foundAt: Int { pages.foundAt }

  /// Valid pages found so far, of any stream.
  private(set) var pageCount = 0

  /// The next item in the file. A packet's bytes are valid until the next call.
  @unsafe
  mutating func next() -> Step {
    while true {
      if let packet = unsafe page.take() { return unsafe .packet(packet) }
      if let damage = pendingDamage {
        pendingDamage = nil
        return unsafe .damage(damage)
      }
      switch pages.next() {
      case .page:
        pageCount += 1
        if let opened = takePage() { return unsafe .opened(opened) }
      case .skipped(let count):
        noteDamage(.noise, bytes: count)
      case .end(let leftOver):
        // A stream without its last page was truncated; so was a file without its first pages.
        let isCut = leftOver > 0 || (stage != .seekingHead && !hasEnded)
        hasEnded = true
        if isCut && !hasReportedTruncation {
          hasReportedTruncation = true
          damagedBytes = leftOver
          return unsafe .cut
        }
        return unsafe .end
      case .failed(let code): return unsafe .failed(code)
      case .needsMore: return unsafe .needsMore
      }
    }
  }

  /// Bytes of an incomplete page at the end of what was fed; 0 if it ends with a complete page.
  var leftOver: Int { pages.leftOver }
  /// True if the stream would be incomplete without more bytes: it ends inside a page, or has no end-of-stream page.
  var isCut: Bool { leftOver > 0 || (stage != .seekingHead && !hasEnded) }

  /// Restarts at the beginning of the file; positions continue.
  mutating func rewind() {
    pages.rewind()
    hasReportedTruncation = false
    endStream()
  }

  // MARK: Pages

  /// Records damage. For one page the first kind is reported, with all bytes of that kind.
  private mutating func noteDamage(_ damage: Damage, bytes: Int = 0) {
    isRestart = true
    if pendingDamage == nil { (pendingDamage, damagedBytes) = (damage, 0) }
    if pendingDamage == damage { damagedBytes += bytes }
  }

  private mutating func takePage() -> OpusHeader? {
    if pages.beginsStream {
      // Streams that start together are multiplexed, and only one is read; a stream that starts later is the next one
      // of a chain.
      if stage == .sound && cursor != nil { endStream() }
      if stage == .seekingHead { return open() }
      return nil
    }
    guard stage != .seekingHead, pages.serial == serial else { return nil }
    _ = unsafe ogg_stream_pagein(stream, pages.page)
    if stage == .seekingTags { takeTags() } else { collect() }
    dropEndlessPacket()
    return nil
  }

  /// Drops a packet that never ends and would use unlimited memory. Its continuation is skipped.
  private mutating func dropEndlessPacket() {
    let waiting = unsafe Int(stream.pointee.body_fill) - Int(stream.pointee.body_returned)
    guard waiting > Self.longestPacket else { return }
    _ = unsafe ogg_stream_reset_serialno(stream, serial)
    if stage == .seekingTags {
      stage = .sound
    } else {
      noteDamage(.badPacket, bytes: waiting)
    }
  }

  /// Reads the first page of a stream. Opens only streams that are supported.
  private mutating func open() -> OpusHeader? {
    let bytes = unsafe Span(_unsafeElements: pages.body)
    guard bytes.starts(with: "OpusHead") else { return nil }
    guard let header = OpusHeader(bytes), header.mappingFamily == 0, header.channels <= 2 else {
      noteDamage(.badStream)
      return nil
    }
    serial = pages.serial
    _ = unsafe ogg_stream_reset_serialno(stream, serial)
    _ = unsafe ogg_stream_pagein(stream, pages.page)
    var packet = unsafe ogg_packet()
    _ = unsafe ogg_stream_packetout(stream, &packet)
    self.header = header
    stage = .seekingTags
    hasEnded = false
    cursor = nil
    return header
  }

  private mutating func takeTags() {
    var packet = unsafe ogg_packet()
    let found = unsafe ogg_stream_packetout(stream, &packet)
    if found == 0 { return }
    stage = .sound
    if found > 0, let start = unsafe packet.packet {
      let bytes = unsafe Span(_unsafeStart: UnsafePointer(start), count: packet.bytes)
      if bytes.starts(with: "OpusTags") { return }
    }
    // The tags are lost, but the audio follows.
    noteDamage(.missingPage)
    collect()
  }

  /// Takes the packets that end in the current page, and places them by its granule position.
  private mutating func collect() {
    page.clear()
    var packet = unsafe ogg_packet()
    while true {
      let found = unsafe ogg_stream_packetout(stream, &packet)
      if found == 0 { break }
      if found < 0 {
        noteDamage(.missingPage)
        continue
      }
      let bytes = unsafe Span(_unsafeStart: UnsafePointer(packet.packet), count: packet.bytes)
      let samples = LibopusDecoder.samples(in: bytes, rate: OpusRates.granule)
      if samples <= 0 {
        unsafe noteDamage(.badPacket, bytes: packet.bytes)
        continue
      }
      unsafe page.add(PagedPacket(start: UnsafePointer(packet.packet), count: packet.bytes, samples: samples))
    }
    if !page.isEmpty { place() }
    if pages.endsStream { finishStream() }
  }

  private mutating func place() {
    var end = pages.granule
    if end >= 0, isOutOfRange(end) {
      noteDamage(.badPosition)
      end = -1
    }
    let total = page.samples
    // The first page may start in the middle of a broadcast (RFC 7845 section 4.3), unless it is also the last: then a low granule
    // position means end trimming.
    let first = pages.endsStream || end < 0 ? 0 : max(0, end &- total)
    if cursor == nil { base = first }
    var start = cursor ?? first
    if end >= 0 && end &- total > start {
      // The count advanced without packets: a gap in the recording, or damage.
      start = end &- total
      isRestart = isRestart || cursor != nil
    }
    // At most its own page: earlier audio was already emitted, and a chained stream must not start inside it.
    let trim = pages.endsStream && end >= 0 ? min(total, max(0, start &+ total &- end)) : 0
    let sound = start &- base &- Int64(header.preSkip)
    let skip = isFirstStream ? 0 : max(0, -sound)
    page.place(from: chainStart &+ sound, skip: skip, trim: trim, isRestart: isRestart)
    isRestart = false
    cursor = start &+ total
    soundEnd = chainStart &+ max(0, sound &+ total &- trim)
  }

  /// True for a position that no stream can have, relative to its start. A stream may start anywhere (RFC 7845 section 4.3), except that one
  /// whose first page is its last starts at 0.
  private borrowing func isOutOfRange(_ granule: Int64) -> Bool {
    if cursor == nil && !pages.endsStream { return granule > Int64.max / 2 }
    let start = cursor == nil ? 0 : base
    return granule > start + max(0, Self.maximumPosition - chainStart)
  }

  private mutating func finishStream() {
    hasEnded = true
    endStream()
  }

  /// Prepares for a chained stream.
  private mutating func endStream() {
    if cursor != nil {
      isFirstStream = false
      isRestart = true
      chainStart = soundEnd
    }
    stage = .seekingHead
    cursor = nil
  }
}
