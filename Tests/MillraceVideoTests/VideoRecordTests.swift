import Glibc
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

@testable import MillraceAudio
@testable import MillraceVideo

/// A recording node, and its input.
struct RecordBench {
  /// Times of flashes and clicks in ms.
  static let times = [400, 1_200, 2_000, 2_800]
  static let inputs = ["in": pictureInput(), "audio": soundInput()]
  let node: NodeBench

  init(node: NodeBench) { self.node = node }

  init(
    _ path: String, _ parameters: [String: ParameterValue] = [:],
    _ inputs: [String: OutputShape] = RecordBench.inputs
  ) throws {
    node = try NodeBench(
      VideoRecord.self, parameters.merging(["path": .string(path)]) { first, _ in first }, inputs: inputs)
  }

  /// A picture for a time in ms.
  func picture(_ time: Int, width: Int = 64, height: Int = 48) {
    node.push(
      bytes: FlashAndClick.picture(time, Self.times, width: width, height: height), to: "in", duration: 1,
      timestamp: .milliseconds(Int64(time)), flags: .key)
  }

  /// Audio for so many ms from a time on.
  func sound(_ time: Int, _ milliseconds: Int = 40, flags: PacketFlags = []) {
    node.push(
      FlashAndClick.sound(Self.times, start: time, milliseconds: milliseconds), to: "audio",
      timestamp: .milliseconds(Int64(time)), flags: flags)
  }

  /// Pictures every 40 ms and audio from one time to another, in order; for some times, only one of the two.
  func push(
    from start: Int = 0, to end: Int, clock: Bool = false, pictures hasPicture: (Int) -> Bool = { _ in true },
    sound hasSound: (Int) -> Bool = { _ in true }
  ) throws {
    for time in stride(from: start, to: end, by: 40) {
      if clock { try node.advance(to: .milliseconds(Int64(time))) }
      if hasPicture(time) { picture(time) }
      if hasSound(time) { sound(time) }
      try node.run()
    }
  }

  /// Ends the inputs; returns the names of all events, and checks that nothing failed.
  func finish() throws -> [BenchEvent] {
    try node.finish()
    let events = node.events()
    #expect(node.close() == [])
    return events
  }
}

@Suite("video.record")
struct VideoRecordTests {
  private let folder = TemporaryFolder()
  private let times = RecordBench.times

