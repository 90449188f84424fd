import Foundation
import Millrace
import MillraceBailianDouble
import MillraceCore
import MillraceDialog
import MillraceTesting
import Testing

/// The graphs people talk with, each in a whole dialogue with the service's double: a file is the microphone, a file the loudspeaker,
/// and commands are the user's hand.
@Suite("Graphs to talk with", .serialized, .timeLimit(.minutes(30))) struct TalkGraphTests {
  private let answer = "It is a quarter past nine."

  private func scenario(_ change: (inout BailianScenario) -> Void = { _ in }) -> BailianScenario {
    var scenario = BailianScenario()
    scenario.checksPlayback = true
    scenario.turns[0].hears = "what time is it"
    scenario.turns[0].says = answer
    change(&scenario)
    return scenario
  }

  /// Something loud and as much quiet three times as long, so often.
  private func microphone(_ scratch: Scratch, times: Int = 1) throws -> [String: String] {
    let rate = 16_000
    let once = Sound.made(rate: rate, frames: rate).samples + [Int16](repeating: 0, count: 3 * rate)
    let all = Sound(rate: rate, samples: (0..<times).flatMap { _ in once })
    return ["microphone": "file", "input": try scratch.write(all.wav, to: "microphone.wav")]
  }

  /// What every dialogue with an answer has to have had.
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

  /// What a loudspeaker wrote. It ends on a thread of its own, behind the graph: its file is whole when the header tells of all of it.
  private func wholeSound(_ path: String) throws -> Sound {
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      let sound = try Sound(path: path)
      let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
      // Two headers of some dozens of bytes stand before the samples, 32 bits each.
      if sound.frames > 0 && size - 4 * sound.frames < 256 { return sound }
      try #require(ContinuousClock.now < deadline, "\(sound.frames) frames announced in \(size) bytes")
      usleep(5_000)
    }
  }

  @Test("by voice alone: what is said is heard, and answered in words and sound")
  func voice() async throws {
    let scratch = Scratch()
    let talk = try await GraphTalk("bailian-voice", scenario(), microphone(scratch), scratch)
    try await talk.until("an answer was heard") { $0.count("turn", "heard") == 1 }
    try await talk.end()
    try expectWhole(talk)
    #expect(talk.count("bot", "transcript", #""text":"what time is it","final":true"#) == 1)
    #expect(talk.count("bot", "reply", answer) >= 1)
  }

  @Test("by push-to-talk: what is said between press and release is answered")
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

  @Test("interrupted while it is heard and all of it has come, a reply is told as broken off")
  func interrupted() async throws {
    let scratch = Scratch()
    // Two minutes of it: it is not heard to its end before this has its turn.
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
    try talk.send(.interrupt)
    try await talk.until("the service listens again") {
      $0.count("turn", "turn", #""to":"listening""#) == 2
    }
    try await talk.end()
    let seen = talk.double.seen
    #expect(seen.violations == [], "\(seen.lines)")
    #expect(seen.lines.contains("> RequestToSpeak") && !seen.lines.contains("> LocalRespondingEnded"))
  }

  @Test("by a tap: the service finds the end of the sentence")
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
    "with a film: pictures go once the answer to the request for it was heard, small enough, and sound goes on"
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

  @Test("asked to show something, it shows the newest picture")
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

  @Test("words are said as they stand")
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

/// A graph that runs beside the double, and what it has told.
private final class GraphTalk: Sendable {
  let double: BailianDouble
  let scratch: Scratch
  private let run: GraphRun
  private let events = Locked<[GraphEvent]>([])

  init(
    _ graph: String, _ scenario: BailianScenario, _ values: [String: String], _ scratch: Scratch
  ) async throws {
    self.scratch = scratch
    double = try await BailianDouble.listen(scenario)
    var all = [
      "loudspeaker": "file", "output": scratch.file("answered.wav"),
      "log": "/dev/null", "url": "ws://127.0.0.1:\(double.port)/api-ws/v1/inference",
      // Ended by the test, and by nothing else.
      "linger": "600000",
    ]
    // Where somebody is heard: by the detector that is on every machine.
    if graph != "bailian-tts" { all["engine"] = "energy" }
    all.merge(values) { $1 }
    let plan = try Graph.load(
      path: Package.graph(graph), settings: GraphSettings(set: all), catalogue: .standard)
    run = try Engine(catalogue: .standard).prepare(plan)
    let (told, events) = (run.events, events)
    Task { for await event in told { events.withLock { $0.append(event) } } }
    run.start()
  }

  deinit { double.stop() }

  /// Events of a node, those whose text holds some words.
  func count(_ node: String, _ name: String, _ words: String = "") -> Int {
    events.withLock {
      $0.count { $0.node == node && $0.name == name && (words.isEmpty || $0.json.contains(words)) }
    }
  }

  /// What the user's hand does, told to whoever leads the dialogue.
  func send(_ command: DialogCommand) throws { try run.send(command.json.text, to: "turn") }

  func until(_ what: String, _ condition: (GraphTalk) -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(120)
    while !condition(self) {
      try #require(
        ContinuousClock.now < end,
        "never: \(what); \(double.seen.lines) \(events.withLock { $0.map { "\($0.node) \($0.json)" } })")
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Lets what is inside flow out.
  func end() async throws {
    try send(.hangUp)
    try await until("it is over") { $0.count("turn", "turn", #""to":"closed""#) == 1 }
    run.drain()
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(60_000)), "it did not end")
    #expect(report.failure == nil)
    #expect(report.leakedBlocks == 0)
    #expect(report.detachedNodes.isEmpty)
    try await until("the end is told") { $0.count("", "stopped") == 1 }
  }
}
