import MillraceAudio
import MillraceCore
import MillraceDevices
import MillraceDialog
import MillraceDoubles
import MillraceEngine
import MillraceFlow
import MillraceGraph
import MillraceIVH
import MillraceIVHDouble
import MillraceJSON
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

/// An avatar with its picture, over a real RTMP server. Serialized: each test has a server and a graph on the real-time clock.
@Suite(
  "the picture of ivh.avatar", .serialized, .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"),
  .timeLimit(.minutes(30)))
struct PictureTests {
  /// A graph with the avatar's picture, loudspeaker and recording, beside its double.
  private final class Stage {
    let double: IVHDouble
    let folder = TemporaryFolder()
    private let run: GraphRun
    private(set) var seen: [GraphEvent] = []
    private let events: Locked<[GraphEvent]>

    init(_ generation: IVHGeneration, _ change: (inout IVHScenario) -> Void = { _ in }) async throws {
      var scenario = IVHScenario()
      scenario.keeps = true
      scenario.hasPicture = true
      scenario.flashes = true
      (scenario.width, scenario.height) = (160, 284)
      scenario.turns[0].thinks = 10
      scenario.turns[0].says = "One, two, three, four, five."
      change(&scenario)
      double = try await IVHDouble.listen(scenario)
      let avatar = generation == .session ? #""project":"p1","# : ""
      let text = """
        { "millrace": 1, "name": "stage", "clock": "realtime",
          "nodes": {
            "bot": { "type": "ivh.avatar", "url": "\(double.address)", "generation": "\(generation.rawValue)", \(avatar)
              "key": "appkey-of-the-double", "token": "token-of-the-double", "user": "u", "poll": 50, "first": 10, "most": 50,
              "picture": 600000, "open": 600000 },
            "turn": { "type": "dialog.turn", "mode": "pushToTalk" },
            "video": { "type": "rtmp.pull", "width": 160, "height": 284, "rate": 25, "replies": true, "first": 20, "most": 100,
              "replyEnds": ["TextOver", "AudioOver"] },
            "speaker": { "type": "audio.play", "device": "file", "path": "\(folder.file("heard.wav"))" },
            "movie": { "type": "video.record", "path": "\(folder.file("avatar.mp4"))" } },
          "links": ["bot.stream -> video.address", "video.audio -> speaker", "video -> movie", "video.audio -> movie.audio",
            "bot.events -> turn.service", "video.events -> turn.stream", "speaker.events -> turn.playback",
            "turn.control -> bot.control"] }
        """
      var catalogue = Catalogue.ivh
      for more in [Catalogue.dialog, .videoNodes, .devices, .audioNodes, .flow] {
        catalogue.add(contentsOf: more)
      }
      let plan = try Graph.load(text: text, name: "stage.json", catalogue: catalogue)
      run = try Engine(catalogue: catalogue, workers: 2).prepare(plan)
      let events = Locked<[GraphEvent]>([])
      self.events = events
      let stream = run.events
      Task.detached { for await event in stream { events.withLock { $0.append(event) } } }
      run.start()
    }

    func send(_ command: String) throws { try run.send(command, to: "turn") }

    /// Waits until a condition holds; false after five minutes, or when the run has ended.
    func wait(until condition: () -> Bool) async throws -> Bool {
      let end = ContinuousClock.now + .seconds(300)
      while true {
        seen = events.withLock { $0 }
        if condition() { return true }
        guard run.phase != .stopped, ContinuousClock.now < end else { return false }
        try await Task.sleep(for: .milliseconds(5))
      }
    }

