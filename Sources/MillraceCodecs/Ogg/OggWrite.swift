public import MillraceCore
internal import MillraceFiles

/// `ogg.write`: writes Opus packets to an Ogg Opus file (RFC 7845).
///
/// Input: Opus at any rate, 1 or 2 channels. Output: a file, a pipe or a device, and events.
///
/// **Placement.** The pre-skip comes from the negative position of the first packet (and its `trimStart`), in samples at 48 kHz; a stream
/// that starts at a later position starts at 0 in the file. The last packet's `trimEnd` sets the end of the last page, so that a player
/// plays exactly the samples that were encoded.
///
/// **Gaps.** Where positions jump (untransmitted silence, loss), packets of empty frames with the length and mode of the preceding frames fill
/// the gap, so that players which count packets stay right (RFC 7845 section 4.1). A gap shorter than a frame, or longer than an hour, is only
/// a jump of the granule position. Positions that go back are ignored: packets follow each other. Invalid packets are dropped and
/// leave such a gap.
///
/// **End.** The last page is always marked as such. An input without packets produces a file of zero length: one empty
/// frame, all of it pre-skip. An interruption drops the packet that waits for its page if it belongs to the cancelled reply.
///
/// **Safety.** The file is claimed while it is written: a file that another node or program reads or writes is refused, not truncated. The
/// two header pages are written with the first packet, then a page every `page` milliseconds; one packet is held back for the end
/// mark. A process that is killed leaves a file that is playable up to the last page. A disk error or a closed pipe fails the node; what was
/// written remains playable.
///
/// Lane `bulk`: a write may block on the disk. Heap: none once the page buffer has grown.
public struct OggWrite: ~Copyable, Node {
  private let path: String
  private let rate: Int
  private let channels: Int
  private let pageSamples: Int
  private let comments: [String]
  private var file: OutputFile
  private var pager: OggPager
  private var held: Packet?

  private var hasHeaders = false
  /// Samples at 48 kHz since the start of the stream, and since the last page.
  private var granule: Int64 = 0
  /// As `granule`, without the padding of the last packet.
  private var end: Int64 = 0
  private var sincePage = 0
  private var preSkip = 0
  /// Position after the last packet written, at the link's rate.
  private var expected: Int64 = 0
  private var packetCount = 0
  private var gapSamples: Int64 = 0
  /// TOC byte of the last packet written.
  private var toc: UInt8 = 0

  /// TOC byte of a 20 ms wideband SILK packet, and its stereo flag (RFC 6716 section 3.1).
  private static let emptyFrame: UInt8 = 9 << 3
  private static let stereo: UInt8 = 1 << 2

  /// Largest valid position, in samples at the link's rate.
  private static let maximumPosition: Int64 = 1 << 48

