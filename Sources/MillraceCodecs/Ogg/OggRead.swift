public import MillraceCore
internal import MillraceFiles

/// `ogg.read`: an Ogg Opus file (RFC 7845) in, its Opus packets out.
///
/// Out: the packets as they are, placed at the link's rate (`rate`, 48 kHz unless said); lengths come from
/// the packets themselves (RFC 6716 section 3.1). The first sound sample has position 0: the pre-skip lies at
/// negative positions, and the last granule position becomes the `trimEnd` of the last packets.
///
/// **What is read.** The first Opus stream of the file; other streams in it are passed over. Chained streams
/// follow each other without a gap: positions go on, the next stream's pre-skip is its packets' `trimStart`,
/// and its first packet is marked `discontinuity`. `loop` does the same with the file's own beginning.
///
/// **Damage.** Pages with a wrong checksum, missing pages, impossible packets and positions are told by the event `damaged`, each
/// kind at once and then gathered for a second or to the file's end; the next packet is marked `discontinuity` and placed by its
/// page's granule position, so what follows stays in its place. A file that ends inside a page or without its last one is told by
/// `truncated`, and with `truncated` `fail` the node fails behind its last packet.
///
/// **Time.** Unpaced, packets come as fast as the graph takes them. With `pace` the *n*-th sample is due at
/// the start plus its place. Timestamps are the start plus the position in either case. Positions that leap by more than ten minutes
/// are believed, but not waited for: with `pace` the next packet follows at once, and `damaged` tells the hole.
///
/// The header's output gain is told by the event `opened`, not applied: set it as `gain` of opus.decode.
///
/// Lane `bulk`: reading may wait for the disk. Heap: none once the buffers have the size of the largest page.
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
  /// Holes that were not waited for, at 48 kHz.
  private var leaptOver: Int64 = 0
  /// Packets since the file's beginning.
  private var passPackets = 0
  private var mustRestart = false
  private var soundEnd: Int64 = 0
  private let truncation: Truncation
  private var isCut = false
  /// One for each kind of damage; places are where the sound before it ends, at 48 kHz.
  private var damage = OpusDemuxer.Damage.allCases.map { _ in DamageTally() }

  /// The longest hole that is waited for, at 48 kHz: ten minutes.
  private static let longestHole = Int64(600 * OpusRates.granule)

  /// Events, in the contract's order.
  enum Event: Int {
    case opened, damaged, truncated
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let parameters = setup.parameters
    guard case .opus(let rate, _) = setup.outputFormat(), let shape = setup.outputs[0].shape else {
      throw NodeProblem("\"\(setup.name)\" gives Opus")
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
    tellDamage(&ports)
    while unsafe pending == nil {
      switch unsafe demuxer.next() {
      case .opened(let header): postOpened(header, &ports)
      case .packet(let packet): unsafe take(packet, &ports)
      case .cut: noteCut(&ports)
      case .damage(let kind): note(kind, bytes: demuxer.damagedBytes, &ports)
      case .failed(let code):
        tellDamage(&ports, isLast: true)
        throw NodeFault(.system, code: code, detail: Int64(demuxer.byteCount))
      case .end, .needsMore:
        tellDamage(&ports, isLast: true)
        if isCut && truncation == .fail { throw Truncation.fault(at: max(0, soundEnd)) }
        // A file without packets, looped, would never come to an end.
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
        "\"\(path)\" is cut off \(fault.detail * 1_000 / Int64(OpusRates.granule)) ms into its sound, and \"truncated\" is \"fail\"; "
        + "use a complete file"
    }
    guard fault.reason == .system else { return nil }
    return "reading \"\(path)\" failed after \(fault.detail) bytes: \(SystemError.text(fault.code))"
  }

  // MARK: Packets

  @unsafe
  private mutating func take(_ packet: PagedPacket, _ ports: inout Ports) {
    if firstPosition == nil { unsafe firstPosition = packet.position }
    let hole = unsafe packet.position &- max(soundEnd, firstPosition ?? 0)
    if isPaced && hole > Self.longestHole {
      leaptOver &+= hole
      note(.longHole, bytes: 0, &ports)
    }
    passPackets += 1
    unsafe soundEnd = packet.position &+ Int64(packet.samples)
    // The file grew or changed since it was looked at.
    if unsafe packet.count > packetBytes {
      mustRestart = true
      unsafe note(.badPacket, bytes: packet.count, &ports)
      return
    }
    unsafe pending = unsafe packet
  }

  /// When a position is due. Never cumulated, so that pacing does not drift.
  private func due(_ position: Int64, _ start: Nanoseconds) -> Nanoseconds {
    start &+ .samples(position &- leaptOver &- (firstPosition ?? position), rate: OpusRates.granule)
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
    packet.timestamp = unsafe start &+ .samples(found.position &- leaptOver, rate: OpusRates.granule)
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

  /// Told once, also where the file is looped.
  private mutating func noteCut(_ ports: inout Ports) {
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
    tellDamage(&ports)
  }

  private mutating func tellDamage(_ ports: inout Ports, isLast: Bool = false) {
    // By number: a list of all kinds would be made anew, on the heap.
    for index in damage.indices {
      guard let kind = OpusDemuxer.Damage(rawValue: index),
        let account = damage[index].due(at: ports.now, isLast: isLast)
      else { continue }
      post(kind, account, &ports)
    }
  }

  private borrowing func post(
    _ kind: OpusDemuxer.Damage, _ account: DamageTally.Account, _ ports: inout Ports
  ) {
    let what: StaticString =
      switch kind {
      case .noise: "bytes of no sound page"
      case .missingPage: "page missing"
      case .badPacket: "packet that cannot be Opus"
      case .badPosition: "position beyond any recording"
      case .badStream: "stream neither mono nor stereo"
      case .longHole: "hole of more than ten minutes, not waited for"
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