    func count(_ node: String, _ name: String, _ text: String = "{") -> Int {
      seen.count { $0.node == node && $0.json.contains(#""event":"\#(name)""#) && $0.json.contains(text) }
    }

    func index(_ node: String, _ name: String) -> Int? {
      seen.firstIndex { $0.node == node && $0.json.contains(#""event":"\#(name)""#) }
    }

    /// Ends the session, and waits until everything has ended.
    func end() async throws -> RunReport {
      try send(#"{"command":"hangUp"}"#)
      let report = await run.wait()
      double.stop()
      return report
    }

    var words: String {
      (double.seen.lines + double.seen.violations.map { "! \($0)" } + seen.map(\.json)).joined(
        separator: "\n")
    }

    /// The recording.
    func recording() throws -> Recording { try Recording(folder.file("avatar.mp4")) }
  }

  /// What a recording shows and sounds, and when, in milliseconds.
  private struct Recording {
    /// When pictures turn white, and when a click begins.
    private(set) var flashes: [Double] = []
    private(set) var clicks: [Double] = []
    /// Times of all pictures.
    private(set) var pictures: [Double] = []

    init(_ path: String) throws {
      let bench = try NodeBench(
        VideoRead.self, ["path": .string(path), "pace": false], outputs: ["out", "audio"])
      var wasWhite = false
      var quiet = 4_800
      while !bench.hasEnded {
        try bench.run(calls: 50)
        for packet in bench.packets() {
          let isWhite = packet.bytes[0] > 230
          let time = Double(packet.timestamp) / 1e6
          pictures.append(time)
          if isWhite && !wasWhite { flashes.append(time) }
          wasWhite = isWhite
        }
        for packet in bench.packets("audio") {
          let start = Double(packet.timestamp) / 1e6
          let samples = packet.int16
          for (index, sample) in samples.enumerated() {
            quiet += 1
            guard abs(Int(sample)) > 6_000 else { continue }
            if quiet >= 4_800 { clicks.append(start + Double(index) / 48) }
            quiet = 0
          }
        }
      }
      #expect(bench.close() == [])
    }
  }

  @Test(
    "the session starts with the first picture, and what is said is seen and heard in step, at the loudspeaker and in the recording",
    arguments: IVHGeneration.allCases)
  func firstPicture(generation: IVHGeneration) async throws {
    let stage = try await Stage(generation)
    let isReady = try await stage.wait { stage.count("bot", "state", #""listening""#) == 1 }
    try #require(isReady, "\(stage.words)")
    for number in 1...2 {
      try stage.send(#"{"command":"say","text":"words","id":"\#(number)"}"#)
      let isSpoken = try await stage.wait { stage.count("bot", "state", #""listening""#) == number + 1 }
      try #require(isSpoken, "\(stage.words)")
    }
    let isHeard = try await stage.wait { stage.count("turn", "heard") == 2 }
    #expect(isHeard, "\(stage.words)")
    let report = try await stage.end()
    #expect(report.failure == nil, "\(stage.words)")
    #expect(stage.double.seen.violations == [], "\(stage.words)")
    let lines = stage.double.seen.lines
    #expect(lines.count { $0 == "> startsession" } == 1 && lines.count { $0 == "> closesession" } == 1)
    let picture = try #require(stage.index("video", "firstPicture"))
    let begun = try #require(stage.index("bot", "replyStarted"))
    #expect(picture < begun)
    #expect(
      stage.count("speaker", "replyFinished") == 2 && stage.count("turn", "heard") == 2, "\(stage.words)")
    for status in ["TextStart", "TextOver"] {
      #expect(stage.count("video", "sei", status) == 2, "\(stage.words)")
    }
    let recording = try stage.recording()
    #expect(recording.flashes.count == 2, "\(recording.flashes)")
    for flash in recording.flashes {
      // Sound is noticed to be early from 45 ms on, and to be late from 125 ms on (ITU-R BT.1359). How close it is depends on the load of the
      // machine: a benchmark measures it.
      let nearest = recording.clicks.map { $0 - flash }.min { abs($0) < abs($1) }
      #expect((-45...125).contains(nearest ?? 999), "\(recording.flashes) \(recording.clicks)")
    }
  }

  @Test(
    "an interrupted sentence falls silent, the picture continues, and the next sentence is heard whole",
    arguments: IVHGeneration.allCases)
  func interruption(generation: IVHGeneration) async throws {
    let stage = try await Stage(generation) { scenario in
      scenario.flashes = false
      scenario.turns[0].says = Array(repeating: "this is a long sentence", count: 20).joined(
        separator: " and ")
      scenario.turns.append(scenario.turns[0])
      scenario.turns[1].says = "Short."
    }
    let isReady = try await stage.wait { stage.count("bot", "state", #""listening""#) == 1 }
    try #require(isReady, "\(stage.words)")
    try stage.send(#"{"command":"say","text":"long","id":"long"}"#)
    let isHeard = try await stage.wait { stage.count("speaker", "replyAudible") == 1 }
    try #require(isHeard, "\(stage.words)")
    try stage.send(#"{"command":"interrupt","id":"stop"}"#)
    try stage.send(#"{"command":"say","text":"short","id":"short"}"#)
    let isSpoken = try await stage.wait { stage.count("turn", "heard", #""whole":true"#) == 1 }
    try #require(isSpoken, "\(stage.words)")
    _ = try await stage.end()
    #expect(stage.double.seen.violations == [], "\(stage.words)")
    #expect(stage.count("turn", "heard", #""whole":false"#) == 1, "\(stage.words)")
    // Nothing of the first sentence is taken for another.
    #expect(stage.count("speaker", "replyAudible") == 2, "\(stage.words)")
    let recording = try stage.recording()
    // 25 pictures a second, and none is missing.
    let gaps = zip(recording.pictures, recording.pictures.dropFirst()).map { $1 - $0 }
    #expect(gaps.allSatisfy { $0 < 60 }, "\(gaps.max() ?? 0)")
  }
}
