internal import MillraceCore
internal import MillraceRTCWire

/// Writes the packets of a stream of sound, and keeps count of them.
struct SoundSender {
  /// Bytes of the largest packet before protection: what is left of an IPv6 packet that every network carries.
  static let packetBytes = 1_200
  /// Bytes of the longest head: of RTP, and four extensions with the longest mid.
  static let largestHead = 48

  let ssrc: UInt32
  let payloadType: UInt8
  /// Timestamps a second.
  let clockRate: Int
  private let identifiers: RTPExtensionIdentifiers
  private let mid: RTPMediaID?
  private(set) var statistics: RTPSenderStatistics
  private var sequence: UInt16
  private var timestamp: UInt32
  /// The next packet is the first after a silence.
  private var begins = true
  /// When the latest packet was sent, and the samples that it and those that were left out behind it hold.
  private var sentAt: Nanoseconds
  private var sentSamples = 0
  /// The numbers of what is sent on from other sessions; nil: the latest packet was none of them.
  private var forwarder: SoundForwarder?

  /// - Parameters:
  ///   - sequence: the number of the first packet; see `firstSequence`.
  init(
    ssrc: UInt32, codec: RTPCodec, _ media: AgreedMedia, sequence: UInt16, timestamp: UInt32,
    at now: Nanoseconds
  ) {
    self.ssrc = ssrc
    sentAt = now
    payloadType = codec.payloadType
    clockRate = codec.clockRate
    identifiers = media.identifiers
    mid = media.mid
    statistics = RTPSenderStatistics(ssrc: ssrc, clockRate: codec.clockRate)
    self.sequence = sequence
    self.timestamp = timestamp
  }

  /// The number of the first packet: at random (RFC 3550 section 5.1), and far below the wrap. A receiver that has missed the packets before
  /// it could not know of the wrap, and would refuse all that follow (RFC 3711 section 3.3.1).
  static func firstSequence(_ random: UInt64) -> UInt16 { UInt16(truncatingIfNeeded: random >> 32) & 0x7FFF }

  /// Writes a packet. Returns its bytes; nil when the payload does not fit, which is as if the packet were lost.
  /// - Parameters:
  ///   - duration: samples per channel of the payload, by the clock of the stream.
  ///   - pause: samples that were not sent before it.
  ///   - transportSequence: its number among all packets of the session.
  mutating func write(
    _ payload: Span<UInt8>, duration: Int, pause: Int, level: RTPAudioLevel?, transportSequence: UInt16?,
    at now: Nanoseconds, into packet: inout MutableSpan<UInt8>
  ) -> Int? {
    forwarder = nil
    timestamp &+= UInt32(truncatingIfNeeded: pause)
    let header = RTPHeader(
      payloadType: payloadType, sequence: sequence, timestamp: timestamp, ssrc: ssrc,
      marker: begins || pause > 0)
    sequence &+= 1
    let stamp = timestamp
    timestamp &+= UInt32(truncatingIfNeeded: duration)
    let extensions = RTPExtensions(
      audioLevel: level, mid: mid, absoluteSendTime: RTPAbsoluteSendTime(WallClock.ntp(at: now)),
      transportSequence: transportSequence)
    let head: Int
    do throws(RTPProblem) {
      head = try header.write(extensions, identifiers: identifiers, into: &packet)
    } catch { return nil }
    guard head + payload.count <= packet.count else { return nil }
    packet.put(payload, at: head)
    begins = false
    (sentAt, sentSamples) = (now, duration)
    statistics.note(timestamp: stamp, payloadBytes: payload.count, at: now)
    return head + payload.count
  }

  /// The place of a packet of another session in this stream; nil: it is not to be sent. It counts as sent.
  /// - Parameter samples: of its payload; 0: not known.
  mutating func place(of sound: ReceivedSound, samples: Int) -> SoundForwarder.Place? {
    var forwarder =
      self.forwarder
      ?? SoundForwarder(
        sequence: sequence, timestamp: presentTimestamp(at: sound.arrival), clockRate: clockRate)
    let place = forwarder.place(sound, samples: samples)
    self.forwarder = forwarder
    (sequence, timestamp) = forwarder.next
    return place
  }