  /// Longest jump that is filled with empty frames, in samples at 48 kHz.
  private static let longestFill: Int64 = 3600 * 48_000

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .opus(let rate, let channels) = setup.inputFormat() else {
      throw NodeProblem("\"\(setup.name)\" takes only Opus")
    }
    file = try OutputFile(setup.parameters.string("path"))
    path = setup.parameters.string("path")
    self.rate = rate
    self.channels = channels
    pageSamples = setup.parameters.integer("page") * OpusRates.granule / 1000
    comments = setup.parameters.strings("tags")
    pager = OggPager(serial: Self.serial(of: setup.name))
    held = nil
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    // Lost and invalid packets leave a gap. The packet before may still be the last one.
    guard !packet.flags.contains(.lost), Self.samples(in: packet) > 0 else { return .done }
    if let before = held.take() { try write(before, isLast: false) }
    held = consume packet
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let last = held.take() {
      try write(last, isLast: true)
    } else {
      try writeEnd()
    }
    try writePages(isForced: true)
    // Release the file first: a listener of `written` may use it.
    file.release()
    postWritten(&ports)
    return .ended
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard let packet = held.take() else { return }
    if !HeldReply(of: packet).isStale(at: ports.generation) { held = consume packet }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    guard fault.reason == .system else { return nil }
    return FileMessages.writeFailure(
      fault.code, "\"\(path)\"", kept: "the first \(fault.detail) bytes were written and are playable")
  }

  // MARK: Packets

  private mutating func write(_ packet: consuming Packet, isLast: Bool) throws(NodeFault) {
    let bytes = packet.samples(of: UInt8.self)
    let samples = Self.samples(in: packet)
    // Larger positions would overflow; they can only come from corrupt data.
    let position = min(max(packet.position, -Self.maximumPosition), Self.maximumPosition)
    if !hasHeaders {
      preSkip = Int(
        rescale(max(0, -position) + Int64(packet.trimStart), from: rate, to: OpusRates.granule))
      expected = position
      try writeHeaders()
    }
    try fillGap(to: position)
    toc = bytes[0]
    granule += Int64(samples)
    sincePage += samples
    packetCount += 1
    expected = position &+ Int64(samples * rate / OpusRates.granule)
    let padding = isLast ? Int64(packet.trimEnd * OpusRates.granule / rate) : 0
    end = max(0, granule - padding)
    pager.add(bytes, granule: end, isLast: isLast)
    try writePages(isForced: sincePage >= pageSamples)
  }

  /// Length of a packet by its own bytes, in samples at 48 kHz; 0 or less if it is invalid.
  private static func samples(in packet: borrowing Packet) -> Int {
    LibopusDecoder.samples(in: packet.samples(of: UInt8.self), rate: OpusRates.granule)
  }

  /// Ends a file that has no packet to mark as the last: writes an empty frame, none of which is audible.
  private mutating func writeEnd() throws(NodeFault) {
    if packetCount == 0 {
      toc = Self.emptyFrame | (channels == 2 ? Self.stereo : 0)
      preSkip = LibopusDecoder.samplesOfFrame(toc: toc, rate: OpusRates.granule)
      end = Int64(preSkip)
      try writeHeaders()
    }
    // A granule position that does not advance trims the whole frame (RFC 7845 section 4.4).
    let empty: InlineArray<1, UInt8> = [toc & 0xFC]
    pager.add(empty.span, granule: end, isLast: true)
  }

  private mutating func fillGap(to position: Int64) throws(NodeFault) {
    guard position > expected else { return }
    var rest = rescale(position &- expected, from: rate, to: OpusRates.granule)
    gapSamples += rest
    let frame = Int64(LibopusDecoder.samplesOfFrame(toc: toc, rate: OpusRates.granule))
    let most = Int64(OpusRates.granule * OpusRates.longestPacket / 1000) / frame
    while packetCount > 0 && rest >= frame && rest <= Self.longestFill {
      let count = min(rest / frame, most)
      try addEmpty(frames: UInt8(count), samples: count * frame)
      rest -= count * frame
    }
    if rest == 0 { return }
    // A gap is only allowed between two pages.
    try writePages(isForced: true)
    granule += rest
  }

  /// Adds a packet of empty frames: a single one, or several of one size (RFC 6716 section 3.2, codes 0 and 3).
  private mutating func addEmpty(frames: UInt8, samples: Int64) throws(NodeFault) {
    granule += samples
    sincePage += Int(samples)
    let empty: InlineArray<2, UInt8> = [toc & 0xFC | (frames == 1 ? 0 : 3), frames]
    pager.add(empty.span.extracting(first: frames == 1 ? 1 : 2), granule: granule)
    try writePages(isForced: sincePage >= pageSamples)
  }

  // MARK: Pages

  private mutating func writeHeaders() throws(NodeFault) {
    hasHeaders = true
    let head = OpusHeader(channels: channels, preSkip: min(preSkip, 0xFFFF), inputRate: rate).bytes
    let tags = OpusHeader.tags(vendor: "millrace", comments: comments)
    // Each header has its own page (RFC 7845 section 3).
    pager.add(head.span, granule: 0, isFirst: true)
    try writePages(isForced: true)
    pager.add(tags.span, granule: 0)
    try writePages(isForced: true)
  }

  private mutating func writePages(isForced: Bool) throws(NodeFault) {
    while pager.cutPage(isForced: isForced) {
      sincePage = 0
      var code = unsafe file.write(pager.header)
      if code == 0 { code = unsafe file.write(pager.body) }
      guard code != 0 else { continue }
      // A recreated node may open the file.
      file.release()
      throw NodeFault(.system, code: code, detail: file.byteCount)
    }
  }

  private borrowing func postWritten(_ ports: inout Ports) {
    let seconds = Double(max(0, end - Int64(preSkip))) / Double(OpusRates.granule)
    ports.post(0) { event in
      event.field("bytes", Int(file.byteCount))
      event.field("packets", packetCount)
      event.field("pages", pager.pageCount)
      event.field("seconds", seconds)
      event.field("filled_s", Double(gapSamples) / Double(OpusRates.granule))
    }
  }

  /// A serial number derived from the node's name (FNV-1a), so that the same graph writes the same bytes.
  private static func serial(of name: String) -> Int32 {
    var hash: UInt32 = 2_166_136_261
    for byte in name.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    return Int32(bitPattern: hash)
  }
}
