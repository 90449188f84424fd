import Foundation
import Millrace
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceJSON
import MillraceTesting
import MillraceTuyaDouble
import Testing

/// The graphs of Tuya's AI stream, each in a complete dialogue with the double over TLS. The microphone and the loudspeaker are files, and
/// commands replace the user's keys.
@Suite("Graphs of Tuya's AI stream", .serialized, .timeLimit(.minutes(30))) struct TuyaGraphTests {
  private let answer = "It is a quarter past nine."

  private func scenario(_ change: (inout TuyaScenario) -> Void = { _ in }) -> TuyaScenario {
    var scenario = TuyaScenario()
    scenario.keeps = true
    scenario.turns[0].hears = "what time is it"
    scenario.turns[0].says = answer
    change(&scenario)
    return scenario
  }

  /// A second of loud sound followed by seconds of silence, repeated: on a busy machine the first of it is over before the agent listens.
  private func microphone(
    _ scratch: Scratch, times: Int = 12, silence: Int = 9
  ) throws -> [String: String] {
    let rate = 16_000
    let once = Sound.made(rate: rate, frames: rate).samples + [Int16](repeating: 0, count: silence * rate)
    let all = Sound(rate: rate, samples: (0..<times).flatMap { _ in once })
    return ["microphone": "file", "input": try scratch.write(all.wav, to: "microphone.wav")]
  }

  @Test(
    "a voice is recognised and answered, in turns and in a live call",
    arguments: ["tuya-voice", "tuya-live-call"])
  func voice(graph: String) async throws {
    let scratch = Scratch()
    let talk = try await TuyaTalk(Package.graph(graph), scenario(), microphone(scratch), scratch)
    try await talk.until("an answer was heard") { $0.count("turn", "heard", #""whole":true"#) >= 1 }
    try await talk.end()
    #expect(talk.double.seen.violations == [], "\(talk.double.seen.lines)")
    #expect(talk.count("bot", "transcript", #""text":"what time is it","final":true"#) >= 1)
    #expect(try talk.replies().hasPrefix(answer))
  }

  @Test("push-to-talk: speech between press and release is answered")
  func pushToTalk() async throws {
    let scratch = Scratch()
    let talk = try await TuyaTalk(
      Package.graph("tuya-push-to-talk"), scenario(), microphone(scratch, times: 30, silence: 3), scratch)
    try await talk.until("the agent listens") { $0.count("turn", "turn", #""to":"listening""#) == 1 }
    #expect(talk.double.seen.bytesHeard == 0, "nobody pressed")
    try talk.send(.startSpeech)
    try await talk.until("a voice") { $0.double.seen.bytesHeard > 0 }
    try talk.send(.stopSpeech)
    try await talk.until("an answer was heard") { $0.count("turn", "heard") == 1 }
    try await talk.end()
    #expect(talk.double.seen.violations == [], "\(talk.double.seen.lines)")
  }

  @Test("the latest picture goes with a question")
  func multimodal() async throws {
    let scratch = Scratch()
    let values = ["microphone": "null", "source": "test", "width": "640", "height": "360"]
    let talk = try await TuyaTalk(Package.graph("tuya-multimodal"), scenario(), values, scratch)
    try await talk.until("the agent listens") { $0.count("turn", "turn", #""to":"listening""#) == 1 }
    var asked = 0
    // A picture goes with every question that follows one.
    while talk.double.seen.pictures == 0 && asked < 20 {
      asked += 1
      try talk.send(.ask("what is this?", images: []))
      let wanted = asked
      try await talk.until("an answer was heard") { $0.count("turn", "heard") == wanted }
    }
    try await talk.end()
    let seen = talk.double.seen
    #expect(seen.violations == [] && seen.pictures >= 1, "\(seen.lines)")
    #expect((1...60_000).contains(seen.largestPicture))
  }

  @Test("two agents hear one microphone over one connection")
  func sessions() async throws {
    let scratch = Scratch()
    let talk = try await TuyaTalk(
      Package.graph("tuya-sessions"), scenario(), microphone(scratch), scratch)
    try await talk.until("one has answered, and the other has understood") {
      $0.count("turn", "heard") >= 1 && $0.count("scribe", "transcript", #""final":true"#) >= 1
    }
    #expect(talk.double.seen.connections == 1)
    try await talk.end()
    #expect(talk.double.seen.violations == [], "\(talk.double.seen.lines)")
  }

  @Test(
    "a graph's defaults lead to \"millrace double tuya\"; only its certificate has to be named",
    arguments: [
      "tuya-voice", "tuya-push-to-talk", "tuya-live-call", "tuya-multimodal", "tuya-sessions",
    ])
  func defaults(graph: String) throws {
    let json = try JSONValue(parsing: Array(Data(contentsOf: URL(fileURLWithPath: Package.graph(graph)))))
    func value(_ name: String) -> String? { json["parameters"]?[name]?["default"]?.string }
    let members = TuyaMembers()
    #expect(value("url") == "tls://127.0.0.1:8770" && value("client") == members.client)
    #expect(value("localKey") == "${env:TUYA_LOCAL_KEY:-\(members.localKey)}")
    #expect(value("token") == "${env:TUYA_AGENT_TOKEN:-\(TuyaDouble.token)}")
  }

  /// The graph of another service, in which only the node of the service is another.
  @Test("in bailian-voice the service's node is replaced, and the same dialogue is held")
  func swapped() async throws {
    let scratch = Scratch()
    let source = try String(contentsOfFile: Package.graph("bailian-voice"), encoding: .utf8)
    let first = try #require(source.range(of: #""bot": {"#))
    let last = try #require(source.range(of: "},", range: first.upperBound..<source.endIndex))
    let double = try await TuyaDouble.listen(scenario())
    let roots = try #require(double.roots)
    let node = """
      "bot": {
            "type": "tuya.agent", "url": "\(double.address)", "roots": "\(roots)", "client": "\(double.client)",
            "localKey": "\(double.localKey)", "token": "\(double.agentToken)", "linger": "${linger}", "reply": "${format}"
          },
      """
    let swapped = source.replacingCharacters(in: first.lowerBound..<last.upperBound, with: node)
    let path = try scratch.write(swapped.utf8, to: "swapped.json")
    let talk = try TuyaTalk(path, double, ["url": "unused", "key": "unused"], microphone(scratch), scratch)
    try await talk.until("an answer was heard") { $0.count("turn", "heard", #""whole":true"#) >= 1 }
    try await talk.end()
    #expect(double.seen.violations == [], "\(double.seen.lines)")
    #expect(talk.count("bot", "transcript", #""text":"what time is it","final":true"#) >= 1)
    #expect(try talk.replies().hasPrefix(answer))
  }

  @Test(
    "millrace talk holds a dialogue with each graph and the double",
    arguments: [
      "tuya-voice", "tuya-push-to-talk", "tuya-live-call", "tuya-multimodal", "tuya-sessions",
    ])
  func talks(graph: String) throws {
    let scratch = Scratch()
    _ = try scratch.write("/wait listening\nwhat time is it\n/wait answer\nq\n".utf8, to: "lines")
    _ = try scratch.write(
      #"{ "turns": [{ "says": "It is a quarter past nine.", "thinks": 3000 }] }"#.utf8, to: "slow.json")
    let picture = graph == "tuya-multimodal" ? ["--set", "source=test"] : []
    let result = try RunnerProcess(
      [
        "talk", Package.graph(graph), "--double", "--set", "microphone=null", "--set", "loudspeaker=null",
        "--set", "engine=energy", "--script", "lines", "--scenario", "slow.json", "--transcript", "said.txt",
      ] + picture, in: scratch
    ).wait()
    #expect(result.status == 0, "\(result.errors)")
    let said = String(decoding: try scratch.bytes("said.txt"), as: UTF8.self)
    #expect(
      said.contains("you: what time is it") && said.contains("bot: It is a quarter past nine."), "\(said)")
    #expect(!result.errors.contains("double:"), "\(result.errors)")
  }
}

/// A running graph with the double, and the graph's events.
private final class TuyaTalk: Sendable {
  let double: TuyaDouble
  private let run: GraphRun
  private let events: RunEvents

  convenience init(
    _ path: String, _ scenario: TuyaScenario, _ values: [String: String], _ scratch: Scratch
  ) async throws {
    let double = try await TuyaDouble.listen(scenario)
    let access = [
      "url": double.address, "roots": double.roots ?? "", "client": double.client,
      "localKey": double.localKey, "token": double.agentToken,
    ]
    try self.init(path, double, access, values, scratch)
  }

  init(
    _ path: String, _ double: TuyaDouble, _ access: [String: String], _ values: [String: String],
    _ scratch: Scratch
  ) throws {
    self.double = double
    var all = [
      "loudspeaker": "file", "output": scratch.file("answered.wav"), "log": "/dev/null", "engine": "energy",
      // So that only the test ends the dialogue.
      "linger": "600000",
    ]
    all.merge(access) { $1 }
    all.merge(values) { $1 }
    let plan = try Graph.load(path: path, settings: GraphSettings(set: all), catalogue: .standard)
    run = try Engine(catalogue: .standard).prepare(plan)
    events = RunEvents(run)
    run.start()
  }

  deinit { double.stop() }

  /// The parts of the agent's replies, one behind the other.
  func replies() throws -> String {
    try events.all("bot", "reply").map { try JSONValue(parsing: $0.json)["text"]?.string ?? "" }.joined()
  }

  /// Counts the events of a node, optionally those that contain a text.
  func count(_ node: String, _ name: String, _ words: String = "") -> Int {
    events.count(node, name, words)
  }

  /// Sends a command to the turn node.
  func send(_ command: DialogCommand) throws { try run.send(command.json.text, to: "turn") }

  func until(_ what: String, _ condition: (TuyaTalk) -> Bool) async throws {
    try await events.until(what, { "\(double.seen.lines)" }) { condition(self) }
  }

  /// Ends the session and drains the graph.
  func end() async throws {
    try send(.hangUp())
    try await until("it is over") { $0.count("turn", "turn", #""to":"closed""#) == 1 }
    run.drain()
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(60_000)), "it did not end")
    #expect(report.failure == nil)
    #expect(report.leakedBlocks == 0)
    #expect(report.detachedNodes.isEmpty)
  }
}
