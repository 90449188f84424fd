import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceTesting
import MillraceTuya
import MillraceTuyaDouble
import Testing

@Suite("tuya.agent", .serialized, .timeLimit(.minutes(30))) struct AgentTests {
  @Test(
    "over TLS a spoken question is answered with audio and text, turn by turn", arguments: ["long", "single"])
  func duplex(speech: String) async throws {
    let agent = try await Agent(Agent.scenario(), ["speech": .string(speech)])
    #expect(agent.double.address.hasPrefix("tls://"))
    // What is said before the session is there is kept.
    agent.speak()
    for turn in 1...2 {
      #expect(try agent.wait { agent.turns == turn + 1 })
      if turn == 1 { agent.speak() }
    }
    let texts = agent.named("transcript").compactMap { $0.string("text") }
    #expect(texts.last == "what time is it")
    #expect(agent.texts == ["It is nine.", "It is nine."])
    #expect(agent.has("speechStarted") && agent.has("speechEnded"))
    #expect(agent.has("connected") && agent.has("conversationStarted"))
    try agent.end()
    #expect(
      agent.states == [
        "connecting", "listening", "thinking", "responding", "listening", "thinking", "responding",
        "listening",
        "closed",
      ], "\(agent.words)")
    #expect(agent.heard == agent.double.seen.soundSent && !agent.heard.isEmpty)
    #expect(agent.packets.count { $0.flags.contains(.endOfUtterance) } == 2)
    #expect(agent.bench.close() == [])
  }

  @Test("in push-to-talk a turn is what is said between the press and the release")
  func pushToTalk() async throws {
    let agent = try await Agent(Agent.scenario(), ["mode": "pushToTalk"])
    #expect(try agent.wait { agent.isListening })
    for turn in 1...2 {
      agent.command(#"{"command":"startSpeech"}"#)
      let before = agent.double.seen.framesHeard
      agent.speak()
      #expect(try agent.wait { agent.double.seen.framesHeard >= before + 40 })
      agent.command(#"{"command":"stopSpeech"}"#)
      #expect(try agent.wait { agent.turns == turn + 1 })
    }
    #expect(agent.texts == ["It is nine.", "It is nine."])
    try agent.end()
  }

  @Test("in tap-to-talk the cloud hears the end, and no sound follows")
  func tapToTalk() async throws {
    let agent = try await Agent(Agent.scenario(), ["mode": "tapToTalk"])
    #expect(try agent.wait { agent.isListening })
    agent.command(#"{"command":"startSpeech"}"#)
    agent.speak()
    #expect(try agent.wait { agent.turns == 2 })
    #expect(agent.has("speechEnded"))
    agent.speak()
    try agent.end()
    #expect(agent.texts == ["It is nine."])
  }

  @Test("a question in text is answered, and its command too")
  func question() async throws {
    let agent = try await Agent()
    #expect(try agent.wait { agent.isListening })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.turns == 2 })
    #expect(agent.answer("ask")?.bool("ok") == true)
    agent.bench.push(text: "and now?", to: "text")
    #expect(try agent.wait { agent.turns == 3 })
    #expect(agent.texts == ["It is nine.", "It is nine."])
    try agent.end()
  }

  @Test("a dialogue whose packets come in the smallest fragments is the same")
  func fragments() async throws {
    let agent = try await Agent(Agent.scenario { $0.fragment = 1 })
    #expect(try agent.wait { agent.isListening })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.turns == 2 })
    #expect(agent.texts == ["It is nine."])
    try agent.end()
    #expect(agent.heard == agent.double.seen.soundSent && !agent.heard.isEmpty)
  }

  /// A long numbered reply in real time, then a short one.
  private static func counting() -> TuyaScenario {
    Agent.scenario {
      $0.isNumbered = true
      $0.speed = 1
      $0.turns[0].says = Array(repeating: "word", count: 200).joined(separator: " ")
      $0.turns.append(TuyaScenario.Turn())
      $0.turns[1].says = "Yes."
      $0.turns[1].thinks = 10
    }
  }

  @Test("a voice over a reply interrupts it: the cloud breaks it off, and the next question is answered")
  func bargeIn() async throws {
    let agent = try await Agent(
      Self.counting(), ["mode": "duplex", "speech": "long", "interrupt": true, "reply": "pcm"])
    agent.playsReplies = false
    agent.speak()
    #expect(try agent.wait { !agent.packets.isEmpty })
    agent.speak()
    #expect(try agent.wait { agent.has("interrupted") })
    let count = agent.packets.count
    agent.playsReplies = true
    #expect(try agent.wait { agent.texts.last == "Yes." && agent.isListening })
    #expect(agent.replies(from: count).count == 1 && agent.replies().count == 2, "\(agent.words)")
    try agent.end()
  }

  @Test("an interruption is silent at once, and breaks the event off at the cloud")
  func interrupts() async throws {
    let agent = try await Agent(Self.counting(), ["reply": "pcm"])
    agent.playsReplies = false
    #expect(try agent.wait { agent.isListening })
    agent.ask("count")
    #expect(try agent.wait { !agent.packets.isEmpty })
    agent.command(#"{"command":"interrupt","id":"stop"}"#)
    #expect(
      try agent.wait { agent.has("interrupted") && agent.isListening && agent.answer("stop") != nil })
    #expect(agent.named("interrupted").last?.string("by") == "user")
    #expect(agent.answer("stop")?.bool("ok") == true)
    let count = agent.packets.count
    agent.playsReplies = true
    agent.ask("again", id: "again")
    #expect(try agent.wait { agent.texts.last == "Yes." && agent.isListening })
    // Nothing of the first reply comes after the interruption.
    #expect(agent.replies(from: count).count == 1 && agent.replies().count == 2, "\(agent.words)")
    #expect(agent.double.seen.lines.contains("> chatBreak"))
    try agent.end()
  }

  @Test("a ChatBreak of the cloud cancels the reply, with its round")
  func brokenByCloud() async throws {
    let agent = try await Agent(
      Agent.scenario {
        $0.turns[0].says = (1...40).map { "\($0)" }.joined(separator: ", ")
        $0.turns[0].own.breaks = true
      })
    agent.playsReplies = false
    #expect(try agent.wait { agent.isListening })
    agent.ask("count")
    #expect(try agent.wait { agent.has("interrupted") })
    let event = agent.named("interrupted").last
    #expect(event?.string("by") == "service" && event?.string("round") != nil, "\(agent.words)")
    #expect(try agent.wait { agent.isListening })
    try agent.end()
  }

  @Test("what a reply has besides its words: reasons, images, emotions, skills, unknown documents")
  func extras() async throws {
    let agent = try await Agent(
      Agent.scenario {
        $0.turns[0].own.reasons = "It is morning."
        $0.turns[0].own.images = ["https://pictures.example/a.png"]
        $0.turns[0].own.emotions = ["\u{1F600}", "\u{1F914}"]
        $0.turns[0].own.skills = [["code": "DeviceControl", "general": ["action": "on"]]]
        $0.turns[0].own.texts = [["bizId": "x", "bizType": "CloudEvent", "eof": 1, "data": ["a": 1]]]
        $0.turns[0].own.isSplit = true
      })
    #expect(try agent.wait { agent.isListening })
    agent.ask("how are you")
    #expect(try agent.wait { agent.turns == 2 })
    #expect(agent.has("media") && agent.has("unknown"), "\(agent.words)")
    #expect(agent.named("command").contains { $0.string("name") == "DeviceControl" }, "\(agent.words)")
    let emotion = agent.named("emotion").last?.json ?? ""
    #expect(emotion.contains("HAPPY") && emotion.contains("THINKING"), "\(agent.words)")
    #expect(agent.named("extra").contains { $0.json.contains("It is morning.") })
    try agent.end()
  }

  @Test("the end of the microphone ends the dialogue after the answer was played")
  func linger() async throws {
    let agent = try await Agent(Agent.scenario(), ["linger": 3_000])
    agent.bench.push((0..<16_000).map { Int16($0 % 2 == 0 ? 6_000 : -6_000) }, to: "audio")
    agent.bench.end("audio")
    #expect(try agent.wait { agent.bench.hasEnded })
    #expect(agent.texts == ["It is nine."])
    #expect(agent.double.seen.violations == [])
    agent.double.stop()
  }

  @Test(
    "sending audio allocates nothing in the node",
    .enabled(if: HeapScope.isCounting, "\(HeapScope.skipReason)"))
  func heap() async throws {
    let agent = try await Agent()
    #expect(try agent.wait { agent.isListening })
    agent.hush(1)
    _ = try agent.bench.run()
    let before = agent.double.seen.framesHeard
    agent.bench.resetHeapRequests()
    for _ in 0..<5 {
      agent.hush(1)
      _ = try agent.bench.run()
    }
    #expect(agent.bench.heapRequests == 0)
    #expect(try agent.wait { agent.double.seen.framesHeard >= before + 100 })
    // Each was compared with the time it was due.
    #expect(try agent.wait { agent.double.seen.framesTimed >= before + 100 })
    try agent.end()
  }
}
