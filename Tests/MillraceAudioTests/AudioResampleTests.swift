import MillraceAudio
import MillraceCore
import MillraceTesting
import Testing

@Suite("audio.resample")
struct AudioResampleTests {
  private static let pairs = [
    (48_000, 16_000), (16_000, 48_000), (44_100, 48_000), (44_100, 16_000), (22_050, 16_000), (8_000, 48_000),
    (192_000, 8_000),
  ]

  /// Runs a stream through the node and returns the output.
  private func run(
    _ samples: [Int16], from rate: Int, to target: Int, align: String = "stream", lengths: [Int]? = nil
  ) throws -> [CapturedPacket] {
    let bench = try NodeBench(
      AudioResample.self, ["rate": .integer(target), "align": .string(align)], inputs: ["in": shape(rate)])
    bench.push(samples, lengths: lengths ?? [rate / 50])
    try bench.finish()
    let packets = bench.packets()
    #expect(bench.close() == [])
    return packets
  }

  @Test("n samples give round(n * L / M) consecutive samples from position 0 on", arguments: pairs)
  func count(rate: Int, target: Int) throws {
    for count in [rate / 50 * 3, rate / 50 * 3 + 1, rate / 50 + rate / 70, 5] {
      let samples = [Int16](repeating: 1_000, count: count)
      let expected = Int((Double(count) * Double(target) / Double(rate)).rounded())
      let file = try run(samples, from: rate, to: target, align: "file")
      #expect(file.reduce(0) { $0 + $1.duration } == expected)
      if expected > 0 { #expect(file.first?.position == 0) }
      let stream = try run(samples, from: rate, to: target)
      #expect((stream.last.map { $0.position + Int64($0.duration) } ?? 0) == Int64(expected))
      for (left, right) in zip(stream, stream.dropFirst()) {
        #expect(left.position + Int64(left.duration) == right.position)
      }
    }
  }

  @Test("both alignments give the same sample at the same position", arguments: pairs)
  func alignments(rate: Int, target: Int) throws {
    let samples = Fixture.noise16(seed: 9, count: rate / 5)
    let file = try run(samples, from: rate, to: target, align: "file").flatMap(\.int16)
    let stream = try run(samples, from: rate, to: target)
    let first = Int(stream[0].position)
    #expect(first < 0)
    #expect(Array(stream.flatMap(\.int16).dropFirst(-first)) == file)
  }

  @Test("a tone keeps its phase at the same time", arguments: pairs)
  func phase(rate: Int, target: Int) throws {
    let input = Fixture.sine16(500, rate: rate, frames: rate / 5)
    let output = try run(input, from: rate, to: target, align: "file").flatMap(\.int16)
    let expected = Fixture.sine16(500, rate: target, frames: target / 5)
    let inside = output.count / 4..<output.count * 3 / 4
    let worst = inside.map { abs(Int(output[$0]) - Int(expected[$0])) }.max() ?? 999
    #expect(worst <= 3)
  }

  @Test("in a stream each 20 ms packet gives 20 ms at once, stamped earlier by the filter's delay")
  func stream() throws {
    let packets = try run([Int16](repeating: 0, count: 9_600), from: 48_000, to: 16_000)
    #expect(packets.map(\.duration) == [Int](repeating: 320, count: 10) + [40])
    // 2.5 ms: 40 samples at 16 kHz.
    #expect(packets[0].position == -40)
    #expect(packets.enumerated().allSatisfy { $1.timestamp == Int64($0) * 20_000_000 - 2_500_000 })
    let resolution = try NodeBench.resolve(
      AudioResample.self, ["rate": 16_000], inputs: ["in": shape(48_000)])
    #expect(resolution.latency == 2_500_000)
    #expect(resolution.outputs["out"] == shape(16_000))
  }

  @Test(
    "the output does not depend on how the stream is chunked, and no packet is empty",
    arguments: [[960], [1, 2, 959], [441, 7], [313]])
  func packets(lengths: [Int]) throws {
    let samples = Fixture.noise16(seed: 1, count: 19_200)
    let whole = try run(samples, from: 48_000, to: 44_100, lengths: [480]).flatMap(\.int16)
    let cut = try run(samples, from: 48_000, to: 44_100, lengths: lengths)
    #expect(cut.flatMap(\.int16) == whole)
    #expect(cut.allSatisfy { $0.duration > 0 })
  }

  @Test("float and 16-bit give the same result, channel by channel")
  func types() throws {
    let left = Fixture.sine(300, rate: 48_000, frames: 4_800)
    let stereo = left.flatMap { [$0, -$0] }
    let float = try NodeBench(
      AudioResample.self, ["rate": 16_000], inputs: ["in": shape(48_000, channels: 2, .f32)])
    float.push(stereo)
    try float.finish()
    let short = try NodeBench(
      AudioResample.self, ["rate": 16_000], inputs: ["in": shape(48_000, channels: 2)])
    short.push(stereo.map { Int16(($0 * 32_768).rounded()) })
    try short.finish()
    let (floats, shorts) = (float.float(), short.int16())
    #expect(floats.count == shorts.count && floats.count == 2 * 1_640)
    #expect(zip(floats, shorts).allSatisfy { abs($0 * 32_768 - Float($1)) < 2 })
    #expect(stride(from: 0, to: floats.count, by: 2).allSatisfy { abs(floats[$0] + floats[$0 + 1]) < 1e-6 })
  }

  @Test("equal rates pass the packet untouched")
  func equal() throws {
    let bench = try NodeBench(AudioResample.self, ["rate": 16_000], inputs: ["in": shape()])
    bench.push([7, 8] as [Int16], timestamp: 3)
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.int16) == [[7, 8]] && packets[0].timestamp == 3)
    #expect(bench.resolution.latency == 0)
  }

  @Test("a discontinuity restarts the filter at the packet's position, without a trace of the past")
  func discontinuity() throws {
    let bench = try NodeBench(AudioResample.self, ["rate": 16_000], inputs: ["in": shape(48_000)])
    bench.push([Int16](repeating: 20_000, count: 1_920))
    bench.setPosition(48_000)
    bench.push([Int16](repeating: 0, count: 960), flags: .discontinuity)
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.position) == [-40, 280, 15_960, 16_280])
    #expect(packets.map(\.flags) == [[], [], .discontinuity, []])
    #expect(packets[2].int16.allSatisfy { $0 == 0 } && packets[3].int16.allSatisfy { $0 == 0 })
  }

  @Test("an interruption restarts the filter if it holds audio of the cancelled reply")
  func interruption() throws {
    let bench = try NodeBench(AudioResample.self, ["rate": 16_000], inputs: ["in": shape(48_000)])
    bench.interrupt()
    bench.setGeneration(1)
    bench.push([Int16](repeating: 20_000, count: 960))
    try bench.run()
    bench.interrupt()
    bench.setGeneration(2)
    bench.push([Int16](repeating: 0, count: 960))
    try bench.finish()
    let heard = bench.packets().filter { $0.generation == 2 }
    #expect(!heard.isEmpty && heard.allSatisfy { $0.int16.allSatisfy { $0 == 0 } })
  }

  @Test(
    "an interruption spares audio of no reply and packets that must be played",
    arguments: [(0, []), (1, .uninterruptible)] as [(UInt32, PacketFlags)])
  func interruptionSpares(generation: UInt32, flags: PacketFlags) throws {
    let samples = Fixture.noise16(seed: 4, count: 4_800)
    let bench = try NodeBench(AudioResample.self, ["rate": 16_000], inputs: ["in": shape(48_000)])
    bench.interrupt()
    bench.setGeneration(generation)
    for start in stride(from: 0, to: samples.count, by: 960) {
      bench.push(Array(samples[start..<start + 960]), flags: flags)
      try bench.run()
      bench.interrupt()
    }
    try bench.finish()
    let heard = bench.packets()
    let whole = try run(samples, from: 48_000, to: 16_000)
    #expect(heard.map(\.int16) == whole.map(\.int16))
    #expect(heard.map(\.position) == whole.map(\.position))
  }

  @Test("a lost packet is dropped and the filter restarts after it")
  func lost() throws {
    let bench = try NodeBench(AudioResample.self, ["rate": 16_000], inputs: ["in": shape(48_000)])
    bench.push([Int16](repeating: 100, count: 960))
    bench.push(bytes: [], duration: 960, flags: .lost)
    bench.push([Int16](repeating: 100, count: 960))
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.position) == [-40, 600, 920])
    #expect(packets[1].flags == .discontinuity)
  }

  @Test("a ratio with too large a table is refused with a message")
  func ratio() {
    let text = refusal(AudioResample.self, ["rate": 191_999], inputs: ["in": shape(8_001, frames: 160)])
    #expect(text?.hasPrefix("\"rate\": resampling 8001 Hz to 191999 Hz needs") == true)
  }

  @Test("positions of 100 years do not overflow")
  func years() throws {
    let bench = try NodeBench(AudioResample.self, ["rate": 16_000], inputs: ["in": shape(48_000)])
    let position: Int64 = 48_000 * 3_600 * 24 * 36_525
    bench.setPosition(position)
    bench.push([Int16](repeating: 100, count: 960))
    try bench.finish()
    #expect(bench.packets()[0].position == position / 3 - 40)
  }
}
