import MillraceAudio
import MillraceCore
import MillraceTesting
import Testing

@Suite("audio.convert")
struct AudioConvertTests {
  @Test("16 bits to float and back is exact, and floats above full scale saturate")
  func types() throws {
    let up = try NodeBench(AudioConvert.self, ["sample": "f32"], inputs: ["in": shape()])
    up.push([-32_768, -1, 0, 1, 32_767] as [Int16])
    try up.finish()
    let floats = up.float()
    let expected: [Float] = [-1, -0x1p-15, 0, 0x1p-15, 0x0.fffep0]
    #expect(floats == expected)
    let down = try NodeBench(AudioConvert.self, ["sample": "s16"], inputs: ["in": shape(16_000, .f32)])
    down.push(floats + [2, -2])
    try down.finish()
    #expect(down.int16() == [-32_768, -1, 0, 1, 32_767, 32_767, -32_768])
  }

  @Test(
    "channels follow the stated rule in all four combinations of sample types",
    arguments: [SampleType.s16, .f32], [SampleType.s16, .f32])
  func channels(from: SampleType, to: SampleType) throws {
    func run(_ frames: [Int16], _ inputs: Int, _ outputs: Int, _ extra: [String: ParameterValue] = [:]) throws
      -> [Int]
    {
      let bench = try NodeBench(
        AudioConvert.self,
        extra.merging(["channels": .integer(outputs), "sample": .string(to.rawValue)]) { first, _ in first },
        inputs: ["in": shape(16_000, channels: inputs, from)])
      if from == .s16 { bench.push(frames) } else { bench.push(frames.map { Float($0) / 32_768 }) }
      try bench.finish()
      return to == .s16 ? bench.int16().map(Int.init) : bench.float().map { Int(($0 * 32_768).rounded()) }
    }
    #expect(try run([100, 300, -50, -150], 2, 1) == [200, -100])
    #expect(try run([100, -50], 1, 2) == [100, 100, -50, -50])
    #expect(try run([100, 300], 2, 3) == [100, 300, 0])
    #expect(try run([1, 2, 3, 4], 4, 2) == [1, 2])
    #expect(try run([100, 300], 2, 1, ["matrix": [1, 0]]) == [100])
    #expect(try run([100, 300], 2, 2, ["matrix": [0, 1, 1, 0]]) == [300, 100])
  }

