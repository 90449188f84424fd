import MillraceCore
import MillraceRTCWire

@testable import MillraceRTC

/// Random numbers that are the same in every run (SplitMix64).
struct TestRandom: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}

/// The media of one side, and what they have reported.
final class MediaEnd: SessionMediaObserver {
  struct Sent {
    var bytes: [UInt8]
    var isRTCP: Bool
  }

  private(set) var media: SessionMedia?
  /// Packets that wait for the network.
  var sent: [Sent] = []
  var sounds: [ReceivedSound] = []
  var pictures: [(picture: ReceivedPicture, bytes: [UInt8])] = []
  var tones: [ReceivedTone] = []
  var ended: [UInt32] = []
  var left: [UInt32] = []
  var keyFramesWanted = 0
  /// The media of these.
  var mediaWanted: [Int] = []
  /// The payloads of `sounds`.
  var payloads: [[UInt8]] = []
  var allocations: [(sound: Int, video: Int)] = []
  var due: Nanoseconds?
  /// Nothing is kept, so that a test can count heap requests.
  var isIdle = false
  var idlePackets = 0

  func begin(_ lines: [MediaLine], seed: UInt64, at now: Nanoseconds) {
    media = SessionMedia(
      lines, soundBitrate: 16_000...64_000, videoBitrate: 100_000...2_500_000, seed: seed, at: now,
      observer: self)
  }

  func mediaSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) {
    guard !isIdle else { return idlePackets += 1 }
    sent.append(Sent(bytes: Array(packet[..<count]), isRTCP: isRTCP))
  }
  func mediaReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    guard !isIdle else { return idlePackets += 1 }
    sounds.append(sound)
    payloads.append(payload.indices.map { payload[$0] })
  }
  func mediaReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    guard !isIdle else { return idlePackets += 1 }
    pictures.append((picture, bytes.indices.map { bytes[$0] }))
  }
  func mediaReceived(_ tone: ReceivedTone) { tones.append(tone) }
  func mediaEnded(_ ssrc: UInt32, reason: String?) { ended.append(ssrc) }
  func mediaLeft(_ ssrc: UInt32) { left.append(ssrc) }
  func mediaWantsKeyFrame(medium: Int) {
    keyFramesWanted += 1
    mediaWanted.append(medium)
  }
  func mediaAllocated(sound: Int, video: Int) {
    if !isIdle { allocations.append((sound, video)) }
  }

  func take(_ bytes: [UInt8], isRTCP: Bool, at now: Nanoseconds) {
    if media?.take(bytes.span, isRTCP: isRTCP, at: now) ?? false { due = now }
  }

  func send(_ picture: [UInt8], isKey: Bool, on medium: Int? = nil, at now: Nanoseconds) {
    let waits = media?.send(picture: picture.span, isKey: isKey, captured: now, on: medium, at: now)
    if waits ?? false { due = now }
  }

  func sendSound(_ bytes: [UInt8], pause: Int = 0, on medium: Int? = nil, at now: Nanoseconds) {
    media?.send(sound: bytes.span, duration: 960, pause: pause, level: nil, on: medium, at: now)
  }

  func forward(_ sound: ReceivedSound, _ bytes: [UInt8], on medium: Int, at now: Nanoseconds) {
    media?.forward(sound, bytes.span, on: medium, at: now)
  }
}

/// The media of two sides over a network that delays, drops and queues packets, on a clock of its own.
final class MediaPair {
  let a = MediaEnd()
  let b = MediaEnd()
  var now: Nanoseconds = .milliseconds(1_000_000)
  /// One way.
  var delay: Nanoseconds = .milliseconds(20)
  /// Bits a second from `a` to `b`; nil: any.
  var rate: Int?
  /// True for a packet that is lost, by its sender.
  var drops: (MediaEnd, MediaEnd.Sent) -> Bool = { _, _ in false }
  private var linkFree: Nanoseconds = 0
  private var onTheWay: [(at: Nanoseconds, to: MediaEnd, packet: MediaEnd.Sent)] = []

  /// Lets both sides agree on sections, which one of them offers.
  /// - Parameter answering: those of the other side; nil: the same.
  init(
    _ sections: [MediaSection], answering: [MediaSection]? = nil,
    change: (inout SessionDescription) -> Void = { _ in }
  ) throws {
    var settings = RTCSessionSettings()
    settings.sections = sections
    let own = settings.describedSections()
    settings.sections = answering ?? sections
    let other = settings.describedSections()
    let transport = LocalTransport(
      credentials: ICECredentials(fragment: "abcd", password: "abcdefghijklmnopqrstuv"),
      fingerprint: CertificateFingerprint(digest: [UInt8](repeating: 7, count: 32))!)
    var offer = try SDPOffer(
      origin: SDPOrigin(sessionID: 1), transport: transport, sections: own
    ).description()
    change(&offer)
    let answer = try SDPAnswer(
      to: offer, origin: SDPOrigin(sessionID: 2), transport: transport, sections: other)
    let first = try NegotiatedSession(local: offer, remote: answer.description, role: .offerer)
    let second = try NegotiatedSession(local: answer.description, remote: offer, role: .answerer)
    a.begin(MediaLine.all(first, own, Array(own.indices)), seed: 0x1234_5678_9ABC_DEF0, at: now)
    b.begin(MediaLine.all(second, other, answer.places), seed: 0x0FED_CBA9_8765_4321, at: now)
    for end in [a, b] { end.due = now }
  }

