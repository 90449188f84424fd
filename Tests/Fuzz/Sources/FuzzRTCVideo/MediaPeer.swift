import MillraceCore
import MillraceRTCWire

/// The other side, which does what the input says.
struct MediaPeer {
  /// Sources whose packets follow each other.
  private static let sources = 32
  private let session: MediaSession
  private var sequences = [UInt16](repeating: 0, count: sources)
  private var timestamps = [UInt32](repeating: 0, count: sources)
  private var number: UInt16 = 0
  /// Packets, and feedback, that are still sent again: an input must not take seconds.
  private var repeats = 5_000
  private var feedback = 40_000
  /// The packet that was sent last, without its head.
  private var last: (header: RTPHeader, payload: [UInt8])?

  init(_ session: MediaSession) { self.session = session }

  /// The number of a source.
  static func source(_ index: Int) -> UInt32 { 5_000 + UInt32(index) }

  /// Does one step.
  mutating func step(_ input: inout InputBytes) {
    let head = input.byte()
    switch head & 15 {
    case 0...3: sendPacket(&input)
    case 4: sendAgain(&input)
    case 5: session.take(input.take(Int(input.uint16() % 1_500)), isRTCP: false)
    case 6: session.take(input.take(Int(input.uint16() % 1_500)), isRTCP: true)
    case 7: session.wait(.milliseconds(Int64(input.byte())))
    case 8: session.wait(.milliseconds(Int64(input.uint16() % 30_000)))
    case 9: sendFeedback(&input)
    case 10: report(&input)
    case 11: request(&input)
    case 12: sendPicture(&input)
    case 13: session.send(sound: input.take(Int(input.byte())), pause: Int(head >> 4) * 960)
    case 14: session.send(tones: String(decoding: input.take(Int(head >> 4)), as: UTF8.self))
    default: session.requestKeyFrame()
    }
  }

  // MARK: Media

  /// Sends a packet of a source, whose numbers continue from the one before it.
  private mutating func sendPacket(_ input: inout InputBytes) {
    let (kind, format) = (input.byte(), input.byte())
    let index = Int(kind & 31)
    sequences[index] &+= UInt16(bitPattern: Int16(Int8(bitPattern: input.byte())))
    timestamps[index] &+= UInt32(input.byte()) * 900
    let header = RTPHeader(
      payloadType: Agreement.payloadTypes[Int(format & 7)], sequence: sequences[index],
      timestamp: timestamps[index], ssrc: Self.source(index), marker: format & 8 != 0)
    send(header, input.take(Int(input.uint16() % 1_400)))
  }

  /// Sends the last packet several times with the numbers that follow, or from as many sources.
  private mutating func sendAgain(_ input: inout InputBytes) {
    let count = min(Int(input.byte()), repeats)
    let kind = input.byte()
    guard let last else { return }
    repeats -= count
    var header = last.header
    for index in 0..<count {
      header.sequence &+= 1 + UInt16(kind & 7)
      if kind & 8 != 0 { header.timestamp &+= 3_000 }
      if kind & 16 != 0 { header.ssrc = 9_000 + UInt32(kind >> 5) * 1_000 + UInt32(index) }
      send(header, last.payload)
    }
  }

  private mutating func send(_ header: RTPHeader, _ payload: [UInt8]) {
    number &+= 1
    let extensions = RTPExtensions(
      absoluteSendTime: RTPAbsoluteSendTime(rawValue: UInt32(truncatingIfNeeded: session.now >> 12)),
      transportSequence: number)
    var head = [UInt8](repeating: 0, count: 64)
    let count = write(header, extensions, into: &head)
    last = (header, payload)
    session.take(Array(head[..<count]) + payload, isRTCP: false)
  }

  private func write(_ header: RTPHeader, _ extensions: RTPExtensions, into bytes: inout [UInt8]) -> Int {
    var target = bytes.mutableSpan
    do throws(RTPProblem) {
      return try header.write(extensions, identifiers: session.agreement.identifiers, into: &target)
    } catch {
      fatalError("a header cannot be written: \(error)")
    }
  }

