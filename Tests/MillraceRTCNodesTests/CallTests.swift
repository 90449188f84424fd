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

private let sound = SignalMedia(audio: .sendReceive)
private let everything = SignalMedia(audio: .sendReceive, video: .sendReceive, hasData: true)
private let everySection: [MediaSection] = [
  .audio(codecs: [.opus, .telephoneEvent(rate: 48_000)]), .video(codecs: [.vp8]), .data(),
]

/// A frame of VP8 with a head that is valid, and with anything behind it.
private func frame(_ number: UInt8, isKey: Bool, bytes: Int = 4_000) -> [UInt8] {
  let head: [UInt8] =
    isKey ? [0x10, 0x02, 0, 0x9D, 0x01, 0x2A, 64, 0, 48, 0] : [0x11, 0x02, 0]
  return head + [UInt8](repeating: number, count: bytes)
}

@Suite("Calls over a real loop", .timeLimit(.minutes(30))) struct CallTests {
  /// Two calls that are connected to each other.
  private func pair(
    _ loop: RTCLoop, _ media: SignalMedia = everything, _ sections: [MediaSection] = everySection,
    _ change: (inout RTCCallSettings) -> Void = { _ in }
  ) async throws -> (CallBench, CallBench) {
    let exchange = MemorySwitch()
    let b = CallBench(exchange.answering(isServer: false), on: loop, sections, change)
    let a = CallBench(exchange.calling(media), on: loop, sections, change)
    b.call.start()
    a.call.start()
    try await untilCalls(a, b) { a.isUp && b.isUp }
    return (a, b)
  }

  private func stop(_ benches: CallBench...) async throws {
    for bench in benches { bench.call.stop() }
    for bench in benches { try await untilCalls(bench) { bench.exchange.end.isReported } }
  }

  @Test("sound, pictures and messages pass both ways, and what is reported says so")
  func passes() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    #expect(SoundCodec(packed: a.exchange.soundCodec.load(ordering: .acquiring)) == .opus)
    for bench in [a, b] {
      for number in 0..<3 { bench.send(sound: [UInt8](repeating: UInt8(number), count: 80)) }
      bench.send(picture: frame(1, isKey: true), codec: .vp8, isKey: true)
      bench.send(picture: frame(2, isKey: false), codec: .vp8, isKey: false)
      bench.send(message: "hello")
    }
    try await untilCalls(a, b) {
      [a, b].allSatisfy { $0.sounds.count >= 3 && $0.pictures.count >= 2 && $0.messages.count >= 1 }
    }
    for bench in [a, b] {
      #expect(bench.sounds.map { $0.payload.first } == [0, 1, 2])
      #expect(bench.sounds.allSatisfy { SoundCodec(packed: $0.head.codec) == .opus && $0.head.level == 20 })
      #expect(Set(bench.sounds.map { $0.head.source }).count == 1)
      #expect(bench.pictures.map { $0.bytes } == [frame(1, isKey: true), frame(2, isKey: false)])
      #expect(bench.pictures.map { $0.head.isKey } == [true, false])
      #expect(bench.messages.map { String(decoding: $0.bytes, as: UTF8.self) } == ["hello"])
      #expect(bench.states == ["connecting", "listening"])
      #expect(bench.has("track", "track", "audio") && bench.has("track", "track", "video"))
      for name in ["signalled", "ice", "dtls", "firstAudio", "firstVideo"] {
        #expect(bench.has("latency", "name", name), "\(name)")
      }
    }
    try await untilCalls(a, b) { a.events.contains { $0.name == "usage" } }
    #expect(a.end.log.withLock { $0.connected.count } == 1)
    #expect(
      a.end.log.withLock { $0.messages } == 0, "messages are copied for a signalling that carries them only")
    try await stop(a, b)
  }

  @Test("a node without ports for messages, but with events to send, hears messages as events")
  func eventsOnly() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let a = CallBench(MemorySwitch().answering(isServer: true), on: loop, [.audio()]) {
      ($0.hasDataPorts, $0.sendsEvents) = (false, true)
    }
    a.call.start()
    a.end.report(.data(label: "data", Array("hello".utf8), isText: true, from: "p1"))
    try await untilCalls(a) { a.has("data", "text", "hello") }
    #expect(a.has("data", "label", "data") && a.has("data", "peer", "p1") && a.messages.isEmpty)
    try await stop(a)
  }

  @Test("levels of a peer are reported, and that somebody speaks")
  func levels() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop, sound)
    a.send(sound: [1, 2, 3], level: 30)
    try await untilCalls(a, b) { b.events.contains { $0.name == "speaking" } }
    #expect(b.events.first { $0.name == "level" }?.members["dBov"]?.double == -30)
    // Silence for a while, and nobody does.
    try await untilCalls(a, b) {
      b.events.last { $0.name == "speaking" }?.members["peers"]?.array?.isEmpty == true
    }
    try await stop(a, b)
  }

  @Test("a picture behind one that found no room says that something is missing, and only that one")
  func gap() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    // Before there is any picture, nobody else writes here.
    let queue = b.exchange.pictureDown
    let filler: UInt8 = 99
    for count in [1 << 20, 64] {
      while queue.hasRoom(count) { queue.put(filler, count: count) { $0[0] = 0 } }
    }
    a.send(picture: frame(1, isKey: true), codec: .vp8, isKey: true)
    try await untilCalls(a) { b.exchange.lostDown.load(ordering: .acquiring) == 1 }
    b.read()
    a.send(picture: frame(2, isKey: false), codec: .vp8, isKey: false)
    a.send(picture: frame(3, isKey: false), codec: .vp8, isKey: false)
    try await untilCalls(a, b) { b.pictures.count == 2 }
    #expect(b.pictures.map { $0.bytes } == [frame(2, isKey: false), frame(3, isKey: false)])
    #expect(b.pictures.map { $0.head.followsLoss } == [true, false])
    try await stop(a, b)
  }

  @Test("servers that cannot be used are reported, once and by name, and the call does without them")
  func uselessServers() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop, sound, [.audio()]) { settings in
      settings.servers = [
        SignalServer(url: "stun:nowhere.invalid:3478"), SignalServer(url: "http://elsewhere.invalid"),
      ]
      settings.resolve = RTCServers.resolver { _ in .failure(.value("no such host")) }
    }
    for bench in [a, b] {
      let errors = bench.events.filter { $0.name == "error" }.map { $0.members }
      #expect(errors.count == 2)
      #expect(errors.allSatisfy { $0["name"]?.string == "network" && $0["reaction"]?.string == "continue" })
      let texts = errors.compactMap { $0["text"]?.string }
      #expect(texts.contains { $0.contains("nowhere.invalid") && $0.contains("no such host") }, "\(texts)")
      #expect(texts.contains { $0.contains("elsewhere.invalid") }, "\(texts)")
    }
    try await stop(a, b)
  }

  @Test("what no session takes is counted in `usage`")
  func unsent() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop, sound, [.audio(codecs: [.opus])])
    a.send(sound: [1], codec: SoundCodec(kind: .pcmu, clockRate: 8_000, channels: 1))
    a.send(message: "nobody takes this")
    try await untilCalls(a, b) {
      a.events.contains {
        let usage = $0.name == "usage" ? $0.members["usage"] : nil
        return usage?["unsent"]?.integer == 1 && usage?["unsentMessages"]?.integer == 1
      }
    }
    try await stop(a, b)
  }

  @Test("the end of one side ends the other without a failure, and everything is released")
  func ends() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    a.send(sound: [1, 2, 3])
    try await untilCalls(a, b) { !b.sounds.isEmpty }
    a.call.stop()
    try await untilCalls(a, b) { a.exchange.end.isReported && b.exchange.end.isReported }
    b.read()
    #expect(a.end.log.withLock { $0.isOver } && b.end.log.withLock { $0.isOver })
    #expect(b.soundEnds == 1 && b.states.last == "closed" && b.errors == [])
    #expect(try b.exchange.end.conclude() == .ended)
    try await stop(a, b)
  }

  @Test("when the inputs end, what is queued is sent first")
  func drains() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    for number in 0..<5 { a.send(message: "\(number)") }
    a.send(sound: [1, 2, 3])
    a.exchange.isOver.store(true, ordering: .releasing)
    a.exchange.wakeSessions()
    try await untilCalls(a, b) { a.exchange.end.isReported && b.exchange.end.isReported }
    b.read()
    #expect(b.messages.map { String(decoding: $0.bytes, as: UTF8.self) } == ["0", "1", "2", "3", "4"])
    #expect(b.sounds.count == 1)
    try await stop(a, b)
  }

  @Test("a call that is stopped before it begins, or at once, ends", arguments: [true, false])
  func stopsEarly(_ isFirst: Bool) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let a = CallBench(exchange.calling(sound), on: loop, everySection)
    if isFirst { a.call.stop() }
    a.call.start()
    if !isFirst { a.call.stop() }
    try await untilCalls(a) { a.exchange.end.isReported }
  }

  @Test("a signalling that cannot be made, or refuses, fails the call with a message")
  func refused() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let a = CallBench(exchange.calling(sound), on: loop, everySection)
    a.call.start()
    a.end.report(.closed(RTCError.authFailed.error("the server refuses the key; check \"bearer\"")))
    try await untilCalls(a) { a.exchange.end.isReported }
    a.read()
    #expect(a.errors == ["authFailed"] && a.states.last == "closed")
    #expect(throws: NodeFault.self) { try a.exchange.end.conclude() }
    a.call.stop()
  }

  @Test(
    "a description that is none is refused with a message",
    arguments: ["", "v=0", "\u{0}garbage", "v=0\r\nm=audio"])
  func badDescription(_ sdp: String) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let b = CallBench(exchange.answering(isServer: true), on: loop, everySection)
    b.call.start()
    b.end.report(.offer(SignalSessionID(3), sdp: sdp, sound, peer: nil))
    try await untilCalls(b) { b.errors == ["badOffer"] }
    try await untilCalls(b) { b.end.log.withLock { $0.ended } == [SignalSessionID(3)] }
    #expect(!b.exchange.end.isReported)
    try await stop(b)
  }

  @Test(
    "an offer for a connected session that cannot be used is reported and refused, and the session continues",
    arguments: [
      "v=0",
      "v=0\r\no=- 9 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"
        + "c=IN IP4 0.0.0.0\r\na=mid:0\r\na=rtpmap:111 opus/48000/2\r\n",
    ])
  func badLaterOffer(_ sdp: String) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    b.end.report(.offer(SignalSessionID(0), sdp: sdp, everything, peer: nil))
    try await untilCalls(a, b) { b.errors == ["badOffer"] }
    try await untilCalls(a, b) { b.end.log.withLock { $0.refused } == [.badOffer] }
    for bench in [a, b] { bench.send(sound: [1, 2, 3]) }
    try await untilCalls(a, b) { [a, b].allSatisfy { !$0.sounds.isEmpty } }
    for bench in [a, b] {
      #expect(bench.states == ["connecting", "listening"])
      #expect(bench.end.log.withLock { $0.ended.isEmpty && $0.described == 1 })
    }
    try await stop(a, b)
  }

  @Test("an answer that is none fails the call")
  func badAnswer() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let a = CallBench(exchange.calling(sound), on: loop, everySection)
    a.call.start()
    try await untilCalls(a) { a.end.log.withLock { $0.described } == 1 }
    a.end.report(.answer(SignalSessionID(0), sdp: "nonsense"))
    try await untilCalls(a) { a.exchange.end.isReported }
    #expect(a.errors == ["badAnswer"])
    a.call.stop()
  }

  @Test("a session without media of this node is refused")
  func nothingInCommon() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let a = CallBench(exchange.calling(SignalMedia(video: .sendOnly)), on: loop, [.audio()])
    a.call.start()
    try await untilCalls(a) { a.exchange.end.isReported }
    #expect(a.errors == ["noCommonCodec"])
    a.call.stop()
  }

  @Test("a medium that one side refuses is reported by both, and the session continues")
  func refusedMedium() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let b = CallBench(exchange.answering(isServer: true), on: loop, [.audio(), .video(codecs: [.h264])])
    let media = SignalMedia(audio: .sendReceive, video: .sendReceive)
    let a = CallBench(exchange.calling(media), on: loop, [.audio(), .video(codecs: [.vp8])])
    b.call.start()
    a.call.start()
    try await untilCalls(a, b) {
      [a, b].allSatisfy { $0.isUp && $0.errors == ["noCommonCodec"] && $0.states.last == "listening" }
    }
    let errors = [a, b].compactMap { bench in bench.events.first { $0.name == "error" }?.members }
    #expect(errors.count == 2)
    for error in errors {
      #expect(error["reaction"]?.string == "continue" && error["scope"]?.string == "connection")
    }
    let texts = errors.map { $0["text"]?.string ?? "" }
    #expect(texts[0].contains("video") && texts[0].contains("VP8"), "\(texts)")
    #expect(texts[1].contains("video") && texts[1].contains("VP8") && texts[1].contains("H264"), "\(texts)")
    #expect(a.has("track", "change", "unpublished") && !b.events.contains { $0.name == "track" })
    #expect(a.exchange.pictureTakers.load(ordering: .acquiring) == 0)
    a.command(#"{"command":"mute","track":"video","on":false,"id":"1"}"#)
    a.send(sound: [4])
    try await untilCalls(a, b) { b.sounds.count == 1 && a.answer("1") != nil }
    #expect(!a.has("extra", "name", "keyframeRequested"))
    try await stop(a, b)
  }

  @Test("pictures that never come, though sound does, are reported once, and the session continues")
  func missingPictures() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let sections: [MediaSection] = [.audio(), .video(codecs: [.vp8])]
    let b = CallBench(exchange.answering(isServer: true), on: loop, sections)
    let playing = SignalMedia(audio: .receiveOnly, video: .receiveOnly)
    let a = CallBench(exchange.calling(playing), on: loop, sections) { $0.media = .milliseconds(4_000) }
    b.call.start()
    a.call.start()
    try await untilCalls(a, b) { b.isUp && a.states.last == "listening" }
    b.send(sound: [1])
    try await untilCalls(a, b) { !a.errors.isEmpty }
    #expect(a.errors == ["mediaTimeout"] && a.states == ["connecting", "listening"])
    let error = a.events.first { $0.name == "error" }?.members
    #expect(error?["reaction"]?.string == "continue")
    #expect(error?["text"]?.string?.hasPrefix("no video came within 4000 ms") == true, "\(error ?? [:])")
    try await stop(a, b)
  }

  @Test("faults that a peer repeats are one error a second, with their number")
  func repeatedFaults() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let media = SignalMedia(hasData: true)
    let b = CallBench(exchange.answering(isServer: true), on: loop, [.data()]) { $0.largestMessage = 1_000 }
    let a = CallBench(exchange.calling(media), on: loop, [.data()])
    b.call.start()
    a.call.start()
    try await untilCalls(a, b) { [a, b].allSatisfy { $0.states.last == "listening" } }
    // The description says how much is taken, so that this side refuses itself.
    let text = String(repeating: "x", count: 1_001)
    for _ in 0..<20 { a.send(message: text) }
    a.send(message: "short")
    try await untilCalls(a, b) { b.messages.count == 1 && a.exchange.dataUp.peek() == nil }
    a.call.stop()
    try await untilCalls(a, b) { a.exchange.end.isReported }
    a.read()
    let errors = a.events.filter { $0.name == "error" }.map { $0.members }
    #expect(errors.allSatisfy { $0["name"]?.string == "tooLarge" && $0["reaction"]?.string == "continue" })
    #expect(errors.map { $0["count"]?.integer ?? 1 }.reduce(0, +) == 20)
    #expect(errors.count < 20 && a.events.last?.name == "state")
    try await stop(a, b)
  }

  @Test("a server is connected again for the next session after it had none")
  func connectedAgain() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let server = CallBench(exchange.answering(isServer: true), on: loop, [.audio()])
    server.call.start()
    for count in 1...2 {
      let client = CallBench(exchange.calling(sound), on: loop, [.audio()])
      client.call.start()
      try await untilCalls(server, client) {
        server.states.last == "listening" && client.states.last == "listening"
      }
      #expect(server.events.filter { $0.name == "connected" }.count == count)
      client.call.stop()
      try await untilCalls(server, client) { server.states.last == "connecting" }
    }
    try await stop(server)
  }

  @Test("a server serves several, and the end of one is not the end of the others")
  func serves() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let server = CallBench(exchange.answering(isServer: true), on: loop, [.audio(.sendOnly)])
    server.call.start()
    let playing = SignalMedia(audio: .receiveOnly)
    let first = CallBench(exchange.calling(playing), on: loop, [.audio()])
    let second = CallBench(exchange.calling(playing), on: loop, [.audio()])
    first.call.start()
    second.call.start()
    try await untilCalls(server, first, second) {
      server.exchange.takers.load(ordering: .acquiring) == 2
        && [first, second].allSatisfy { $0.states.last == "listening" }
    }
    server.send(sound: [7])
    try await untilCalls(server, first, second) { first.sounds.count == 1 && second.sounds.count == 1 }
    first.call.stop()
    try await untilCalls(server, first, second) { server.exchange.takers.load(ordering: .acquiring) == 1 }
    server.send(sound: [8])
    try await untilCalls(server, first, second) { second.sounds.count == 2 }
    second.call.stop()
    try await untilCalls(server, second) { server.exchange.takers.load(ordering: .acquiring) == 0 }
    try await untilCalls(server) { server.states.last == "connecting" }
    #expect(server.exchange.soundCodec.load(ordering: .acquiring) == 0)
    let changes = server.events.filter { $0.name == "peer" }.compactMap { $0.members["change"]?.string }
    #expect(changes.filter { $0 == "joined" }.count == 2 && changes.filter { $0 == "left" }.count == 2)
    #expect(!server.exchange.end.isReported)
    try await stop(server)
  }

  @Test("a viewer that knows another codec than those before it is refused, and they are not disturbed")
  func otherCodec() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let server = CallBench(
      exchange.answering(isServer: true), on: loop, [.audio(.sendOnly, codecs: [.opus, .pcmu])])
    server.call.start()
    let playing = SignalMedia(audio: .receiveOnly)
    let first = CallBench(exchange.calling(playing), on: loop, [.audio(codecs: [.opus])])
    first.call.start()
    try await untilCalls(server, first) { server.isUp && first.states.last == "listening" }
    let other = CallBench(exchange.calling(playing), on: loop, [.audio(codecs: [.pcmu])])
    other.call.start()
    try await untilCalls(server, first, other) { server.errors.contains("noCommonCodec") }
    server.send(sound: [9])
    try await untilCalls(server, first, other) { first.sounds.count == 1 }
    #expect(server.exchange.takers.load(ordering: .acquiring) == 1)
    try await stop(server, first, other)
  }
}
