internal import COgg
internal import COpus
internal import MillraceCore

/// Takes the Opus packets out of an Ogg file and places them (RFC 7845), one chained stream after the other.
///
/// Other streams multiplexed with it are passed over. Positions go on through a chain: each stream's first
/// sound sample follows the last of the stream before, and its pre-skip is told as `trimStart` there, as a
/// negative position in the first.
///
/// What the bytes say is bounded here: positions by `farthest`, and what waits for the rest of a packet by `longestPacket`.
@safe
struct OpusDemuxer: ~Copyable {
  /// Why sound is missing; numbered from 0.
  enum Damage: Int, CaseIterable {
    /// Bytes that belong to no sound page.
    case noise
    /// A page is missing, by its number.
    case missingPage
    /// A packet that cannot be Opus.
    case badPacket
    /// A granule position beyond any recording; its page is placed behind the one before.
    case badPosition
    /// A stream this node does not read: other channel mappings than mono and stereo, or damaged headers.
    case badStream
    /// A hole longer than anybody waits for. Told by who paces, which goes on at once.
    case longHole
  }

  /// What came next.
  @unsafe
  enum Step {
    case opened(OpusHeader)
    case packet(PagedPacket)
    case damage(Damage)
    /// The file ends inside a page or without the mark of the last page; `damagedBytes` are left of the page. `end` follows.
    case cut
    case end
    case failed(Int32)
    /// Bytes have to be fed first; only of a stream that is fed.
    case needsMore
  }

  /// Positions from which on a granule position is damage, in samples at 48 kHz: three years. Sums of so few stay far from the
  /// ends of 64 bits, also in nanoseconds.
  static let farthest: Int64 = 1 << 42
  /// Bytes of a packet that may wait for its end: an Opus packet has at most 48 frames of 1,275 bytes and their lengths (RFC 6716
  /// section 3.2). Longer tags, with a picture in them, are passed over.
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
  /// Bytes that the damage told last made useless; 0 where sound is missing and no bytes are.
  private(set) var damagedBytes = 0
  /// The stream's own count, pre-skip included: where the next packet begins; nil before the first page of
  /// sound.
  private var cursor: Int64?
  /// What the count began with.
  private var base: Int64 = 0
  /// Where this stream's sound begins, in the count of the whole chain.
  private var chainStart: Int64 = 0
  /// Where the sound found so far ends, in the same count.
  private var soundEnd: Int64 = 0
  private var isFirstStream = true
  private var isRestart = false
  private var hasToldCut = false

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