  /// Has this side send a picture of the length of two bytes, with a head that its codec knows.
  private func sendPicture(_ input: inout InputBytes) {
    let kind = input.byte()
    let heads: [[UInt8]] = [
      [0, 0, 0, 1, 0x67, 0x42, 0xE0, 0x1F, 0, 0, 0, 1, 0x68, 0xCE, 0, 0, 0, 1, 0x65, 0x88],
      [0, 0, 1, 0x41, 0x9A], [0x10, 2, 0, 0x9D, 1, 0x2A, 64, 0, 48, 0], [],
    ]
    let filler = [UInt8](repeating: 0x55, count: Int(input.uint16() % 20_000))
    let own = input.take(Int(kind >> 4))
    session.send(picture: heads[Int(kind & 3)] + own + filler, isKey: kind & 4 != 0)
  }

  // MARK: Reports

  /// Feedback about one packet that this side has sent, several times, with a reference time that continues.
  private mutating func sendFeedback(_ input: inout InputBytes) {
    let base = session.lastNumber &- UInt16(input.byte())
    let count = min(1 + Int(input.byte()) * 100, feedback)
    feedback -= count
    var reference = input.uint32()
    let step = input.uint32()
    let delta = input.byte()
    for index in 0..<count {
      var packet: [UInt8] = [0x8F, 205, 0, 5, 0, 0, 0, 9]
      packet += bytes(Agreement.videoSource)
      packet += bytes(UInt32(base) << 16 | 1)
      packet += bytes(reference << 8 | UInt32(index & 255))
      // A run of one small delta.
      packet += [0x20, 0x01, delta, 0]
      session.take(packet, isRTCP: true)
      reference &+= step
    }
  }

  private func bytes(_ value: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
  }

  /// A report about what this side sends, or about a source.
  private func report(_ input: inout InputBytes) {
    let kind = input.byte()
    let own = kind & 1 == 0 ? Agreement.videoSource : Agreement.soundSource
    let block = RTCPReportBlock(
      ssrc: own, fractionLost: input.byte(), lost: Int32(input.uint16()), highest: input.uint32(),
      jitter: UInt32(input.uint16()), lastReport: input.uint32(), delay: UInt32(input.uint16()))
    let source = Self.source(Int(kind >> 3))
    if kind & 2 == 0 {
      send { writer in
        try writer.receiverReport(ssrc: source)
        try writer.add(block)
      }
    } else {
      let seconds = UInt64(input.uint32())
      let info = RTCPSenderInfo(
        ssrc: source, time: NTPTime(rawValue: seconds << 32), timestamp: input.uint32(), packets: 1, octets: 1
      )
      send { writer in
        try writer.senderReport(info)
        try writer.add(block)
      }
    }
  }

  /// A request for packets or key frames, an estimate, or the end of a source.
  private func request(_ input: inout InputBytes) {
    let (kind, value) = (input.byte(), input.byte())
    let own = kind & 8 == 0 ? Agreement.videoSource : Agreement.soundSource
    switch kind & 7 {
    case 0, 1, 2:
      let first = session.lastPacket &- UInt16(value)
      let numbers = (0..<UInt16(1 + kind >> 4)).map { first &+ $0 }
      send { try $0.nack(sender: 9, media: own, sequences: numbers.span) }
    case 3: send { try $0.pictureLoss(sender: 9, media: own) }
    case 4: send { try $0.fullIntraRequest(sender: 9, media: own, number: value) }
    case 5:
      let rate = UInt64(input.uint32()) << UInt64(kind >> 3)
      let sources = [own]
      send { try $0.bitrateEstimate(sender: 9, bitrate: rate, sources: sources.span) }
    default:
      let source = Self.source(Int(value & 31))
      send { try $0.goodbye(ssrc: source, reason: kind & 1 == 0 ? "" : "gone") }
    }
  }

  private func send(_ body: (inout RTCPWriter) throws -> Void) {
    var room = [UInt8](repeating: 0, count: 1_200)
    let count = write(into: &room, body)
    session.take(Array(room[..<count]), isRTCP: true)
  }

  private func write(into bytes: inout [UInt8], _ body: (inout RTCPWriter) throws -> Void) -> Int {
    var writer = RTCPWriter(bytes.mutableSpan)
    do { try body(&writer) } catch { fatalError("RTCP cannot be written: \(error)") }
    return writer.count
  }
}
