import CMillraceSys
import Millrace
import MillraceCore
import MillraceDoubles
internal import MillraceJSON
import Synchronization

/// The picture of an avatar, over an RTMP server on this machine: its start, and interruptions.
enum AvatarVideo {
  private static let sessions = 5
  private static let rounds = 10
  /// The level above which a sample is heard: far above what a codec makes of silence.
  private static let audible = 0.02
  /// Later than this after the request, nothing of an interrupted sentence may be heard.
  private static let allowed: Int64 = 100_000_000
  private static let scenario = #"""
    { "picture": true, "flash": true, "width": 320, "height": 568, "turns": [{ "thinks": 50,
      "says": "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen." }] }
    """#

  /// Lines of the double's report, with their time.
  private final class Watch: Sendable {
    private let all = Mutex<[(time: Int64, line: String)]>([])
    func add(_ line: String) { all.withLock { $0.append((millrace_monotonic_ns(), line)) } }
    func times(_ line: String) -> [Int64] { all.withLock { $0.filter { $0.line == line }.map(\.time) } }
    var count: Int { all.withLock { $0.count } }
  }

  /// An avatar that is running.
  private struct Scene {
    let run: GraphRun
    let notes: DialogueNotes
    let epoch: Int64

    func events(_ name: String) -> [DialogueNotes.Event] {
      notes.events.filter { $0.text.contains(#""event":"\#(name)""#) }
    }

    /// Waits for the n-th event with a name, and returns it.
    func wait(_ name: String, number: Int = 1) throws -> DialogueNotes.Event {
      let end = seconds() + 60
      while seconds() < end {
        let found = events(name)
        if found.count >= number { return found[number - 1] }
        if let failure = run.report().failure { throw MeasurementProblem("the avatar failed: \(failure)") }
        pause(0.002)
      }
      throw MeasurementProblem("the avatar had no event \"\(name)\" within a minute")
    }

    func time(of event: DialogueNotes.Event) -> Int64 { event.posted + epoch }
  }

  static func run(_ stage: DialogueStage) throws -> [Figure] {
    guard PictureServer.isInstalled else {
      return [
        Figure(
          "avatars", "picture",
          skipped: "there is no RTMP server; install the packages nginx and libnginx-mod-rtmp")
      ]
    }
    let watch = Watch()
    let double = try stage.double(scenario, watch: { watch.add($0) })
    defer { double.stop() }
    let engine = Engine(catalogue: stage.catalogue)
    var (pictures, starts): ([Double], [Double]) = ([], [])
    var figures: [Figure] = []
    for session in 1...sessions {
      let scene = try begin(stage, port: double.port, on: engine)
      let first = try scene.wait("firstPicture")
      try waitFor("the start of the session") { watch.times("> startsession").count == session }
      pictures.append(try JSONValue(parsing: first.text)["ms"]?.double ?? .nan)
      starts.append(Double(watch.times("> startsession")[session - 1] - scene.time(of: first)) / 1e6)
      if session == sessions { figures = try interruptions(scene, watch) }
      try DialogueStage.stop(scene.run)
    }
    return [
      Figure(
        "avatars", "picture: from its address to the first picture", unit: "ms", goal: "<= 1100",
        samples: pictures),
      Figure(
        "avatars", "picture: from the first picture to the start", unit: "ms", goal: "<= 20", samples: starts),
    ] + figures + [
      Figure(
        "avatars", "picture: violations", unit: "", goal: "0", samples: [Double(double.seen.violations.count)]
      )
    ]
  }

  private static func begin(_ stage: DialogueStage, port: Int, on engine: Engine) throws -> Scene {
    let notes = DialogueNotes()
    DialogueNotes.current.withLock { $0 = notes }
    let bot = stage.members(port: port, .avatar).map { stage.json($0, ["poll": 50]) }
    let graph = bot.map {
      """
      { "millrace": 1, "name": "avatar", "clock": "realtime",
        "nodes": {
          "bot": \($0),
          "turn": { "type": "dialog.turn", "mode": "pushToTalk" },
          "video": { "type": "rtmp.pull", "width": 320, "height": 568, "rate": 25, "replies": true,
            "replyEnds": ["TextOver", "AudioOver"] },
          "speaker": { "type": "audio.play", "latency": 20 },
          "ear": { "type": "bench.played", "above": \(audible) },
          "eye": { "type": "bench.seen" },
          "notes": { "type": "bench.notes" } },
        "links": ["bot.stream -> video.address", "video.audio -> speaker", "video -> eye",
          "speaker.reference -> ear", "bot.events -> turn.service", "video.events -> turn.stream",
          "speaker.events -> turn.playback", "turn.control -> bot.control", "video.events -> notes.in1",
          "speaker.events -> notes.in2"] }
      """
    }
    let run = try stage.start(graph, on: engine)
    return Scene(run: run, notes: notes, epoch: DialogueStage.epoch(of: run))
  }

  private static func waitFor(_ what: String, until condition: () -> Bool) throws {
    let end = seconds() + 60
    while !condition() {
      guard seconds() < end else { throw MeasurementProblem("there was no \(what) within a minute") }
      pause(0.002)
    }
  }

  /// Sentences that are interrupted in their middle.
  private static func interruptions(_ scene: Scene, _ watch: Watch) throws -> [Figure] {
    var (requests, silences, steps): ([Double], [Double], [Double]) = ([], [], [])
    var stale = 0
    let begun = millrace_monotonic_ns()
    for round in 1...rounds {
      let asked = millrace_monotonic_ns()
      try scene.run.send(#"{"command":"say","text":"words"}"#, to: "turn")
      _ = try scene.wait("replyAudible", number: round)
      pause(1)
      let time = millrace_monotonic_ns()
      try scene.run.send(#"{"command":"interrupt"}"#, to: "turn")
      try waitFor("request that ends a sentence") { watch.times("> interrupt").count == round }
      requests.append(Double(watch.times("> interrupt")[round - 1] - time) / 1e6)
      // What is late would be heard by now.
      pause(1.5)
      let sounds = scene.notes.sounds.filter { $0.first + scene.epoch > asked }
      let last = sounds.map { $0.last + scene.epoch }.max() ?? time
      silences.append(max(0, Double(last - time) / 1e6))
      stale += sounds.filter { $0.last + scene.epoch > time + allowed }.reduce(0) { $0 + $1.samples }
      if let step = step(scene, sounds, since: asked) { steps.append(step) }
    }
    // Not those before the first sentence: a stream may begin with a gap.
    let pictures = scene.notes.pictures.filter { $0.seen + scene.epoch > begun }.map(\.time)
    let gaps = zip(pictures, pictures.dropFirst()).map { Double($1 - $0) / 1e6 }.sorted()
    return [
      Figure(
        "avatars", "picture: from a click at the loudspeaker to its flash", unit: "ms", goal: "<= 40",
        samples: steps),
      Figure(
        "avatars", "interruption: the request on the wire", unit: "ms", goal: "<= 5", samples: requests),
      Figure(
        "avatars", "interruption: silence at the loudspeaker", unit: "ms", goal: "<= 100", samples: silences),
      Figure("avatars", "interruption: stale samples", unit: "", goal: "0", samples: [Double(stale)]),
      Figure(
        "avatars", "interruption: longest time between pictures", unit: "ms", goal: "<= 60",
        samples: [gaps.last ?? .nan]),
    ]
  }

  /// Between the flash and the click with which a sentence begins: when the picture is due, and when the sound is heard.
  private static func step(_ scene: Scene, _ sounds: [DialogueNotes.Sound], since asked: Int64) -> Double? {
    let flash = scene.notes.pictures.first { $0.isWhite && $0.seen + scene.epoch > asked }
    let click = sounds.map(\.first).min()
    guard let flash, let click else { return nil }
    return abs(Double(click - flash.seen) / 1e6)
  }
}
