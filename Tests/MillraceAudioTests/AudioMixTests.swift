import MillraceAudio
import MillraceCore
import MillraceTesting
import Testing

@Suite("audio.mix")
struct AudioMixTests {
  private func bench(
    _ parameters: [String: ParameterValue] = [:], _ count: Int = 2, _ input: OutputShape = shape(frames: 4)
  ) throws -> NodeBench {
    var inputs: [String: OutputShape] = [:]
    for index in 1...count { inputs["in\(index)"] = input }
    return try NodeBench(AudioMix.self, parameters, inputs: inputs)
  }

  @Test("inputs are added sample by sample, in packets of the input's length")
  func adds() throws {
    let bench = try bench()
    bench.push([1, 2, 3, 4, 5, 6] as [Int16], to: "in1")
    bench.push([10, 20, 30, 40, 50, 60] as [Int16], to: "in2")
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.int16) == [[11, 22, 33, 44], [55, 66]])
    #expect(packets.map(\.position) == [0, 4])
    #expect(packets.map(\.timestamp) == [0, 250_000])
    #expect(bench.close() == [])
  }

  @Test("inputs are placed by position: gaps, late starts and early ends are silence")
  func places() throws {
    let bench = try bench()
    bench.push([1, 1, 1, 1, 1, 1, 1, 1, 1, 1] as [Int16], to: "in1")
    bench.setPosition(2, of: "in2")
    bench.push([10, 10] as [Int16], to: "in2")
    bench.setPosition(7, of: "in2")
    bench.push([10] as [Int16], to: "in2")
    try bench.finish()
    #expect(bench.int16() == [1, 1, 11, 11, 1, 1, 1, 11, 1, 1])
  }

  @Test("output begins at the lowest first position, even below 0")
  func runIn() throws {
    let bench = try bench()
    bench.setPosition(-2, of: "in2")
    bench.push([5, 5, 5, 5] as [Int16], to: "in2")
    bench.push([1, 1] as [Int16], to: "in1")
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.position) == [-2] && packets[0].int16 == [5, 5, 6, 6])
    #expect(packets[0].timestamp == -125_000)
  }

  @Test("the mix waits for an input that has not ended, and continues without one that has")
  func waits() throws {
    let bench = try bench()
    bench.push([1, 1, 1, 1, 1, 1, 1, 1] as [Int16], to: "in1")
    bench.push([2, 2, 2, 2] as [Int16], to: "in2")
    try bench.run()
    #expect(bench.int16() == [3, 3, 3, 3])
    bench.end("in2")
    bench.push([1, 1, 1, 1] as [Int16], to: "in1")
    try bench.run()
    #expect(bench.int16() == [1, 1, 1, 1, 1, 1, 1, 1])
  }

  @Test("packets of different lengths are mixed", arguments: [[4], [1, 3], [2, 1, 4]], [[4], [3]])
  func lengths(first: [Int], second: [Int]) throws {
    let (left, right) = (Fixture.noise16(seed: 1, count: 50), Fixture.noise16(seed: 2, count: 45))
    let bench = try bench()
    for (name, samples, lengths) in [("in1", left, first), ("in2", right, second)] {
      var start = 0
      var turn = 0
      while start < samples.count {
        let count = min(lengths[turn % lengths.count], samples.count - start)
        bench.push(Array(samples[start..<start + count]), to: name)
        start += count
        turn += 1
      }
    }
    try bench.finish()
    let expected = left.indices.map { left[$0] + ($0 < right.count ? right[$0] : 0) }
    #expect(bench.int16() == expected)
  }

  @Test("16-bit output saturates once at the end, float output unless disabled")
  func saturates() throws {
    let short = try bench([:], 3)
    short.push([30_000, 30_000] as [Int16], to: "in1")
    short.push([30_000, 30_000] as [Int16], to: "in2")
    short.push([0, -30_000] as [Int16], to: "in3")
    try short.finish()
    #expect(short.int16() == [32_767, 30_000])
    for (saturate, expected) in [(true, [1, 0.25]), (false, [1.5, 0.25])] as [(Bool, [Float])] {
      let float = try bench(["saturate": .bool(saturate)], 2, shape(16_000, .f32, frames: 4))
      float.push([0.75, 0.5] as [Float], to: "in1")
      float.push([0.75, -0.25] as [Float], to: "in2")
      try float.finish()
      #expect(float.float() == expected)
    }
  }

  @Test("inputs of both sample types mix into the type of the first")
  func types() throws {
    let bench = try NodeBench(
      AudioMix.self, inputs: ["in1": shape(frames: 4), "in2": shape(16_000, .f32, frames: 4)])
    bench.push([100, 100] as [Int16], to: "in1")
    bench.push([0.5, -0.5] as [Float], to: "in2")
    try bench.finish()
    #expect(bench.int16() == [16_484, -16_284])
  }

  @Test("gains apply from the start, one by one or as a list, and can be changed live over 20 ms")
  func gains() throws {
    let start = try bench(["gains": [0, -6.0206], "gain1": -120])
    start.push([100, 100] as [Int16], to: "in1")
    start.push([100, 100] as [Int16], to: "in2")
    try start.finish()
    #expect(start.int16() == [50, 50])
    let live = try bench([:], 1, shape(frames: 320))
    try live.set("gain1", -120)
    live.push([Int16](repeating: 3_200, count: 640), to: "in1")
    try live.finish()
    let output = live.int16()
    #expect((0..<320).allSatisfy { abs(Int(output[$0]) - (3_200 - 10 * $0)) <= 1 })
    #expect(output[320...].allSatisfy { $0 == 0 })
  }

  @Test("the sum belongs to a reply only if all of it does, and an interruption silences the cancelled reply")
  func replies() throws {
    let bench = try bench()
    bench.setGeneration(1, of: "in1")
    bench.push([1, 1, 1, 1] as [Int16], to: "in1")
    bench.push([2, 2, 2, 2] as [Int16], to: "in2")
    try bench.run()
    #expect(bench.packets().map(\.generation) == [0])
    bench.push([1, 1, 1, 1] as [Int16], to: "in1")
    bench.setPosition(8, of: "in2")
    bench.push([2, 2, 2, 2] as [Int16], to: "in2")
    try bench.run()
    #expect(bench.packets().map(\.generation) == [1])
    bench.interrupt()
    bench.interrupt()
    try bench.finish()
    #expect(bench.int16() == [2, 2, 2, 2])
  }

  @Test("packets that must be played are marked so in the sum, and survive an interruption")
  func uninterruptible() throws {
    let bench = try bench()
    bench.interrupt()
    for input in ["in1", "in2"] { bench.setGeneration(1, of: input) }
    bench.push([1, 1, 1, 1, 3, 3] as [Int16], to: "in1", flags: .uninterruptible)
    bench.push([2, 2] as [Int16], to: "in2", flags: .uninterruptible)
    try bench.run()
    bench.interrupt()
    bench.end("in2")
    try bench.finish()
    let packets = bench.packets()
    #expect(packets[0].int16 == [3, 3, 1, 1])
    #expect(packets[0].generation == 1 && packets[0].flags == .uninterruptible)
  }

  @Test("an input whose positions jump by more than an hour continues at the mix's position, with an event")
  func jumps() throws {
    let hour: Int64 = 3_600 * 16_000
    for jump in [hour + 1, -hour - 1, .max - 4, .min] {
      let bench = try bench()
      bench.push([1, 1, 1, 1, 1, 1, 1, 1] as [Int16], to: "in1")
      bench.push([10, 10, 10, 10] as [Int16], to: "in2")
      push([[20, 20, 20, 20]], at: 4 &+ jump, to: "in2", of: bench)
      try bench.finish()
      #expect(bench.int16() == [11, 11, 11, 11, 21, 21, 21, 21])
      let events = bench.events()
      #expect(events.map(\.name) == ["jumped"])
      #expect(events.first?.number("input") == 2 && events.first?.number("expected") == 4)
      #expect(events.first?.number("position") == Double(4 &+ jump))
      #expect(bench.close() == [])
    }
  }

  @Test("an input that begins more than an hour from the others begins with the first of them")
  func farApart() throws {
    for far in [.max, .min, 1 << 40, -(1 << 40)] as [Int64] {
      let bench = try bench()
      bench.push([1, 1, 1, 1, 1, 1, 1, 1] as [Int16], to: "in1")
      push([[2, 2, 2, 2], [2, 2, 2, 2]], at: far, to: "in2", of: bench)
      try bench.finish()
      let packets = bench.packets()
      #expect(packets.map(\.position) == [0, 4])
      #expect(packets.map(\.int16) == [[3, 3, 3, 3], [3, 3, 3, 3]])
      #expect(bench.events().count == 1)
    }
  }

  @Test("positions at the ends of their range are mixed like others, and may wrap around")
  func ends() throws {
    for far in [.max, .max - 3, .max - 6, .min, .min + 3] as [Int64] {
      let bench = try bench()
      for input in ["in1", "in2"] { push([[1, 2, 3, 4], [5, 6, 7, 8]], at: far, to: input, of: bench) }
      try bench.finish()
      #expect(bench.hasEnded)
      let packets = bench.packets()
      #expect(packets.map(\.int16) == [[2, 4, 6, 8], [10, 12, 14, 16]])
      #expect(packets.map(\.position) == [0, 4])
      #expect(bench.close() == [])
    }
  }

  /// Pushes packets with consecutive positions, which may wrap around.
  private func push(_ packets: [[Int16]], at start: Int64, to input: String, of bench: NodeBench) {
    var position = start
    for samples in packets {
      bench.push(
        CapturedPacket(
          bytes: samples.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] },
          position: position, duration: samples.count), to: input)
      position &+= Int64(samples.count)
    }
  }

  @Test("an hour of silence inside an input is silence, not a jump")
  func longGap() throws {
    // Long packets, to keep their number small.
    let bench = try bench([:], 2, shape(8_000, frames: 8_000))
    bench.push([1, 1] as [Int16], to: "in1")
    bench.end("in1")
    bench.push([2, 2] as [Int16], to: "in2")
    bench.setPosition(3_600 * 8_000, of: "in2")
    bench.push([5] as [Int16], to: "in2")
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.reduce(0) { $0 + $1.duration } == 3_600 * 8_000 + 1)
    #expect(packets.last?.int16.last == 5)
    #expect(bench.events().isEmpty)
  }

  @Test("at the end of an input's utterance the packet ends too, and carries the mark")
  func utterances() throws {
    let bench = try bench()
    bench.push([1, 1] as [Int16], to: "in1", flags: .endOfUtterance)
    bench.push([2, 2, 2, 2] as [Int16], to: "in1")
    bench.push([10, 10, 10, 10, 10, 10] as [Int16], to: "in2")
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.int16) == [[11, 11], [12, 12, 12, 12]])
    #expect(packets.map(\.flags) == [.endOfUtterance, []])
    #expect(bench.close() == [])
  }

  @Test("the end of an utterance without audio is emitted once, at its position")
  func emptyEnds() throws {
    let bench = try bench()
    bench.push(bytes: [], to: "in2", flags: .endOfUtterance)
    bench.push([1, 1, 1, 1] as [Int16], to: "in1")
    bench.push([2, 2, 2, 2] as [Int16], to: "in2")
    bench.setGeneration(3, of: "in2")
    bench.push(bytes: [], to: "in2", flags: .endOfUtterance)
    bench.push([1, 1, 1, 1] as [Int16], to: "in1")
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.int16) == [[], [3, 3, 3, 3], [], [1, 1, 1, 1]])
    #expect(packets.map(\.position) == [0, 0, 4, 4])
    #expect(packets.map(\.flags) == [.endOfUtterance, [], .endOfUtterance, []])
    #expect(packets.map(\.generation) == [0, 0, 3, 0])
  }

  @Test("the end of an interrupted reply is dropped with it")
  func interruptedEnd() throws {
    let bench = try bench()
    bench.setGeneration(1, of: "in1")
    // The packet with the end is held, since the other input is known only half as far.
    bench.push([1, 1, 1, 1] as [Int16], to: "in1", flags: .endOfUtterance)
    bench.push([2, 2] as [Int16], to: "in2")
    try bench.run()
    bench.interrupt()
    bench.interrupt()
    bench.push([2, 2] as [Int16], to: "in2")
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.int16) == [[3, 3, 2, 2]])
    #expect(packets.allSatisfy { $0.flags == [] })
  }

  @Test("inputs of different formats are refused with the cure")
  func refused() {
    #expect(
      refusal(AudioMix.self, [:], inputs: ["in1": shape(16_000), "in2": shape(48_000)])
        == "in2 carries s16 48000 Hz 1 ch but in1 carries s16 16000 Hz 1 ch; put audio.resample (rate 16000) before in2"
    )
    #expect(
      refusal(AudioMix.self, [:], inputs: ["in1": shape(16_000), "in3": shape(16_000, channels: 2)])
        == "in3 carries s16 16000 Hz 2 ch but in1 carries s16 16000 Hz 1 ch; put audio.convert (channels 1) before in3"
    )
  }
}
