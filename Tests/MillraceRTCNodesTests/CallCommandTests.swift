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

@Suite("Commands and channels of a call", .timeLimit(.minutes(30))) struct CallCommandTests {
  private static let sections: [MediaSection] = [
    .audio(codecs: [.opus, .telephoneEvent(rate: 48_000)]), .data(),
  ]

  private func pair(_ loop: RTCLoop) async throws -> (CallBench, CallBench) {
    let exchange = MemorySwitch()
    let b = CallBench(exchange.answering(isServer: false), on: loop, Self.sections)
    let a = CallBench(
      exchange.calling(SignalMedia(audio: .sendReceive, hasData: true)), on: loop, Self.sections)
    b.call.start()
    a.call.start()
    try await untilCalls(a, b) { a.isUp && b.isUp }
    return (a, b)
  }

  private func stop(_ benches: CallBench...) async throws {
    for bench in benches { bench.call.stop() }
    for bench in benches { try await untilCalls(bench) { bench.exchange.end.isReported } }
  }

  @Test(
    "what cannot be carried out is answered with a message, and changes nothing",
    arguments: [
      #"{"command":"interrupt","id":"x"}"#, #"{"command":"say","text":"a","id":"x"}"#,
      #"{"command":"mute","track":"screen","on":true,"id":"x"}"#,
      #"{"command":"mute","track":"audio","on":true,"peer":"nobody","id":"x"}"#,
      #"{"command":"mute","track":"audio","id":"x"}"#, #"{"command":"nonsense","id":"x"}"#,
      #"{"command":"update","values":{},"id":"x"}"#, #"{"command":"update","values":{"colour":1},"id":"x"}"#,
      #"{"command":"update","values":{"bitrate":"much"},"id":"x"}"#,
      #"{"command":"update","values":{"bitrate":1},"id":"x"}"#,
      #"{"command":"refreshAuth","id":"x"}"#, #"{"command":"refreshAuth","token":"new","id":"x"}"#,
      #"{"command":"hangUp","call":"7","id":"x"}"#,
      #"{"command":"extra","name":"fly","id":"x"}"#,
      #"{"command":"extra","name":"dtmf","payload":{},"id":"x"}"#,
      #"{"command":"extra","name":"dtmf","payload":{"digits":"12x"},"id":"x"}"#,
      #"{"command":"extra","name":"dtmf","payload":{"digits":"1","ms":7},"id":"x"}"#,
      #"{"command":"data","text":"a","peer":"nobody","id":"x"}"#,
      #"{"command":"subscribe","peers":"all","track":"data","on":true,"id":"x"}"#,
    ])
  func refuses(_ command: String) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let a = CallBench(exchange.calling(SignalMedia(audio: .sendReceive)), on: loop, Self.sections)
    a.call.start()
    a.command(command)
    try await untilCalls(a) { a.answer("x") != nil }
    #expect(a.answer("x")?["ok"]?.bool == false)
    #expect(a.answer("x")?["text"]?.string?.isEmpty == false)
    #expect(a.answer("x")?["scope"]?.string == "command")
    #expect(a.events.filter { $0.name == "answer" }.count == 1)
    try await stop(a)
  }

  @Test(
    "what is no command is an error with a message",
    arguments: ["", "{", "[1]", "null", "\u{0}", "{\"a\":1}"])
  func nonsense(_ text: String) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let a = CallBench(
      MemorySwitch().calling(SignalMedia(audio: .sendReceive)), on: loop, Self.sections)
    a.call.start()
    a.command(text)
    try await untilCalls(a) { a.errors == ["command"] }
    try await stop(a)
  }

  @Test("what the signalling carries out is answered by it, once, and what it refuses is reported")
  func performs() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    a.end.answers.withLock { $0 = ("setRole", nil) }
    a.command(#"{"command":"setRole","role":"viewer","id":"1"}"#)
    try await untilCalls(a, b) { a.answer("1") != nil }
    #expect(a.answer("1")?["ok"]?.bool == true)
    a.end.answers.withLock { $0 = ("setRole", RTCError.authFailed.error("not allowed")) }
    a.command(#"{"command":"setRole","role":"speaker","id":"2"}"#)
    a.command(#"{"command":"setRole","role":"speaker","id":"2"}"#)
    try await untilCalls(a, b) { a.events.filter { $0.name == "answer" }.count == 3 }
    #expect(a.events.filter { $0.name == "answer" && $0.members["ok"]?.bool == false }.count == 2)
    #expect(a.errors == [])
    try await stop(a, b)
  }

  @Test("hanging up is answered, and ends the call; a command behind it is answered too")
  func hangsUp() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    // Once the end is reported, the node answers: see `PortsTests`.
    a.command(
      #"{"command":"hangUp","id":"1"}"#, #"{"command":"mute","track":"audio","on":true,"id":"2"}"#)
    try await untilCalls(a, b) { a.exchange.end.isReported && b.exchange.end.isReported }
    a.read()
    #expect(a.answer("1")?["ok"]?.bool == true)
    #expect(a.answer("2") != nil)
    #expect(a.events.filter { $0.name == "answer" }.count == 2)
    try await stop(a, b)
  }

  @Test("commands that come while a call ends are answered, each once, before the end is reported")
  func whileEnding() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let a = CallBench(
      MemorySwitch().calling(SignalMedia(audio: .sendReceive)), on: loop, Self.sections)
    a.end.holdsEnd.withLock { $0 = true }
    a.call.start()
    a.command(#"{"command":"hangUp","id":"1"}"#)
    try await untilCalls(a) { a.end.heldEnds.withLock { $0.count } == 1 }
    let mute = #"{"command":"mute","track":"audio","on":true,"id":"2"}"#
    a.command(mute, "no command", mute, #"{"command":"mute","track":"audio","on":true}"#, mute)
    a.end.releaseEnd()
    try await untilCalls(a) { a.exchange.end.isReported }
    a.read()
    let answers = a.events.filter { $0.name == "answer" }
    #expect(answers.compactMap { $0.members["id"]?.string } == ["1", "2", "2", "2"])
    #expect(answers.map { $0.members["ok"]?.bool } == [true, false, false, false])
    #expect(a.exchange.commands.peek() == nil)
    try await stop(a)
  }

  @Test("muted sound continues as silence, and comes back")
  func mutes() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    a.command(#"{"command":"mute","track":"audio","on":true,"id":"1"}"#)
    try await untilCalls(a, b) { a.answer("1") != nil }
    a.send(sound: [UInt8](repeating: 5, count: 60))
    try await untilCalls(a, b) { b.sounds.count == 1 }
    #expect(b.sounds[0].payload == [0xF8, 0xFF, 0xFE] && b.sounds[0].head.level == 127)
    a.command(#"{"command":"mute","track":"audio","on":false,"id":"2"}"#)
    try await untilCalls(a, b) { a.answer("2") != nil }
    a.send(sound: [1, 2])
    try await untilCalls(a, b) { b.sounds.count == 2 }
    #expect(b.sounds[1].payload == [1, 2])
    try await stop(a, b)
  }

  @Test("a peer that is not subscribed to is not heard")
  func unsubscribed() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    b.command(#"{"command":"subscribe","peers":"all","track":"audio","on":false,"id":"1"}"#)
    try await untilCalls(a, b) { b.answer("1")?["ok"]?.bool == true }
    a.send(sound: [1])
    try await untilCalls(a, b) { b.has("latency", "name", "firstAudio") }
    b.command(#"{"command":"subscribe","peers":"all","track":"audio","on":true,"id":"2"}"#)
    try await untilCalls(a, b) { b.answer("2")?["ok"]?.bool == true }
    a.send(sound: [2])
    try await untilCalls(a, b) { !b.sounds.isEmpty }
    #expect(b.sounds.map { $0.payload } == [[2]])
    try await stop(a, b)
  }

  @Test("limits of bitrates reach the encoders")
  func limits() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    a.command(#"{"command":"update","values":{"bitrate":8000},"id":"1"}"#)
    try await untilCalls(a, b) { a.answer("1")?["ok"]?.bool == true }
    try await untilCalls(a, b) {
      (1...8_000).contains(a.exchange.soundBitrate.load(ordering: .acquiring))
    }
    try await stop(a, b)
  }

  @Test("digits that are dialled arrive")
  func dials() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    a.command(#"{"command":"extra","name":"dtmf","payload":{"digits":"1#","ms":60},"id":"1"}"#)
    try await untilCalls(a, b) { a.answer("1") != nil }
    #expect(a.answer("1")?["ok"]?.bool == true)
    func digits() -> [String] {
      b.events.filter { $0.name == "extra" && $0.members["name"]?.string == "dtmf" }
        .compactMap { $0.members["payload"]?["digit"]?.string }
    }
    try await untilCalls(a, b) { digits().count == 2 }
    #expect(digits() == ["1", "#"])
    try await stop(a, b)
  }

  @Test("messages of a channel that no node has are events, with the name of the channel")
  func dataCommand() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    a.command(#"{"command":"data","text":"hi","label":"chat","id":"1"}"#)
    try await untilCalls(a, b) { a.answer("1") != nil }
    #expect(a.answer("1")?["ok"]?.bool == true)
    try await untilCalls(a, b) { b.has("data", "text", "hi") }
    #expect(b.has("data", "label", "chat") && b.messages.isEmpty)
    try await stop(a, b)
  }

  @Test("a channel of another node is opened in the call, both ways, and ends with the call")
  func links() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let media = SignalMedia(audio: .sendReceive, hasData: true)
    let b = CallBench(exchange.answering(isServer: false), on: loop, Self.sections)
    let a = CallBench(exchange.calling(media), on: loop, Self.sections)
    var delivery = SCTPAssociation.Delivery()
    delivery.isOrdered = false
    let (one, two) = (
      DataLink(label: "files", delivery: delivery, waker: .none),
      DataLink(label: "files", delivery: delivery, waker: .none)
    )
    try a.call.attach(one)
    // What is there before the call waits.
    CallBench.put([1, 2], MediaRecord.binary, one.up)
    b.call.start()
    a.call.start()
    try await untilCalls(a, b) { a.isUp && b.isUp }
    try b.call.attach(two)
    try await untilCalls(a, b) { two.channels.load(ordering: .acquiring) == 1 && one.up.peek() == nil }
    CallBench.put(Array("back".utf8), MediaRecord.text, two.up)
    two.wakeSessions()
    try await untilCalls(a, b) { one.down.peek() != nil }
    #expect(one.down.peek().map { Array($0.bytes) } == Array("back".utf8))
    #expect(throws: NodeProblem.self) {
      try a.call.attach(DataLink(label: "files", delivery: delivery, waker: .none))
    }
    #expect(throws: NodeProblem.self) {
      try a.call.attach(DataLink(label: "data", delivery: delivery, waker: .none))
    }
    try await stop(a, b)
    #expect(one.end.isReported && two.end.isReported)
  }

  @Test("a channel that is added after the call has failed ends with its failure")
  func lateChannel() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let exchange = MemorySwitch()
    let signalling = exchange.calling(SignalMedia(audio: .sendReceive, hasData: true))
    let a = CallBench(signalling, on: loop, Self.sections)
    a.call.start()
    signalling.report(.closed(RTCError.authFailed.error("no", reaction: .refuse)))
    try await untilCalls(a) { a.exchange.end.isReported }
    let link = DataLink(label: "late", delivery: SCTPAssociation.Delivery(), waker: .none)
    try a.call.attach(link)
    try await untilCalls(a) { link.end.isReported }
    #expect(throws: NodeFault.self) { _ = try link.end.conclude() }
    try await stop(a)
  }

  @Test("a wish for a key frame of a decoder is no command that fails")
  func keyFrame() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await pair(loop)
    a.command(#"{"event":"extra","name":"keyframeRequested","payload":{}}"#)
    a.command(#"{"command":"extra","name":"requestKeyFrame","payload":{},"id":"1"}"#)
    try await untilCalls(a, b) { a.answer("1") != nil }
    #expect(a.answer("1")?["ok"]?.bool == true && a.errors == [])
    try await stop(a, b)
  }
}

@Suite("Values of a call") struct CallValueTests {
  @Test(
    "the index of the network stays in its grade on the boundary",
    arguments: [
      (30_000, 500_000, 50_000, 262_500, NetGrade.excellent), (100_000, 800_000, 80_000, 550_000, .good),
      (200_000, 1_200_000, 150_000, 1_000_000, .poor), (200_100, 1_200_000, 150_000, 1_000_250, .veryPoor),
    ] as [(Int, Int, Int, Int, NetGrade)])
  func quality(_ loss: Int, _ roundTrip: Int, _ deviation: Int, _ index: Int, _ grade: NetGrade) {
    let measured = CallQuality.index(loss: loss, roundTrip: roundTrip, deviation: deviation)
    #expect(measured == index && CallQuality.grade(measured) == grade)
  }

  @Test("silence has the length of what it stands for")
  func silence() {
    #expect(SilentPayload.bytes(.opus, duration: 120, count: 90) == [0xE0, 0xFF, 0xFE])
    #expect(SilentPayload.bytes(.opus, duration: 240, count: 90) == [0xE8, 0xFF, 0xFE])
    #expect(SilentPayload.bytes(.opus, duration: 480, count: 90) == [0xF0, 0xFF, 0xFE])
    #expect(SilentPayload.bytes(.opus, duration: 960, count: 90) == [0xF8, 0xFF, 0xFE])
    #expect(SilentPayload.bytes(.opus, duration: 1_920, count: 90) == [0xF9, 0xFF, 0xFE, 0xFF, 0xFE])
    #expect(SilentPayload.bytes(.opus, duration: 2_880, count: 90).prefix(2) == [0xFB, 3])
    let pcmu = SoundCodec(kind: .pcmu, clockRate: 8_000, channels: 1)
    #expect(SilentPayload.bytes(pcmu, duration: 160, count: 160) == [UInt8](repeating: 0xFF, count: 160))
  }

  @Test("a session has the media that both its signalling and the settings allow")
  func sections() {
    var settings = RTCCallSettings()
    settings.session.sections = [.audio(.sendOnly, codecs: [.opus, .pcmu]), .video(), .data()]
    let all = settings.sections(
      for: SignalMedia(audio: .sendReceive, video: .receiveOnly, hasData: true), soundCodec: 0)
    #expect(all.map(\.kind) == [.audio, .video, .application])
    #expect(all[0].direction == .sendOnly && all[1].direction == .receiveOnly)
    let one = settings.sections(
      for: SignalMedia(audio: .sendOnly), soundCodec: SoundCodec.opus.packed)
    #expect(one.map(\.kind) == [.audio] && one[0].codecs.map(\.name) == ["opus"])
    #expect(settings.sections(for: SignalMedia(audio: .receiveOnly), soundCodec: 0).isEmpty)
  }
}