  /// Checks that flashes are at their times, and clicks in sync with them.
  private func expectStep(_ video: PlayedFilm, flashes: Int = 4, within limit: Double = 3) {
    #expect(
      video.flashes.count == flashes && video.clicks.count == flashes, "\(video.flashes) \(video.clicks)")
    #expect(video.offsets.allSatisfy { abs($0) < limit }, "\(video.offsets)")
    #expect(video.events == [])
  }

  @Test(
    "pictures and audio are recorded in sync",
    arguments: ["video.mp4", "video.mkv", "video.webm", "video.mov"])
  func sync(name: String) throws {
    let path = folder.file(name)
    let bench = try RecordBench(path)
    try bench.push(to: 3_200)
    let events = try bench.finish()
    #expect(events.map(\.name) == ["began", "progress", "progress", "progress", "completed"])
    #expect(events.first?.json.hasSuffix(#","path":"\#(path)","width":64,"height":48,"rate":48000}"#) == true)
    let last = try #require(events.last)
    #expect(
      last.number("seconds") == 3.2 && last.number("pictures") == 80 && last.string("reason") == "ended")
    #expect(last.number("bytes").map { Int($0) } == contents(path).count)
    let video = try PlayedFilm(path)
    expectStep(video)
    #expect(video.times.count == 80 && video.rate == 48_000 && video.channels == 1)
    // What was recorded, plus no more than a codec block or two.
    #expect((153_600..<157_000).contains(video.samples.count), "\(video.samples.count)")
  }

  @Test(
    "audio of every rate and format that the file supports",
    arguments: [
      ("video.mp4", 8_000, 1, SampleType.s16), ("video.mp4", 44_100, 2, .f32), ("video.mkv", 16_000, 2, .s16),
      ("video.webm", 24_000, 1, .f32),
    ])
  func kinds(name: String, rate: Int, channels: Int, sample: SampleType) throws {
    let path = folder.file(name)
    let bench = try RecordBench(
      path, [:],
      [
        "in": pictureInput(),
        "audio": soundInput(rate, channels: channels, sample: sample, frames: rate / 50),
      ])
    let mono = FlashAndClick.sound(times, milliseconds: 3_200, rate: rate)
    let all = mono.flatMap { [Int16](repeating: $0, count: channels) }
    for time in stride(from: 0, to: 3_200, by: 40) {
      bench.picture(time)
      let part = Array(all[time * rate / 1_000 * channels..<(time + 40) * rate / 1_000 * channels])
      if sample == .s16 {
        bench.node.push(part, to: "audio", timestamp: .milliseconds(Int64(time)))
      } else {
        bench.node.push(part.map { Float($0) / 32_768 }, to: "audio", timestamp: .milliseconds(Int64(time)))
      }
      try bench.node.run()
    }
    _ = try bench.finish()
    let video = try PlayedFilm(path)
    // At lower rates, speech coding softens the onset of a click.
    expectStep(video, within: rate < 32_000 ? 10 : 4)
    #expect(video.channels == channels)
  }

  @Test("pictures alone make a video", arguments: ["video.mp4", "video.webm"])
  func pictures(name: String) throws {
    let path = folder.file(name)
    let bench = try RecordBench(path, [:], ["in": pictureInput()])
    for time in stride(from: 0, to: 2_000, by: 40) { bench.picture(time) }
    let events = try bench.finish()
    #expect(events.last?.number("seconds") == 2 && events.first?.number("rate") == nil)
    let video = try PlayedFilm(path, sound: false)
    #expect(video.times == (0..<50).map { Double($0) * 40 } && video.flashes == [400, 1_200])
  }

  @Test(
    "every picture is shown at its time, whatever was dropped before it",
    arguments: ["video.mp4", "video.mkv"])
  func dropped(name: String) throws {
    let path = folder.file(name)
    let bench = try RecordBench(path)
    var kept: [Double] = []
    for time in stride(from: 0, to: 3_200, by: 40) {
      // Some single ones, and half a second in one piece.
      let isKept = time % 360 != 0 && !(1_400..<1_900).contains(time) || time == 0
      if isKept { bench.picture(time) }
      if isKept { kept.append(Double(time)) }
      bench.sound(time)
      try bench.node.run()
    }
    _ = try bench.finish()
    let video = try PlayedFilm(path)
    let lead = video.times[0]
    let errors = zip(video.times, kept).map { abs($0 - lead - $1) }
    #expect(video.times.count == kept.count && errors.allSatisfy { $0 <= 1 }, "\(video.times)")
    expectStep(video, within: 4)
  }

  @Test("late, duplicate and truncated pictures are dropped and counted")
  func late() throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path)
    try bench.push(to: 400)
    bench.picture(360)
    bench.picture(200)
    bench.node.push(bytes: [1, 2, 3], to: "in", duration: 1, timestamp: .milliseconds(400))
    bench.picture(440)
    bench.sound(400, 80)
    let events = try bench.finish()
    let late = events.filter { $0.name == "late" }
    #expect(late.compactMap { $0.number("pictures") }.reduce(0, +) == 3, "\(late)")
    #expect(late.allSatisfy { $0.number("samples") == 0 })
    #expect(events.last?.number("pictures") == 11)
    #expect(try PlayedFilm(path).times.count == 11)
  }

  // MARK: Gaps in sound

  @Test("a gap in audio positions becomes silence", arguments: ["video.mp4", "video.mkv"])
  func gap(name: String) throws {
    let path = folder.file(name)
    let bench = try RecordBench(path)
    for time in stride(from: 0, to: 3_200, by: 40) {
      bench.picture(time)
      if (1_400..<1_880).contains(time) {
        bench.node.setPosition(Int64(time + 40) * 48, of: "audio")
      } else {
        bench.sound(time)
      }
      try bench.node.run()
    }
    let events = try bench.finish()
    #expect(!events.map(\.name).contains("moved"))
    expectStep(try PlayedFilm(path))
  }

  @Test(
    "audio that pauses without a gap in its positions continues at its time",
    arguments: [60, 200, 480, 2_000])
  func pause(length: Int) throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path)
    // The positions are the bench's own: they continue without a gap.
    for time in stride(from: 0, to: 3_200, by: 20) {
      if time % 40 == 0 { bench.picture(time) }
      if !(500..<500 + length).contains(time) { bench.sound(time, 20) }
      try bench.node.run()
    }
    let events = try bench.finish()
    let video = try PlayedFilm(path)
    let expected = times.filter { !(500..<500 + length).contains($0) }
    #expect(video.clicks.count == expected.count)
    for (click, time) in zip(video.clicks, expected) {
      #expect(abs(click - video.times[0] - Double(time)) < 4)
    }
    let moved = events.filter { $0.name == "moved" }
    #expect(
      length > 250 ? moved.isEmpty : abs((moved.first?.number("ms") ?? 0) - Double(length)) < 1, "\(moved)")
  }

  @Test("audio with a drifting clock stays in sync", arguments: [-10_000, 10_000])
  func drift(ppm: Int) throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path, ["progress": 60_000])
    // A deviation that takes a bad clock minutes: 120 ms in 12 s.
    let factor = 1 + Double(ppm) / 1e6
    let length = 12_000
    let every = stride(from: 400, to: length, by: 800).map { $0 }
    var position = 0
    for time in stride(from: 0, to: length, by: 40) {
      bench.node.push(
        bytes: FlashAndClick.picture(time, every), to: "in", duration: 1,
        timestamp: .milliseconds(Int64(time)))
      // As many samples as the wrong clock produces in this time, each at its true time.
      let end = Int(Double(time + 40) * 48 * factor)
      let samples = (position..<end).map { index -> Int16 in
        let due = Double(index) / 48 / factor
        return every.contains { due >= Double($0) && due < Double($0) + 5 }
          ? Int16(index % 2 == 0 ? 20_000 : -20_000) : 0
      }
      var first = 0
      while first < samples.count {
        let part = Array(samples[first..<min(samples.count, first + 960)])
        bench.node.push(
          part, to: "audio", timestamp: Nanoseconds(Double(position + first) / 48 / factor * 1e6))
        first += part.count
      }
      position = end
      try bench.node.run()
    }
    let events = try bench.finish()
    #expect(events.filter { $0.name == "moved" }.count >= 3)
    expectStep(try PlayedFilm(path), flashes: every.count, within: 40)
  }

  @Test("an impossible timestamp is ignored", arguments: [Int64(20_000_000_000_000), -20_000_000_000_000])
  func absurd(offset: Int64) throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path)
    for time in stride(from: 0, to: 3_200, by: 40) {
      bench.picture(time)
      let sound = FlashAndClick.sound(times, start: time, milliseconds: 40)
      bench.node.push(sound, to: "audio", timestamp: .milliseconds(Int64(time)) + (time == 40 ? offset : 0))
      try bench.node.run()
    }
    _ = try bench.finish()
    let video = try PlayedFilm(path)
    #expect(video.flashes.count == 4 && video.clicks.count == 4, "\(video.clicks)")
    #expect((153_600..<200_000).contains(video.samples.count))
  }

  @Test("missing audio becomes silence, and is in sync when it returns")
  func away() throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path, ["patience": 300])
    try bench.push(to: 1_800, clock: true, sound: { $0 < 600 })
    // While it is missing, the recording continues: half a second of patience and blocks behind.
    #expect(contents(path).count > 1_000)
    try bench.push(from: 1_800, to: 3_200, clock: true)
    _ = try bench.finish()
    let video = try PlayedFilm(path)
    #expect(video.flashes.count == 4 && video.clicks.count == 3)
    #expect(abs(video.clicks[1] - video.flashes[2]) < 3 && abs(video.clicks[2] - video.flashes[3]) < 3)
  }

  @Test("audio later than the patience is cut and counted")
  func tooLate() throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path, ["patience": 200])
    try bench.push(to: 400, clock: true)
    try bench.push(from: 400, to: 1_600, clock: true, sound: { _ in false })
    bench.sound(400, 1_200)
    try bench.push(from: 1_600, to: 3_200, clock: true)
    let events = try bench.finish()
    let cut = events.filter { $0.name == "late" }.compactMap { $0.number("samples") }.reduce(0, +)
    // 1.16 s had been abandoned when it arrived.
    #expect((44_000..<50_000).contains(cut), "\(cut)")
    let video = try PlayedFilm(path)
    // The clicks at 400 and 1,200 ms were in it.
    #expect(video.flashes.count == 4 && video.clicks.count == 2)
    #expect(abs(video.clicks[0] - video.flashes[2]) < 3 && abs(video.clicks[1] - video.flashes[3]) < 3)
  }

  @Test("a slow track is waited for, and nothing of it is lost")
  func slow() throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path, ["patience": 300])
    bench.sound(0, 3_200)
    bench.node.end("audio")
    // Pictures of 40 ms every 200 ms: a video that is expensive to decode, with audio that is not.
    for time in stride(from: 0, to: 3_200, by: 40) {
      try bench.node.advance(to: .milliseconds(Int64(5 * time)))
      bench.picture(time)
      try bench.node.run()
    }
    let events = try bench.finish()
    #expect(!events.map(\.name).contains("late") && events.last?.number("pictures") == 80)
    let video = try PlayedFilm(path)
    #expect(video.times.count == 80)
    expectStep(video)
  }

  /// A recording whose second, pending picture is a minute after the first, with 40 ms of audio.
  private func leaping(_ path: String) throws -> NodeBench {
    let bench = try NodeBench(
      CountingRecord.self, ["path": .string(path), "patience": 100],
      inputs: ["in": pictureInput(), "audio": soundInput()])
    pushDark(bench, at: 0)
    bench.push(FlashAndClick.sound([], milliseconds: 40), to: "audio", timestamp: 0)
    pushDark(bench, at: 60_000)
    return bench
  }

  private func pushDark(_ bench: NodeBench, at time: Int64) {
    bench.push(bytes: FlashAndClick.picture(0, []), to: "in", duration: 1, timestamp: .milliseconds(time))
  }

  @Test("after a jump of the pictures' times, no single call writes all of the silence")
  func leap() throws {
    let path = folder.file("video.mp4")
    let bench = try leaping(path)
    try bench.advance(to: .milliseconds(300))
    let frames = CountingRecord.frames(path)
    // Five seconds, plus a codec block that they may complete.
    #expect(zip(frames, frames.dropFirst()).allSatisfy { $1 - $0 <= 5 * 48_000 + 1_024 }, "\(frames)")
    #expect((frames.last ?? 0) > 59 * 48_000, "\(frames)")
    #expect(bench.close() == [])
  }

  @Test("audio that ends while silence is inserted leaves nothing to do")
  func leapAndEnd() throws {
    let path = folder.file("video.mp4")
    let bench = try leaping(path)
    try bench.run()
    bench.clock.advance(to: .milliseconds(300))
    pushDark(bench, at: 60_040)
    try bench.run(calls: 1)
    bench.end("audio")
    try bench.run(calls: 500)
    let frames = CountingRecord.frames(path)
    #expect((frames.last ?? 0) < 20 * 48_000 && frames.count < 50, "\(frames)")
    try bench.finish()
    #expect(bench.close() == [])
  }

  // MARK: Beginning and ending

  @Test(
    "a recording starts with the first track, and the other joins at its time",
    arguments: [-320, -80, 80, 320])
  func beginning(offset: Int) throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path)
    try bench.push(to: 3_200, pictures: { $0 >= offset }, sound: { $0 >= -offset })
    let events = try bench.finish()
    #expect(events.last?.number("seconds") == 3.2)
    expectStep(try PlayedFilm(path))
  }

  @Test("missing pictures are black until they start, and no audio is lost")
  func black() throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path, ["patience": 300])
    try bench.push(to: 3_200, clock: true, pictures: { $0 >= 1_000 })
    _ = try bench.finish()
    let video = try PlayedFilm(path)
    #expect(video.clicks.count == 4 && video.flashes.count == 3)
    #expect(video.lumas[0] < 6 && video.times.count == 56)
    #expect(abs(video.clicks[1] - video.flashes[0]) < 3)
  }

  @Test("one track ends before the other", arguments: [true, false])
  func ending(picturesFirst: Bool) throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path)
    try bench.push(to: 1_600)
    bench.node.end(picturesFirst ? "in" : "audio")
    try bench.push(
      from: 1_600, to: 3_200, pictures: { _ in !picturesFirst }, sound: { _ in picturesFirst })
    let events = try bench.finish()
    #expect(abs((events.last?.number("seconds") ?? 0) - 3.2) < 0.001)
    let video = try PlayedFilm(path)
    #expect(video.clicks.count == (picturesFirst ? 4 : 2) && video.flashes.count == (picturesFirst ? 2 : 4))
    #expect(video.events == [])
    // The last picture is repeated after a second.
    let lead = video.times[0]
    #expect(video.times.count == (picturesFirst ? 41 : 80))
    if picturesFirst { #expect(video.times.suffix(2).map { ($0 - lead).rounded() } == [1_560, 2_560]) }
  }

  @Test("a recording that never started leaves the file as it was")
  func empty() throws {
    let path = folder.file("video.mkv")
    let events = try RecordBench(path).finish()
    #expect(events.map(\.name) == ["began", "completed"] && events.last?.number("pictures") == 0)
    #expect(contents(path).starts(with: [0x1A, 0x45, 0xDF, 0xA3]))
  }

  @Test("the duration ends it", arguments: ["video.mp4", "video.webm"])
  func duration(name: String) throws {
    let path = folder.file(name)
    let bench = try RecordBench(path, ["duration": 1_500])
    try bench.push(to: 2_400)
    #expect(bench.node.hasEnded)
    let last = try #require(bench.node.events().last)
    #expect(
      last.string("reason") == "duration" && last.number("seconds") == 1.5 && last.number("pictures") == 38)
    #expect(bench.node.close() == [])
    let video = try PlayedFilm(path)
    #expect(video.times.count == 38 && video.flashes.count == 2)
    // 1.5 s, plus the codec's blocks.
    #expect((72_000..<75_500).contains(video.samples.count), "\(video.samples.count)")
  }

  @Test("a recording whose inputs end before the duration has ended with them", arguments: [1_000, 1_480])
  func endedEarlier(length: Int) throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path, ["duration": 1_500])
    try bench.push(to: length)
    let events = try bench.finish()
    let last = try #require(events.last)
    #expect(last.string("reason") == "ended" && last.number("seconds") == Double(length) / 1_000)
  }

  @Test("one track that reaches the duration is enough if the other ended before", arguments: [true, false])
  func durationOfOne(picturesEnd: Bool) throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path, ["duration": 1_500])
    try bench.push(to: 800)
    bench.node.end(picturesEnd ? "in" : "audio")
    try bench.push(from: 800, to: 2_400, pictures: { _ in !picturesEnd }, sound: { _ in picturesEnd })
    #expect(bench.node.hasEnded)
    let last = try #require(bench.node.events().last)
    #expect(last.string("reason") == "duration" && last.number("seconds") == 1.5)
    #expect(bench.node.close() == [])
  }

  @Test("stop completes the recording at once, and the file may be used")
  func stopped() throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path)
    try bench.push(to: 1_000)
    try bench.node.set("stop", true)
    try bench.node.run()
    #expect(bench.node.hasEnded && bench.node.events().last?.string("reason") == "stopped")
    #expect(try PlayedFilm(path).times.count == 25)
    #expect(bench.node.close() == [])
  }

  @Test("cancel removes the file")
  func cancelled() throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path)
    try bench.push(to: 1_000)
    try bench.node.set("cancel", true)
    try bench.node.run()
    #expect(bench.node.hasEnded && bench.node.events().last?.name == "cancelled" && folder.names == [])
    #expect(bench.node.close() == [])
  }
}

/// `video.record` that records after each call how many frames of audio the encoder received.
private struct CountingRecord: ~Copyable, Node {
  static var contract: NodeContract { VideoRecord.contract }
  private static let noted = Locked<[String: [Int64]]>([:])
  private var node: VideoRecord
  private let path: String

  /// What the node of a file recorded.
  static func frames(_ path: String) -> [Int64] { noted.withLock { $0[path] ?? [] } }

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    node = try VideoRecord(setup)
    path = setup.parameters.string("path")
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let outcome = try node.process(&ports)
    let count = node.encoder?.sound?.frames ?? 0
    Self.noted.withLock { $0[path, default: []].append(count) }
    return outcome
  }
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.finish(&ports) }
}
