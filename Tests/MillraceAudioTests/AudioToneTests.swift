import MillraceAudio
import MillraceCore
import MillraceTesting
import Testing

@Suite("audio.tone")
struct AudioToneTests {
  @Test("a sine has its frequency, level and length, the last packet is short")
  func sine() throws {
    let bench = try NodeBench(
      AudioTone.self,
      ["frequency": 440, "level": -6, "rate": 16_000, "duration": 105, "pace": false, "sample": "f32"])
    try bench.run()
    let packets = bench.packets()
    #expect(packets.map(\.duration) == [320, 320, 320, 320, 320, 80])
    #expect(packets.map(\.position) == [0, 320, 640, 960, 1_280, 1_600])
    let expected = Fixture.sine(440, rate: 16_000, frames: 1_680, amplitude: 0.501187)
    let given = packets.flatMap(\.float)
    #expect(zip(given, expected).allSatisfy { abs($0 - $1) < 1e-5 } && given.count == 1_680)
    #expect(bench.hasEnded)
  }

  @Test("paced packets are due at exactly start + n * frame, even if the clock is late")
  func paced() throws {
    // At 11,025 Hz 20 ms are 220.5 samples: packets of 221 must not drift.
    let bench = try NodeBench(AudioTone.self, ["rate": 11_025])
    try bench.advance(to: .milliseconds(5))
    #expect(bench.packets().count == 1)
    try bench.advance(to: .milliseconds(1_000))
    let packets = bench.packets()
    #expect(packets.count == 49)
    #expect(packets.enumerated().allSatisfy { $1.timestamp == .samples(Int64($0 + 1) * 221, rate: 11_025) })
    #expect(!bench.hasEnded)
  }

  @Test("unset properties follow the consumer")
  func adapts() throws {
    let wanted = FormatConstraint.pcm(rates: .oneOf([8_000, 16_000]), channels: .only(2), samples: [.f32])
    let resolution = try NodeBench.resolve(AudioTone.self, wanted: ["out": wanted])
    #expect(resolution.outputs["out"]?.format == .pcm(rate: 16_000, channels: 2, sample: .f32))
    let fixed = try NodeBench.resolve(AudioTone.self, ["rate": 44_100], wanted: ["out": wanted])
    #expect(fixed.outputs["out"]?.format == .pcm(rate: 44_100, channels: 1, sample: .s16))
  }

  @Test(
    "every kind generates a distinct, reproducible signal",
    arguments: ["sweep", "noise", "pink", "impulse"])
  func kinds(kind: String) throws {
    func run(_ frame: Double, _ sample: String = "s16") throws -> [Int16] {
      let bench = try NodeBench(
        AudioTone.self,
        [
          "kind": .string(kind), "to": 4_000, "rate": 16_000, "duration": 500, "pace": false, "level": -12,
          "frame": .number(frame), "channels": 2,
        ])
      try bench.run()
      return bench.int16()
    }
    let once = try run(20)
    #expect(once.count == 16_000)
    #expect(once.contains { $0 != 0 })
    #expect(once.allSatisfy { abs(Int($0)) <= 8_232 })
    #expect(try run(7) == once)
    #expect(stride(from: 0, to: 16_000, by: 2).allSatisfy { once[$0] == once[$0 + 1] })
  }

  @Test("silence is silent, and impulses are spaced as set")
  func impulses() throws {
    let silent = try NodeBench(AudioTone.self, ["kind": "silence", "duration": 40, "pace": false])
    try silent.run()
    #expect(silent.int16().allSatisfy { $0 == 0 })
    let bench = try NodeBench(
      AudioTone.self,
      ["kind": "impulse", "frequency": 100, "rate": 8_000, "duration": 50, "pace": false, "level": 0])
    try bench.run()
    let places = bench.int16().enumerated().filter { $1 != 0 }.map(\.offset)
    #expect(places == [0, 80, 160, 240, 320])
  }

  @Test(
    "invalid parameters are refused with the cure",
    arguments: [
      (
        ["pace": false],
        #""pace": an unpaced tone without "duration" never ends; set "duration", or set "pace" to true"#
      ),
      (["kind": "sweep"], #""kind": a sweep needs an end frequency; set "to""#),
      (
        ["frequency": 9_000, "rate": 16_000],
        #""frequency": 9000.0 Hz is above half the sample rate of 16000 Hz; set it to 8000 or less, or raise "rate""#
      ),
    ] as [([String: ParameterValue], String)])
  func refused(parameters: [String: ParameterValue], text: String) {
    #expect(refusal(AudioTone.self, parameters) == text)
  }
}
