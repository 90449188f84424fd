import MillraceAudio
import MillraceCore
import MillraceTesting
import Testing

@Suite("audio.level")
struct AudioLevelTests {
  @Test("the highest peak is held after its window for the set time, and reported only if requested")
  func hold() throws {
    // Windows of 100 ms with these peaks; the peak of -20 dB is held for three more.
    let peaks: [Float] = [0.01, 0.1, 0.01, 0.01, 0.01, 0.01, 0.001, 0.05]
    let bench = try NodeBench(
      AudioLevel.self, ["window": 100, "hold": 300], inputs: ["in": shape(16_000, .f32)])
    bench.push(peaks.flatMap { [Float](repeating: $0, count: 1_600) })
    try bench.finish()
    let held = bench.events().filter { $0.name == "level" }.map { $0.number("held") }
    #expect(held == [-40, -20, -20, -20, -20, -40, -40, -26.02])
    let plain = try NodeBench(AudioLevel.self, ["window": 100], inputs: ["in": shape(16_000, .f32)])
    plain.push([Float](repeating: 0.1, count: 1_600))
    try plain.finish()
    #expect(plain.events().map { $0.number("held") } == [nil])
  }

  @Test("an interruption ends the hold, so that no reply shows the peak of another")
  func holdInterrupted() throws {
    let bench = try NodeBench(
      AudioLevel.self, ["window": 100, "hold": 10_000], inputs: ["in": shape(16_000, .f32)])
    bench.setGeneration(1)
    bench.push([Float](repeating: 0.1, count: 1_600))
    try bench.run()
    bench.interrupt()
    bench.setGeneration(2)
    bench.push([Float](repeating: 0.01, count: 1_600))
    try bench.finish()
    #expect(bench.events().filter { $0.name == "level" }.map { $0.number("held") } == [-20, -40])
  }

  @Test("a full-scale sine measures 0 dBFS peak and -3.01 dBFS RMS, once a window")
  func sine() throws {
    let bench = try NodeBench(AudioLevel.self, ["window": 100], inputs: ["in": shape(16_000, .f32)])
    bench.push(Fixture.sine(1_000, rate: 16_000, frames: 3_200, amplitude: 1))
    try bench.finish()
    let events = bench.events().filter { $0.name == "level" }
    #expect(events.count == 2)
    #expect(events.map { $0.number("position") } == [0, 1_600])
    #expect(events.allSatisfy { $0.isValid && $0.number("samples") == 1_600 })
    #expect(events.allSatisfy { $0.number("rms") == -3.01 && $0.number("peak") == 0 })
  }

  @Test("silence is -120 dBFS, and the rest at the end is reported as a shorter window")
  func rest() throws {
    let bench = try NodeBench(AudioLevel.self, ["window": 100], inputs: ["in": shape()])
    bench.push([Int16](repeating: 0, count: 1_700))
    try bench.finish()
    let events = bench.events()
    #expect(events.map { $0.number("samples") } == [1_600, 100])
    #expect(events.allSatisfy { $0.number("rms") == -120 && $0.number("peak") == -120 })
  }

  @Test("every channel has its own values")
  func channels() throws {
    let bench = try NodeBench(AudioLevel.self, ["window": 20], inputs: ["in": shape(16_000, channels: 2)])
    bench.push((0..<640).map { $0 % 2 == 0 ? 16_384 : 0 } as [Int16])
    try bench.finish()
    let event = try #require(bench.events().first)
    #expect(event.number("rms1") == -6.02 && event.number("peak1") == -6.02)
    #expect(event.number("rms2") == -120)
    #expect(event.number("rms") == -9.03 && event.number("peak") == -6.02)
  }

  @Test("samples at full scale are counted in a clip event", arguments: [SampleType.s16, .f32])
  func clip(sample: SampleType) throws {
    let bench = try NodeBench(AudioLevel.self, ["window": 10], inputs: ["in": shape(16_000, sample)])
    var floats = [Float](repeating: 0.5, count: 320)
    (floats[3], floats[4], floats[200]) = (1, -1, 0.9999)
    if sample == .f32 {
      bench.push(floats)
    } else {
      bench.push(floats.map { Int16(max(-32_768, min(32_767, ($0 * 32_768).rounded()))) })
    }
    try bench.finish()
    let clips = bench.events().filter { $0.name == "clip" }
    #expect(clips.map { $0.number("samples") } == [2])
    #expect(clips.map { $0.number("position") } == [0])
  }

  @Test("packets pass unchanged; without a linked output the node measures just the same")
  func passes() throws {
    let bench = try NodeBench(AudioLevel.self, inputs: ["in": shape()])
    bench.push([5, 6] as [Int16], timestamp: 9)
    try bench.finish()
    #expect(bench.packets().map(\.timestamp) == [9])
    let deaf = try NodeBench(AudioLevel.self, inputs: ["in": shape()], outputs: ["events"])
    deaf.push([5, 6] as [Int16])
    try deaf.finish()
    #expect(deaf.events().count == 1)
  }

  @Test("values do not depend on how the stream is chunked", arguments: [[320], [1, 7, 312], [53]])
  func packets(lengths: [Int]) throws {
    let samples = Fixture.noise16(seed: 5, count: 8_000)
    func run(_ lengths: [Int]) throws -> [[Double?]] {
      let bench = try NodeBench(AudioLevel.self, ["window": 33], inputs: ["in": shape()])
      bench.push(samples, lengths: lengths)
      try bench.finish()
      return bench.events().map { event in ["position", "samples", "rms", "peak"].map { event.number($0) } }
    }
    #expect(try run(lengths) == run([160]))
  }

  @Test(
    "an interruption discards an incomplete window of the cancelled reply, and no other",
    arguments: [(1, [], 1), (0, [], 2), (1, .uninterruptible, 2)] as [(UInt32, PacketFlags, Int)])
  func interruption(generation: UInt32, flags: PacketFlags, windows: Int) throws {
    let bench = try NodeBench(AudioLevel.self, ["window": 20], inputs: ["in": shape(16_000)])
    bench.interrupt()
    bench.setGeneration(generation)
    bench.push([Int16](repeating: 20_000, count: 160), flags: flags)
    try bench.run()
    bench.interrupt()
    bench.setGeneration(2)
    bench.push([Int16](repeating: 0, count: 320))
    try bench.finish()
    let levels = bench.events().filter { $0.name == "level" }
    #expect(levels.count == windows)
    #expect((levels.first?.number("peak") == -120) == (windows == 1))
  }
}
