import Foundation
import Millrace
import MillraceBailianDouble
import MillraceDialog
import MillraceTesting
import Testing

/// The graphs people talk with, each in a whole dialogue with the service's double: a recorded voice is the microphone, a file the
/// loudspeaker.
@Suite("Graphs to talk with", .serialized, .timeLimit(.minutes(10))) struct TalkGraphTests {
  /// What a dialogue left.
  private struct Outcome {
    var seen: BailianDouble.Report
    var events: [[String: Any]]
    var heard: Sound

    func all(_ node: String, _ name: String) -> [[String: Any]] {
      events.filter { $0["node"] as? String == node && $0["event"] as? String == name }
    }
    /// The states of the turn, in order.
    var turns: [String] { all("turn", "turn").compactMap { $0["to"] as? String } }
    var loudSamples: Int { heard.samples.count { $0.magnitude > 600 } }
  }

  /// A recorded voice, silence behind it, so often.
  private func microphone(_ scratch: Scratch, times: Int = 1) throws -> String {
    let voice = try Sound(path: "/usr/share/sounds/alsa/Front_Center.wav")
    try #require(voice.rate == 48_000 && voice.channels == 1)
    let once = voice.samples + [Int16](repeating: 0, count: 2 * voice.rate)
    let all = Sound(rate: voice.rate, samples: (0..<times).flatMap { _ in once })
    return try scratch.write(all.wav, to: "microphone.wav")
  }

  private func scenario(_ texts: [String]) -> BailianScenario {
    var scenario = BailianScenario()
    scenario.checksPlayback = true
    scenario.turns = texts.map { text in
      var turn = BailianScenario.Turn()
      turn.hears = "front center"
      turn.says = text
      return turn
    }
    return scenario
  }

  /// Runs a graph to its end.
  /// - Parameter follow: is told of every event, and may send commands or end the run.
  private func talk(
    _ graph: String, _ scenario: BailianScenario, _ more: [String: String], in scratch: Scratch,
    follow: @escaping @Sendable (GraphRun, GraphEvent, BailianDouble) -> Void = { _, _, _ in }
  ) async throws -> Outcome {
    let double = try await BailianDouble.listen(scenario)
    defer { double.stop() }
    var values = [
      "microphone": "file", "rate": "48000", "loudspeaker": "file", "output": scratch.file("out.wav"),
      "log": scratch.file("log.jsonl"), "url": "ws://127.0.0.1:\(double.port)/api-ws/v1/inference",
      "linger": "5000",
    ]
    values.merge(more) { _, new in new }
    let plan = try Graph.load(
      path: Package.graph(graph), settings: GraphSettings(set: values), catalogue: .standard)
    let run = try Engine(catalogue: .standard).prepare(plan)
    let events = run.events
    let following = Task { for await event in events { follow(run, event, double) } }
    run.start()
    let report = try #require(
      run.waitUntilStopped(timeout: .milliseconds(120_000)), "it did not end: \(double.seen.lines)")
    await following.value
    #expect(report.failure == nil)
    #expect(report.leakedBlocks == 0)
    let lines = try String(decoding: scratch.bytes("log.jsonl"), as: UTF8.self).split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
    return Outcome(seen: double.seen, events: lines, heard: try Sound(path: scratch.file("out.wav")))
  }

  /// What every dialogue has to have had.
  private func expectWhole(_ outcome: Outcome, answers: Int = 1) {
    #expect(outcome.seen.violations == [], "\(outcome.seen.lines)")
    #expect(outcome.seen.turns >= answers, "\(outcome.seen.lines)")
    #expect(outcome.all("speaker", "replyFinished").count == outcome.seen.turns)
    #expect(outcome.all("turn", "heard").contains { $0["whole"] as? Bool == true })
    #expect(outcome.loudSamples > outcome.heard.rate / 4, "a quarter of a second of it is loud")
    #expect(outcome.turns.last == "closed", "\(outcome.turns)")
  }

  @Test("by voice alone: a sentence is heard, answered in sound and ended by silence")
  func voice() async throws {
    let scratch = Scratch()
    let outcome = try await talk(
      "bailian-voice", scenario(["It is a quarter past nine."]), ["input": microphone(scratch)], in: scratch)
    expectWhole(outcome)
    #expect(outcome.all("bot", "transcript").contains { $0["text"] as? String == "front center" })
    #expect(outcome.all("bot", "reply").contains { $0["text"] as? String == "It is a quarter past nine." })
    #expect(outcome.all("vad", "speechEnded").count >= 1)
    #expect(
      outcome.turns.starts(with: ["connecting", "listening", "hearing", "thinking", "responding"]),
      "\(outcome.turns)")
  }

  @Test("by push-to-talk: what is said between press and release is answered")
  func pushToTalk() async throws {
    let scratch = Scratch()
    let hand = Hand()
    let outcome = try await talk(
      "bailian-push-to-talk", scenario(["Understood."]), ["input": microphone(scratch, times: 30)],
      in: scratch
    ) { run, event, _ in
      switch (event.node, event.name) {
      case ("turn", "turn") where event.json.contains(#""to":"listening""#):
        if hand.first("press") { try? run.send(DialogCommand.startSpeech.json.text, to: "turn") }
      case ("vad", "speechStarted"): if hand.has("press") { _ = hand.first("voice") }
      case ("vad", "speechEnded"):
        if hand.has("voice") && hand.first("release") {
          try? run.send(DialogCommand.stopSpeech.json.text, to: "turn")
        }
      case ("turn", "heard"): run.drain()
      default: break
      }
    }
    expectWhole(outcome)
    let lines = outcome.seen.lines
    #expect(lines.contains("> SendSpeech") && lines.contains("> StopSpeech"), "\(lines)")
    #expect(outcome.turns.contains("hearing"))
  }

  @Test("by a tap: the service finds the end of the sentence")
  func tapToTalk() async throws {
    let scratch = Scratch()
    let hand = Hand()
    let outcome = try await talk(
      "bailian-tap-to-talk", scenario(["Understood."]), ["input": microphone(scratch, times: 30)], in: scratch
    ) { run, event, _ in
      switch (event.node, event.name) {
      case ("turn", "turn") where event.json.contains(#""to":"listening""#):
        if hand.first("tap") { try? run.send(DialogCommand.startSpeech.json.text, to: "turn") }
      case ("turn", "heard"): run.drain()
      default: break
      }
    }
    expectWhole(outcome)
    #expect(outcome.seen.lines.contains("< SpeechEnded"), "\(outcome.seen.lines)")
  }

  @Test("with a film: pictures go once the service is ready for them, and sound goes on")
  func liveVideo() async throws {
    let scratch = Scratch()
    let outcome = try await talk(
      "bailian-live-video", scenario(["I can see you."]),
      ["input": microphone(scratch, times: 30), "source": "test", "width": "320", "height": "240"],
      in: scratch
    ) { run, _, double in
      if double.seen.pictures >= 3 { run.drain() }
    }
    #expect(outcome.seen.violations == [], "\(outcome.seen.lines)")
    #expect(outcome.seen.pictures >= 3)
    #expect(outcome.seen.framesHeard > 0)
  }

  @Test("when the service asks to see something, it is shown the newest picture and answers about it")
  func visualQA() async throws {
    let scratch = Scratch()
    var asks = scenario(["Show it to me.", "unused"])
    asks.turns[0].commands = [["name": "visual_qa"]]
    let outcome = try await talk(
      "bailian-visual-qa", asks,
      ["input": microphone(scratch), "source": "test", "width": "320", "height": "240"], in: scratch)
    expectWhole(outcome, answers: 2)
    #expect(outcome.all("picture", "shown").count == 1)
    #expect(outcome.seen.lines.contains("> RequestToRespond"), "\(outcome.seen.lines)")
    #expect(outcome.all("bot", "reply").contains { $0["text"] as? String == "I see a picture." })
  }

  @Test("words are said as they stand")
  func speech() async throws {
    let scratch = Scratch()
    let double = try await BailianDouble.listen(scenario(["unused"]))
    defer { double.stop() }
    try runGraph(
      Package.graph("bailian-tts"),
      [
        "text": "Good morning, \"you\".", "loudspeaker": "file", "output": scratch.file("out.wav"),
        "log": scratch.file("log.jsonl"), "url": "ws://127.0.0.1:\(double.port)/api-ws/v1/inference",
        "linger": "10000",
      ], clock: .realtime)
    #expect(double.seen.violations == [], "\(double.seen.lines)")
    #expect(
      double.seen.lines.contains("> RequestToRespond") && double.seen.turns == 1, "\(double.seen.lines)")
    let heard = try Sound(path: scratch.file("out.wav"))
    #expect(heard.samples.count { $0.magnitude > 600 } > heard.rate / 4)
  }
}

/// What a hand has done, once each.
private final class Hand: Sendable {
  private let done = Locked<Set<String>>([])
  /// True the first time.
  func first(_ what: String) -> Bool { done.withLock { $0.insert(what).inserted } }
  func has(_ what: String) -> Bool { done.withLock { $0.contains(what) } }
}
