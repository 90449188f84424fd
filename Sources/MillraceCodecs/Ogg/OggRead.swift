public import MillraceCore
internal import MillraceFiles

/// `ogg.read`: reads the Opus packets of an Ogg Opus file (RFC 7845).
///
/// Output: the packets as they are, with positions at the link's rate (`rate`, 48 kHz by default); durations come from the packets
/// themselves (RFC 6716 section 3.1). The first audible sample has position 0: the pre-skip lies at negative positions, and the last
/// granule position becomes the `trimEnd` of the last packets.
///
/// **Streams.** Reads the first Opus stream of the file; streams multiplexed with it are skipped. Chained streams follow each other without
/// a gap: positions continue, the next stream's pre-skip is its packets' `trimStart`, and its first packet is marked `discontinuity`.
/// `loop` does the same with the start of the file.
///
/// **Damage.** Pages with a wrong checksum, missing pages, and invalid packets and positions are reported by the event `damaged`, the first of
/// each kind at once, further ones once a second and at the end of the file. The next packet is marked `discontinuity` and placed by its
/// page's granule position, so that what follows keeps its place. A file that ends inside a page or without its last page is reported by
/// `truncated`; with `truncated` set to `fail` the node fails after its last packet.
///
/// **Timing.** Without `pace`, packets are emitted as fast as the graph takes them. With `pace`, sample *n* is due *n* samples after the
/// start. Timestamps are the start plus the position in either case. Position jumps of more than ten minutes are kept but not waited
/// for: with `pace` the next packet follows at once, and `damaged` reports the gap.
///
/// The header's output gain is reported by the event `opened` but not applied: set it as `gain` of opus.decode.
///
/// Lane `bulk`: reading may block on the disk. Heap: none once the buffers have the size of the largest page.
@safe
public struct OggRead: ~Copyable, Node {
  private let path: String
  private let rate: Int
  private let packetBytes: Int
  private let isPaced: Bool
  private let loops: Bool
  private var demuxer: OpusDemuxer

  /// A packet that is not due yet.
  private var pending: PagedPacket?
  private var start: Nanoseconds?
  private var firstPosition: Int64?
  /// Total gaps that were not waited for, at 48 kHz.
  private var skippedGaps: Int64 = 0
  /// Packets since the start of the file.
  private var passPackets = 0
  private var mustRestart = false
  private var soundEnd: Int64 = 0
  private let truncation: Truncation
  private var isCut = false
  /// One reporter per kind of damage; positions are the end of the audio before it, at 48 kHz.
  private var damage = OpusDemuxer.Damage.allCases.map { _ in DamageReporter() }

  /// The longest gap that is waited for, at 48 kHz: ten minutes.
  private static let longestHole = Int64(600 * OpusRates.granule)

  /// Events, in the contract's order.
  enum Event: Int {
    case opened, damaged, truncated
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let parameters = setup.parameters
    guard case .opus(let rate, _) = setup.outputFormat(), let shape = setup.outputs[0].shape else {
      throw NodeProblem("\"\(setup.name)\" produces Opus")
    }
    demuxer = try OpusDemuxer(parameters.string("path"))
    path = parameters.string("path")
    self.rate = rate
    packetBytes = shape.packetBytes
    isPaced = parameters.bool("pace")
    loops = parameters.bool("loop")
    truncation = parameters.truncation
    unsafe pending = nil
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let start = self.start ?? ports.now
    self.start = start
    postDamage(&ports)
    while unsafe pending == nil {
      switch unsafe demuxer.next() {
      case .opened(let header): postOpened(header, &ports)
      case .packet(let packet): unsafe take(packet, &ports)
      case .cut: postTruncated(&ports)
      case .damage(let kind): note(kind, bytes: demuxer.damagedBytes, &ports)
      case .failed(let code):
        postDamage(&ports, isLast: true)
        throw NodeFault(.system, code: code, detail: Int64(demuxer.byteCount))
      case .end, .needsMore:
        postDamage(&ports, isLast: true)
        if isCut && truncation == .fail { throw Truncation.fault(at: max(0, soundEnd)) }
        // A looped file without packets would never end.
        guard loops && passPackets > 0 else { return .ended }
        passPackets = 0
        demuxer.rewind()
      }
    }
    guard let packet = unsafe pending else { return .again }
    if isPaced {
      let due = unsafe self.due(packet.position, start)
      if due > ports.now {
        ports.wake(at: due)
        return .done
      }
    }
    unsafe pending = nil
    try unsafe emit(packet, start, &ports)
    guard isPaced else { return .again }
    unsafe ports.wake(at: due(packet.position &+ Int64(packet.samples), start))
    return .done
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    if Truncation.isFault(fault) {
      return
        "\"\(path)\" ends \(fault.detail * 1_000 / Int64(OpusRates.granule)) ms into its audio, and \"truncated\" is \"fail\"; "
        + "use a complete file"
    }
    guard fault.reason == .system else { return nil }
    return "cannot read \"\(path)\" after \(fault.detail) bytes: \(SystemError.text(fault.code))"
  }

