import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceRTC
import MillraceRTCSignal
import MillraceRTCWire
import Synchronization
import Testing

@testable import MillraceRTCNodes
@testable import MillraceRTCSound

/// The other side of a call, with a counterpart for each of its m-lines: what the hub of a room is to a member. On the loop's thread, but
/// for `wanted` and `isUp`.
private final class SlotPeer: RTCSessionObserver, @unchecked Sendable {
  /// Media of which key frames were asked for.
  let wanted = Locked<[Int]>([])
  let isUp = Locked(false)
  private(set) var session: RTCSession?
  private let signalling: MemorySignalling
  private let sections: [MediaSection]
  private let loop: RTCLoop

  init(_ signalling: MemorySignalling, _ sections: [MediaSection], on loop: RTCLoop) {
    self.signalling = signalling
    self.loop = loop
    self.sections = sections.enumerated().map { index, section in
      var section = section
      section.mid = "\(index)"
      section.direction = section.direction.reversed
      return section
    }
    signalling.begin { [self] event in loop.perform { [self] in take(event) } }
  }

  private func take(_ event: SignalEvent) {
    switch event {
    case .offer(_, let sdp, _, _): answer(sdp)
    case .candidate(_, let text):
      guard let text else {
        session?.add(nil)
        return
      }
      if let candidate = try? ICECandidate(parsing: text) { session?.add(candidate) }
    default: break
    }
  }

  private func answer(_ sdp: String) {
    guard let offer = try? SessionDescription(parsing: sdp),
      case .success(let identity) = DTLSIdentity.process
    else { return }
    var settings = RTCSessionSettings()
    settings.sections = sections
    settings.ice.addresses = ["127.0.0.1"]
    settings.ice.hasConsent = false
    settings.connect = .milliseconds(60_000)
    let made = RTCSession(on: loop, settings, identity, observer: self)
    session = made
    made.answer(offer)
  }

  func sessionDescribed(_ description: SessionDescription) {
    signalling.describe(SignalSessionID(0), sdp: description.text)
  }
  func sessionFound(_ candidate: ICECandidate?) {
    signalling.add(candidate?.text, to: SignalSessionID(0))
  }
  func sessionChanged(_ state: RTCSessionState) { isUp.withLock { $0 = state == .connected } }
  func sessionReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {}
  func sessionEnded(source: UInt32, reason: String?) {}
  func sessionReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {}
  func sessionReceived(_ tone: ReceivedTone) {}
  func sessionWantsKeyFrame(medium: Int) { wanted.withLock { $0.append(medium) } }
  func sessionAllocated(sound: Int, video: Int) {}
  func sessionReceived(_ event: DataChannelEvent) {}
}

/// A key frame of VP8, or a picture that refers to it.
private func frame(_ number: UInt8, isKey: Bool = true) -> [UInt8] {
  let head: [UInt8] = isKey ? [0x10, 0x02, 0, 0x9D, 0x01, 0x2A, 64, 0, 48, 0] : [0x11, 0x02, 0]
  return head + [UInt8](repeating: number, count: 500)
}

