import Glibc
import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

/// A session over plain RTP and what it has reported. On the loop's thread, but for `seen`, `problem` and `local`.
final class PlainPlace: PlainSessionObserver, @unchecked Sendable {
  struct Seen: Sendable {
    var payloads: [[UInt8]] = []
    var sounds: [ReceivedSound] = []
    var pictures: [[UInt8]] = []
    var digits = ""
    var ended: [UInt32] = []
    var moves: [DatagramAddress] = []
    var wishes = 0
  }

  let seen = Locked(Seen())
  let problem = Locked<RTCProblem?>(nil)
  let local = Locked<DatagramAddress?>(nil)
  private(set) var session: PlainSession?

  /// Opens a session; `settings` is called on the loop's thread.
  func open(_ settings: PlainSettings, on loop: RTCLoop) {
    do throws(RTCProblem) {
      let made = try PlainSession(on: loop, settings, observer: self)
      session = made
      local.withLock { $0 = made.local }
    } catch {
      problem.withLock { $0 = error }
    }
  }

  func plainMoved(to address: DatagramAddress) { seen.withLock { $0.moves.append(address) } }
  func plainReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    let bytes = payload.indices.map { payload[$0] }
    seen.withLock {
      $0.sounds.append(sound)
      $0.payloads.append(bytes)
    }
  }
  func plainReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    let copy = bytes.indices.map { bytes[$0] }
    seen.withLock { $0.pictures.append(copy) }
  }
  func plainReceived(_ tone: ReceivedTone) { seen.withLock { $0.digits.append(tone.digit) } }
  func plainEnded(source: UInt32, reason: String?) { seen.withLock { $0.ended.append(source) } }
  func plainWantsKeyFrame() { seen.withLock { $0.wishes += 1 } }
}

/// A bare socket that a test sends with.
final class PlainSender: @unchecked Sendable {
  private(set) var socket: DatagramSocket?
  let received = Locked<[[UInt8]]>([])

  func open(_ port: UInt16 = 0, on loop: RTCLoop) {
    socket = try? DatagramSocket(address: "127.0.0.1", port: port, on: loop) { [weak self] bytes, _ in
      let copy = Array(bytes)
      self?.received.withLock { $0.append(copy) }
    }
  }

  func send(_ bytes: [UInt8], to target: DatagramAddress) {
    _ = bytes.withUnsafeBytes { socket?.send($0, to: target) }
  }
}

/// A packet of RTP.
func plainPacket(
  _ payloadType: UInt8 = 0, sequence: UInt16, ssrc: UInt32 = 7, bytes: Int = 160
) -> [UInt8] {
  let time = UInt32(sequence) * 160
  let head: [UInt8] = [0x80, payloadType, UInt8(sequence >> 8), UInt8(sequence & 255)]
  let numbers = [time, ssrc].flatMap { value in
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
  }
  return head + numbers + [UInt8](repeating: UInt8(sequence & 255), count: bytes)
}

@Suite("where packets of plain RTP come from and go to")
struct AddressLatchTests {
  private let second: Nanoseconds = .milliseconds(1_000)

  private func address(_ host: String, _ port: UInt16) throws -> DatagramAddress {
    try #require(DatagramAddress(host: host, port: port))
  }

  @Test("an address that was given is kept, and any port of its host may send")
  func given() throws {
    let peer = try address("192.0.2.1", 5_004)
    var latch = AddressLatch(peer, isSymmetric: false)
    let (other, stranger) = (try address("192.0.2.1", 9), try address("192.0.2.2", 5_004))
    #expect(latch.admits(other, at: 0) && !latch.admits(stranger, at: 0))
    #expect(!latch.note(other, at: 0) && latch.target == peer)
    #expect(AddressLatch(nil, isSymmetric: false).admits(stranger, at: 0))
  }

  @Test("the first source is kept against others until it was silent for 3 s")
  func symmetric() throws {
    var latch = AddressLatch(try address("192.0.2.9", 1), isSymmetric: true)
    let (one, two) = (try address("192.0.2.1", 5_004), try address("192.0.2.1", 5_006))
    #expect(latch.admits(one, at: 0))
    let isFirst = latch.note(one, at: 0)
    #expect(isFirst && latch.target == one)
    #expect(!latch.admits(two, at: 2 * second))
    let isAgain = latch.note(one, at: 2 * second)
    #expect(!isAgain)
    #expect(!latch.admits(two, at: 4 * second) && latch.admits(two, at: 5 * second))
    #expect(latch.target == one)
    let isOther = latch.note(two, at: 5 * second)
    #expect(isOther && latch.target == two)
    #expect(!latch.admits(one, at: 6 * second))
  }

