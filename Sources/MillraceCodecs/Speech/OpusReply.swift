internal import MillraceCore

/// Decodes replies in Opus: one Opus packet per packet, or an Ogg stream cut anywhere.
final class OpusReply: ReplyDecoder {
  private let decoder: LibopusDecoder
  private let channels: Int
  private var bank: ResamplerBank
  private var decoded: FrameBuffer
  private var output: FrameBuffer
  private let pages: OggFeed?
  /// The frames of `decoded` that are not resampled yet.
  private var kept = 0..<0
  private var isActive = false
  private var hasSound = false
  /// A notice to report before decoding continues.
  private var notice: ReplyNotice?
  private var fed: Int64 = 0

  /// Most bytes of Ogg consumed at a time.
  private static let piece = 4_096
  /// Positions further below 0, in samples, are clamped to this: they can only come from corrupt data.
  private static let maximumPosition: Int64 = 1 << 48

  init(isOgg: Bool, rate: Int, channels: Int) throws(NodeProblem) {
    let coded = OpusRates.holding(rate)
    let decoder = try LibopusDecoder(rate: coded, channels: channels, sample: .f32)
    let longest = coded * OpusRates.longestPacket / 1_000
    let bank = try ResamplerBank(from: [coded], to: rate, channels: channels, longest: longest)
    self.decoder = decoder
    self.channels = channels
    decoded = FrameBuffer(byteCount: longest * channels * 4)
    output = FrameBuffer(byteCount: bank.longest * channels * 4)
    self.bank = bank
    pages = isOgg ? OggFeed() : nil
    super.init()
  }

  override var sound: UnsafePointer<Float> {
    unsafe UnsafePointer(output.start.assumingMemoryBound(to: Float.self))
  }

  private var room: Int { decoded.byteCount / channels / 4 }

  override func feed(_ bytes: Span<UInt8>, from offset: Int, of entry: ReplyQueue.Entry) -> Int {
    begin()
    guard let pages else {
      fed += Int64(bytes.count)
      take(bytes, entry)
      return bytes.count - offset
    }
    let taken = min(bytes.count - offset, Self.piece)
    fed += Int64(taken)
    pages.feed(bytes.extracting(offset..<offset + taken))
    return taken
  }

  private func begin() {
    guard !isActive else { return }
    isActive = true
    hasSound = false
    fed = 0
    decoder.reset()
    bank.reset(0)
    pages?.reset()
  }

  // MARK: Packets

  /// Decodes or conceals one packet of the link.
  private func take(_ bytes: Span<UInt8>, _ entry: ReplyQueue.Entry) {
    let isLost = bytes.isEmpty || entry.flags.contains(.lost)
    if bytes.isEmpty && !entry.flags.contains(.lost) { return }
    if isLost { return conceal(entry.duration) }
    let span = max(1, entry.duration)
    // Before position 0 lies the encoder's pre-skip.
    let before = 0 - max(-Self.maximumPosition, min(0, entry.position))
    let skip = min(span, max(entry.trimStart, Int(min(Int64(span), before))))
    let padding = min(span, max(0, entry.trimEnd))
    let isGood = unsafe bytes.withUnsafeBufferPointer { unsafe decode($0.baseAddress, $0.count) }
    guard isGood else {
      notice = .damaged(offset: fed - Int64(bytes.count), count: Int64(bytes.count))
      return conceal(entry.duration)
    }
    let frames = kept.upperBound
    // Trims count at the link's rate, which is the packet's duration divided by its length.
    let (from, to) = (frames * skip / span, frames - frames * padding / span)
    kept = entry.duration > 0 ? min(from, to)..<to : kept
  }

