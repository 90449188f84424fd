import MillraceBailian
import MillraceBailianDouble
import MillraceConformance
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceTesting
import Testing

/// Turn-taking: push-to-talk, tap-to-talk, duplex, and after a fault.
extension DialogNodeTests {
  @Test("push-to-talk: press, release, answer; a press during a reply interrupts it")
  func pushToTalk() async throws {
    let talk = try await Talk(
      scenario { $0.turns[0].says = "One two three four five six seven." }, ["mode": "pushToTalk"])
    talk.playsReplies = false
    #expect(try talk.wait { talk.states().last == "listening" })
    // Without a press nothing is sent.
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
    let lines = talk.double.seen.lines.filter { $0.hasPrefix(">") && $0 != "> HeartBeat" }
    #expect(lines == ["> Start", "> SendSpeech", "> StopSpeech", "> RequestToSpeak", "> SendSpeech"])
    #expect(talk.events.filter { $0.name == "interrupted" }.compactMap { $0.string("by") } == ["user"])
    #expect(talk.double.seen.violations == [])
    try talk.end()
  }

  @Test("tap-to-talk: audio is sent until the service detects the end; before the tap silence is sent")
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
    "barge-in ends the reply, in every order of events",
    arguments: BailianBargeIn.allCases)
  func bargeIn(order: BailianBargeIn) async throws {
    let talk = try await Talk(
      scenario {
        $0.bargeIn = order
        $0.turns[0].says = "One two three four five six seven eight nine ten eleven twelve."
      })
    talk.playsReplies = false
    talk.speak()
    #expect(try talk.wait { talk.has("replyEnded") })
    talk.speak()
    #expect(try talk.wait { talk.has("interrupted") && talk.events.count { $0.name == "speechEnded" } == 2 })
    #expect(talk.events.count { $0.name == "interrupted" } == 1)
    #expect(!talk.double.seen.lines.contains("> LocalRespondingEnded"))
    #expect(talk.double.seen.violations == [])
    try talk.end()
  }

  @Test(
    "a fault during a turn is reported, and the dialogue continues with its id",
    arguments: [
      (ServiceFault.Kind.drop, "network"), (.fail, "llm"), (.error, "llm"), (.malformed, "network"),
      (.unknown, ""), (.repeated, ""),
    ])
  func faults(kind: ServiceFault.Kind, category: String) async throws {
    var fault = ServiceFault(kind)
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

  /// The reply when it is interrupted: arriving slowly; in so many small messages that some are always between service and node; or
  /// arrived.
  enum Pace { case slow, flood, complete }

  @Test(
    "after an interruption of the graph nothing more of the reply is emitted, and the service is informed of an interruption, not of an end",
    arguments: [Pace.slow, .flood, .complete], [true, false])
  func graphInterruption(pace: Pace, isCommanded: Bool) async throws {
    let talk = try await Talk(
      scenario {
        $0.turns[0].says = "One two three four five six seven eight nine ten eleven twelve."
        $0.speed = pace == .slow ? 2 : pace == .flood ? 20 : 100
        if pace == .flood { $0.chunk = 64 }
        $0.checksPlayback = true
      })
    talk.playsReplies = false
    talk.speak()
    #expect(
      try talk.wait {
        pace == .complete
          ? talk.packets.last?.flags.contains(.endOfUtterance) == true : talk.packets.count > 10
      })
    talk.bench.interrupt()
    // The node that interrupted may also send the command.
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
}