  @Test("RTCP has the port after that of RTP, and none after the last")
  func next() throws {
    #expect(try address("::1", 5_004).next?.description == "[::1]:5005")
    #expect(try address("::1", .max).next == nil)
  }
}

@Suite("sessions over plain RTP", .timeLimit(.minutes(2)))
struct PlainSessionTests {
  private static let key = [UInt8](0..<30)
  private static let other = [UInt8](1..<31)

  private func until(_ condition: () -> Bool) async throws {
    while !condition() { try await Task.sleep(for: .milliseconds(2)) }
  }

  private func settings(_ codec: RTPCodec = .pcmu, tones: Bool = false) -> PlainSettings {
    let keys = tones ? RTPCodec.telephoneEvent(rate: codec.clockRate, payloadType: 101) : nil
    return PlainSettings(address: "127.0.0.1", port: 0, .sendReceive, codec: codec, tones: keys)
  }

  private func open(_ settings: PlainSettings, on loop: RTCLoop) async throws -> PlainPlace {
    let place = PlainPlace()
    loop.perform { place.open(settings, on: loop) }
    try await until { place.local.withLock { $0 } != nil || place.problem.withLock { $0 } != nil }
    return place
  }

  /// One side that sends, and one that answers to it.
  private func pair(
    _ settings: PlainSettings, on loop: RTCLoop, _ change: (inout PlainSettings) -> Void = { _ in }
  ) async throws -> (PlainPlace, PlainPlace) {
    var answering = settings
    answering.isSymmetric = true
    answering.source.ssrc ^= 1
    change(&answering)
    let b = try await open(answering, on: loop)
    var calling = settings
    calling.remote = try #require(b.local.withLock { $0 })
    return (try await open(calling, on: loop), b)
  }

  private func say(_ place: PlainPlace, _ count: Int, from first: UInt8 = 0) {
    for number in 0..<UInt8(count) {
      place.session?.send([UInt8](repeating: first + number, count: 80).span, duration: 160)
    }
  }