@Suite("slots of a call", .timeLimit(.minutes(30))) struct CallSlotTests {
  private static let media = SignalMedia(
    audio: .sendOnly, video: .sendOnly, audioSlots: 2, videoSlots: 3)
  private static let sections: [MediaSection] = [.audio(codecs: [.opus]), .video(codecs: [.vp8])]

  /// A call with two slots of sound, the media 1 and 2, and three of pictures, 4 to 6.
  private func connect(
    _ loop: RTCLoop, _ change: (inout RTCCallSettings) -> Void = { _ in }
  ) async throws -> (CallBench, SlotPeer) {
    var settings = RTCCallSettings()
    settings.session.sections = Self.sections
    let exchange = MemorySwitch()
    let peer = SlotPeer(
      exchange.answering(isServer: true), settings.sections(for: Self.media, soundCodec: 0), on: loop)
    let a = CallBench(exchange.calling(Self.media), on: loop, Self.sections, change)
    a.call.start()
    try await untilCalls(a) { a.isUp && peer.isUp.withLock { $0 } }
    return (a, peer)
  }

  private func stop(_ a: CallBench, _ peer: SlotPeer, _ loop: RTCLoop) async throws {
    a.call.stop()
    try await untilCalls(a) { a.exchange.end.isReported }
    loop.perform { peer.session?.end() }
  }

  private func slots(_ a: CallBench) -> [JSONValue] {
    a.events.filter { $0.name == "extra" && $0.members["name"]?.string == "slot" }
      .compactMap { $0.members["payload"] }
  }

  private func show(_ number: UInt8, on media: [Int], of peer: SlotPeer, _ loop: RTCLoop) {
    let bytes = frame(number)
    loop.perform {
      for medium in media {
        peer.session?.send(
          picture: bytes.span, isKey: true, captured: Clock(.realtime).now, on: medium)
      }
    }
  }

  @Test("slots follow the first medium of their kind, and only receive")
  func described() {
    var settings = RTCCallSettings()
    settings.session.sections = [.audio(codecs: [.opus, .pcmu]), .video(codecs: [.vp8]), .data()]
    let media = SignalMedia(
      audio: .sendOnly, video: .inactive, hasData: true, audioSlots: 2, videoSlots: 3)
    let all = settings.sections(for: media, soundCodec: SoundCodec.opus.packed)
    let kinds: [MediaKind] = [.audio, .audio, .audio, .video, .video, .video, .application]
    #expect(all.map(\.kind) == kinds)
    #expect(all.first?.direction == .sendOnly)
    #expect(all.dropFirst().dropLast().allSatisfy { $0.direction == .receiveOnly })
    // What is sent has the codec of the call; what comes may have any.
    #expect(all[0].codecs.map(\.name) == [RTPCodec.opus.name])
    #expect(all[1].codecs.count == 2 && all[2].codecs.count == 2)
    // A side that only sends has no slots.
    settings.session.sections = [.audio(.sendOnly)]
    #expect(settings.sections(for: media, soundCodec: 0).map(\.direction) == [.sendOnly])
  }

  @Test("sound of a slot says in which it came, and events say who is in it")
  func assigned() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, peer) = try await connect(loop)
    try await untilCalls(a) {
      loop.perform {
        for medium in 1...2 { peer.session?.send([UInt8(medium), 1].span, duration: 960, on: medium) }
      }
      return Set(a.sounds.map { $0.head.medium }).count == 2
    }
    #expect(a.sounds.allSatisfy { $0.head.medium + 1 == $0.payload[0] })
    // Neither one that is not there, nor one that this side sends in.
    a.end.report(.slot(mid: "99", track: .audio, peer: "nobody"))
    a.end.report(.slot(mid: "0", track: .audio, peer: "nobody"))
    a.end.report(.slot(mid: "4", track: .audio, peer: "nobody"))
    a.end.report(.slot(mid: "2", track: .audio, peer: "ann"))
    a.end.report(.slot(mid: "4", track: .video, peer: "bob"))
    a.end.report(.slot(mid: "5", track: .video, peer: "ann"))
    a.end.report(.slot(mid: "5", track: .video, peer: nil))
    try await untilCalls(a) { slots(a).count >= 4 }
    let all = slots(a)
    #expect(all.map { $0["track"]?.string } == ["audio", "video", "video", "video"])
    #expect(all.map { $0["slot"]?.integer } == [2, 1, 2, 2])
    #expect(all.map { $0["peer"]?.string } == ["ann", "bob", "ann", nil])
    try await stop(a, peer, loop)
  }

  @Test("a session that another replaces leaves its slots empty, and the times of the other are its own")
  func replaced() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, peer) = try await connect(loop) { $0.renewsSession = true }
    func signalled() -> [Double] {
      a.events.filter { $0.name == "latency" && $0.members["name"]?.string == "signalled" }
        .compactMap { $0.members["ms"]?.double }
    }
    a.end.report(.slot(mid: "2", track: .audio, peer: "ann"))
    a.end.report(.slot(mid: "4", track: .video, peer: "bob"))
    try await untilCalls(a) { slots(a).count == 2 && signalled().count == 1 }
    let begun = ContinuousClock.now
    a.end.report(.sessionEnded(SignalSessionID(0)))
    a.end.report(.wantsOffer(SignalSessionID(0), Self.media, servers: []))
    try await untilCalls(a) { signalled().count == 2 }
    let most = (ContinuousClock.now - begun) / .milliseconds(1)
    #expect(signalled()[1] <= most)
    let emptied = slots(a).dropFirst(2)
    #expect(emptied.map { $0["track"]?.string } == ["audio", "video"])
    #expect(emptied.map { $0["slot"]?.integer } == [2, 1] && emptied.allSatisfy { $0["peer"] == nil })
    try await stop(a, peer, loop)
  }

  @Test("a picture says where its participant is heard, and where not")
  func matched() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, peer) = try await connect(loop)
    a.end.report(.slot(mid: "2", track: .audio, peer: "ann"))
    a.end.report(.slot(mid: "4", track: .video, peer: "bob"))
    a.end.report(.slot(mid: "5", track: .video, peer: "ann"))
    try await untilCalls(a) { slots(a).count == 3 }
    show(1, on: [4, 5, 6], of: peer, loop)
    try await untilCalls(a) { a.pictures.count == 3 }
    let heads = a.pictures.map { $0.head }.sorted { $0.medium < $1.medium }
    #expect(heads.map(\.medium) == [0, 1, 2])
    #expect(heads.map(\.sound) == [PictureDownHead.noSound, 1, PictureDownHead.anySound])
    a.end.report(.slot(mid: "2", track: .audio, peer: nil))
    try await untilCalls(a) { slots(a).count == 4 }
    show(2, on: [5], of: peer, loop)
    try await untilCalls(a) { a.pictures.count == 4 }
    #expect(a.pictures.last?.head.sound == PictureDownHead.noSound)
    try await stop(a, peer, loop)
  }

  @Test("a key frame is asked for of one medium that is received, or of all")
  func keyFrames() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, peer) = try await connect(loop)
    show(1, on: [4, 5, 6], of: peer, loop)
    try await untilCalls(a) { a.pictures.count == 3 }
    #expect(peer.wanted.withLock { $0 } == [])
    a.command(
      #"{"command":"extra","name":"requestKeyFrame","payload":{"medium":9},"id":"1"}"#,
      #"{"command":"extra","name":"requestKeyFrame","payload":{"medium":1},"id":"2"}"#)
    try await untilCalls(a) { !peer.wanted.withLock { $0 }.isEmpty && a.answer("2") != nil }
    #expect(a.answer("1")?["ok"]?.bool == true && a.answer("2")?["ok"]?.bool == true)
    a.command(#"{"command":"extra","name":"requestKeyFrame","payload":{},"id":"3"}"#)
    try await untilCalls(a) { Set(peer.wanted.withLock { $0 }) == [4, 5, 6] }
    // The first was for one alone.
    #expect(peer.wanted.withLock { $0.first } == 5)
    try await stop(a, peer, loop)
  }

  @Test("who is in which slot decides whose sound a picture keeps to")
  func matching() {
    var slots = CallSlots()
    #expect(slots.sound(ofPictures: 0) == PictureDownHead.anySound)
    slots.assign(.video, 1, to: "ann")
    #expect(slots.sound(ofPictures: 0) == PictureDownHead.anySound)
    #expect(slots.sound(ofPictures: 1) == PictureDownHead.noSound)
    slots.assign(.audio, 3, to: "ann")
    slots.assign(.screen, 2, to: "ann")
    #expect(slots.sound(ofPictures: 1) == 3 && slots.sound(ofPictures: 2) == 3)
    slots.assign(.audio, 3, to: "bob")
    slots.assign(.audio, 0, to: "ann")
    #expect(slots.sound(ofPictures: 1) == 0)
    slots.assign(.video, 1, to: nil)
    #expect(slots.sound(ofPictures: 1) == PictureDownHead.anySound)
    #expect(slots.sound(ofPictures: 200) == PictureDownHead.anySound)
  }

  @Test("what is not published is not sent; then timestamps are right, and pictures begin with a key frame")
  func unpublished() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let b = CallBench(exchange.answering(isServer: false), on: loop, Self.sections)
    let media = SignalMedia(audio: .sendReceive, video: .sendReceive)
    let a = CallBench(exchange.calling(media), on: loop, Self.sections)
    b.call.start()
    a.call.start()
    try await untilCalls(a, b) { a.isUp && b.isUp }
    func publish(_ change: DialogTrackChange, _ name: String) async throws {
      for track in [DialogTrack.audio, .video] { a.end.report(.event(.track(track, change))) }
      try await untilCalls(a, b) {
        a.events.count { $0.name == "track" && $0.members["change"]?.string == name } == 2
      }
    }
    a.send(sound: [1])
    a.send(picture: frame(1), codec: .vp8, isKey: true)
    try await untilCalls(a, b) { b.sounds.count == 1 && b.pictures.count == 1 }
    try await publish(.unpublished, "unpublished")
    for number in UInt8(2)..<5 {
      a.send(sound: [number])
      a.send(picture: frame(number), codec: .vp8, isKey: true)
    }
    try await untilCalls(a, b) {
      a.exchange.soundUp.peek() == nil && a.exchange.pictureUp.peek() == nil
    }
    try await publish(.published, "published")
    a.send(sound: [5])
    a.send(picture: frame(5, isKey: false), codec: .vp8, isKey: false)
    a.send(picture: frame(6), codec: .vp8, isKey: true)
    try await untilCalls(a, b) { b.sounds.count >= 2 && b.pictures.count >= 2 }
    #expect(b.sounds.map { $0.payload } == [[1], [5]])
    #expect(b.pictures.map { $0.bytes } == [frame(1), frame(6)])
    let heads = b.sounds.map { $0.head }
    #expect(heads[1].sequence - heads[0].sequence == 1)
    // Three packets of 20 ms were left out.
    #expect(heads[1].timestamp - heads[0].timestamp == 4 * 960)
    for bench in [a, b] { bench.call.stop() }
    for bench in [a, b] { try await untilCalls(bench) { bench.exchange.end.isReported } }
  }
}