  /// Decodes bytes into `decoded`; false if libopus rejects them.
  private func decode(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Bool {
    let made = unsafe decoder.decode(bytes, count: count, to: decoded.start, room: room)
    kept = 0..<max(0, made)
    return made > 0
  }

  /// Extrapolates a lost packet; 20 ms if its length is unknown.
  private func conceal(_ duration: Int) {
    let unit = decoder.rate / 400
    let wanted = duration > 0 ? duration : decoder.rate / 50
    let made = unsafe decoder.decode(
      nil, count: 0, to: decoded.start, room: min(room, (wanted + unit - 1) / unit * unit))
    kept = 0..<max(0, made)
  }

  // MARK: Output

  override func next() -> Step {
    count = 0
    while true {
      if let told = notice {
        notice = nil
        return .notice(told)
      }
      if !kept.isEmpty {
        if resample() { return .sound }
        continue
      }
      guard let pages else { return .needsMore }
      switch unsafe pages.next() {
      case .opened(let header):
        decoder.reset()
        decoder.set(gain: Double(header.gain) / 256)
        notice = .format(rate: header.inputRate, channels: header.channels)
      case .packet(let packet): unsafe take(packet)
      case .damage(let place, let count): notice = .damaged(offset: place, count: count)
      case .needsMore: return .needsMore
      }
    }
  }

  /// Decodes one packet of an Ogg stream, placed at 48 kHz.
  @unsafe
  private func take(_ packet: PagedPacket) {
    guard unsafe decode(packet.start, packet.count) else {
      notice = .damaged(offset: pages?.place ?? fed, count: unsafe Int64(packet.count))
      return
    }
    let granule = OpusRates.granule
    let skip = unsafe max(Int64(packet.trimStart), min(Int64(packet.samples), max(0, -packet.position)))
    let from = Int(skip) * decoder.rate / granule
    let to = unsafe kept.upperBound - packet.trimEnd * decoder.rate / granule
    kept = min(from, max(to, 0))..<max(to, 0)
  }

  private func resample() -> Bool {
    let start = unsafe decoded.start.assumingMemoryBound(to: Float.self) + kept.lowerBound * channels
    let input = unsafe Span(_unsafeStart: UnsafePointer(start), count: kept.count * channels)
    var target = unsafe output.room(for: Float.self)
    kept = 0..<0
    count = bank.process(0, input, into: &target)
    hasSound = true
    return count > 0
  }

  override func finish() -> Step? {
    count = 0
    guard isActive else { return nil }
    if let pages, let cut = pages.takeCut() {
      return .notice(.truncated(offset: cut.place, count: cut.count))
    }
    isActive = false
    var target = unsafe output.room(for: Float.self)
    count = bank.flush(0, into: &target)
    if !hasSound && fed > 0 {
      count = 0
      return .notice(.silent(count: fed))
    }
    return count > 0 ? .sound : nil
  }

  override func reset() {
    super.reset()
    kept = 0..<0
    notice = nil
    isActive = false
  }
}

/// Demultiplexes an Ogg Opus stream that arrives in pieces. A class, so that it can be optional.
final class OggFeed {
  /// The next item in the stream.
  @unsafe
  enum Step {
    case opened(OpusHeader)
    case packet(PagedPacket)
    /// `count` bytes from offset `place` are invalid; 0: data is missing there.
    case damage(place: Int64, count: Int64)
    case needsMore
  }

  private var demuxer = OpusDemuxer()
  /// Offset of the latest item in the stream.
  var place: Int64 { Int64(demuxer.foundAt) }

  private var hasReportedTruncation = false

  func feed(_ bytes: Span<UInt8>) { demuxer.feed(bytes) }

  /// The incomplete page at the end of the stream, reported once. A missing end-of-stream mark alone does not count: services omit it.
  func takeCut() -> (place: Int64, count: Int64)? {
    guard !hasReportedTruncation, demuxer.leftOver > 0 else { return nil }
    hasReportedTruncation = true
    return (Int64(demuxer.byteCount - demuxer.leftOver), Int64(demuxer.leftOver))
  }

  /// Starts another stream.
  func reset() {
    demuxer.reset()
    hasReportedTruncation = false
  }

  @unsafe
  func next() -> Step {
    switch unsafe demuxer.next() {
    case .opened(let header): unsafe .opened(header)
    case .packet(let packet): unsafe .packet(packet)
    case .damage, .cut: unsafe .damage(place: place, count: Int64(demuxer.damagedBytes))
    case .needsMore, .end, .failed: unsafe .needsMore
    }
  }
}
