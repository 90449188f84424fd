import Foundation
import Millrace
import MillraceBailianDouble
import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceTesting
import Testing

/// The interactive graphs, each in a complete dialogue with the service's double. The microphone and the loudspeaker are files, and
/// commands replace the user's keys.
@Suite("Interactive graphs", .serialized, .timeLimit(.minutes(30))) struct TalkGraphTests {
  private let answer = "It is a quarter past nine."

  private func scenario(_ change: (inout BailianScenario) -> Void = { _ in }) -> BailianScenario {
    var scenario = BailianScenario()
    scenario.checksPlayback = true
    scenario.turns[0].hears = "what time is it"
    scenario.turns[0].says = answer
    change(&scenario)
    return scenario
  }

  /// A second of loud sound followed by three seconds of silence, repeated.
  private func microphone(_ scratch: Scratch, times: Int = 1) throws -> [String: String] {
    let rate = 16_000
    let once = Sound.made(rate: rate, frames: rate).samples + [Int16](repeating: 0, count: 3 * rate)
    let all = Sound(rate: rate, samples: (0..<times).flatMap { _ in once })
    return ["microphone": "file", "input": try scratch.write(all.wav, to: "microphone.wav")]
  }

  /// Checks what every dialogue with answers must contain.
  private func expectWhole(_ talk: GraphTalk, answers: Int = 1) throws {
    let seen = talk.double.seen
    #expect(seen.violations == [], "\(seen.lines)")
    #expect(seen.turns == answers, "\(seen.lines)")
    #expect(talk.count("turn", "heard", #""whole":true"#) == answers)
    let heard = try wholeSound(talk.scratch.file("answered.wav"))
    #expect(heard.rate == 48_000)
    let loud = heard.samples.count { $0.magnitude > 600 }
    #expect(loud > answers * heard.rate / 4, "\(loud) samples above silence")
  }

  /// Reads the file of a loudspeaker. A separate thread completes the file after the graph has ended, so this waits until the header has the
  /// length of the file.
  private func wholeSound(_ path: String) throws -> Sound {
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      let sound = try Sound(path: path)
      let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
      // Headers of some dozens of bytes precede the samples of 32 bits.
      if sound.frames > 0 && size - 4 * sound.frames < 256 { return sound }
      try #require(ContinuousClock.now < deadline, "\(sound.frames) frames announced in \(size) bytes")
      usleep(5_000)
    }
  }

  @Test("duplex: speech is recognised and answered as text and sound")
  func voice() async throws {
    let scratch = Scratch()
    let talk = try await GraphTalk("bailian-voice", scenario(), microphone(scratch), scratch)
    try await talk.until("an answer was heard") { $0.count("turn", "heard") == 1 }
    try await talk.end()
    try expectWhole(talk)
    #expect(talk.count("bot", "transcript", #""text":"what time is it","final":true"#) == 1)
    #expect(talk.count("bot", "reply", answer) >= 1)
  }

  @Test("push-to-talk: speech between press and release is answered")
  func pushToTalk() async throws {
    let scratch = Scratch()
    let talk = try await GraphTalk(
      "bailian-push-to-talk", scenario(), microphone(scratch, times: 30), scratch)
    try await talk.until("the service listens") { $0.count("turn", "turn", #""to":"listening""#) == 1 }
    #expect(talk.double.seen.bytesHeard == 0, "nobody pressed")
    try talk.send(.startSpeech)
    try await talk.until("a voice") { $0.count("bot", "speechStarted") == 1 }
    try talk.send(.stopSpeech)
    try await talk.until("an answer was heard") { $0.count("turn", "heard") == 1 }
    try await talk.end()
    try expectWhole(talk)
    let hand = talk.double.seen.lines.filter { ["> SendSpeech", "> StopSpeech"].contains($0) }
    #expect(hand == ["> SendSpeech", "> StopSpeech"])
    #expect(talk.count("bot", "transcript", #""text":"what time is it","final":true"#) == 1)
  }

  @Test("a reply that has arrived completely and is interrupted while it is heard is reported as interrupted")
  func interrupted() async throws {
    let scratch = Scratch()
    // Two minutes long, so that it is interrupted before it has been heard to its end.
    let long = scenario {
      $0.isNumbered = true
      $0.turns[0].says = Array(repeating: "word", count: 1_200).joined(separator: " ")
      $0.speed = 1_000
    }
    let talk = try await GraphTalk(
      "bailian-push-to-talk", long, ["microphone": "null", "format": "pcm"], scratch)
    try await talk.until("the service listens") { $0.count("turn", "turn", #""to":"listening""#) == 1 }
    try talk.send(.ask("count", images: []))
    try await talk.until("it is heard, and has come") {
      $0.count("speaker", "replyAudible") == 1 && $0.count("bot", "replyEnded") == 1
    }
    try talk.send(.interrupt())
    try await talk.until("the service listens again") {
      $0.count("turn", "turn", #""to":"listening""#) == 2
    }
    try await talk.end()
    let seen = talk.double.seen
    #expect(seen.violations == [], "\(seen.lines)")
    #expect(seen.lines.contains("> RequestToSpeak") && !seen.lines.contains("> LocalRespondingEnded"))
  }

  @Test("tap-to-talk: the service finds the end of the utterance")
  func tapToTalk() async throws {
    let scratch = Scratch()
    let talk = try await GraphTalk("bailian-tap-to-talk", scenario(), microphone(scratch, times: 30), scratch)
    try await talk.until("the service listens") { $0.count("turn", "turn", #""to":"listening""#) == 1 }
    try talk.send(.startSpeech)
    try await talk.until("an answer was heard") { $0.count("turn", "heard") == 1 }
    try await talk.end()
    try expectWhole(talk)
    #expect(talk.count("bot", "speechEnded") == 1)
    #expect(talk.count("bot", "transcript", #""text":"what time is it","final":true"#) == 1)
  }

  @Test(
    "live video: pictures of limited size are sent after the first reply was heard, and sound continues"
  )
  func liveVideo() async throws {
    let scratch = Scratch()
    let talk = try await GraphTalk(
      "bailian-live-video", scenario(),
      ["microphone": "null", "source": "test", "width": "640", "height": "360"], scratch)
    try await talk.until("pictures") { $0.double.seen.pictures >= 3 }
    let sounds = talk.double.seen.framesHeard
    try talk.send(.ask("what time is it", images: []))
    try await talk.until("an answer was heard") { $0.count("turn", "heard") == 2 }
    try await talk.end()
    try expectWhole(talk, answers: 2)
    let seen = talk.double.seen
    #expect(seen.framesHeard > sounds && sounds > 0)
    #expect((1...180_000).contains(seen.largestPicture))
    let first = try #require(seen.lines.firstIndex(of: "> UpdateInfo"))
    let connected = try #require(seen.lines.firstIndex(of: "> LocalRespondingEnded"))
    #expect(first > connected, "\(seen.lines)")
  }

  @Test("visual questions: on request, the newest picture is sent")
  func visualQA() async throws {
    let scratch = Scratch()
    let asks = scenario { $0.turns[0].commands = [["name": "visual_qa"]] }
    let values = ["microphone": "null", "source": "test", "width": "640", "height": "360"]
    let talk = try await GraphTalk("bailian-visual-qa", asks, values, scratch)
    try await talk.until("the service listens") { $0.count("turn", "turn", #""to":"listening""#) == 1 }
    try talk.send(.ask("what is in front of me?", images: []))
    try await talk.until("two answers were heard") { $0.count("turn", "heard") == 2 }
    try await talk.end()
    try expectWhole(talk, answers: 2)
    #expect(talk.count("picture", "shown") == 1)
    #expect(talk.count("bot", "reply", "I see a picture.") >= 1)
  }

  @Test("text-to-speech speaks a text unchanged")
  func speech() async throws {
    let scratch = Scratch()
    let words = "Good morning, all of you."
    let talk = try await GraphTalk("bailian-tts", scenario(), ["text": words], scratch)
    try await talk.until("it was heard") { $0.count("turn", "heard") == 1 }
    try await talk.end()
    try expectWhole(talk)
    #expect(talk.count("bot", "reply", words) >= 1)
  }
}

/// A running graph with the double, and the graph's events.
private final class GraphTalk: Sendable {
  let double: BailianDouble
  let scratch: Scratch
  private let run: GraphRun
  private let events: RunEvents

  init(
    _ graph: String, _ scenario: BailianScenario, _ values: [String: String], _ scratch: Scratch
  ) async throws {
    self.scratch = scratch
    double = try await BailianDouble.listen(scenario)
    var all = [
      "loudspeaker": "file", "output": scratch.file("answered.wav"),
      "log": "/dev/null", "url": "ws://127.0.0.1:\(double.port)/api-ws/v1/inference",
      // So that only the test ends the dialogue.
      "linger": "600000",
    ]
    // The voice detector that exists on every machine.
    if graph != "bailian-tts" { all["engine"] = "energy" }
    all.merge(values) { $1 }
    let plan = try Graph.load(
      path: Package.graph(graph), settings: GraphSettings(set: all), catalogue: .standard)
    run = try Engine(catalogue: .standard).prepare(plan)
    events = RunEvents(run)
    run.start()
  }

  deinit { double.stop() }

  /// Counts the events of a node, optionally those that contain a text.
  func count(_ node: String, _ name: String, _ words: String = "") -> Int {
    events.count(node, name, words)
  }

  /// Sends a command to the turn node.
  func send(_ command: DialogCommand) throws { try run.send(command.json.text, to: "turn") }

  func until(_ what: String, _ condition: (GraphTalk) -> Bool) async throws {
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
    try await until("the end is reported") { $0.count("", "stopped") == 1 }
  }
}
