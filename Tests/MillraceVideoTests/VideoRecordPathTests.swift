import Glibc
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

@testable import MillraceTesting
@testable import MillraceVideo

@Suite("video.record: paths set while the graph runs")
struct VideoRecordPathTests {
  private let folder = TemporaryFolder()

  /// Delivers a picture every 40 ms, each with the audio up to its time.
  private func push(_ bench: RecordBench, from start: Int = 0, to end: Int) throws {
    for time in stride(from: start, to: end, by: 40) {
      try bench.node.advance(to: .milliseconds(Int64(time)))
      bench.picture(time)
      if time > 0 { bench.sound(time - 40) }
      try bench.node.run()
    }
  }

  /// Delivers a picture every 40 ms, and audio 400 ms late.
  ///
  /// Each picture has to be taken before the next one comes: links of pictures keep only the newest.
  private func pushLate(_ bench: RecordBench, from start: Int = 0, to end: Int, isTaken: Bool = true) throws {
    for time in stride(from: start, to: end, by: 40) {
      try bench.node.advance(to: .milliseconds(Int64(time)))
      bench.picture(time)
      if time >= 400 { bench.sound(time - 400) }
      try bench.node.run()
      if isTaken { #expect(bench.waitingPictures == 0, "at \(time) ms") }
    }
  }

  private func set(_ bench: RecordBench, _ path: String, at time: Int? = nil) throws {
    if let time { try bench.node.advance(to: .milliseconds(Int64(time))) }
    try bench.node.set("path", .string(path))
    try bench.node.run()
  }

  private func completed(_ events: [BenchEvent]) -> [BenchEvent] { events.filter { $0.name == "completed" } }

  private func texts(_ events: [BenchEvent]) -> [String] {
    events.filter { $0.name == "error" }.compactMap { $0.string("text") }
  }

  @Test(
    "each file continues with the picture and the sample after the last ones of the file before",
    arguments: ["mp4", "mkv", "webm"])
  func continues(kind: String) throws {
    let paths = (0..<3).map { folder.file("part\($0).\(kind)") }
    let bench = try RecordBench(paths[0])
    // Neither at a picture nor at the edge of a packet.
    try push(bench, to: 1_040)
    try set(bench, paths[1], at: 1_010)
    try push(bench, from: 1_040, to: 2_040)
    try set(bench, paths[2], at: 2_025)
    try push(bench, from: 2_040, to: 3_200)
    bench.sound(3_160)
    let events = try bench.finish().filter { $0.name != "progress" }
    #expect(events.map(\.name) == ["began", "completed", "began", "completed", "began", "completed"])
    let completed = completed(events)
    #expect(completed.map { $0.string("path") } == paths)
    #expect(completed.map { $0.string("reason") } == ["replaced", "replaced", "ended"])
    // Everything that was delivered is in one of them: 80 pictures and 3.2 s of audio.
    #expect(completed.map { $0.number("pictures") } == [26, 25, 29])
    #expect(completed.map { $0.number("samples") } == [48_480, 48_720, 56_400])
    #expect(completed.map { $0.number("seconds") } == [1.01, 1.015, 1.175])
    #expect(completed.map { $0.number("bytes").map { Int($0) } } == paths.map { contents($0).count })
    let videos = try paths.map { try PlayedFilm($0) }
    #expect(videos.map(\.times.count) == [26, 25, 29])
    #expect(videos.map(\.flashes.count) == [1, 2, 1] && videos.map(\.clicks.count) == [1, 2, 1])
    for video in videos {
      #expect(video.events == [])
      #expect(video.offsets.allSatisfy { abs($0) < 3 }, "\(video.offsets)")
    }
  }

  @Test("pictures behind a change are recorded to the next file while the audio before it is waited for")
  func lateSound() throws {
    let paths = (0..<2).map { folder.file("part\($0).mkv") }
    let bench = try RecordBench(paths[0])
    try push(bench, to: 440)
    try set(bench, paths[1], at: 410)
    for time in stride(from: 440, to: 1_240, by: 40) {
      try bench.node.advance(to: .milliseconds(Int64(time)))
      bench.picture(time)
      try bench.node.run()
    }
    #expect(completed(bench.node.events()).isEmpty)
    bench.sound(400, 840)
    let completed = completed(try bench.finish())
    #expect(completed.map { $0.string("reason") } == ["replaced", "ended"])
    #expect(completed.map { $0.number("pictures") } == [11, 20])
    #expect(completed.map { $0.number("samples") } == [19_680, 39_840])
  }

  @Test("no picture is lost while the audio before two changes is waited for")
  func lateSoundOfTwo() throws {
    let paths = (0..<3).map { folder.file("part\($0).mkv") }
    let bench = try RecordBench(paths[0])
    try pushLate(bench, to: 840)
    try set(bench, paths[1], at: 810)
    try pushLate(bench, from: 840, to: 920)
    try set(bench, paths[2], at: 890)
    try pushLate(bench, from: 920, to: 1_600)
    bench.sound(1_200, 400)
    let events = try bench.finish().filter { $0.name != "progress" }
    #expect(events.map(\.name) == ["began", "completed", "began", "completed", "began", "completed"])
    let completed = completed(events)
    #expect(completed.map { $0.string("path") } == paths)
    #expect(completed.map { $0.string("reason") } == ["replaced", "replaced", "ended"])
    // 40 pictures, and audio of 810, 80 and 710 ms.
    #expect(completed.map { $0.number("pictures") } == [21, 2, 17])
    #expect(completed.map { $0.number("samples") } == [38_880, 3_840, 34_080])
    let videos = try paths.map { try PlayedFilm($0) }
    #expect(videos.map(\.times.count) == [21, 2, 17])
  }

  @Test(
    "no picture is lost behind an empty path, and nothing of the time without a file is late",
    arguments: [0, 80], [true, false])
  func lateSoundOfEmpty(pause: Int, isSame: Bool) throws {
    let first = folder.file("first.mkv")
    let second = isSame ? first : folder.file("second.mkv")
    let bench = try RecordBench(first)
    try pushLate(bench, to: 840)
    try set(bench, "", at: 810)
    // Nobody needs the pictures of the time without a file.
    try pushLate(bench, from: 840, to: 840 + pause, isTaken: false)
    try set(bench, second, at: 810 + pause)
    try pushLate(bench, from: 840 + pause, to: 1_600)
    bench.sound(1_200, 400)
    let events = try bench.finish().filter { $0.name != "progress" }
    #expect(events.map(\.name) == ["began", "completed", "began", "completed"])
    let completed = completed(events)
    #expect(completed.map { $0.string("path") } == [first, second])
    #expect(completed.map { $0.string("reason") } == ["stopped", "ended"])
    #expect(completed.map { $0.number("pictures") } == [21, Double(19 - pause / 40)])
    #expect(completed.map { $0.number("samples") } == [38_880, Double((790 - pause) * 48)])
    #expect(try PlayedFilm(second).times.count == 19 - pause / 40)
  }

  @Test("a path that is set again behind another one is recorded to again")
  func lateSoundOfSame() throws {
    let (first, second) = (folder.file("first.mkv"), folder.file("second.mkv"))
    let bench = try RecordBench(first)
    try pushLate(bench, to: 840)
    try set(bench, second, at: 810)
    try pushLate(bench, from: 840, to: 920)
    try set(bench, first, at: 890)
    try pushLate(bench, from: 920, to: 1_600)
    bench.sound(1_200, 400)
    let events = try bench.finish()
    #expect(texts(events) == [])
    let completed = completed(events)
    #expect(completed.map { $0.string("path") } == [first, second, first])
    #expect(completed.map { $0.number("pictures") } == [21, 2, 17])
    #expect(try PlayedFilm(first).times.count == 17)
  }

  @Test("a file that has its duration before a change is followed by the next, and nothing is late")
  func durationBeforeChange() throws {
    let paths = (0..<2).map { folder.file("part\($0).mkv") }
    let bench = try RecordBench(paths[0], ["duration": 600])
    try pushLate(bench, to: 720, isTaken: false)
    // The audio has got to 320 ms.
    try set(bench, paths[1], at: 700)
    try pushLate(bench, from: 720, to: 1_800, isTaken: false)
    // No change waits when the second file has its duration.
    #expect(bench.node.hasEnded)
    let events = bench.node.events()
    #expect(events.map(\.name) == ["began", "completed", "began", "completed"])
    let completed = completed(events)
    #expect(completed.map { $0.string("path") } == paths)
    #expect(completed.map { $0.string("reason") } == ["duration", "duration"])
    #expect(completed.map { $0.number("pictures") } == [15, 15])
    #expect(completed.map { $0.number("samples") } == [28_800, 28_800])
    #expect(bench.node.close() == [])
  }

  @Test("a node that lives on for a change of path alone ends when that path cannot be recorded to")
  func durationBeforeRefusal() throws {
    let (missing, second) = (folder.file("missing"), folder.file("second.mkv"))
    #expect(mkdir(missing, 0o755) == 0)
    let first = missing + "/first.mkv"
    let bench = try RecordBench(first, ["duration": 200])
    try pushLate(bench, to: 240, isTaken: false)
    // The second file has its duration before it is to be replaced by the first, which is still recorded to.
    try set(bench, second, at: 210)
    try pushLate(bench, from: 240, to: 480, isTaken: false)
    try set(bench, first, at: 450)
    #expect(unlink(first) == 0 && rmdir(missing) == 0)
    try pushLate(bench, from: 480, to: 1_200, isTaken: false)
    #expect(bench.node.hasEnded)
    let events = bench.node.events()
    #expect(events.map(\.name) == ["began", "completed", "began", "completed", "error"])
    #expect(completed(events).map { $0.string("reason") } == ["duration", "duration"])
    #expect(events.last?.string("path") == first)
    #expect(bench.node.close() == [])
  }

  @Test(
    "stop and cancel concern the path that was set last, however many wait", arguments: ["stop", "cancel"])
  func endingOfMany(end: String) throws {
    // More than have encoders at once.
    let paths = (0..<7).map { folder.file("part\($0).mkv") }
    let bench = try RecordBench(paths[0])
    try pushLate(bench, to: 840)
    for path in paths.dropFirst() { try bench.node.set("path", .string(path)) }
    try bench.node.set(end, true)
    try bench.node.run()
    #expect(bench.node.hasEnded)
    let events = bench.node.events()
    let last = end == "stop" ? "completed" : "cancelled"
    let pairs = (1..<7).flatMap { _ in ["completed", "began"] }
    #expect(events.map(\.name) == ["began"] + pairs + [last])
    #expect(completed(events).compactMap { $0.number("pictures") }.reduce(0, +) == 21)
    #expect(folder.names == (end == "stop" ? 0..<7 : 0..<6).map { "part\($0).mkv" })
    #expect(bench.node.close() == [])
  }

  @Test("without a path nothing is recorded until one is set", arguments: ["mp4", "mkv"])
  func atWill(kind: String) throws {
    let (first, second) = (folder.file("first.\(kind)"), folder.file("second.\(kind)"))
    let bench = try RecordBench("")
    try push(bench, to: 400)
    #expect(folder.names == [] && bench.node.events().isEmpty)
    try set(bench, first)
    try push(bench, from: 400, to: 800)
    try set(bench, "")
    try push(bench, from: 800, to: 1_200)
    #expect(try PlayedFilm(first).times.count == 10)
    try set(bench, second)
    try push(bench, from: 1_200, to: 1_600)
    #expect(!bench.node.hasEnded)
    let completed = completed(try bench.finish())
    #expect(completed.map { $0.string("reason") } == ["stopped", "ended"])
    #expect(completed.map { $0.string("path") } == [first, second])
    // The changes were at 360, 760 and 1,160 ms, where pictures had just arrived.
    #expect(completed.map { $0.number("pictures") } == [10, 10])
    #expect(completed.map { $0.number("samples") } == [19_200, 19_200])
    #expect(try PlayedFilm(second).times.count == 10)
  }

  @Test("the same file begins again after an empty path, and nothing is lost in between")
  func again() throws {
    let path = folder.file("video.mkv")
    let bench = try RecordBench(path)
    try push(bench, to: 800)
    try bench.node.set("path", "")
    try bench.node.set("path", .string(path))
    try push(bench, from: 800, to: 1_200)
    let completed = completed(try bench.finish())
    #expect(completed.map { $0.string("reason") } == ["stopped", "ended"])
    #expect(completed.map { $0.number("pictures") } == [20, 10])
    #expect(completed.map { $0.number("samples") } == [36_480, 19_200])
    #expect(try PlayedFilm(path).times.count == 10)
  }

  @Test("a path that cannot be recorded to is an event with the cure, and the recording continues")
  func refused() throws {
    let path = folder.file("kept.mkv")
    let bench = try RecordBench(path, ["video": "h264"])
    // Its header cannot be written.
    #expect(symlink("/dev/full", folder.file("full.mkv")) == 0)
    mkfifo(folder.file("pipe.mkv"), 0o600)
    let names = ["gone/a.mkv", "a.avi", "a.webm", "pipe.mkv", "kept.mkv", "full.mkv"]
    for (number, name) in names.enumerated() {
      try push(bench, from: 200 * number, to: 200 * number + 200)
      try set(bench, folder.file(name))
    }
    try push(bench, from: 1_200, to: 1_600)
    let events = bench.node.events()
    let texts = texts(events)
    #expect(texts.count == 6 && completed(events).isEmpty, "\(texts)")
    let parts = [
      "the directory \"\(folder.path)/gone\" does not exist; create it: ",
      "a.avi\" has no known video extension; use .mp4, .mkv or .webm, or set \"format\"",
      "WebM does not support H.264; record as mkv", "is a pipe, but a recording is completed by",
      "kept.mkv\" is being recorded already; to begin it again", "full.mkv",
    ]
    for (text, part) in zip(texts, parts) { #expect(text.contains(part)) }
    // Recording can begin again.
    try set(bench, folder.file("next.mkv"))
    try push(bench, from: 1_600, to: 2_000)
    let completed = completed(try bench.finish())
    #expect(completed.map { $0.number("pictures") } == [40, 10])
    #expect(try PlayedFilm(path).times.count == 40)
    #expect(try PlayedFilm(folder.file("next.mkv")).times.count == 10)
  }

  @Test("inputs that have stopped do not keep a file open for longer than the patience")
  func stalled() throws {
    let paths = (0..<2).map { folder.file("part\($0).mkv") }
    let bench = try RecordBench(paths[0], ["patience": 100])
    try push(bench, to: 440)
    try set(bench, paths[1], at: 430)
    try bench.node.advance(to: .milliseconds(529))
    #expect(completed(bench.node.events()).isEmpty)
    try bench.node.advance(to: .milliseconds(530))
    #expect(bench.node.events().map(\.name) == ["completed", "began"])
    try push(bench, from: 600, to: 1_000)
    let completed = completed(try bench.finish())
    #expect(completed.map { $0.number("pictures") } == [10])
    #expect(try PlayedFilm(paths[0]).times.count == 11)
  }

  @Test("stop, cancel and duration end a file, not a node that began without one")
  func staysReady() throws {
    let names = ["stopped.mkv", "cancelled.mkv", "timed.mkv"].map { folder.file($0) }
    let bench = try RecordBench("", ["duration": 200])
    for (number, end) in ["stop", "cancel", ""].enumerated() {
      let start = 800 * number
      try push(bench, from: start, to: start + 40)
      try set(bench, names[number])
      try push(bench, from: start + 40, to: start + 160)
      if !end.isEmpty {
        try bench.node.set(end, true)
        try bench.node.run()
      }
      try push(bench, from: start + 160, to: start + 800)
    }
    #expect(!bench.node.hasEnded)
    let events = try bench.finish()
    #expect(
      events.map(\.name) == ["began", "completed", "began", "cancelled", "began", "completed"])
    #expect(completed(events).map { $0.string("reason") } == ["stopped", "duration"])
    #expect(folder.names == ["stopped.mkv", "timed.mkv"])
    #expect(try PlayedFilm(names[2]).times.count == 4)
  }

  @Test("a node that started with a file ends with the one that was set while it ran")
  func endsWithFile() throws {
    let paths = (0..<2).map { folder.file("part\($0).mkv") }
    let bench = try RecordBench(paths[0])
    try push(bench, to: 400)
    try set(bench, paths[1])
    // The change is complete, or is completed by `stop`.
    try bench.node.set("stop", true)
    try bench.node.run()
    #expect(bench.node.hasEnded)
    let completed = completed(bench.node.events())
    #expect(completed.map { $0.string("reason") } == ["replaced", "stopped"])
    #expect(completed.map { $0.number("pictures") } == [10, 0])
    #expect(bench.node.close() == [])
  }

  @Test("a recreated node reports that the last path cannot be recorded to, and waits for the next one")
  func recreatedWithoutFile() throws {
    let (held, path) = (folder.file("held.mkv"), folder.file("video.mkv"))
    let other = try RecordBench(held)
    let bench = try RecordBench(
      node: NodeBench(Recreated.self, ["path": .string(held)], inputs: RecordBench.inputs))
    try push(bench, to: 400)
    let texts = texts(bench.node.events())
    #expect(texts.count == 1)
    #expect(texts.first?.contains("is being read or written by another node or program") == true, "\(texts)")
    #expect(!bench.node.hasEnded)
    try set(bench, path)
    try push(bench, from: 400, to: 800)
    let events = try bench.finish()
    #expect(self.texts(events) == [] && other.node.close() == [])
    #expect(completed(events).map { $0.number("pictures") } == [10])
    #expect(try PlayedFilm(path).times.count == 10)
  }

  @Test(
    "a recreated node ends with its file if the graph started with one, whichever that was",
    arguments: [true, false])
  func recreatedWithFile(hadFile: Bool) throws {
    let path = folder.file("video.mkv")
    put(Array("what was recorded before the fault".utf8), at: path)
    let bench = try RecordBench(
      node: NodeBench(
        Recreated.self, ["path": .string(path), "duration": 200, "stop": .bool(hadFile)],
        inputs: RecordBench.inputs))
    try push(bench, to: 400)
    #expect(bench.node.hasEnded == hadFile)
    if !hadFile { try bench.node.finish() }
    let events = bench.node.events()
    #expect(completed(events).map { $0.string("reason") } == ["duration"])
    #expect(bench.node.close() == [])
    #expect(try PlayedFilm(path).times.count == 5)
  }

  @Test("a timeline that continues another loses no frame, whatever the jitter of times", arguments: [-7, 7])
  func jitter(milliseconds: Int64) {
    var first = SoundTimeline(rate: 48_000)
    #expect(first.place(frames: 480, position: 0, time: 0, isNew: false).count == 480)
    first.note(480)
    let time = Nanoseconds.milliseconds(10 + milliseconds)
    #expect(first.place(frames: 480, position: 480, time: time, isNew: false).count == 480)
    first.note(240)
    var next = first.continued(at: .milliseconds(15), countsEarlier: true)
    let rest = next.place(frames: 240, position: 720, time: time + .milliseconds(5), isNew: false)
    #expect(rest == SoundTimeline.Place(silence: 0, cut: 0, count: 240))
    #expect(next.start == .milliseconds(15))
    next.note(240)
    let following = next.place(frames: 480, position: 960, time: .milliseconds(20), isNew: false)
    #expect(following == SoundTimeline.Place(silence: 0, cut: 0, count: 480))
  }
}

/// `video.record` that is recreated with another path than the graph started with: an empty one, or that of a file if `stop` is set.
private struct Recreated: ~Copyable, Node {
  static var contract: NodeContract { VideoRecord.contract }
  private var node: VideoRecord

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    var setup = copy setup
    setup.initial["path"] = .string(setup.parameters.bool("stop") ? "first.mkv" : "")
    node = try VideoRecord(setup)
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.process(&ports) }
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.finish(&ports) }
  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    try node.receive(message, &ports)
  }
}

extension RecordBench {
  /// Pictures that were delivered and not taken.
  fileprivate var waitingPictures: Int {
    let counts = node.wiring.inputLinks[0]?.counts
    return node.feeds[0].waiting.count - node.feeds[0].entered + (counts.map { $0.pushed - $0.popped } ?? 0)
  }
}
