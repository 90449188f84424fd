import Millrace
import MillraceCore
import MillraceDoubles
import MillraceIVHDouble
import MillraceTesting
import Testing

/// Dialogues in graphs that drain: the sources have ended, and `dialog.turn` could still send commands.
@Suite("Dialogues in graphs that drain", .serialized, .timeLimit(.minutes(30)))
struct DrainingDialogueTests {
  /// A session without a picture, and commands that come from `dialog.turn`.
  private func graph(_ bot: String, turn: String = "") -> String {
    """
    { "millrace": 1, "clock": "realtime", "parameters": { "url": { "default": "" }, "text": { "default": "Hello." } }, "nodes": {
      "words": { "type": "process.pipe", "command": ["printf", "%s\\\\n", "${text}"], "mode": "lines" },
      "bot": {
        "type": "ivh.avatar", "url": "${url}", "key": "appkey-of-the-double", "token": "token-of-the-double", "user": "u",
        "project": "p", "start": "now", "text": "say"\(bot)
      },
      "turn": { "type": "dialog.turn", "mode": "pushToTalk"\(turn) }
    }, "links": ["words -> bot.text", "bot.events -> turn.service", "turn.control -> bot.control"] }
    """
  }

  @Test(
    "the rest of a sentence is played, and then the session ends",
    .enabled(if: PictureServer.isInstalled, "needs nginx-rtmp"))
  func sentence() async throws {
    var scenario = IVHScenario()
    scenario.hasPicture = true
    (scenario.width, scenario.height) = (160, 284)
    let dialogue = try await DrainingDialogue(
      path: Package.graph("ivh-text-avatar"), scenario,
      [
        "width": "160", "height": "284", "loudspeaker": "null", "movie": "", "log": "/dev/null",
        "listens": "600000", "key": "appkey-of-the-double", "token": "token-of-the-double",
        "text": "One two three four five six seven eight nine ten eleven twelve thirteen fourteen.",
      ])
    try await dialogue.until("it is heard") { $0.count("speaker", "replyAudible") == 1 }
    let report = try await dialogue.drain()
    #expect(report.failure == nil)
    #expect(dialogue.double.seen.turns == 1 && dialogue.double.seen.stops == 1, "\(dialogue.words)")
    #expect(dialogue.double.seen.violations == [])
    // All of it, as the double has spoken it: 32 bytes are a millisecond.
    let spoken = (dialogue.double.seen.replyBytes[1] ?? 0) / 32
    let heard = try #require(dialogue.milliseconds("turn", "heard"))
    #expect(spoken > 2_000 && abs(heard - spoken) < 500, "\(heard) of \(spoken) ms; \(dialogue.words)")
  }

  @Test("a node that waits for another session ends")
  func waiting() async throws {
    let dialogue = try await DrainingDialogue(graph(#", "afterEnd": "wait""#), IVHScenario())
    try await dialogue.until("it was said") { $0.count("bot", "replyEnded") == 1 }
    try dialogue.run.send(#"{"command":"hangUp"}"#, to: "turn")
    try await dialogue.until("the session has ended") { $0.count("bot", "state", #""closed""#) == 1 }
    #expect(try await dialogue.drain().failure == nil)
  }

  @Test("a session that would wait for commands ends")
  func listening() async throws {
    let dialogue = try await DrainingDialogue(graph(""), IVHScenario())
    try await dialogue.until("it was said") { $0.count("bot", "replyEnded") == 1 }
    #expect(try await dialogue.drain().failure == nil)
    #expect(dialogue.double.seen.stops == 1 && dialogue.double.seen.violations == [], "\(dialogue.words)")
  }

  @Test("a service that cannot be reached is not waited for, and the run fails with the reason")
  func unreachable() async throws {
    let dialogue = try await DrainingDialogue(graph(""), IVHScenario(), ["url": "http://127.0.0.1:1"])
    try await dialogue.until("it reconnects") { $0.count("bot", "state", "reconnecting") >= 1 }
    let failure = try #require(try await dialogue.drain().failure)
    #expect(failure.node == "bot" && failure.text.contains("connection refused by 127.0.0.1:1"), "\(failure)")
  }

  @Test("a session that is not ready when the turn times out fails the run, with the cure")
  func late() async throws {
    var scenario = IVHScenario()
    scenario.preparing = 600_000
    let dialogue = try await DrainingDialogue(graph("", turn: #", "connect": 300"#), scenario)
    let report = try #require(
      dialogue.run.waitUntilStopped(timeout: .milliseconds(60_000)), "\(dialogue.words)")
    let failure = try #require(report.failure)
    #expect(failure.node == "bot" && failure.text.contains(#"raise its "connect""#), "\(failure)")
    try await dialogue.until("the session is closed") { $0.double.seen.stops == 1 }
  }
}

/// A running graph with the double of IVH.
private final class DrainingDialogue: Sendable {
  let double: IVHDouble
  let run: GraphRun
  private let events: RunEvents

  convenience init(
    _ text: String, _ scenario: IVHScenario, _ values: [String: String] = [:]
  ) async throws {
    let scratch = Scratch()
    try await self.init(path: try scratch.write(text.utf8, to: "graph.json"), scenario, values)
  }

  init(path: String, _ scenario: IVHScenario, _ values: [String: String] = [:]) async throws {
    var scenario = scenario
    scenario.keeps = true
    double = try await IVHDouble.listen(scenario)
    let all = ["url": double.address].merging(values) { $1 }
    let plan = try Graph.load(path: path, settings: GraphSettings(set: all), catalogue: .standard)
    run = try Engine(catalogue: .standard).prepare(plan)
    events = RunEvents(run)
    run.start()
  }

  deinit { double.stop() }

  var words: String { "\(double.seen.lines) \(events.words)" }

  func count(_ node: String, _ name: String, _ words: String = "") -> Int {
    events.count(node, name, words)
  }

  /// The member `ms` of the latest event.
  func milliseconds(_ node: String, _ name: String) -> Int? {
    let rest = events.last(node, name)?.json.split(separator: #""ms":"#).last ?? ""
    return Int(rest.prefix { $0.isNumber })
  }

  func until(_ what: String, _ condition: (DrainingDialogue) -> Bool) async throws {
    try await events.until(what, { "\(double.seen.lines)" }) { condition(self) }
  }

  func drain() async throws -> RunReport {
    run.drain()
    let report = try #require(
      run.waitUntilStopped(timeout: .milliseconds(60_000)), "it did not end; \(words)")
    try await until("its last event has come") { $0.count("", "stopped") == 1 }
    return report
  }
}
