import MillraceBailian
import MillraceBailianDouble
import MillraceCore
import MillraceDialog
import MillraceTesting
import Testing

/// Whose turn it is: by hand, by a tap, by a voice, and after a fault.
extension DialogNodeTests {
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
    let lines = talk.double.seen.lines.filter { $0.hasPrefix(">") && $0 != "> HeartBeat" }
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
}
