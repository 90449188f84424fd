import Glibc
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceAudio

@Suite("audio.fileMix", .timeLimit(.minutes(30)))
struct AudioFileMixTests {
  private let folder = TemporaryFolder()

  /// A file of rising samples, without 0.
  private func file(_ count: Int, from start: Int = 1, name: String = "music.wav") throws -> String {
    let path = folder.file(name)
    try writeWAV(ramp(count, from: start), rate: 8_000, to: path)
    return path
  }

  private func ramp(_ count: Int, from start: Int = 1) -> [Int16] { (0..<count).map { Int16(start + $0) } }

  private func bench(
    _ path: String, _ parameters: [String: ParameterValue] = [:], input: OutputShape = shape(8_000),
    clock: Clock.Kind = .virtual
  ) throws -> NodeBench {
    try NodeBench(
      AudioFileMix.self, parameters.merging(["path": .string(path)]) { first, _ in first },
      inputs: ["in": input],
      clock: clock, outputLimit: 64)
  }

  /// The output for `count` silent input samples.
  private func listen(_ bench: NodeBench, _ count: Int) throws -> [Int16] {
    bench.push([Int16](repeating: 0, count: count))
    try bench.run()
    return bench.int16()
  }

  @Test("the file is mixed into the uplink and played alone to the loudspeaker, each at its volume")
  func mixes() throws {
    let path = try file(300)
    let bench = try bench(path, ["sendVolume": 0.5])
    bench.setPosition(1_000)
    bench.push([Int16](repeating: 100, count: 400))
    try bench.finish()
    let (out, playback) = (bench.packets(), bench.packets("playback"))
    // Halves round to even.
    let half = ramp(300).map { Int16((Double($0) / 2).rounded(.toNearestOrEven)) + 100 }
    #expect(out.flatMap(\.int16) == half + [Int16](repeating: 100, count: 100))
    #expect(playback.flatMap(\.int16) == ramp(300) + [Int16](repeating: 0, count: 100))
    #expect(out.map(\.position) == [1_000, 1_160, 1_320] && playback.map(\.position) == out.map(\.position))
    #expect(playback.map(\.timestamp) == out.map(\.timestamp) && playback.map(\.duration) == [160, 160, 80])
    #expect(
      bench.events().map(\.json) == [
        #"{"time":0.000000,"node":"node","event":"began","path":"\#(path)"}"#,
        #"{"time":0.000000,"node":"node","event":"completed","plays":1,"samples":300}"#,
      ])
    #expect(bench.close() == [])
  }

  @Test("the output is limited to full scale and otherwise unchanged")
  func limits() throws {
    let path = folder.file("loud.wav")
    try writeWAV([30_000, 30_000, -30_000], rate: 8_000, to: path)
    let short = try bench(path)
    short.push([10_000, -10_000, -10_000, 7] as [Int16])
    try short.finish()
    #expect(short.int16() == [32_767, 20_000, -32_768, 7])
    let float = try bench(path, input: shape(8_000, .f32))
    float.push([0.5, -0.5, -0.5, 1.5] as [Float])
    try float.finish()
    #expect(float.float() == [1, 30_000.0 / 32_768 - 0.5, -1, 1])
    #expect(short.close() == [] && float.close() == [])
  }

  @Test("loops is the number of repeats after the first play, without a gap", arguments: [0, 2])
  func loops(count: Int) throws {
    let bench = try bench(try file(50), ["loops": .integer(count)])
    let heard = try listen(bench, 400)
    let wanted = (0...count).flatMap { _ in ramp(50) }
    #expect(heard == wanted + [Int16](repeating: 0, count: 400 - wanted.count))
    #expect(bench.events().last?.number("plays") == Double(count + 1))
    #expect(bench.close() == [])
  }

  @Test("negative loops are endless, and an update restarts the count from the current play")
  func loopsAnew() throws {
    let bench = try bench(try file(50), ["loops": -1])
    #expect(try listen(bench, 1_020).last == 20)
    try bench.set("loops", 1)
    let heard = try listen(bench, 200)
    #expect(heard == ramp(30, from: 21) + ramp(50) + [Int16](repeating: 0, count: 120))
    #expect(bench.events().map(\.name) == ["began", "completed"])
    #expect(bench.close() == [])
  }

  @Test("volumes change within 20 ms")
  func volumes() throws {
    let path = folder.file("flat.wav")
    try writeWAV([Int16](repeating: 10_000, count: 2_000), rate: 8_000, to: path)
    let bench = try bench(path)
    #expect(try listen(bench, 160) == [Int16](repeating: 10_000, count: 160))
    try bench.set("sendVolume", 0)
    try bench.set("playbackVolume", 0.5)
    let heard = try listen(bench, 320)
    #expect(heard[0] == 10_000 && heard[80] == 5_000)
    #expect(zip(heard, heard.dropFirst()).allSatisfy { $0 >= $1 })
    #expect(heard[160...].allSatisfy { $0 == 0 })
    #expect(bench.int16("playback")[320...].allSatisfy { $0 == 5_000 })
    #expect(bench.close() == [])
  }

  @Test("a paused file resumes with the sample after the last one played")
  func pauses() throws {
    let bench = try bench(try file(1_000, from: 1_000))
    #expect(try listen(bench, 160) == ramp(160, from: 1_000))
    try bench.set("paused", true)
    let fading = try listen(bench, 320)
    // 5 ms are 40 samples.
    #expect(fading[0] == 1_160 && fading[39] < 100 && fading[40...].allSatisfy { $0 == 0 })
    try bench.set("paused", false)
    let again = try listen(bench, 320)
    #expect(again[0] == 0 && Array(again[40...]) == ramp(280, from: 1_240))
    #expect(bench.close() == [])
  }

  @Test("another path replaces the file, an empty one stops it")
  func replaces() throws {
    let first = try file(1_000)
    let second = try file(100, from: 5_000, name: "second.wav")
    let bench = try bench(first)
    #expect(try listen(bench, 160) == ramp(160))
    try bench.set("path", .string(second))
    #expect(try listen(bench, 160) == ramp(100, from: 5_000) + [Int16](repeating: 0, count: 60))
    try bench.set("path", .string(first))
    #expect(try listen(bench, 100) == ramp(100))
    try bench.set("path", "")
    #expect(try listen(bench, 160) == [Int16](repeating: 0, count: 160))
    #expect(
      bench.events().map(\.json).map { $0.replacing(/.*"event":/, with: "") } == [
        #""began","path":"\#(first)"}"#, #""replaced","samples":160}"#, #""began","path":"\#(second)"}"#,
        #""completed","plays":1,"samples":100}"#, #""began","path":"\#(first)"}"#,
        #""stopped","samples":100}"#,
      ])
    #expect(bench.close() == [])
  }

  @Test("a file that cannot be read posts an event with the cure, and the uplink continues")
  func fails() throws {
    let bench = try bench("")
    let missing = folder.file("missing.mp3")
    let text = folder.file("text.mp3")
    put(Array("no sound at all, only words".utf8), at: text)
    for path in [missing, folder.path, text] {
      try bench.set("path", .string(path))
      bench.push([1, 2, 3] as [Int16])
      try bench.run()
    }
    #expect(bench.int16() == [1, 2, 3, 1, 2, 3, 1, 2, 3])
    let texts = bench.events().map { $0.string("text") ?? $0.json }
    #expect(
      texts[0]
        == "there is no file \"\(missing)\"; check the path: in a graph it is relative to the graph file, with --set "
        + "to the current directory")
    #expect(texts[1] == "\"\(folder.path)\" is a directory; name a file in it")
    #expect(texts[2].hasSuffix("; convert it to WAV, FLAC, MP3, Ogg or MP4"))
    #expect(texts.count == 3)
    #expect(bench.close() == [])
    #expect(
      refusal(AudioFileMix.self, ["path": .string(missing)], inputs: ["in": shape()])
        == "\"path\": " + texts[0])
  }

  @Test("a truncated file plays what it has", arguments: ["flac", "wav"])
  func cut(ending: String) throws {
    let path = folder.file("cut.\(ending)")
    let sound = Fixture.noise16(seed: 5, count: 16_000)
    if ending == "wav" { try writeWAV(sound, rate: 8_000, to: path) }
    if ending == "flac" { MediaFile.write(sound, codec: "flac", rate: 8_000, to: path) }
    let bytes = contents(path)
    put(Array(bytes[..<(bytes.count / 2)]), at: path)
    let bench = try bench(path)
    let heard = try listen(bench, 24_000)
    let count = try #require(heard.lastIndex { $0 != 0 }) + 1
    #expect((4_000...8_000).contains(count) && Array(heard[..<count]) == Array(sound[..<count]))
    #expect(["completed", "failed"].contains(bench.events().last?.name))
    #expect(bench.close() == [])
  }

  @Test(
    "compressed files are played completely, at the uplink's rate and channels",
    arguments: [
      ("music.mp3", "libmp3lame"), ("music.m4a", "aac"), ("music.aac", "aac"), ("music.flac", "flac"),
    ])
  func formats(name: String, codec: String) throws {
    try #require(MediaFile.canEncode(codec))
    let path = folder.file(name)
    var sound: [Int16] = []
    for frame in 0..<44_100 {
      let sample = Int16(9_000 * sin(2 * .pi * 440 * Double(frame) / 44_100))
      sound += [sample, sample]
    }
    MediaFile.write(sound, codec: codec, rate: 44_100, channels: 2, to: path)
    let bench = try bench(path, input: shape(16_000))
    let heard = try listen(bench, 20_000)
    let samples = try #require(bench.events().last?.number("samples"))
    // Containers without a length keep the encoder's delay and padding, up to 3 blocks.
    #expect(samples >= 16_000 && samples < 16_000 + 1_200)
    let tone = heard[4_000..<12_000].map { Double($0) / 9_000 }
    let power = tone.reduce(0) { $0 + $1 * $1 } / Double(tone.count)
    // LAME attenuates everything by 5 %.
    #expect(abs(power - 0.5) < 0.06, "\(power)")
    #expect(bench.close() == [])
  }

  @Test("two runs on a virtual clock are identical to the byte")
  func deterministic() throws {
    let path = folder.file("music.flac")
    MediaFile.write(Fixture.noise16(seed: 6, count: 44_100), codec: "flac", rate: 44_100, to: path)
    func run() throws -> ([Int16], [String]) {
      let bench = try bench(path, ["loops": 1], input: shape(16_000))
      var heard = try listen(bench, 10_000)
      try bench.set("paused", true)
      heard += try listen(bench, 700)
      try bench.set("paused", false)
      heard += try listen(bench, 30_000)
      return (heard, bench.events().map(\.json))
    }
    let (first, second) = (try run(), try run())
    #expect(first.0 == second.0 && first.1 == second.1)
    #expect(first.1.last?.contains(#""plays":2,"samples":32000"#) == true)
  }

  /// Pushes silence until an event is posted, at most ten seconds, and returns the output.
  private func listen(_ bench: NodeBench, until name: String, _ events: inout [BenchEvent]) throws -> [Int16]
  {
    var heard: [Int16] = []
    for _ in 0..<1_000 {
      heard += try listen(bench, 80)
      events += bench.events()
      if events.contains(where: { $0.name == name }) { return heard }
      // Like a microphone: 80 samples take 10 ms, in which the feed's thread works.
      usleep(10_000)
    }
    return heard
  }

  @Test("on a real-time clock a separate thread delivers the file from its first sample")
  func live() throws {
    let bench = try bench(try file(2_000), clock: .realtime)
    var events: [BenchEvent] = []
    let heard = try listen(bench, until: "completed", &events)
    #expect(Array(heard[..<2_000]) == ramp(2_000))
    #expect(events.map(\.name) == ["began", "completed"])
    try bench.set("path", .string(try file(500, from: 3_000, name: "next.wav")))
    events = []
    let next = try listen(bench, until: "completed", &events)
    #expect(next.filter { $0 != 0 } == ramp(500, from: 3_000))
    #expect(bench.close() == [])
  }

  @Test("an underrun is filled with silence, counted to the sample; nothing of the file is skipped")
  func underruns() throws {
    let bench = try bench(try file(30_000), clock: .realtime)
    // 10 s at once, of which slightly more than one second is buffered.
    var heard = try listen(bench, 80_000)
    var events: [BenchEvent] = []
    heard += try listen(bench, until: "completed", &events)
    #expect(heard.filter { $0 != 0 } == ramp(30_000))
    // How much depends on the speed of the feed's thread.
    let first = try #require(heard.firstIndex { $0 != 0 })
    let last = try #require(heard.lastIndex { $0 != 0 })
    let gaps = events.filter { $0.name == "underrun" }
    let owed = gaps.reduce(0) { $0 + ($1.number("samples") ?? 0) }
    #expect(Double(heard[first...last].count { $0 == 0 }) == owed)
    #expect(gaps.map { $0.number("count") } == gaps.indices.map { Double($0 + 1) })
    #expect(bench.close() == [])
  }

  @Test(
    "calls on the voice worker allocate nothing",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)),
    arguments: [SampleType.s16, .f32])
  func noHeap(sample: SampleType) throws {
    let path = folder.file("music.flac")
    MediaFile.write(
      Fixture.noise16(seed: 6, count: 88_200), codec: "flac", rate: 44_100, channels: 2, to: path)
    let bench = try bench(
      path, ["loops": -1], input: shape(48_000, channels: 2, sample), clock: .realtime)
    for round in 0..<200 {
      if round == 10 { bench.resetHeapRequests() }
      if sample == .s16 {
        bench.push([Int16](repeating: 100, count: 1_920))
      } else {
        bench.push([Float](repeating: 0.1, count: 1_920))
      }
      if round % 20 == 0 {
        try bench.set("sendVolume", .number(Double(round % 3) / 2))
        try bench.set("paused", .bool(round % 40 == 0))
        try bench.set("loops", -2)
      }
      try bench.run()
      _ = bench.packets()
      _ = bench.packets("playback")
      // Lets the feed's thread run: the more chunks the calls handle, the more they show.
      usleep(1_000)
    }
    #expect(bench.heapRequests == 0)
    #expect(bench.close() == [])
  }
}