  /// Takes a stream that is fed.
  init() {
    pages = OggPages()
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: ogg_stream_state())
    _ = unsafe ogg_stream_init(stream, 0)
  }

  /// Appends bytes of the stream; only after `needsMore`.
  mutating func feed(_ bytes: Span<UInt8>) { pages.feed(bytes) }

  /// Forgets the stream that was fed: another begins, with positions of its own.
  mutating func reset() {
    rewind()
    page.clear()
    (isFirstStream, isRestart, hasEnded, pendingDamage) = (true, false, false, nil)
    (chainStart, soundEnd) = (0, 0)
  }

  /// Bytes of the file taken in so far.
  var byteCount: Int { pages.byteCount }
  /// The byte that what was found last begins with: a packet's page, or a stretch that is damaged.
  var foundAt: Int { pages.foundAt }

  /// Sound pages found so far, of any stream.
  private(set) var pageCount = 0

  /// The next thing in the file. A packet's bytes are valid until the next call.
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
        // A stream without its last page was cut off; a file whose first pages are not there yet, too.
        let isCut = leftOver > 0 || (stage != .seekingHead && !hasEnded)
        hasEnded = true
        if isCut && !hasToldCut {
          hasToldCut = true
          damagedBytes = leftOver
          return unsafe .cut
        }
        return unsafe .end
      case .failed(let code): return unsafe .failed(code)
      case .needsMore: return unsafe .needsMore
      }
    }
  }

  /// Bytes of an unfinished page that were fed last; 0 where the stream ends with a whole one.
  var leftOver: Int { pages.leftOver }
  /// True when nothing follows what was fed and the stream is not whole: it ends inside a page, or without the mark of the last.
  var isCut: Bool { leftOver > 0 || (stage != .seekingHead && !hasEnded) }

  /// Begins again at the start of the file; positions go on.
  mutating func rewind() {
    pages.rewind()
    hasToldCut = false
    endStream()
  }

  // MARK: Pages

  /// Of what is wrong with one page the first kind is told, with all the bytes of that kind.
  private mutating func noteDamage(_ damage: Damage, bytes: Int = 0) {
    isRestart = true
    if pendingDamage == nil { (pendingDamage, damagedBytes) = (damage, 0) }
    if pendingDamage == damage { damagedBytes += bytes }
  }

  private mutating func takePage() -> OpusHeader? {
    if pages.beginsStream {
      // Streams that begin together are multiplexed and only one is read; one that begins later is the next
      // of a chain.
      if stage == .sound && cursor != nil { endStream() }
      if stage == .seekingHead { return open() }
      return nil
    }
    guard stage != .seekingHead, pages.serial == serial else { return nil }
    _ = unsafe ogg_stream_pagein(stream, pages.page)
    if stage == .seekingTags { takeTags() } else { collect() }
    forgetEndless()
    return nil
  }

  /// Gives up a packet that has no end, and would take any memory. What follows of it is passed over.
  private mutating func forgetEndless() {
    let waiting = unsafe Int(stream.pointee.body_fill) - Int(stream.pointee.body_returned)
    guard waiting > Self.longestPacket else { return }
    _ = unsafe ogg_stream_reset_serialno(stream, serial)
    if stage == .seekingTags {
      stage = .sound
    } else {
      noteDamage(.badPacket, bytes: waiting)
    }
  }

  /// Reads the first page of a stream. Only a stream that can be read is opened.
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
    // The tags are lost; what follows is sound all the same.
    noteDamage(.missingPage)
    collect()
  }

  /// Takes the packets that end in the page just read, and places them by its granule position.
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
    if end >= 0, isTooFar(end) {
      noteDamage(.badPosition)
      end = -1
    }
    let total = page.samples
    // The first page may begin in the middle of a broadcast (RFC 7845 section 4.3), but not when it is the
    // last too: then a low granule position is end trimming.
    let first = pages.endsStream || end < 0 ? 0 : max(0, end &- total)
    if cursor == nil { base = first }
    var start = cursor ?? first
    if end >= 0 && end &- total > start {
      // The count went on without packets: a hole in the recording, or damage.
      start = end &- total
      isRestart = isRestart || cursor != nil
    }
    // Of its own page at most: what lies before was heard, and a stream that is chained behind must not begin inside it.
    let trim = pages.endsStream && end >= 0 ? min(total, max(0, start &+ total &- end)) : 0
    let sound = start &- base &- Int64(header.preSkip)
    let skip = isFirstStream ? 0 : max(0, -sound)
    page.place(from: chainStart &+ sound, skip: skip, trim: trim, isRestart: isRestart)
    isRestart = false
    cursor = start &+ total
    soundEnd = chainStart &+ max(0, sound &+ total &- trim)
  }

  /// True for a position that no stream has, counted from where this one began. A stream may begin anywhere (RFC 7845 section
  /// 4.3), but one whose first page is its last begins at 0.
  private borrowing func isTooFar(_ granule: Int64) -> Bool {
    if cursor == nil && !pages.endsStream { return granule > Int64.max / 2 }
    let start = cursor == nil ? 0 : base
    return granule > start + max(0, Self.farthest - chainStart)
  }

  private mutating func finishStream() {
    hasEnded = true
    endStream()
  }

  /// Makes ready for another stream behind this one.
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
