import Glibc
import MillraceAudio
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

/// Whether `make models` has been run.
private let hasWeights = refusal(AudioVAD.self, [:], inputs: ["in": shape()]) == nil
private let missing: Comment = "the voice detector's weights are not here: make models gets them"

/// Engines available here.
private let engines: [String] = hasWeights ? ["silero", "energy"] : ["energy"]

/// One second of quiet noise, two of speech that pauses from 1.18 to 1.6 s of them, two of quiet noise.
private func scene(_ rate: Int) -> [Int16] {
  Fixture.noise16(seed: 3, count: rate, amplitude: 0.001) + Fixture.voice16(rate: rate, frames: 2 * rate)
    + Fixture.noise16(seed: 4, count: 2 * rate, amplitude: 0.001)
}

/// A node's events as text: `speechStarted 1.03`, times in seconds.
private func told(
  _ samples: [Int16], rate: Int = 16_000, channels: Int = 1, lengths: [Int] = [320],
  _ parameters: [String: ParameterValue]
) throws -> [(name: String, time: Double)] {
  let bench = try NodeBench(AudioVAD.self, parameters, inputs: ["in": shape(rate, channels: channels)])
  bench.push(samples, channels: channels, lengths: lengths)
  try bench.finish()
  let events = bench.events()
  #expect(events.allSatisfy { $0.isValid })
  #expect(bench.close() == [])
  return events.map { ($0.name, ($0.number("position") ?? .nan) / Double(rate)) }
}

