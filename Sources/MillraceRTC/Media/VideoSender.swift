internal import MillraceCore
internal import MillraceRTCWire

/// Packs encoded pictures into RTP, lets them leave at a pace, and repeats what the peer has lost.
///
/// `send` packs a picture; `next` gives what may leave now, to be called again at `deadline`. A picture becomes packets of at most 1,200
/// bytes before protection. Those of about 300 ms are kept for retransmissions. One thread; no heap request after `init`.
@safe
final class VideoSender {
  /// Bytes of the largest picture.
  static let largestPicture = 1 << 20
  /// Bytes of pictures and heads that wait: more than the largest picture.
  private static let queueBytes = 2 << 20
  /// Packets of this time are kept: those that a receiver still asks for (`NackGenerator.largestAge`), and their way.
  private static let historyMilliseconds = 300
  private static let historySlots = 512...8_192
  /// Before retransmissions are refused, the sender may be this far ahead of its pace: who asks for everything gets no flood.
  private static let largestDebt: Nanoseconds = .milliseconds(250)
  /// The time before the same packet is repeated once more, where the round trip is not known or is shorter.
  private static let shortestRepeat: Nanoseconds = .milliseconds(10)
  private static let longestRepeat: Nanoseconds = .milliseconds(1_000)
  /// A picture that was captured longer ago has a clock that was wrong.
  private static let longestDelay: Nanoseconds = .milliseconds(2_000)

  let codec: RTPCodec
  let ssrc: UInt32
  private(set) var statistics: RTPSenderStatistics
  private(set) var pictures: UInt64 = 0
  private(set) var retransmitted = 0
  /// From here to the peer and back, as far as it is known.
  var roundTrip: Nanoseconds = NackGenerator.initialRoundTrip
  /// The packet that `next` or `retransmit` has given, with room for protection behind it.
  let packet = UnsafeMutableRawBufferPointer.allocate(
    byteCount: SoundSender.packetBytes + SRTPContext.trailer, alignment: 8)

  private let kind: VideoKind
  private let identifiers: RTPExtensionIdentifiers
  private let extensions: RTPExtensions
  private let congestion: CongestionControl?
  /// Bits a second at which packets leave, without congestion control.
  private let fixedPace: Int
  /// Bytes of the head of each packet, and of the payload behind it.
  private let headBytes: Int
  private let payloadBytes: Int
  private var sequence: UInt16
  private var pictureID: UInt16
  private var queue = PacketQueue(capacity: queueBytes)
  private var history: RetransmissionHistory
  private let hasRTX: Bool
  private var pacer = Pacer()
  /// The first picture's time and timestamp, and the ticks of the latest.
  private let firstTimestamp: UInt32
  private var origin: Nanoseconds?
  private var ticks: Int64 = -1
  private var newest: (timestamp: UInt32, captured: Nanoseconds) = (0, 0)

  /// Creates a sender.
  /// - Parameters:
  ///   - largestBitrate: bits a second that the encoder makes at most.
  ///   - seed: makes the first numbers.
  init(
    _ codec: RTPCodec, _ kind: VideoKind, _ media: AgreedMedia, source: LocalSource, largestBitrate: Int,
    seed: UInt64, congestion: CongestionControl?
  ) {
    self.codec = codec
    self.kind = kind
    self.congestion = congestion
    ssrc = source.ssrc
    identifiers = media.identifiers
    statistics = RTPSenderStatistics(ssrc: source.ssrc, clockRate: codec.clockRate)
    let extensions = RTPExtensions(
      mid: media.mid, absoluteSendTime: RTPAbsoluteSendTime(rawValue: 0), transportSequence: 0)
    self.extensions = extensions
    let head = Self.headBytes(extensions, media.identifiers)
    headBytes = head
    payloadBytes = SoundSender.packetBytes - head - RTXStream.overhead
    sequence = SoundSender.firstSequence(seed)
    firstTimestamp = UInt32(truncatingIfNeeded: seed)
    pictureID = UInt16(truncatingIfNeeded: seed >> 16) & VP8Descriptor.maximumPictureID
    fixedPace = largestBitrate * 5 / 2
    var stream: RTXStream?
    if let rtx = codec.rtxPayloadType, let ssrc = source.rtxSSRC {
      stream = RTXStream(
        ssrc: ssrc, payloadType: rtx, sequence: SoundSender.firstSequence(seed &* 0x9E37_79B9_7F4A_7C15))
    }
    hasRTX = stream != nil
    let packets = largestBitrate / 8 * 5 / 2 / SoundSender.packetBytes * Self.historyMilliseconds / 1_000
    let slots = max(Self.historySlots.lowerBound, min(packets, Self.historySlots.upperBound))
    history = RetransmissionHistory(slots: slots, slotBytes: SoundSender.packetBytes, stream: stream)
  }

