import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceService
import MillraceTesting
import Testing

/// A node, its service's wire and the clock of both, on one thread: nothing here waits.
@Suite("A service node, its connection and its session") final class ServiceNodeTests {
  private let stage = ParrotStage()
  private let name = RandomID.uuid()

  deinit { ParrotStage.stages.withLock { $0[name] = nil } }

  private func bench(
    inputs: [String] = ["audio", "control", "image"], outputs: [String] = ["audio", "events"]
  ) throws -> NodeBench {
    ParrotStage.stages.withLock { $0[name] = stage }
    let shapes: [String: OutputShape] = [
      "audio": .pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320),
      "control": OutputShape(.event, packetDuration: nil, packetBytes: 65_536),
      "image": OutputShape(.jpeg, packetDuration: nil, packetBytes: 65_536),
    ]
    let bench = try NodeBench(
      ParrotNode.self, ["stage": .string(name)], inputs: shapes.filter { inputs.contains($0.key) },
      outputs: outputs)
    try turn(bench)
    return bench
  }

  /// Lets the node and the connection do what they can, at this moment.
  private func turn(_ bench: NodeBench) throws {
    for _ in 0..<4 {
      try run(bench)
      stage.clock.advance(by: 0)
    }
    try run(bench)
  }

  /// Runs the node as an engine would, which interrupts the replies as soon as a call asks for it.
  private func run(_ bench: NodeBench) throws {
    while try bench.run(calls: 1) > 0 {
      if bench.requests.contains(.interrupt) { bench.interrupt() }
    }
  }

  private func ready(_ bench: NodeBench) throws {
    stage.wire.arrives(.opened)
    stage.wire.arrives(.message(.ready))
    try turn(bench)
  }

  /// Nothing belongs to a reply before the first generation.
  private func readyToReply(_ bench: NodeBench) throws {
    try ready(bench)
    bench.interrupt()
    try turn(bench)
    _ = bench.events()
  }

  private func command(_ bench: NodeBench, _ text: String) throws {
    bench.push(text: text, to: "control")
    try turn(bench)
  }

  private func answers(_ bench: NodeBench) -> [String] {
    bench.events().filter { $0.name == "answer" }.map { event in
      let json = try? JSONValue(parsing: event.json)
      let result = json?["payload"]?.text ?? json?["text"]?.string ?? ""
      return "\(event.string("id") ?? "?") \(event.bool("ok") == true ? "ok" : "no") \(result)"
    }
  }

  // MARK: The user's audio

  @Test("audio goes up in frames of one length, what was said before the service listens first")
  func frames() throws {
    let bench = try bench()
    let said = (0..<4_000).map { Int16($0) }
    bench.push(Array(said[..<2_400]), to: "audio")
    try turn(bench)
    #expect(stage.wire.voice.isEmpty)
    try ready(bench)
    bench.push(Array(said[2_400...]), to: "audio")
    try turn(bench)
    #expect(stage.wire.voice.map(\.bytes.count) == [3_200, 3_200])
    // What is left of a frame goes when the audio ends.
    bench.end("audio")
    try turn(bench)
    let sent = stage.wire.voice.flatMap(\.bytes)
    #expect(sent == said.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] })
  }

  @Test("audio that must not be sent is kept up to the pre-roll, and what exceeded it is reported")
  func preRoll() throws {
    let bench = try bench()
    for _ in 0..<30 {
      bench.push([Int16](repeating: 1, count: 1_600), to: "audio")
      try turn(bench)
    }
    try ready(bench)
    #expect(stage.wire.voice.count == 20)
    let unsent = bench.events().first { $0.string("name") == "unsent" }
    #expect(unsent?.json.contains(#""ms":1000"#) == true, "\(String(describing: unsent))")
  }

  @Test("after the user's audio has ended, silence is sent in real time")
  func silence() throws {
    let bench = try bench()
    try ready(bench)
    bench.end("audio")
    try turn(bench)
    stage.clock.advance(by: .milliseconds(1_000))
    #expect(stage.wire.voice.map(\.time) == (1...10).map { .milliseconds($0 * 100) })
    #expect(stage.wire.voice.allSatisfy { $0.bytes == [UInt8](repeating: 0, count: 3_200) })
  }

  @Test(
    "a service that needs no silence is left alone when the user's audio has ended", arguments: [true, false])
  func noSilence(isOpus: Bool) throws {
    stage.voice.isOpus = isOpus
    stage.voice.sendsSilenceAfterEnd = isOpus
    let bench = try bench()
    try ready(bench)
    bench.end("audio")
    try turn(bench)
    // Only the next heartbeat is due.
    #expect(stage.clock.nextDue.map { $0 > .milliseconds(10_000) } == true)
  }

  @Test("a reply of ten minutes that drives the service is held back to its pace, and ends with its end")
  func pace() throws {
    stage.voice.isReply = true
    stage.voice.pace = Pacer(interval: .milliseconds(100), burst: 2)
    let bench = try bench()
    try ready(bench)
    let frames = 6_000
    var pushed = 0
    while !stage.wire.sent.contains("voiceEnd") {
      // The node takes no more than its queue has room for; the link holds the rest.
      while pushed < frames, pushed < stage.wire.voice.count + 8 {
        pushed += 1
        bench.push([Int16](repeating: 7, count: 1_600), to: "audio")
        if pushed == frames { bench.push(bytes: [], to: "audio", flags: .endOfUtterance) }
      }
      try turn(bench)
      stage.clock.advance(by: .milliseconds(100))
      try #require(stage.clock.now < .milliseconds(700_000), "the reply is not sent")
    }
    let times = stage.wire.voice.map(\.time)
    #expect(times == (0..<frames).map { .milliseconds(Int64(max(0, $0 - 1) * 100)) })
    #expect(stage.wire.sent.filter { $0 != "beat" } == ["voiceEnd"])
  }

  @Test("of a microphone with a pace the latest is sent, frame by frame, and never faster")
  func pacedMicrophone() throws {
    stage.voice.pace = Pacer(interval: .milliseconds(100))
    stage.voice.preRoll = .milliseconds(300)
    let bench = try bench()
    func speak(_ index: Int) throws {
      bench.push([Int16](repeating: Int16(index), count: 1_600), to: "audio")
      try turn(bench)
    }
    for index in 0..<5 { try speak(index) }
    try ready(bench)
    let start = stage.clock.now
    for index in 5..<10 {
      stage.clock.advance(by: .milliseconds(100))
      try speak(index)
    }
    stage.clock.advance(by: .milliseconds(1_000))
    #expect(stage.wire.voice.compactMap(\.bytes.first) == [2, 3, 4, 5, 6, 7, 8, 9])
    #expect(stage.wire.voice.map { $0.time - start } == (0..<8).map { .milliseconds(Int64($0 * 100)) })
    try turn(bench)
    let events = bench.events()
    #expect(events.filter { $0.string("name") == "voiceBegan" }.count == 1)
    #expect(events.first { $0.string("name") == "unsent" }?.json.contains(#""ms":200"#) == true)
  }

  @Test("an utterance that ends while frames wait is sent at its pace, and ends after them")
  func pacedEnd() throws {
    stage.voice.pace = Pacer(interval: .milliseconds(100))
    stage.voice.preRoll = .milliseconds(500)
    let bench = try bench()
    func speak(_ index: Int) throws {
      bench.push([Int16](repeating: Int16(index), count: 1_600), to: "audio")
      try turn(bench)
    }
    for index in 0..<4 { try speak(index) }
    try ready(bench)
    let start = stage.clock.now
    try command(bench, #"{"command":"stopSpeech"}"#)
    // Of the next utterance.
    try speak(9)
    #expect(stage.wire.voice.count == 1 && stage.wire.sent.isEmpty)
    stage.clock.advance(by: .milliseconds(1_000))
    #expect(stage.wire.voice.compactMap(\.bytes.first) == [0, 1, 2, 3])
    #expect(stage.wire.voice.map { $0.time - start } == (0..<4).map { .milliseconds(Int64($0 * 100)) })
    #expect(stage.wire.sent == ["voiceEnd"])
    stage.wire.arrives(.message(.uplink(.send)))
    try turn(bench)
    #expect(stage.wire.voice.compactMap(\.bytes.first) == [0, 1, 2, 3, 9])
  }

  @Test("a frame that is early for its pace is not lost, however short the pre-roll")
  func pacedWithoutPreRoll() throws {
    stage.voice.pace = Pacer(interval: .milliseconds(100))
    stage.voice.preRoll = 0
    let bench = try bench()
    try ready(bench)
    for index in 0..<5 {
      bench.push([Int16](repeating: Int16(index), count: 1_600), to: "audio")
      try turn(bench)
      stage.clock.advance(by: .milliseconds(99))
    }
    stage.clock.advance(by: .milliseconds(200))
    #expect(stage.wire.voice.compactMap(\.bytes.first) == [0, 1, 2, 3, 4])
  }

  @Test("a session learns that voice begins, once for each utterance")
  func voiceBegan() throws {
    stage.voice.isReply = true
    let bench = try bench()
    try ready(bench)
    for _ in 1...2 {
      for _ in 1...3 { bench.push([Int16](repeating: 7, count: 1_600), to: "audio") }
      bench.push(bytes: [], to: "audio", flags: .endOfUtterance)
      try turn(bench)
    }
    #expect(bench.events().filter { $0.string("name") == "voiceBegan" }.count == 2)
  }

  @Test(
    "the address of a stream is a secret before anybody has it, and is emitted between the events around it")
  func stream() throws {
    let bench = try bench(outputs: ["stream", "events"])
    try ready(bench)
    stage.wire.arrives(.message(.stream("rtmp://host/live/key-of-the-stream")))
    stage.wire.arrives(.message(.stream(nil)))
    try turn(bench)
    #expect(bench.texts("stream") == ["rtmp://host/live/key-of-the-stream", ""])
    #expect(stage.secrets.redacting("at rtmp://host/live/key-of-the-stream").contains("key-of") == false)
    stage.wire.arrives(.message(.stream("rtmp://host/" + String(repeating: "a", count: 2_000))))
    try turn(bench)
    #expect(bench.events().last { $0.name == "error" }?.string("text")?.contains("2012 bytes") == true)
    try command(bench, #"{"event":"firstPicture","ms":12}"#)
    #expect(bench.events().contains { $0.string("name") == "firstPicture" })
  }

  @Test("a command overtakes a reply that is held back, and nothing of a cancelled one is sent")
  func overtakes() throws {
    stage.voice.isReply = true
    stage.voice.pace = Pacer(interval: .milliseconds(100))
    let bench = try bench()
    try ready(bench)
    for _ in 0..<5 { bench.push([Int16](repeating: 7, count: 1_600), to: "audio") }
    try command(bench, #"{"command":"say","text":"now"}"#)
    #expect(stage.wire.voice.count == 1)
    #expect(stage.wire.sent == [#"say("now")"#])
    bench.interrupt()
    try turn(bench)
    stage.clock.advance(by: .milliseconds(10_000))
    #expect(stage.wire.voice.count == 1)
  }

  @Test("a reply that drives the service waits while the network is slower, and nothing of it is lost")
  func pacedCongestion() throws {
    stage.voice.isReply = true
    stage.voice.pace = Pacer(interval: .milliseconds(100), burst: 5)
    let bench = try bench()
    try ready(bench)
    stage.wire.backlog = 1 << 20
    for index in 0..<5 { bench.push([Int16](repeating: Int16(index), count: 1_600), to: "audio") }
    try turn(bench)
    stage.clock.advance(by: .milliseconds(5_000))
    #expect(stage.wire.voice.isEmpty)
    stage.wire.backlog = 0
    stage.clock.advance(by: .milliseconds(1_000))
    #expect(stage.wire.voice.compactMap(\.bytes.first) == [0, 1, 2, 3, 4])
  }

  // MARK: Commands

  @Test("a command with an id is answered once: as carried out, refused, or when the service answers")
  func answers() throws {
    let bench = try bench()
    try ready(bench)
    try command(bench, #"{"command":"say","text":"a","id":"1"}"#)
    try command(bench, #"{"command":"setRole","role":"x","id":2}"#)
    try command(bench, #"{"command":"ask","text":"b","id":"3"}"#)
    #expect(answers(bench) == ["1 ok ", "2 no a parrot cannot do that"])
    stage.wire.arrives(.message(.answer("later")))
    stage.wire.arrives(.message(.answer("again")))
    try turn(bench)
    #expect(answers(bench) == [#"3 ok "later""#])
  }

  @Test("a refused command without an id is an error of the scope command")
  func refusal() throws {
    let bench = try bench()
    try ready(bench)
    try command(bench, #"{"command":"setRole","role":"x"}"#)
    let events = bench.events()
    #expect(!events.contains { $0.name == "answer" })
    let error = try #require(events.last { $0.name == "error" })
    #expect(error.string("scope") == "command" && error.string("text") == "a parrot cannot do that")
  }

  @Test("an id that still waits for its answer is refused for other commands, however many")
  func sameID() throws {
    let bench = try bench()
    try ready(bench)
    for text in ["a", "b", "c"] { try command(bench, #"{"command":"ask","text":"\#(text)","id":"7"}"#) }
    let refusal = "7 no the command before it with the same \"id\" is not answered yet; use another"
    #expect(answers(bench) == [refusal, refusal])
    #expect(stage.wire.sent == [#"ask("a")"#])
    stage.wire.arrives(.message(.answer("one")))
    try turn(bench)
    #expect(answers(bench) == [#"7 ok "one""#])
  }

  @Test("an invalid command with a valid id is answered; one without is an error")
  func invalid() throws {
    let bench = try bench()
    try ready(bench)
    try command(bench, #"{"command":"fly","id":"1"}"#)
    try command(bench, #"{"command":"say","text":3}"#)
    try command(bench, #"{"command":"say","text":"a","id":""}"#)
    try command(bench, #"{"command":"say""#)
    let events = bench.events()
    #expect(events.filter { $0.name == "answer" }.count == 1)
    let texts = events.filter { $0.name == "error" }.compactMap { $0.string("text") }
    #expect(texts.count == 3 && texts.allSatisfy { $0.hasPrefix("invalid command: ") }, "\(texts)")
    #expect(stage.wire.sent.isEmpty)
  }

  @Test("a program's command that finds no room is answered as failed, or reported where it has no id")
  func noRoom() throws {
    let bench = try bench()
    try ready(bench)
    _ = bench.events()
    // Longer than what is between the node and its connection, which has not run yet.
    try bench.send(#"{"command":"update","values":"\#(String(repeating: "A", count: 400_000))"}"#)
    try bench.send(#"{"command":"say","text":"a","id":"1"}"#)
    try bench.send(#"{"command":"say","text":"b"}"#)
    let events = bench.events()
    #expect(events.filter { $0.name == "answer" }.compactMap { $0.string("id") } == ["1"])
    #expect(events.filter { $0.name == "answer" }.compactMap { $0.bool("ok") } == [false])
    #expect(events.count { $0.name == "error" } == 1)
  }

  @Test("when the dialogue ends, what is not answered is answered no, before the end")
  func endAnswers() throws {
    let bench = try bench()
    try ready(bench)
    try command(bench, #"{"command":"ask","text":"a","id":"1"}"#)
    try command(bench, #"{"command":"hangUp","id":"2"}"#)
    try turn(bench)
    #expect(answers(bench) == ["2 ok ", "1 no the dialogue ended before the service answered"])
    #expect(bench.hasEnded)
  }

  @Test("a command that is taken while the end is on its way is answered before the node ends")
  func lateCommand() throws {
    let bench = try bench()
    try ready(bench)
    bench.push(text: #"{"command":"hangUp"}"#, to: "control")
    try run(bench)
    stage.clock.advance(by: 0)
    // The end is reported, and the node has not looked yet.
    bench.push(text: #"{"command":"say","text":"a","id":"late"}"#, to: "control")
    try turn(bench)
    #expect(answers(bench) == ["late no the dialogue has ended"])
    #expect(bench.hasEnded)
  }

  @Test("images go as the service takes them, and too large ones are refused")
  func images() throws {
    let bench = try bench()
    try ready(bench)
    bench.push(bytes: [UInt8](repeating: 1, count: 1_000), to: "image")
    try turn(bench)
    bench.push(bytes: [UInt8](repeating: 1, count: 1_001), to: "image")
    try turn(bench)
    #expect(stage.wire.sent == [#"say("picture")"#])
    #expect(
      bench.events().last { $0.name == "error" }?.string("text")
        == "image discarded: 1001 bytes exceed the limit of 1000")
  }

  // MARK: Replies

  @Test("a reply arrives whole, in samples, with its end")
  func reply() throws {
    let bench = try bench()
    try ready(bench)
    // Cut in the middle of a sample.
    for bytes in [[1, 0, 2], [0, 3, 0]] as [[UInt8]] { stage.wire.arrives(.audio(bytes)) }
    stage.wire.arrives(.message(.replyEnds))
    try turn(bench)
    let packets = bench.packets("audio")
    #expect(packets.flatMap(\.int16) == [1, 2, 3])
    #expect(packets.map(\.position) == [0, 1, 3])
    #expect(packets.last?.flags.contains(.endOfUtterance) == true)
  }

  @Test("a reply that the service cancels is cancelled in the graph, and the next one arrives")
  func serviceCancels() throws {
    let bench = try bench()
    try readyToReply(bench)
    bench.hold("audio")
    for _ in 0..<40 { stage.wire.arrives(.audio([UInt8](repeating: 1, count: 640))) }
    try turn(bench)
    stage.wire.arrives(.message(.cancel))
    stage.wire.arrives(.audio([9, 0]))
    try turn(bench)
    bench.release("audio")
    try turn(bench)
    #expect(bench.int16("audio") == [9])
  }

  @Test("what the graph cancels is not delivered any further, however much is on its way")
  func graphCancels() throws {
    let bench = try bench()
    try readyToReply(bench)
    bench.hold("audio")
    for _ in 0..<400 { stage.wire.arrives(.audio([UInt8](repeating: 1, count: 640))) }
    try turn(bench)
    bench.interrupt()
    bench.release("audio")
    try turn(bench)
    stage.wire.arrives(.audio([9, 0]))
    try turn(bench)
    #expect(bench.int16("audio") == [9])
    #expect(bench.events().contains { $0.name == "interrupted" })
  }

  @Test("reading pauses while too much waits for the graph, and resumes")
  func pauses() throws {
    let bench = try bench()
    try ready(bench)
    bench.hold("audio")
    for _ in 0..<20 { stage.wire.arrives(.audio([UInt8](repeating: 1, count: 1 << 20))) }
    try turn(bench)
    #expect(stage.wire.isPaused)
    bench.release("audio")
    for _ in 0..<10_000 where stage.wire.isPaused { try turn(bench) }
    #expect(!stage.wire.isPaused && stage.wire.pauses == 1)
  }

  @Test("a service that is not read for lack of room is not blamed for its silence, not even by a command")
  func excused() throws {
    let bench = try bench()
    func silences() -> Int { bench.events().count { $0.string("name") == "silent" } }
    try ready(bench)
    stage.wire.arrives(.message(.watch))
    bench.hold("audio")
    for _ in 0..<20 { stage.wire.arrives(.audio([UInt8](repeating: 1, count: 1 << 20))) }
    try turn(bench)
    stage.clock.advance(by: 2 * ParrotSession.silence)
    try command(bench, #"{"command":"say","text":"a","id":"1"}"#)
    #expect(stage.wire.isPaused && stage.wire.sent == [#"say("a")"#])
    #expect(silences() == 0)
    bench.release("audio")
    for _ in 0..<10_000 where stage.wire.isPaused { try turn(bench) }
    try #require(!stage.wire.isPaused)
    stage.clock.advance(by: 2 * ParrotSession.silence)
    try command(bench, #"{"command":"say","text":"b","id":"2"}"#)
    #expect(silences() == 1)
  }

  // MARK: The connection

  @Test("events of an earlier connection are not heard")
  func earlierConnection() throws {
    let bench = try bench()
    try ready(bench)
    let first = stage.wire
    first.arrives(
      .closed(DialogError(vendor: "parrot", category: .network, reaction: .reconnect, text: "lost")))
    try turn(bench)
    stage.clock.advance(by: ParrotSession.backoff)
    try turn(bench)
    #expect(stage.wires.count == 2)
    _ = bench.events()
    first.arrives(.message(.events(3)))
    first.arrives(.audio([1, 0]))
    try turn(bench)
    #expect(bench.events().isEmpty && bench.packets("audio").isEmpty)
  }

  @Test("a wire that takes no more messages is given up, and opened again")
  func stalled() throws {
    let bench = try bench()
    try ready(bench)
    let first = stage.wire
    first.isFull = true
    try command(bench, #"{"command":"say","text":"a"}"#)
    #expect(first.isCancelled)
    #expect(
      bench.events().last { $0.name == "error" }?.string("text") == "the network accepts no more data")
    stage.clock.advance(by: ParrotSession.backoff)
    #expect(stage.wires.count == 2)
  }

  @Test("heartbeats of an hour go at their times")
  func heartbeats() throws {
    let bench = try bench()
    try ready(bench)
    stage.clock.advance(by: .milliseconds(3_600_000))
    #expect(stage.wire.sent.count == 80)
  }

  @Test("everything that arrived before the end is delivered before it")
  func endIsLast() throws {
    let bench = try bench()
    try ready(bench)
    bench.hold("audio")
    stage.wire.arrives(.audio([UInt8](repeating: 1, count: 100_000)))
    stage.wire.arrives(.message(.events(50)))
    try turn(bench)
    try command(bench, #"{"command":"hangUp"}"#)
    #expect(!bench.hasEnded)
    bench.release("audio")
    for _ in 0..<100 where !bench.hasEnded { try turn(bench) }
    #expect(bench.hasEnded && bench.int16("audio").count == 50_000)
    #expect(bench.events().filter { $0.name == "extra" }.count == 50)
  }

  @Test("a node that is gone sends its last message and closes its wire")
  func lastMessage() throws {
    var bench: NodeBench? = try bench()
    try ready(#require(bench))
    bench = nil
    stage.clock.advance(by: 0)
    #expect(stage.wire.sent == ["bye"] && stage.wire.isClosed)
  }

  @Test("audio that is invalid is discarded and reported")
  func invalidAudio() throws {
    let bench = try bench()
    try ready(bench)
    stage.wire.arrives(.audio([]))
    try turn(bench)
    let error = bench.events().last { $0.name == "error" }
    #expect(error?.string("text") == "an empty message is no audio; it is discarded")
    #expect(error?.string("scope") == "connection")
  }
}