  @Test(
    "two sides hear each other in every codec of sound",
    arguments: [.opus, .pcmu, .pcma, .l16(rate: 16_000, channels: 1), .l16(rate: 44_100, channels: 2)]
      as [RTPCodec])
  func sound(codec: RTPCodec) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(settings(codec), on: loop)
    loop.perform { say(a, 3) }
    try await until { b.seen.withLock { $0.payloads.count } == 3 }
    #expect(b.seen.withLock { $0.payloads.map { $0[0] } } == [0, 1, 2])
    #expect(b.seen.withLock { $0.sounds.allSatisfy { $0.codec.name == codec.name } })
    #expect(b.seen.withLock { $0.moves } == [try #require(a.local.withLock { $0 })])
    loop.perform { say(b, 2, from: 9) }
    try await until { a.seen.withLock { $0.payloads.map { $0[0] } } == [9, 10] }
  }

  @Test("pictures arrive whole, and a wish for a key frame goes back", arguments: [true, false])
  func pictures(hasMux: Bool) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    var settings = settings(.vp8(rtx: nil))
    settings.hasRTCPMux = hasMux
    let (a, b) = try await pair(settings, on: loop)
    let key: [UInt8] = [0x10, 0x02, 0, 0x9D, 0x01, 0x2A, 64, 0, 48, 0] + [UInt8](repeating: 5, count: 5_000)
    loop.perform { a.session?.send(picture: key.span, isKey: true, captured: Clock(.realtime).now) }
    try await until { b.seen.withLock { $0.pictures.count } == 1 }
    #expect(b.seen.withLock { $0.pictures } == [key])
    loop.perform { b.session?.requestKeyFrame() }
    try await until { a.seen.withLock { $0.wishes } == 1 }
  }

  @Test("SRTP carries sound both ways", arguments: [SRTPProfile.aes128CMSHA1, .aes128GCM])
  func protected(profile: SRTPProfile) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let key = [UInt8](0..<UInt8(profile.keyBytes + profile.saltBytes))
    var settings = settings()
    settings.keys = SRTPKeys(profile, outbound: key, inbound: key)
    let (a, b) = try await pair(settings, on: loop)
    loop.perform { say(a, 3) }
    try await until { b.seen.withLock { $0.payloads.count } == 3 }
    loop.perform { say(b, 1, from: 9) }
    try await until { a.seen.withLock { $0.payloads.map { $0[0] } } == [9] }
  }

  @Test("with another key nothing is heard, it is counted, and packets go nowhere new")
  func wrongKey() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    var settings = settings()
    settings.keys = SRTPKeys(.aes128CMSHA1, outbound: Self.key, inbound: Self.key)
    let (a, b) = try await pair(settings, on: loop) {
      $0.keys = SRTPKeys(.aes128CMSHA1, outbound: Self.other, inbound: Self.other)
    }
    let counts = Locked(RTCStatistics())
    loop.perform { say(a, 3) }
    try await until {
      loop.perform { if let now = b.session?.statistics { counts.withLock { $0 = now } } }
      return counts.withLock { $0.refusals.forged } >= 3
    }
    #expect(b.seen.withLock { $0.payloads.isEmpty && $0.moves.isEmpty })
    #expect(counts.withLock { $0.sound.receivedPackets } == 0)
  }

  @Test("a key of the wrong length is refused without being shown")
  func shortKey() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    var settings = settings()
    settings.keys = SRTPKeys(.aes128GCM, outbound: Self.key, inbound: Self.key)
    let place = try await open(settings, on: loop)
    #expect(place.problem.withLock { $0 }?.description.contains("30 bytes") == true)
  }

  @Test("a stranger does not draw the stream to himself while the peer sends, and is counted")
  func stranger() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    var settings = settings()
    settings.isSymmetric = true
    let place = try await open(settings, on: loop)
    let target = try #require(place.local.withLock { $0 })
    let (peer, stranger) = (PlainSender(), PlainSender())
    loop.perform {
      peer.open(on: loop)
      stranger.open(on: loop)
      // Another payload type, and no RTP at all: neither is taken for the peer.
      stranger.send(plainPacket(9, sequence: 1), to: target)
      stranger.send([1, 2, 3], to: target)
      peer.send(plainPacket(sequence: 1), to: target)
      stranger.send(plainPacket(sequence: 2, ssrc: 8), to: target)
      peer.send(plainPacket(sequence: 2), to: target)
    }
    let strangers = Locked(0)
    try await until {
      loop.perform { if let count = place.session?.strangers { strangers.withLock { $0 = count } } }
      return strangers.withLock { $0 } == 1 && place.seen.withLock { $0.sounds.count } == 2
    }
    #expect(place.seen.withLock { $0.sounds.allSatisfy { $0.ssrc == 7 } && $0.moves.count == 1 })
    loop.perform { say(place, 1) }
    try await until { peer.received.withLock { !$0.isEmpty } }
    #expect(stranger.received.withLock { $0.isEmpty })
  }

  @Test(
    "packets of every length are taken or counted, and what follows is heard",
    arguments: [0, 1, 11, 12, 13, 1_500, 9_216, 65_000])
  func lengths(bytes: Int) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let place = try await open(settings(), on: loop)
    let target = try #require(place.local.withLock { $0 })
    let sender = PlainSender()
    loop.perform {
      sender.open(on: loop)
      let whole = plainPacket(sequence: 1, bytes: max(0, bytes - 12))
      sender.send(Array(whole.prefix(bytes)), to: target)
      sender.send(plainPacket(sequence: 2), to: target)
    }
    try await until { place.seen.withLock { $0.sounds.contains { $0.sequence & 0xFFFF == 2 } } }
    let isHeard = bytes > 12 && bytes <= 9_216
    #expect(place.seen.withLock { $0.sounds.count } == (isHeard ? 2 : 1))
  }

  @Test("RTCP that claims 65,535 words, or is cut anywhere, harms nothing; BYE on either port ends a source")
  func reports() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let place = try await open(settings(), on: loop)
    let target = try #require(place.local.withLock { $0 })
    let reports = try #require(target.next)
    let sender = PlainSender()
    // An empty RR, and BYE of source 7.
    let whole: [UInt8] = [0x80, 201, 0, 1, 0, 0, 0, 7, 0x81, 203, 0, 1, 0, 0, 0, 7]
    loop.perform {
      sender.open(on: loop)
      sender.send(plainPacket(sequence: 1), to: target)
      sender.send([0x81, 200, 0xFF, 0xFF, 0, 0, 0, 7], to: reports)
      for count in 0..<8 { sender.send(Array(whole.prefix(count)), to: reports) }
      sender.send(plainPacket(sequence: 2), to: target)
    }
    try await until { place.seen.withLock { $0.sounds.count } == 2 }
    #expect(place.seen.withLock { $0.ended } == [])
    loop.perform { sender.send(whole, to: reports) }
    try await until { place.seen.withLock { $0.ended } == [7] }
    loop.perform {
      sender.send(plainPacket(sequence: 3, ssrc: 8), to: target)
      sender.send([0x80, 201, 0, 1, 0, 0, 0, 8, 0x81, 203, 0, 1, 0, 0, 0, 8], to: target)
    }
    try await until { place.seen.withLock { $0.ended } == [7, 8] }
  }

  @Test("another source of the peer is heard beside the one before")
  func sources() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let place = try await open(settings(), on: loop)
    let target = try #require(place.local.withLock { $0 })
    let sender = PlainSender()
    loop.perform {
      sender.open(on: loop)
      sender.send(plainPacket(sequence: 1), to: target)
      sender.send(plainPacket(sequence: 900, ssrc: 8), to: target)
    }
    try await until { Set(place.seen.withLock { $0.sounds.map(\.ssrc) }) == [7, 8] }
  }

  @Test("keys of a telephone arrive both ways, and the end says goodbye")
  func tones() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(settings(tones: true), on: loop)
    loop.perform {
      say(a, 1)
      _ = a.session?.send(tones: "4#", milliseconds: 60, gap: 40)
    }
    try await until { b.seen.withLock { $0.digits } == "4#" }
    loop.perform { _ = b.session?.send(tones: "D", milliseconds: 60, gap: 40) }
    try await until { a.seen.withLock { $0.digits } == "D" }
    loop.perform { a.session?.end() }
    try await until { b.seen.withLock { $0.ended.count } == 1 }
  }

  @Test("ports in use are refused with a message, that of RTCP too, and are free after the end")
  func portInUse() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let first = try await open(settings(), on: loop)
    let port = try #require(first.local.withLock { $0?.port })
    var same = settings()
    same.port = port
    let second = try await open(same, on: loop)
    #expect(
      second.problem.withLock { $0 }?.description.contains("port \(port) of 127.0.0.1 is in use") == true)
    // RTCP would have the first's port of RTP.
    same.port = port - 1
    let third = try await open(same, on: loop)
    let text = third.problem.withLock { $0 }?.description ?? ""
    #expect(text.contains("in use"), "\(text)")
    same.port = .max
    let last = try await open(same, on: loop)
    #expect(last.problem.withLock { $0 }?.description.contains("rtcpMux") == true)
    loop.perform {
      first.session?.end()
      first.session?.end()
    }
    same.port = port
    let again = try await open(same, on: loop)
    #expect(again.problem.withLock { $0 } == nil)
  }

  @Test("the description has what FFmpeg needs, and is read again as it was")
  func describes() throws {
    var settings = settings(.l16(rate: 16_000, channels: 1), tones: true)
    settings.remote = DatagramAddress(host: "192.0.2.1", port: 5_004)
    settings.keys = SRTPKeys(.aes128CMSHA1, outbound: Self.key, inbound: Self.other)
    let local = try #require(DatagramAddress(host: "127.0.0.1", port: 6_000))
    let text = settings.description(local: local, milliseconds: 20).text
    for line in [
      "c=IN IP4 192.0.2.1", "m=audio 5004 RTP/SAVP 98 101", "a=rtpmap:98 L16/16000", "a=ptime:20",
      "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:",
    ] {
      #expect(text.contains(line), "\(line)")
    }
    let streams = try SessionDescription(parsing: text).plainRTPStreams()
    #expect(streams.count == 1 && streams[0].crypto?.key == Self.key && streams[0].port == 5_004)
    // Who only receives says where, and with which key.
    settings.remote = nil
    let own = try SessionDescription(parsing: settings.description(local: local).text).plainRTPStreams()
    #expect(own[0].port == 6_000 && own[0].crypto?.key == Self.other && own[0].direction == .receiveOnly)
    var pictures = self.settings(.h264(payloadType: 96, rtx: nil))
    pictures.hasRTCPMux = true
    let video = pictures.description(local: local).text
    #expect(video.contains("m=video 6000 RTP/AVPF 96") && video.contains("a=rtcp-mux"))
    #expect(video.contains("a=fmtp:96 ") && video.contains("packetization-mode=1"))
  }
}