  /// Lets the time pass. The closure is called every `step` milliseconds.
  func run(milliseconds: Int, step: Int = 1, _ body: (Int) -> Void = { _ in }) {
    for millisecond in 0..<milliseconds {
      if millisecond % step == 0 { body(millisecond / step) }
      for end in [a, b] {
        if let due = end.due, due <= now { end.due = end.media?.run(at: now) }
        transmit(end)
      }
      deliver()
      now += .milliseconds(1)
    }
  }

  private func transmit(_ end: MediaEnd) {
    let packets = end.sent
    end.sent = []
    for packet in packets where !drops(end, packet) {
      var leaves = now
      if end === a, let rate {
        leaves = max(now, linkFree)
        // The bottleneck holds half a second.
        if leaves - now > .milliseconds(500) { continue }
        leaves += Int64(packet.bytes.count + 38) * 8 * 1_000_000_000 / Int64(rate)
        linkFree = leaves
      }
      onTheWay.append((leaves + delay, end === a ? b : a, packet))
    }
  }

  private func deliver() {
    let arrived = onTheWay.filter { $0.at <= now }
    onTheWay.removeAll { $0.at <= now }
    for item in arrived { item.to.take(item.packet.bytes, isRTCP: item.packet.isRTCP, at: now) }
  }
}

/// Encoded pictures as far as packets look at them.
enum TestPicture {
  /// H.264 in Annex B form: a key frame with parameter sets, or a slice; `count` bytes of content that are different in each.
  static func h264(isKey: Bool, count: Int, number: Int) -> [UInt8] {
    let start: [UInt8] = [0, 0, 0, 1]
    let sets = isKey ? start + [0x67, 0x42, 0xE0, 0x1F, 0x80] + start + [0x68, 0xCE, 0x3C, 0x80] : []
    return sets + start + [isKey ? 0x65 : 0x41, 0x88] + content(count, number)
  }

  static func vp8(isKey: Bool, count: Int, number: Int) -> [UInt8] {
    let head: [UInt8] =
      isKey ? [0x10, 0x02, 0x00, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xF0, 0x00] : [0x11, 0x02, 0x00]
    return head + content(count, number)
  }

  static func make(_ codec: RTPCodec, isKey: Bool, count: Int, number: Int) -> [UInt8] {
    codec.name == "VP8"
      ? vp8(isKey: isKey, count: count, number: number) : h264(isKey: isKey, count: count, number: number)
  }

  /// Without zeros, which H.264 would escape.
  private static func content(_ count: Int, _ number: Int) -> [UInt8] {
    (0..<count).map { UInt8(1 + ($0 &* 7 &+ number &* 31) % 250) }
  }
}

/// Packets as a peer may send them.
enum TestPacket {
  static func rtp(
    _ payloadType: UInt8, sequence: UInt16, timestamp: UInt32 = 0, ssrc: UInt32, marker: Bool = false,
    payload: [UInt8]
  ) -> [UInt8] {
    [0x80, payloadType | (marker ? 0x80 : 0), UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)]
      + word(timestamp) + word(ssrc) + payload
  }

  static func goodbye(_ ssrc: UInt32) -> [UInt8] { [0x81, 203, 0, 1] + word(ssrc) }

  /// As many as a datagram has room for, 31 in a packet.
  static func goodbyes(_ sources: [UInt32]) -> [UInt8] {
    stride(from: 0, to: sources.count, by: 31).flatMap { start -> [UInt8] in
      let part = sources[start..<min(start + 31, sources.count)]
      var packet: [UInt8] = [0x80 | UInt8(part.count), 203, 0, UInt8(part.count)]
      for source in part { packet += word(source) }
      return packet
    }
  }

  static func pictureLoss(of media: UInt32) -> [UInt8] { [0x81, 206, 0, 2] + word(9) + word(media) }

  static func fullIntra(of media: UInt32, number: UInt8) -> [UInt8] {
    [0x84, 206, 0, 4] + word(9) + word(0) + word(media) + [number, 0, 0, 0]
  }

  static func nack(of media: UInt32, _ sequence: UInt16) -> [UInt8] {
    [0x81, 205, 0, 3] + word(9) + word(media)
      + [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence), 0, 0]
  }

  static func word(_ value: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32($0))) }
  }
}
