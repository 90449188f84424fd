import MillraceBailian
import MillraceBailianDouble
import MillraceConformance
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceTesting
import Testing

@Suite("bailian.dialog", .serialized, .timeLimit(.minutes(30))) struct DialogNodeTests {
  func scenario(_ change: (inout BailianScenario) -> Void = { _ in }) -> BailianScenario {
    var scenario = BailianScenario()
    scenario.speed = 100
    scenario.turns[0].hears = "what time is it"
    scenario.turns[0].says = "It is nine."
    scenario.turns[0].thinks = 10
    change(&scenario)
    return scenario
  }

  @Test("a spoken question is answered with audio and text, turn by turn, without a violation")
  func duplex() async throws {
    let talk = try await Talk(scenario())
    // What is said before the dialogue begins is kept.
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
    "sending audio allocates nothing",
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

  @Test("an invalid key fails the node with a message that does not contain it; a busy service is retried")
  func refusals() async throws {
    let wrong = try await Talk(scenario { $0.keys = ["sk-right"] })
    do {
      _ = try wrong.wait { wrong.bench.hasEnded }
      Issue.record("it did not fail")
    } catch {
      #expect(
        "\(error)"
          == "bailian: auth 401 refused: 127.0.0.1:\(wrong.double.port) refused the WebSocket handshake with status 401; check \"key\", which the example graphs take from DASHSCOPE_API_KEY, and \"workspace\""
      )
    }
    #expect(wrong.bench.fault?.fault == NodeFault(.refused, code: 401))
    #expect(wrong.double.seen.connections == 1)
    wrong.double.stop()
    let late = try await Talk(scenario { $0.refusals = 3 })
    #expect(try late.wait { late.states().last == "listening" })
    #expect(late.double.seen.connections == 4)
    try late.end()
  }

  @Test("the end of the microphone ends the dialogue after the answer was played")
  func linger() async throws {
    let talk = try await Talk(scenario(), ["linger": 5_000, "frame": 20])
    talk.bench.push((0..<16_000).map { Int16($0 % 2 == 0 ? 6_000 : -6_000) }, to: "audio")
    talk.bench.end("audio")
    #expect(try talk.wait { talk.bench.hasEnded })
    #expect(talk.double.seen.turns == 1 && talk.double.seen.lines.contains("> Stop"))
    #expect(talk.double.seen.violations == [])
    talk.double.stop()
  }

  @Test(
    "invalid parameters are refused before anything starts",
    arguments: [
      (
        ["user": .string(String(repeating: "u", count: 37))],
        "the service would refuse it: \"client_info.user_id\" has more than 36 characters"
      ),
      (
        ["rate": 22_050],
        "the service would refuse it: \"downstream.sample_rate\" must be one of 8000, 16000, 24000, 48000"
      ),
      (["url": "ws://example.org/"], "the key would go over the network in plain text"),
      (["url": "https://example.org/"], "a WebSocket address must begin with ws: or wss:"),
      (["bizParams": "{"], "\"bizParams\": invalid JSON at byte 1: expected a member name"),
      (["promptVariables": .list(["x"])], "an entry needs a name before \"=\""),
      (["proxy": "ftp://x"], "a proxy address begins with http://"),
    ] as [([String: ParameterValue], String)])
  func refused(parameters: [String: ParameterValue], message: String) throws {
    var all: [String: ParameterValue] = ["key": "k", "workspace": "w", "app": "a", "user": "u"]
    all.merge(parameters) { _, new in new }
    let resolution = try NodeBench.resolve(BailianDialog.self, all)
    #expect(resolution.problems.map(\.text).contains(message), "\(resolution.problems.map(\.text))")
  }
}