  deinit { unsafe packet.deallocate() }

  /// Bytes of an RTP header with these extensions.
  private static func headBytes(_ extensions: RTPExtensions, _ identifiers: RTPExtensionIdentifiers) -> Int {
    var room = [UInt8](repeating: 0, count: 128)
    var bytes = room.mutableSpan
    let header = RTPHeader(payloadType: 0, sequence: 0, timestamp: 0, ssrc: 0)
    do throws(RTPProblem) {
      return try header.write(extensions, identifiers: identifiers, into: &bytes)
    } catch { return RTPHeader.fixedSize }
  }

  // MARK: Pictures

  /// True while packets wait for their turn.
  var isWaiting: Bool { !queue.isEmpty }

  /// Packs a picture. False: it is no picture of the codec, or there is no room for it; nothing of it is sent.
  /// - Parameter captured: on the monotonic clock.
  func send(_ picture: Span<UInt8>, captured: Nanoseconds, at now: Nanoseconds) -> Bool {
    guard !picture.isEmpty, picture.count <= Self.largestPicture else { return false }
    let (bytes, first) = (queue.bytes, sequence)
    let captured = max(now &- Self.longestDelay, min(captured, now))
    let timestamp = timestamp(of: captured)
    guard pack(picture, timestamp) else {
      queue.truncate(to: bytes)
      sequence = first
      return false
    }
    newest = (timestamp, captured)
    pictureID = VP8Descriptor.pictureID(after: pictureID)
    pictures += 1
    return true
  }

  /// The timestamp of a time; later than that of the picture before.
  private func timestamp(of captured: Nanoseconds) -> UInt32 {
    let start = origin ?? captured
    origin = start
    // 90,000 ticks in 1,000,000,000 ns.
    ticks = max(ticks + 1, (captured - start) * 9 / 100_000)
    return firstTimestamp &+ UInt32(truncatingIfNeeded: ticks)
  }

  private func pack(_ picture: Span<UInt8>, _ timestamp: UInt32) -> Bool {
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var bytes = unsafe room.bindMemory(to: UInt8.self).mutableSpan
    do throws(PayloadProblem) {
      switch kind {
      case .h264:
        var packetizer = try H264Packetizer(annexB: picture, maximumBytes: payloadBytes)
        while let part = try packetizer.next(into: &bytes, at: headBytes) {
          guard append(part, timestamp, &bytes) else { return false }
        }
      case .vp8:
        var packetizer = VP8Packetizer(
          picture, descriptor: VP8Descriptor(pictureID: pictureID), maximumBytes: payloadBytes)
        while let part = try packetizer.next(into: &bytes, at: headBytes) {
          guard append(part, timestamp, &bytes) else { return false }
        }
      }
    } catch { return false }
    return true
  }