  /// Writes a packet of another session at its place. Returns its bytes; nil when the payload does not fit.
  mutating func write(
    _ payload: Span<UInt8>, at place: SoundForwarder.Place, level: RTPAudioLevel?, transportSequence: UInt16?,
    at now: Nanoseconds, into packet: inout MutableSpan<UInt8>
  ) -> Int? {
    let header = RTPHeader(
      payloadType: payloadType, sequence: place.sequence, timestamp: place.timestamp, ssrc: ssrc,
      marker: place.marker)
    let extensions = RTPExtensions(
      audioLevel: level, mid: mid, absoluteSendTime: RTPAbsoluteSendTime(WallClock.ntp(at: now)),
      transportSequence: transportSequence)
    let head: Int
    do throws(RTPProblem) {
      head = try header.write(extensions, identifiers: identifiers, into: &packet)
    } catch { return nil }
    guard head + payload.count <= packet.count else { return nil }
    packet.put(payload, at: head)
    begins = false
    // Reports go by the newest packet, not by one that was overtaken.
    let latest = forwarder?.latest ?? (place.timestamp, now)
    (sentAt, sentSamples) = (latest.arrival, forwarder?.latestSamples ?? 0)
    statistics.note(timestamp: latest.timestamp, payloadBytes: payload.count, at: latest.arrival)
    return head + payload.count
  }

  /// Leaves out samples that are not sent, such as those of a voice while a key is pressed.
  mutating func skip(_ samples: Int) {
    timestamp &+= UInt32(truncatingIfNeeded: samples)
    sentSamples += samples
    begins = true
  }

  /// The timestamp of now: that of the next packet, moved by the time for which nothing was sent.
  func presentTimestamp(at now: Nanoseconds) -> UInt32 {
    let passed = max(0, min(now &- sentAt, .milliseconds(86_400_000))) / 1_000 * Int64(clockRate) / 1_000_000
    return timestamp &+ UInt32(truncatingIfNeeded: max(0, passed - Int64(sentSamples)))
  }

  /// Writes the next packet of a telephone event. Returns its bytes; nil: nothing is due.
  mutating func write(
    tone sender: inout TelephoneEventSender, payloadType: UInt8, transportSequence: UInt16?,
    at now: Nanoseconds, into packet: inout MutableSpan<UInt8>
  ) -> Int? {
    let extensions = RTPExtensions(
      mid: mid, absoluteSendTime: RTPAbsoluteSendTime(WallClock.ntp(at: now)),
      transportSequence: transportSequence)
    var header = RTPHeader(
      payloadType: payloadType, sequence: sequence, timestamp: 0, ssrc: ssrc, marker: false)
    do {
      let head = try header.write(extensions, identifiers: identifiers, into: &packet)
      guard let tone = try sender.next(at: now, into: &packet, at: head) else { return nil }
      (header.timestamp, header.marker) = (tone.timestamp, tone.marker)
      _ = try header.write(extensions, identifiers: identifiers, into: &packet)
      sequence &+= 1
      forwarder = nil
      // A report says what time it is, and not when the key was pressed.
      statistics.note(timestamp: presentTimestamp(at: now), payloadBytes: tone.byteCount, at: now)
      return head + tone.byteCount
    } catch { return nil }
  }

  /// What a sender report says now; nil before the first packet.
  mutating func report(at now: Nanoseconds) -> RTCPSenderInfo? {
    statistics.senderReport(WallClock.ntp(at: now), at: now)
  }

  /// Notes a report of the peer.
  mutating func note(_ block: RTCPReportBlock, at now: Nanoseconds) { statistics.note(block, at: now) }
}