  // MARK: Packets

  @unsafe
  private mutating func take(_ packet: PagedPacket, _ ports: inout Ports) {
    if firstPosition == nil { unsafe firstPosition = packet.position }
    let gap = unsafe packet.position &- max(soundEnd, firstPosition ?? 0)
    if isPaced && gap > Self.longestHole {
      skippedGaps &+= gap
      note(.longGap, bytes: 0, &ports)
    }
    passPackets += 1
    unsafe soundEnd = packet.position &+ Int64(packet.samples)
    // The file changed since it was probed.
    if unsafe packet.count > packetBytes {
      mustRestart = true
      unsafe note(.badPacket, bytes: packet.count, &ports)
      return
    }
    unsafe pending = unsafe packet
  }

  /// When a position is due. Computed from the start, so that pacing does not drift.
  private func due(_ position: Int64, _ start: Nanoseconds) -> Nanoseconds {
    start &+ .samples(position &- skippedGaps &- (firstPosition ?? position), rate: OpusRates.granule)
  }

  @unsafe
  private mutating func emit(_ found: PagedPacket, _ start: Nanoseconds, _ ports: inout Ports)
    throws(NodeFault)
  {
    var packet = try unsafe ports.makePacket(bytes: found.count, of: .none)
    var output = packet.mutableSamples(of: UInt8.self)
    unsafe output.withUnsafeMutableBytes { target in
      guard let to = target.baseAddress, let from = unsafe found.start else { return }
      unsafe to.copyMemory(from: from, byteCount: found.count)
    }
    let position = unsafe rescale(found.position, from: OpusRates.granule, to: rate)
    let end = unsafe found.position &+ Int64(found.samples)
    packet.position = position
    packet.duration = unsafe found.samples * rate / OpusRates.granule
    packet.trimStart = unsafe Int(
      rescale(found.position &+ Int64(found.trimStart), from: OpusRates.granule, to: rate) &- position)
    packet.trimEnd = unsafe Int(
      rescale(end, from: OpusRates.granule, to: rate)
        &- rescale(end &- Int64(found.trimEnd), from: OpusRates.granule, to: rate))
    packet.timestamp = unsafe start &+ .samples(found.position &- skippedGaps, rate: OpusRates.granule)
    if unsafe found.isRestart || mustRestart { packet.flags.insert(.discontinuity) }
    mustRestart = false
    ports.emit(packet)
  }

  // MARK: Events

  private borrowing func postOpened(_ header: OpusHeader, _ ports: inout Ports) {
    ports.post(Event.opened.rawValue) { event in
      event.field("channels", header.channels)
      event.field("preskip", header.preSkip)
      event.field("input_rate", header.inputRate)
      event.field("gain_db", Double(header.gain) / 256, decimals: 2)
    }
  }

  /// Posted once, even if the file is looped.
  private mutating func postTruncated(_ ports: inout Ports) {
    guard !isCut else { return }
    isCut = true
    let seconds = Double(max(0, soundEnd)) / Double(OpusRates.granule)
    ports.post(Event.truncated.rawValue) { event in
      event.field("position", seconds)
      event.field("bytes", demuxer.damagedBytes)
    }
  }

  private mutating func note(_ kind: OpusDemuxer.Damage, bytes: Int, _ ports: inout Ports) {
    damage[kind.rawValue].note(at: max(0, soundEnd), bytes: Int64(bytes))
    postDamage(&ports)
  }

  private mutating func postDamage(_ ports: inout Ports, isLast: Bool = false) {
    // By index: `allCases` would allocate an array.
    for index in damage.indices {
      guard let kind = OpusDemuxer.Damage(rawValue: index),
        let account = damage[index].due(at: ports.now, isLast: isLast)
      else { continue }
      post(kind, account, &ports)
    }
  }

  private borrowing func post(
    _ kind: OpusDemuxer.Damage, _ account: DamageReporter.Account, _ ports: inout Ports
  ) {
    let what: StaticString =
      switch kind {
      case .noise: "bytes outside valid pages"
      case .missingPage: "missing page"
      case .badPacket: "invalid packet"
      case .badPosition: "invalid position"
      case .badStream: "unsupported stream: neither mono nor stereo"
      case .longGap: "gap of more than ten minutes, not waited for"
      }
    let seconds = Double(account.place) / Double(OpusRates.granule)
    ports.post(Event.damaged.rawValue) { event in
      event.field("what", what)
      event.field("position", seconds)
      event.field("bytes", Int(account.bytes))
      event.field("count", account.count)
    }
  }
}
