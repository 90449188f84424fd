import MillraceBailian
import MillraceBailianDouble
import MillraceCore
import MillraceDialog
import MillraceTesting
import Synchronization
import Testing

@Suite("bailian.dialog", .serialized, .timeLimit(.minutes(20))) struct DialogNodeTests {
  private func scenario(_ change: (inout BailianScenario) -> Void = { _ in }) -> BailianScenario {
    var scenario = BailianScenario()
    scenario.speed = 100
    scenario.turns[0].hears = "what time is it"
    scenario.turns[0].says = "It is nine."
    scenario.turns[0].thinks = 10
    change(&scenario)
    return scenario
  }

  @Test("a spoken question is answered in sound and words, turn by turn, without a violation")
  func duplex() async throws {
    let talk = try await Talk(scenario())
    // What is said before there is a dialogue is kept.
    talk.speak()
    for turn in 1...2 {
      #expect(try talk.wait { talk.double.seen.turns == turn })
      if turn == 1 { talk.speak() }
    }
    #expect(try talk.wait { talk.states().count { $0 == "listening" } == 3 })
    try talk.end()
    #expect(talk.double.seen.violations == [])
    #expect(talk.bench.close() == [])
    #expect(
      talk.states() == [
        "connecting", "listening", "thinking", "responding", "listening", "thinking", "responding",
        "listening",
        "closed",
      ])
    let transcripts = talk.events.filter { $0.name == "transcript" }
    #expect(transcripts.compactMap { $0.string("text") }.last == "what time is it")
    #expect(talk.texts == ["It is nine.", "It is nine."])
    let heard = talk.packets.flatMap(\.bytes)
    #expect(heard == talk.double.seen.soundSent && heard.count > 24_000)
    #expect(talk.packets.count { $0.flags.contains(.endOfUtterance) } == 2)
    #expect(
      talk.double.seen.lines.filter { $0.hasPrefix("> ") && $0 != "> HeartBeat" } == [
        "> Start", "> LocalRespondingStarted", "> LocalRespondingEnded", "> LocalRespondingStarted",
        "> LocalRespondingEnded", "> Stop",
      ])
  }

  @Test(
    "sound on its way up asks nothing of the heap",
    .enabled(if: HeapScope.isCounting, "\(HeapScope.skipReason)"))
  func heap() async throws {
    let talk = try await Talk(scenario())
    #expect(try talk.wait { talk.states().last == "listening" })
    talk.hush(1)
    _ = try talk.bench.run()
    let before = talk.double.seen.framesHeard
    talk.bench.resetHeapRequests()
    for _ in 0..<5 {
      talk.hush(1)
      _ = try talk.bench.run()
    }
    #expect(talk.bench.heapRequests == 0)
    #expect(try talk.wait { talk.double.seen.framesHeard >= before + 50 })
    try talk.end()
  }

  @Test(
    "replies come in every form as they were sent",
    arguments: ["pcm", "mp3", "opus", "raw-opus", "raw-opus2"])
  func forms(form: String) async throws {
    let talk = try await Talk(scenario(), ["format": .string(form), "rate": 16_000])
    talk.speak()
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    try talk.end()
    #expect(talk.double.seen.violations == [])
    let heard = talk.packets.flatMap(\.bytes)
    // Packets have a header in front on the wire, which is none of them.
    let sent = talk.double.seen.soundSent
    #expect(heard == (form == "raw-opus" ? Array(sent.dropFirst(19)) : sent))
    #expect(heard.starts(with: form == "opus" ? Array("OggS".utf8) : []))
    #expect(talk.packets.last?.flags.contains(.endOfUtterance) == true)
  }

  @Test(
    "sound goes up as packets of Opus, or in pages of Ogg of the frame's length",
    arguments: ["raw-opus", "opus"])
  func opusUp(form: String) async throws {
    let talk = try await Talk(
      scenario(), ["opusUp": .string(form)],
      inputs: [
        "audio": OutputShape(
          .opus(rate: 16_000, channels: 1), packetDuration: .milliseconds(20), packetBytes: 1_275),
        "control": Talk.reports,
      ])
    for turn in 1...2 {
      talk.speakPackets()
      #expect(try talk.wait { talk.double.seen.turns == turn })
    }
    #expect(try talk.wait { talk.states().count { $0 == "listening" } == 3 })
    try talk.end()
    #expect(talk.double.seen.violations == [])
    let start = talk.double.seen.starts.first?["payload"]?["parameters"]?["upstream"]
    #expect(start?["audio_format"]?.string == form)
    // 200 packets of 20 ms: each by itself, or five to a page behind the stream's headers.
    #expect(talk.double.seen.framesHeard == (form == "opus" ? 1 + 40 : 200))
  }

  @Test("in push-to-talk each press has a stream of its own, and its last page goes before StopSpeech")
  func opusByHand() async throws {
    let talk = try await Talk(
      scenario(), ["opusUp": "opus", "mode": "pushToTalk"],
      inputs: [
        "audio": OutputShape(
          .opus(rate: 16_000, channels: 1), packetDuration: .milliseconds(20), packetBytes: 1_275),
        "control": Talk.reports,
      ])
    #expect(try talk.wait { talk.states().last == "listening" })
    for turn in 1...2 {
      talk.command(#"{"command":"startSpeech"}"#)
      #expect(try talk.wait { talk.double.seen.lines.count { $0 == "> SendSpeech" } == turn })
      talk.speakPackets()
      // 40 ms more, which fill no page.
      for _ in 0..<2 { talk.bench.push(bytes: [0x48, 7], to: "audio", duration: 320) }
      let whole = 22 * (turn - 1) + 21
      #expect(try talk.wait { talk.double.seen.framesHeard >= whole })
      #expect(try talk.wait { true })
      talk.command(#"{"command":"stopSpeech"}"#)
      #expect(try talk.wait { talk.double.seen.turns == turn })
      // The stream's headers, 20 whole pages, and the one that the release ends.
      #expect(talk.double.seen.framesHeard == whole + 1)
      #expect(try talk.wait { talk.states().last == "listening" })
    }
    try talk.end()
    #expect(talk.double.seen.violations == [])
  }

  @Test(
    "a reply that nobody takes holds up neither the microphone nor a command, and is whole when it is taken")
  func untakenReply() async throws {
    let talk = try await Talk(
      scenario {
        $0.turns[0].says = "One two three four five six seven eight nine ten eleven twelve."
        $0.speed = 1_000
      })
    talk.isHeard = false
    talk.bench.hold("audio")
    talk.bench.hold("text")
    talk.speak()
    #expect(try talk.wait { talk.has("replyEnded") })
    let before = talk.double.seen.framesHeard
    for _ in 0..<5 {
      talk.hush(1)
      #expect(try talk.wait { true })
    }
    talk.command(#"{"command":"update","values":{"client_info":{"status":{"a":1}}}}"#)
    #expect(try talk.wait { talk.double.seen.framesHeard >= before + 50 })
    #expect(try talk.wait { talk.double.seen.lines.contains("> UpdateInfo") })
    talk.bench.release("audio")
    talk.bench.release("text")
    #expect(try talk.wait { talk.packets.last?.flags.contains(.endOfUtterance) == true })
    #expect(talk.packets.flatMap(\.bytes) == talk.double.seen.soundSent)
    #expect(try talk.wait { talk.texts.count == 1 })
    #expect(talk.double.seen.violations == [])
    try talk.end()
  }

  @Test(
    "a question with a picture of the largest size goes to the service, from the port and from the program")
  func pictures() async throws {
    let talk = try await Talk(
      scenario(),
      inputs: [
        "audio": Talk.sound, "text": Talk.lines,
        "control": OutputShape(.event, packetDuration: nil, packetBytes: 262_144),
      ])
    #expect(try talk.wait { talk.states().last == "listening" })
    let picture = "/9j/" + String(repeating: "A", count: 179_996)
    let ask = #"{"command":"ask","text":"","images":[{"base64":"\#(picture)"}]}"#
    talk.command(ask)
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    #expect(try talk.wait { talk.states().count { $0 == "listening" } == 2 })
    try talk.bench.send(ask)
    #expect(try talk.wait { talk.double.seen.turns == 2 })
    #expect(talk.double.seen.violations == [])
    // One byte more is refused here, in words.
    talk.command(#"{"command":"ask","text":"","images":[{"base64":"\#(picture)A"}]}"#)
    #expect(try talk.wait { talk.has("error") })
    #expect(
      talk.events.last { $0.name == "error" }?.string("text")
        == "a question was not asked: its picture has 180001 bytes in Base64, and the service takes 180000")
    try talk.end()
  }

  @Test("a long answer comes in several texts, none of its characters lost or cut")
  func longAnswer() async throws {
    let words = String(repeating: "größer ", count: 400)
    let talk = try await Talk(
      scenario { $0.turns[0].says = words }, ["format": "none", "eventBytes": 1_024],
      outputs: ["text", "events"])
    talk.speak()
    #expect(try talk.wait { talk.texts.joined().count >= words.count - 1 })
    try talk.end()
    #expect(talk.texts.count == 4)
    #expect(talk.texts.joined() == words.dropLast())
  }

  @Test("no sound at all, when none is wanted")
  func textOnly() async throws {
    let talk = try await Talk(scenario(), ["format": "none"], outputs: ["text", "events"])
    talk.speak()
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    #expect(try talk.wait { talk.texts == ["It is nine."] })
    try talk.end()
    #expect(talk.double.seen.soundSent.isEmpty)
    #expect(talk.double.seen.violations == [])
  }

  @Test("by hand: pressed, released, answered; a press during a reply ends it")
  func pushToTalk() async throws {
    let talk = try await Talk(
      scenario { $0.turns[0].says = "One two three four five six seven." }, ["mode": "pushToTalk"])
    talk.isHeard = false
    #expect(try talk.wait { talk.states().last == "listening" })
    // Nobody pressed: nothing of it is sent.
    talk.speak()
    _ = try talk.bench.run()
    talk.command(#"{"command":"startSpeech"}"#)
    #expect(try talk.wait { talk.double.seen.lines.contains("> SendSpeech") })
    talk.speak()
    #expect(try talk.wait { talk.has("speechStarted") })
    talk.command(#"{"command":"stopSpeech"}"#)
    #expect(try talk.wait { talk.has("replyEnded") })
    talk.command(#"{"command":"startSpeech"}"#)
    #expect(
      try talk.wait {
        talk.has("interrupted") && talk.double.seen.lines.count { $0 == "> SendSpeech" } == 2
      })
    let lines = talk.double.seen.lines.filter { $0.hasPrefix(">") }
    #expect(lines == ["> Start", "> SendSpeech", "> StopSpeech", "> RequestToSpeak", "> SendSpeech"])
    #expect(talk.events.filter { $0.name == "interrupted" }.compactMap { $0.string("by") } == ["user"])
    #expect(talk.double.seen.violations == [])
    try talk.end()
  }

  @Test("tapped: heard until the service finds the end; before the tap it hears silence")
  func tapToTalk() async throws {
    let talk = try await Talk(scenario(), ["mode": "tapToTalk"])
    #expect(try talk.wait { talk.states().last == "listening" })
    talk.speak()
    #expect(try talk.wait { talk.double.seen.framesHeard >= 20 })
    #expect(!talk.has("speechStarted"))
    talk.command(#"{"command":"startSpeech"}"#)
    _ = try talk.bench.run()
    talk.speak()
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    try talk.end()
    #expect(talk.double.seen.violations == [])
  }

  @Test(
    "a voice over the reply ends it, in every order of events",
    arguments: BailianScenario.BargeIn.allCases)
  func bargeIn(order: BailianScenario.BargeIn) async throws {
    let talk = try await Talk(
      scenario {
        $0.bargeIn = order
        $0.turns[0].says = "One two three four five six seven eight nine ten eleven twelve."
      })
    talk.isHeard = false
    talk.speak()
    #expect(try talk.wait { talk.has("replyEnded") })
    talk.speak()
    #expect(try talk.wait { talk.has("interrupted") && talk.events.count { $0.name == "speechEnded" } == 2 })
    #expect(talk.events.count { $0.name == "interrupted" } == 1)
    #expect(!talk.double.seen.lines.contains("> LocalRespondingEnded"))
    #expect(talk.double.seen.violations == [])
    try talk.end()
  }

  @Test("a question in words, a word to say, and one with a picture")
  func asks() async throws {
    let talk = try await Talk(scenario())
    #expect(try talk.wait { talk.states().last == "listening" })
    talk.bench.push(text: "why", to: "text")
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    talk.command(#"{"command":"say","text":"Hello."}"#)
    #expect(try talk.wait { talk.double.seen.turns == 2 })
    talk.command(#"{"command":"ask","text":"","images":[{"base64":"/9j/4AAQ"}]}"#)
    #expect(try talk.wait { talk.texts == ["It is nine.", "Hello.", "I see a picture."] })
    try talk.end()
    #expect(talk.double.seen.violations == [])
  }

  @Test("a film: asked for at the start, pictures only when it was answered, too large ones refused")
  func film() async throws {
    let pictures = OutputShape(.jpeg, packetDuration: nil, packetBytes: 140_000)
    let talk = try await Talk(
      scenario(), ["video": true, "live": "start"],
      inputs: ["audio": Talk.sound, "control": Talk.reports, "image": pictures])
    let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0] + [UInt8](repeating: 7, count: 100)
    talk.isHeard = false
    talk.bench.push(bytes: jpeg, to: "image")
    #expect(try talk.wait { talk.has("replyEnded") })
    // Asked for, and the answer is not heard yet. What is told after the picture says that it was taken.
    talk.bench.push(bytes: jpeg, to: "image")
    _ = try talk.bench.run()
    talk.command(#"{"command":"update","values":{"client_info":{"status":{"a":1}}}}"#)
    #expect(try talk.wait { talk.double.seen.lines.contains("> UpdateInfo") })
    #expect(talk.double.seen.pictures == 0)
    talk.hear()
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    #expect(try talk.wait { talk.states().last == "listening" && talk.has("command") })
    #expect(talk.double.seen.pictures == 0)
    talk.bench.push(bytes: jpeg, to: "image")
    talk.bench.push(bytes: jpeg + [UInt8](repeating: 0, count: 135_000), to: "image")
    #expect(try talk.wait { talk.double.seen.pictures == 1 && talk.has("error") })
    let error = talk.events.first { $0.name == "error" }?.string("text")
    #expect(error == "a picture of 135104 bytes is more than 135000; it was not sent")
    try talk.end()
    #expect(talk.double.seen.violations == [])
    #expect(talk.double.seen.pictures == 1)
  }

  @Test(
    "a fault in the middle of a turn: told, and the dialogue goes on with its id",
    arguments: [
      (BailianScenario.Fault.Kind.drop, "network"), (.fail, "llm"), (.error, "llm"), (.malformed, "network"),
      (.unknown, ""), (.repeated, ""),
    ])
  func faults(kind: BailianScenario.Fault.Kind, category: String) async throws {
    var fault = BailianScenario.Fault(kind)
    fault.name = "InternalLLMError"
    let talk = try await Talk(
      scenario {
        $0.turns[0].fault = fault
        $0.turns.append(BailianScenario.Turn())
        $0.turns[1].says = "Again."
      })
    talk.speak()
    #expect(
      try talk.wait { talk.double.seen.begun == 1 && talk.states().count { $0 == "listening" } >= 2 })
    talk.speak()
    #expect(try talk.wait { talk.texts.last == "Again." && talk.states().last == "listening" })
    try talk.end()
    let seen = talk.double.seen
    #expect(seen.violations == [])
    let errors = talk.events.filter { $0.name == "error" }.compactMap { $0.string("category") }
    #expect(errors == (category.isEmpty ? [] : [category]))
    #expect(talk.has("unknown") == (kind == .unknown))
    let isNew = kind == .drop || kind == .fail
    #expect(seen.starts.count == (isNew ? 2 : 1))
    if isNew {
      let id = talk.events.first { $0.name == "conversationStarted" }?.string("id")
      #expect(seen.starts.last?["payload"]?["input"]?["dialog_id"]?.string == id)
      #expect(talk.states().contains("reconnecting"))
    }
  }

  @Test("a wrong key fails the node in words without the key; a service that is not there yet is waited for")
  func refusals() async throws {
    let wrong = try await Talk(scenario { $0.keys = ["sk-right"] })
    do {
      _ = try wrong.wait { wrong.bench.hasEnded }
      Issue.record("it did not fail")
    } catch {
      #expect(
        "\(error)"
          == "bailian: auth 401 refused: 127.0.0.1:\(wrong.double.port) does not open a WebSocket: it answers with status 401"
      )
    }
    #expect(wrong.bench.fault?.fault == NodeFault(.refused, code: 401))
    #expect(wrong.double.seen.visits == 1)
    wrong.double.stop()
    let late = try await Talk(scenario { $0.refusals = 3 })
    #expect(try late.wait { late.states().last == "listening" })
    #expect(late.double.seen.visits == 4)
    try late.end()
  }

  /// How a reply stands when it is interrupted: on its way, in so many small frames that some are always between service and
  /// node, or here.
  enum Pace { case slow, torrent, come }

  @Test(
    "an interruption of the graph lets nothing more of the reply through, and is told to the service as one, never as an end that was heard",
    arguments: [Pace.slow, .torrent, .come], [true, false])
  func foreignVoid(pace: Pace, isCommanded: Bool) async throws {
    let talk = try await Talk(
      scenario {
        $0.turns[0].says = "One two three four five six seven eight nine ten eleven twelve."
        $0.speed = pace == .slow ? 2 : pace == .torrent ? 20 : 100
        if pace == .torrent { $0.chunk = 64 }
        $0.checksPlayback = true
      })
    talk.isHeard = false
    talk.speak()
    #expect(
      try talk.wait {
        pace == .come ? talk.packets.last?.flags.contains(.endOfUtterance) == true : talk.packets.count > 10
      })
    talk.bench.interrupt()
    // Who voided it may say so behind it.
    if isCommanded { talk.command(#"{"command":"interrupt"}"#) }
    let before = talk.packets.count
    #expect(try talk.wait { talk.has("interrupted") && talk.states().last == "listening" })
    #expect(talk.packets.count == before)
    try talk.end()
    let lines = talk.double.seen.lines
    #expect(lines.count { $0 == "> RequestToSpeak" } == 1, "\(lines)")
    #expect(!lines.contains("> LocalRespondingEnded"), "\(lines)")
    #expect(talk.double.seen.violations == [])
  }

  @Test("the end of the microphone ends the dialogue, once the answer was heard")
  func linger() async throws {
    let talk = try await Talk(scenario(), ["linger": 300, "frame": 20])
    talk.bench.push((0..<16_000).map { Int16($0 % 2 == 0 ? 6_000 : -6_000) }, to: "audio")
    talk.bench.end("audio")
    #expect(try talk.wait { talk.bench.hasEnded })
    #expect(talk.double.seen.turns == 1 && talk.double.seen.lines.contains("> Stop"))
    #expect(talk.double.seen.violations == [])
    talk.double.stop()
  }

  @Test(
    "what cannot work is refused before anything starts",
    arguments: [
      (
        ["user": .string(String(repeating: "u", count: 37))],
        "the service would refuse it: \"client_info.user_id\" has more than 36 characters"
      ),
      (
        ["rate": 22_050],
        "the service would refuse it: \"downstream.sample_rate\" is none of 8000, 16000, 24000, 48000"
      ),
      (["url": "ws://example.org/"], "the key would go over the network in plain text"),
      (["url": "https://example.org/"], "a WebSocket's address begins with ws: or wss:"),
      (["bizParams": "{"], "no JSON at byte 1: a member has no name"),
      (["promptVariables": .list(["x"])], "an entry has no name before a \"=\""),
      (["proxy": "ftp://x"], "a proxy's address begins with http://"),
    ] as [([String: ParameterValue], String)])
  func refused(parameters: [String: ParameterValue], words: String) throws {
    var all: [String: ParameterValue] = ["key": "k", "workspace": "w", "app": "a", "user": "u"]
    all.merge(parameters) { _, new in new }
    let resolution = try NodeBench.resolve(BailianDialog.self, all)
    #expect(resolution.problems.map(\.text).contains(words), "\(resolution.problems.map(\.text))")
  }
}