  /// Writes the head in front of a payload, and queues both.
  private func append(
    _ part: PacketizedPayload, _ timestamp: UInt32, _ bytes: inout MutableSpan<UInt8>
  ) -> Bool {
    let header = RTPHeader(
      payloadType: codec.payloadType, sequence: sequence, timestamp: timestamp, ssrc: ssrc,
      marker: part.marker)
    do throws(RTPProblem) {
      _ = try header.write(extensions, identifiers: identifiers, into: &bytes)
    } catch { return false }
    guard queue.append(bytes.span.extracting(0..<headBytes + part.byteCount)) else { return false }
    sequence &+= 1
    return true
  }

  // MARK: Packets

  /// When the next packet may leave; nil: none waits.
  var deadline: Nanoseconds? { queue.isEmpty ? nil : pacer.next }

  /// Puts the next packet that may leave now into `packet`, and gives its length. Nil: none may.
  func next(at now: Nanoseconds) -> Int? {
    guard !queue.isEmpty, pacer.next <= now else { return nil }
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    guard let count = unsafe queue.take(into: room), count > 0 else { return nil }
    let filled = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<count])
    var bytes = unsafe filled.bindMemory(to: UInt8.self).mutableSpan
    if let header = stamp(&bytes, at: now) {
      statistics.note(
        timestamp: header.timestamp, payloadBytes: header.payload.count,
        at: captureTime(of: header.timestamp))
    }
    history.note(bytes.span)
    pacer.note(bytes: count, rate: congestion?.pace ?? fixedPace, waiting: queue.bytes, at: now)
    return count
  }

  /// Puts a packet that was sent before into `packet`, as it is sent once more, and gives its length. Nil: it is not known, was repeated a
  /// moment ago, or the peer asks for too much.
  func retransmit(_ number: UInt16, at now: Nanoseconds) -> Int? {
    guard pacer.debt(at: now) <= Self.largestDebt else { return nil }
    let pause = max(Self.shortestRepeat, min(roundTrip, Self.longestRepeat))
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var bytes = unsafe room.bindMemory(to: UInt8.self).mutableSpan
    guard case .written(let count) = history.retransmit(number, at: now, roundTrip: pause, into: &bytes)
    else { return nil }
    if hasRTX {
      let filled = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<count])
      var written = unsafe filled.bindMemory(to: UInt8.self).mutableSpan
      // Without a stream of its own it must be the same in every byte: its number protects it for the second time (RFC 7714 section 8.1).
      _ = stamp(&written, at: now)
    }
    retransmitted += 1
    pacer.note(bytes: count, rate: congestion?.pace ?? fixedPace, waiting: queue.bytes, at: now)
    return count
  }

  /// Writes when a packet leaves, and its number among those of all media.
  private func stamp(_ bytes: inout MutableSpan<UInt8>, at now: Nanoseconds) -> RTPHeader? {
    let header: RTPHeader
    do throws(RTPProblem) { header = try RTPHeader(parsing: bytes.span) } catch { return nil }
    if let identifier = identifiers.absoluteSendTime {
      let time = RTPAbsoluteSendTime(WallClock.ntp(at: now))
      _ = header.replaceAbsoluteSendTime(identifier, by: time, in: &bytes)
    }
    guard let congestion else { return header }
    let number = congestion.number(bytes: bytes.count, at: now)
    if let identifier = identifiers.transportSequence {
      _ = header.replaceTransportSequence(identifier, by: number, in: &bytes)
    }
    return header
  }

  /// When the picture with a timestamp was captured.
  private func captureTime(of timestamp: UInt32) -> Nanoseconds {
    let ticks = Int64(Int32(bitPattern: timestamp &- newest.timestamp))
    return newest.captured &+ ticks * 100_000 / 9
  }

  // MARK: Reports

  /// What a sender report says now; nil before the first packet.
  func report(at now: Nanoseconds) -> RTCPSenderInfo? {
    statistics.senderReport(WallClock.ntp(at: now), at: now)
  }

  /// Notes a report of the peer.
  func note(_ block: RTCPReportBlock, at now: Nanoseconds) { statistics.note(block, at: now) }
}
