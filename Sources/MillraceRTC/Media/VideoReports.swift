internal import MillraceCore
internal import MillraceRTCWire

/// Writes what a receiver and sender of pictures tells the peer: reports, requests for packets and for key frames. One datagram each.
@safe
final class VideoReports {
  /// The datagram that was written last, with room for protection behind it.
  let packet = UnsafeMutableRawBufferPointer.allocate(
    byteCount: SoundSender.packetBytes + SRTPContext.trailer, alignment: 8)
  /// The peer takes a request for a key frame in one form at least.
  let asksForKeyFrames: Bool
  private let source: LocalSource
  private let hasReducedSizeRTCP: Bool
  private let hasPictureLoss: Bool
  private var firNumber: UInt8 = 0

  init(_ media: AgreedMedia, source: LocalSource) {
    self.source = source
    hasReducedSizeRTCP = media.hasReducedSizeRTCP
    let hasPictureLoss = media.sendsFeedback(.pictureLoss)
    self.hasPictureLoss = hasPictureLoss
    asksForKeyFrames = hasPictureLoss || media.sendsFeedback(.fullIntra)
  }

  deinit { unsafe packet.deallocate() }

  /// Writes a request for packets of a source, and gives its bytes; nil: there is no room.
  func request(_ numbers: Span<UInt16>, of ssrc: UInt32) -> Int? {
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var writer = RTCPWriter(unsafe room.bindMemory(to: UInt8.self).mutableSpan)
    do throws(RTCPProblem) {
      try begin(&writer)
      try writer.nack(sender: source.ssrc, media: ssrc, sequences: numbers)
    } catch { return nil }
    return writer.count
  }

  /// Writes a request for a key frame of a source, by PLI, or by FIR where only that was agreed on.
  func requestKeyFrame(of ssrc: UInt32) -> Int? {
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var writer = RTCPWriter(unsafe room.bindMemory(to: UInt8.self).mutableSpan)
    do throws(RTCPProblem) {
      try begin(&writer)
      if hasPictureLoss {
        try writer.pictureLoss(sender: source.ssrc, media: ssrc)
      } else {
        firNumber &+= 1
        try writer.fullIntraRequest(sender: source.ssrc, media: ssrc, number: firNumber)
      }
    } catch { return nil }
    return writer.count
  }

  /// What has to stand in front of feedback (RFC 4585 section 3.1), unless the peer takes it alone.
  private func begin(_ writer: inout RTCPWriter) throws(RTCPProblem) {
    guard !hasReducedSizeRTCP else { return }
    try writer.receiverReport(ssrc: source.ssrc)
    try writer.sourceDescription(ssrc: source.ssrc, canonicalName: source.cname)
  }

  /// Writes a report about what is sent and received, with BYE where it is the last.
  func report(_ info: RTCPSenderInfo?, _ receivers: [VideoReceiver], isLast: Bool, at now: Nanoseconds)
    -> Int?
  {
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var writer = RTCPWriter(unsafe room.bindMemory(to: UInt8.self).mutableSpan)
    do throws(RTCPProblem) {
      if let info { try writer.senderReport(info) } else { try writer.receiverReport(ssrc: source.ssrc) }
      // There are fewer sources than a report has room for.
      for index in receivers.indices {
        if let block = receivers[index].reportBlock(at: now) { try writer.add(block) }
      }
      try writer.sourceDescription(ssrc: source.ssrc, canonicalName: source.cname)
      if isLast { try writer.goodbye(ssrc: source.ssrc) }
    } catch { return nil }
    return writer.count
  }
}

/// What the peer wishes of the encoder: a key frame, reported at most every 300 ms.
struct KeyFrameWish {
  /// Between two reports (libwebrtc, `kMinKeyFrameSendInterval`).
  private static let interval: Nanoseconds = .milliseconds(300)

  private var isWanted = false
  private var reportedAt: Nanoseconds?
  /// The latest FIR of the peer.
  private var lastRequest: (sender: UInt32, number: UInt8)?

  /// Notes that a key frame is wanted.
  mutating func want() { isWanted = true }

  /// Notes a FIR. False: it is a repetition (RFC 5104 section 4.3.1.1).
  mutating func isNew(_ sender: UInt32, _ number: UInt8) -> Bool {
    if let last = lastRequest, last.sender == sender, last.number == number { return false }
    lastRequest = (sender, number)
    return true
  }

  /// Notes a key frame that is sent.
  mutating func fulfil() { isWanted = false }

  /// True when the wish is to be reported now. One that came a moment after another is reported later, if no key frame was sent until then.
  mutating func take(at now: Nanoseconds) -> Bool {
    guard isWanted else { return false }
    if let last = reportedAt, now &- last < Self.interval { return false }
    (isWanted, reportedAt) = (false, now)
    return true
  }

  /// When `take` has something to say; nil: not by itself.
  var deadline: Nanoseconds? { isWanted ? reportedAt.map { $0 &+ Self.interval } : nil }
}