  @Test("unset properties follow the consumer, and otherwise nothing changes")
  func adapts() throws {
    func format(_ wanted: FormatConstraint, _ parameters: [String: ParameterValue] = [:]) throws -> Format? {
      try NodeBench.resolve(
        AudioConvert.self, parameters, inputs: ["in": shape(48_000, channels: 2)], wanted: ["out": wanted]
      ).outputs["out"]?.format
    }
    #expect(try format(.any) == .pcm(rate: 48_000, channels: 2, sample: .s16))
    #expect(
      try format(.pcm(channels: .only(1), samples: [.f32])) == .pcm(rate: 48_000, channels: 1, sample: .f32))
    #expect(try format(.pcm(channels: .range(3...6))) == .pcm(rate: 48_000, channels: 3, sample: .s16))
    #expect(
      try format(.pcm(channels: .only(1)), ["channels": 2]) == .pcm(rate: 48_000, channels: 2, sample: .s16))
  }

  @Test("a packet that needs no conversion passes untouched")
  func untouched() throws {
    let bench = try NodeBench(AudioConvert.self, inputs: ["in": shape()])
    bench.push([7, 8] as [Int16], timestamp: 3, flags: .uninterruptible)
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.int16) == [[7, 8]])
    #expect(packets[0].timestamp == 3 && packets[0].flags == .uninterruptible)
  }

  @Test(
    "packets get the requested length, whatever the input", arguments: [[320], [1, 7, 312], [160], [100]])
  func frames(lengths: [Int]) throws {
    let samples = Fixture.noise16(seed: 2, count: 1_000)
    let bench = try NodeBench(
      AudioConvert.self, ["frame": 10, "channels": 2], inputs: ["in": shape()])
    bench.push(samples, lengths: lengths)
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.duration) == [160, 160, 160, 160, 160, 160, 40])
    #expect(packets.map(\.position) == [0, 160, 320, 480, 640, 800, 960])
    #expect(packets.map(\.timestamp) == (0..<7).map { $0 * 10_000_000 })
    #expect(packets.flatMap(\.int16) == samples.flatMap { [$0, $0] })
    #expect(bench.close() == [])
  }

  @Test("the last packet is padded with silence if requested")
  func pad() throws {
    let bench = try NodeBench(AudioConvert.self, ["samples": 4, "pad": true], inputs: ["in": shape()])
    bench.push([1, 2, 3, 4, 5] as [Int16])
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.int16) == [[1, 2, 3, 4], [5, 0, 0, 0]])
    #expect(packets.map(\.duration) == [4, 4])
  }

  @Test("a discontinuity, a jump and a new reply emit what is held first")
  func breaks() throws {
    let bench = try NodeBench(AudioConvert.self, ["samples": 4], inputs: ["in": shape()])
    bench.push([1, 2] as [Int16])
    bench.push([3, 4] as [Int16], flags: .discontinuity)
    bench.setPosition(100)
    bench.push([5, 6] as [Int16])
    bench.setGeneration(3)
    bench.push([7, 8] as [Int16])
    bench.push([9, 10] as [Int16])
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.int16) == [[1, 2], [3, 4], [5, 6], [7, 8, 9, 10]])
    #expect(packets.map(\.position) == [0, 2, 100, 102])
    #expect(packets.map(\.flags) == [[], .discontinuity, [], []])
    #expect(packets.map(\.generation) == [0, 0, 0, 3])
  }

  @Test("an interruption drops what is held of the cancelled reply")
  func interruption() throws {
    let bench = try NodeBench(AudioConvert.self, ["samples": 4], inputs: ["in": shape()])
    bench.interrupt()
    bench.setGeneration(1)
    bench.push([1, 2] as [Int16])
    try bench.run()
    bench.interrupt()
    bench.setGeneration(2)
    bench.push([3, 4, 5, 6] as [Int16])
    try bench.finish()
    #expect(bench.packets().map(\.int16) == [[3, 4, 5, 6]])
  }

  @Test(
    "an interruption spares audio of no reply and packets that must be played",
    arguments: [(0, []), (1, .uninterruptible)] as [(UInt32, PacketFlags)])
  func interruptionSpares(generation: UInt32, flags: PacketFlags) throws {
    let bench = try NodeBench(AudioConvert.self, ["samples": 4], inputs: ["in": shape()])
    bench.interrupt()
    bench.setGeneration(generation)
    bench.push([1, 2] as [Int16], flags: flags)
    try bench.run()
    bench.interrupt()
    bench.push([3, 4, 5, 6] as [Int16], flags: flags)
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.int16) == [[1, 2, 3, 4], [5, 6]])
    #expect(packets.map(\.position) == [0, 4])
  }

  @Test(
    "the latency is how long a sample can wait for the rest of its packet",
    arguments: [(160, 0), (320, 0), (640, 20), (480, 20), (100, 5)])
  func latency(frames: Int, milliseconds: Int) throws {
    let resolution = try NodeBench.resolve(
      AudioConvert.self, ["samples": .integer(frames)], inputs: ["in": shape()])
    #expect(resolution.latency == Int64(milliseconds) * 1_000_000)
  }

  @Test("contradictory parameters are refused with the cure")
  func refused() {
    let input = ["in": shape(16_000, channels: 2)]
    #expect(
      refusal(AudioConvert.self, ["frame": 10, "samples": 160], inputs: input)
        == #""samples": "frame" and "samples" both set the packet length; remove one of them"#)
    #expect(
      refusal(AudioConvert.self, ["channels": 1, "matrix": [1]], inputs: input)
        == #""matrix": 1 gains do not match 2 input and 1 output channels; give 2: 2 for each output channel"#
    )
  }
}