@Suite("audio.vad")
struct AudioVADTests {
  @Test(
    "speech is reported to start and end where it does, at any rate", arguments: engines,
    [8_000, 16_000, 48_000])
  func segments(engine: String, rate: Int) throws {
    let events = try told(scene(rate), rate: rate, lengths: [rate / 50], ["engine": .string(engine)])
    let changes = events.filter { $0.name != "maybeEnd" }
    let (first, last) = (try #require(changes.first), try #require(changes.last))
    #expect(first.name == "speechStarted" && abs(first.time - 1) < 0.1)
    #expect(last.name == "speechEnded" && abs(last.time - 3) < 0.2, "\(events)")
    // The network reports no pause here.
    guard engine == "energy" else { return }
    #expect(changes.count == 2)
    #expect(events.contains { $0.name == "maybeEnd" && $0.time > 2.2 && $0.time < 2.4 })
  }

  @Test("a pause of the minimum length ends speech, a shorter one does not")
  func pauses() throws {
    func count(_ silence: Double) throws -> Int {
      try told(scene(16_000), ["engine": "energy", "minSilence": .number(silence)])
        .count { $0.name == "speechEnded" }
    }
    #expect(try count(500) == 1)
    #expect(try count(250) == 2)
  }

  @Test("silence, a constant, hiss and a steady tone are not speech", arguments: engines)
  func nothing(engine: String) throws {
    let count = 16_000 * 4
    let sounds: [[Int16]] = [
      [Int16](repeating: 0, count: count), [Int16](repeating: 20_000, count: count),
      Fixture.noise16(seed: 9, count: count, amplitude: 0.003),
    ]
    for sound in sounds { #expect(try told(sound, ["engine": .string(engine)]).isEmpty) }
  }

  @Test(
    "the result does not depend on how the stream is chunked", arguments: engines,
    [[1, 7, 312], [53], [160, 320]])
  func packets(engine: String, lengths: [Int]) throws {
    func words(_ lengths: [Int]) throws -> [String] {
      try told(scene(16_000), lengths: lengths, ["engine": .string(engine)]).map { "\($0.name) \($0.time)" }
    }
    #expect(try words(lengths) == words([320]))
  }

  @Test("several channels are averaged")
  func channels() throws {
    let voice = scene(16_000)
    let parameters: [String: ParameterValue] = ["engine": "energy"]
    let one = try told(voice, parameters)
    let both = try told(voice.flatMap { [$0, $0] }, channels: 2, parameters)
    #expect(one.map(\.name) == both.map(\.name) && one.map(\.time) == both.map(\.time))
    // Opposite channels cancel to silence.
    let apart = try told(voice.flatMap { [$0, $0 == .min ? .max : -$0] }, channels: 2, parameters)
    #expect(apart.isEmpty)
  }

  @Test("packets pass unchanged, whether or not the output is linked")
  func passes() throws {
    let bench = try NodeBench(AudioVAD.self, ["engine": "energy"], inputs: ["in": shape()])
    bench.push([5, 6] as [Int16], timestamp: 9)
    try bench.finish()
    #expect(bench.packets().map(\.timestamp) == [9])
    #expect(bench.resolution.latency == 0)
    let deaf = try NodeBench(
      AudioVAD.self, ["engine": "energy"], inputs: ["in": shape()], outputs: ["events"])
    deaf.push(scene(16_000), lengths: [320])
    try deaf.finish()
    #expect(deaf.events().contains { $0.name == "speechEnded" })
  }

  @Test(
    "a gate passes speech with its pre-roll, sample for sample at its position",
    arguments: [0, 300])
  func gate(preRoll: Int) throws {
    let sound = scene(16_000)
    let bench = try NodeBench(
      AudioVAD.self, ["engine": "energy", "gate": true, "preRoll": .integer(preRoll), "minSilence": 200],
      inputs: ["in": shape()])
    bench.push(sound, lengths: [320])
    try bench.finish()
    let events = bench.events().filter { $0.name != "maybeEnd" }
    let starts = events.filter { $0.name == "speechStarted" }.compactMap { $0.number("position") }
    let packets = bench.packets()
    #expect(starts.count == 2)
    let first = packets.filter { $0.flags.contains(.discontinuity) }.map { Int($0.position) }
    // The pre-roll of 300 ms reaches back over the pause to what was already emitted: no gap then.
    #expect(first == (preRoll == 0 ? starts.map { Int($0) } : [Int(starts[0]) - preRoll * 16]))
    var end: Int64?
    for packet in packets {
      let samples = packet.bytes.count / 2
      #expect(packet.duration == samples && packet.timestamp == .samples(packet.position, rate: 16_000))
      #expect(packet.flags.contains(.discontinuity) == (packet.position != end))
      #expect(packet.position >= end ?? 0)
      let piece = sound[Int(packet.position)..<Int(packet.position) + samples]
      #expect(
        packet.bytes == piece.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] })
      end = packet.position + Int64(samples)
    }
    // All of the speech is there, up to the moment its end was detected.
    let last = try #require(events.last)
    let known = (last.number("position") ?? 0) + (last.number("delay") ?? 0) * 16
    #expect(end == Int64(known.rounded()))
    #expect(bench.close() == [])
  }

  @Test("the end of an utterance passes an open gate with its last sample, and a closed one without audio")
  func utterances() throws {
    let sound = scene(16_000)
    let bench = try NodeBench(
      AudioVAD.self, ["engine": "energy", "gate": true, "minSilence": 200], inputs: ["in": shape()])
    // Once in silence, once in the middle of speech, and once after it as a separate packet.
    var marks: [Int64] = []
    var isOpen = false
    var packets: [CapturedPacket] = []
    for first in stride(from: 0, to: sound.count - 319, by: 320) {
      let isMark = first == 3_200 || isOpen && marks.count == 1
      bench.push(Array(sound[first..<first + 320]), flags: isMark ? .endOfUtterance : [])
      if isMark { marks.append(Int64(first + 320)) }
      try bench.run()
      for event in bench.events() where event.name != "maybeEnd" { isOpen = event.name == "speechStarted" }
      packets += bench.packets()
    }
    bench.push(bytes: [], flags: .endOfUtterance)
    marks.append(Int64(sound.count / 320 * 320))
    try bench.finish()
    packets += bench.packets()
    let ends = packets.filter { $0.flags.contains(.endOfUtterance) }
    #expect(ends.map { $0.position + Int64($0.duration) } == marks)
    #expect(ends.map(\.bytes.isEmpty) == [true, false, true])
    #expect(bench.close() == [])
  }

  @Test("an opening gate emits at most four packets per input packet")
  func catchingUp() throws {
    let bench = try NodeBench(
      AudioVAD.self, ["engine": "energy", "gate": true, "preRoll": 1_000], inputs: ["in": shape()])
    #expect(bench.shape().burst == 4)
    let sound = scene(16_000)
    var counts: [Int] = []
    for offset in stride(from: 0, to: 16_000 * 2, by: 320) {
      bench.push(Array(sound[offset..<offset + 320]))
      try bench.run()
      counts.append(bench.packets().count)
    }
    #expect(counts.max() == 4)
    #expect(counts.suffix(10).allSatisfy { $0 == 1 })
  }

  @Test("a short gap does not affect speech, a long one ends it where the audio broke off")
  func gaps() throws {
    let sound = scene(16_000)
    for (gap, ends) in [(1_600, 0), (16_000, 1)] as [(Int64, Int)] {
      let bench = try NodeBench(AudioVAD.self, ["engine": "energy"], inputs: ["in": shape()])
      bench.push(Array(sound[..<24_000]), lengths: [320])
      bench.setPosition(24_000 + gap)
      bench.push(Array(sound[24_000..<25_600]), flags: .discontinuity)
      try bench.run()
      let events = bench.events().filter { $0.name == "speechEnded" }
      #expect(events.count == ends)
      if ends == 1 { #expect(events.first?.number("position") == 24_000) }
    }
  }

  @Test("a lost packet and a jump back restart the detector, without a fault")
  func jumps() throws {
    let bench = try NodeBench(AudioVAD.self, ["engine": "energy"], inputs: ["in": shape()])
    let sound = scene(16_000)
    bench.push(Array(sound[..<22_400]), lengths: [320])
    bench.push(bytes: [], duration: 320, flags: .lost)
    bench.push(Array(sound[22_720..<24_640]), lengths: [320], from: 22_720)
    try bench.run()
    #expect(bench.events().allSatisfy { $0.name != "speechEnded" })
    bench.push(Array(sound[16_000..<24_000]), lengths: [320], from: 0)
    try bench.run()
    let words = bench.events().map { "\($0.name) \($0.number("position") ?? -1)" }
    #expect(words.first == "speechEnded 24640.0")
    #expect(words.dropFirst().first?.hasPrefix("speechStarted") == true)
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test(
    "an interruption ends speech of the cancelled reply only",
    arguments: [(0, 0), (1, 1)] as [(UInt32, Int)])
  func interruption(generation: UInt32, ends: Int) throws {
    let bench = try NodeBench(AudioVAD.self, ["engine": "energy"], inputs: ["in": shape()])
    bench.interrupt()
    bench.setGeneration(generation)
    bench.push(Array(scene(16_000)[..<24_000]))
    try bench.run()
    _ = bench.events()
    bench.interrupt()
    #expect(bench.events().count { $0.name == "speechEnded" } == ends)
  }

  @Test("thresholds and durations can be changed at run time")
  func live() throws {
    let bench = try NodeBench(
      AudioVAD.self, ["engine": "energy", "minSpeech": 1_000], inputs: ["in": shape()])
    let sound = scene(16_000)
    bench.push(Array(sound[..<20_000]))
    try bench.run()
    #expect(bench.events().isEmpty)
    try bench.set("minSpeech", .number(32))
    try bench.set("minSilence", .number(20))
    bench.push(Array(sound[20_000..<48_000]))
    try bench.run()
    #expect(bench.events().count { $0.name == "speechEnded" } > 1)
    try bench.set("start", .number(0.99))
    try bench.set("stop", .number(0.99))
    bench.push([Int16](repeating: 0, count: 8_000))
    try bench.finish()
  }

  @Test("the highest probability is reported once per interval")
  func report() throws {
    let events = try told(scene(16_000), ["engine": "energy", "report": 100]).filter {
      $0.name == "probability"
    }
    // With steps of 32 ms an interval of 100 ms is four steps.
    #expect(events.count == 5_000 / 128)
    #expect(events.first?.time == 0.128)
  }

  @Test("missing or invalid weights are refused with the cure")
  func weights() {
    let folder = TemporaryFolder()
    func words(_ path: String) -> String? {
      refusal(AudioVAD.self, ["model": .string(path)], inputs: ["in": shape()])
    }
    let path = folder.file("silero.weights")
    #expect(
      words(path)
        == "\"model\": the voice detector's weights are missing: \"\(path)\"; run make models, or set \"engine\" to \"energy\", which needs none"
    )
    put(Array("RIFF".utf8), at: path)
    #expect(
      words(path)
        == "\"\(path)\" is not a voice detector weights file; delete it and run make models")
    put(Array("MRSILERO".utf8) + [1, 0, 0, 0] + [UInt8](repeating: 9, count: 60), at: path)
    #expect(words(path)?.hasPrefix("\"\(path)\" is truncated: 72 of ") == true)
    #expect(
      refusal(AudioVAD.self, ["engine": "energy", "model": .string(path)], inputs: ["in": shape()]) == nil)
  }

  @Test(
    "NaN, infinities and huge values pass, and speech is detected after them",
    arguments: engines)
  func bad(engine: String) throws {
    let bench = try NodeBench(
      AudioVAD.self, ["engine": .string(engine)], inputs: ["in": shape(48_000, channels: 2, .f32)])
    bench.push([Float.nan, .infinity, -.infinity, 3e38] + [Float](repeating: 0, count: 96_000))
    let voice = scene(48_000).map { Float($0) / 32_768 }
    bench.push(voice.flatMap { [$0, $0] })
    try bench.finish()
    let changes = bench.events().map(\.name).filter { $0 != "maybeEnd" }
    #expect(changes.suffix(2) == ["speechStarted", "speechEnded"])
    #expect(bench.close() == [])
  }
}
