import MillraceAudio
import MillraceCore
import MillraceTesting
import Testing

@Suite("audio.gain")
struct AudioGainTests {
  @Test("samples are scaled by the gain, rounding to nearest")
  func scales() throws {
    let bench = try NodeBench(AudioGain.self, ["gain": -6], inputs: ["in": shape()])
    bench.push([1000, -1000, 3, 0] as [Int16])
    try bench.finish()
    #expect(bench.int16() == [501, -501, 2, 0])
    #expect(bench.close() == [])
  }

  @Test("16-bit audio saturates, float audio may exceed full scale")
  func overload() throws {
    let short = try NodeBench(AudioGain.self, ["gain": 20], inputs: ["in": shape()])
    short.push([20_000, -20_000] as [Int16])
    try short.finish()
    #expect(short.int16() == [32_767, -32_768])
    let float = try NodeBench(AudioGain.self, ["gain": 20], inputs: ["in": shape(16_000, .f32)])
    float.push([0.5, -0.25] as [Float])
    try float.finish()
    #expect(float.float() == [5, -2.5])
  }

  @Test("at 0 dB the packet passes untouched, with its marks")
  func untouched() throws {
    let bench = try NodeBench(AudioGain.self, inputs: ["in": shape()])
    bench.push([1, 2, 3] as [Int16], timestamp: 77, flags: .discontinuity)
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.int16) == [[1, 2, 3]])
    #expect(packets[0].timestamp == 77 && packets[0].flags == .discontinuity && packets[0].duration == 3)
  }

  @Test("a shared packet is copied, not changed")
  func shared() throws {
    let bench = try NodeBench(AudioGain.self, ["gain": 6.0206], inputs: ["in": shape()])
    bench.hold()
    bench.push([100, 200] as [Int16])
    try bench.run()
    let first = bench.take()!
    let values = (0..<2).map { first.samples(of: Int16.self)[$0] }
    #expect(values == [200, 400])
    _ = consume first
  }

  @Test("a live change is a linear ramp, the same for all channels")
  func ramp() throws {
    let input = shape(16_000, channels: 2, .f32, frames: 40)
    let bench = try NodeBench(AudioGain.self, ["ramp": 1], inputs: ["in": input])
    try bench.set("gain", -120)
    bench.push([Float](repeating: 1, count: 80))
    try bench.finish()
    let output = bench.float()
    // 1 ms at 16 kHz is 16 frames: 1, 15/16, ... 1/16, then silence.
    for frame in 0..<16 {
      let gain = Float(16 - frame) / 16
      #expect(output[2 * frame] == gain && output[2 * frame + 1] == gain)
    }
    #expect(output[32...].allSatisfy { $0 == 0 })
  }

  @Test("mute silences, and unmuting returns to the gain set meanwhile")
  func mute() throws {
    let bench = try NodeBench(AudioGain.self, ["mute": true, "ramp": 0], inputs: ["in": shape(frames: 2)])
    bench.push([100, 100] as [Int16])
    try bench.run()
    try bench.set("gain", 20)
    bench.push([100, 100] as [Int16])
    try bench.run()
    try bench.set("mute", false)
    bench.push([100, 100] as [Int16])
    try bench.finish()
    #expect(bench.int16() == [0, 0, 0, 0, 1000, 1000])
  }

  @Test(
    "the result does not depend on how the stream is chunked", arguments: [[320], [1, 7, 319, 2], [160]])
  func packets(lengths: [Int]) throws {
    let samples = Fixture.noise16(seed: 3, count: 1_600)
    func run(_ lengths: [Int]) throws -> [Int16] {
      let bench = try NodeBench(AudioGain.self, ["gain": -3, "ramp": 50], inputs: ["in": shape()])
      try bench.set("gain", 3)
      bench.push(samples, lengths: lengths)
      try bench.finish()
      return bench.int16()
    }
    #expect(try run(lengths) == run([200]))
  }
}
