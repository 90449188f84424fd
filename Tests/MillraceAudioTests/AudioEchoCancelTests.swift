import Glibc
import MillraceAudio
import MillraceCore
import MillraceTesting
import Testing

@Suite("audio.echoCancel")
struct AudioEchoCancelTests {
  /// A far end with a syllabic envelope, and its echo 40 ms later at half the level.
  private func scene(seconds: Double, rate: Int = 16_000, delay: Int = 40) -> (far: [Int16], near: [Int16]) {
    let count = Int(seconds * Double(rate))
    let far = Fixture.noise(seed: 4, count: count, amplitude: 0.4).enumerated().map { index, sample in
      sample * Float(max(0, sin(2 * .pi * 3 * Double(index) / Double(rate))))
    }
    let faint = Fixture.noise(seed: 5, count: count, amplitude: 0.0002)
    let late = delay * rate / 1_000
    let near = (0..<count).map { faint[$0] + ($0 >= late ? 0.5 * far[$0 - late] : 0) }
    return (far.map { Int16(($0 * 32_768).rounded()) }, near.map { Int16(($0 * 32_768).rounded()) })
  }

  private func bench(
    _ parameters: [String: ParameterValue] = [:], near: OutputShape = shape(frames: 160),
    reference: OutputShape = shape(frames: 160)
  ) throws -> NodeBench {
    try NodeBench(AudioEchoCancel.self, parameters, inputs: ["near": near, "reference": reference])
  }

  /// Pushes both streams in packets of 10 ms; `pass` selects the packets of the reference.
  private func run(
    _ bench: NodeBench, far: [Int16], near: [Int16], rate: Int = 16_000, referenceAhead: Nanoseconds = 0,
    pass: (Int) -> Bool = { _ in true }
  ) throws -> [Int16] {
    let length = rate / 100
    for first in stride(from: 0, to: near.count - length + 1, by: length) {
      let time = Nanoseconds.samples(Int64(first), rate: rate)
      if pass(first) {
        bench.setPosition(Int64(first), of: "reference")
        bench.push(Array(far[first..<first + length]), to: "reference", timestamp: time + referenceAhead)
      }
      bench.push(Array(near[first..<first + length]), to: "near", timestamp: time)
      try bench.advance(to: time)
    }
    try bench.finish()
    return bench.int16()
  }

  private func level(_ samples: [Int16], _ from: Double, _ to: Double, rate: Int = 16_000) -> Double {
    20 * log10(Fixture.rms(Array(samples[Int(from * Double(rate))..<Int(to * Double(rate))])) + 1e-9)
  }

  @Test("with a silent microphone no echo return loss is reported")
  func silentMicrophone() throws {
    let (far, near) = scene(seconds: 4)
    let silent = try bench()
    _ = try run(silent, far: far, near: [Int16](repeating: 0, count: near.count))
    #expect(silent.events().allSatisfy { $0.name != "echoReturn" })
    let heard = try bench()
    _ = try run(heard, far: far, near: near)
    #expect(heard.events().contains { $0.name == "echoReturn" })
  }

  @Test("the echo is removed, and every sample keeps its position", arguments: ["millrace", "speex"])
  func cancels(engine: String) throws {
    let (far, near) = scene(seconds: 4)
    let bench = try bench(["engine": .string(engine)])
    let output = try run(bench, far: far, near: near)
    #expect(output.count == near.count)
    #expect(level(near, 3, 4) - level(output, 3, 4) > (engine == "millrace" ? 65 : 48))
    #expect(bench.close() == [])
  }

  @Test(
    "positions, times and length are the microphone's, however the stream is chunked",
    arguments: [1, 100, 128, 441, 4_800])
  func places(length: Int) throws {
    let bench = try bench(near: shape(frames: length))
    bench.end("reference")
    let near = Fixture.noise16(seed: 2, count: 16_000)
    bench.setPosition(500, of: "near")
    bench.push(near, to: "near", timestamp: 1_000_000_000)
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.first?.position == 500)
    var expected: Int64 = 500
    for packet in packets {
      #expect(packet.position == expected)
      #expect(abs(packet.timestamp - 1_000_000_000 - .samples(expected - 500, rate: 16_000)) < 10)
      expected += Int64(packet.duration)
    }
    #expect(packets.flatMap(\.int16) == near)
  }

  @Test("events report the delay, the echo return loss, and a reference that stops and resumes")
  func events() throws {
    let (far, near) = scene(seconds: 6)
    let bench = try bench()
    _ = try run(bench, far: far, near: near, pass: { !(56_000..<72_000).contains($0) })
    let events = bench.events()
    let names = events.map(\.name)
    #expect(names.first == "delayFound")
    #expect(abs((events[0].number("ms") ?? 0) - 32) <= 12)
    #expect(names.filter { $0 == "referenceStopped" }.count == 1)
    #expect(names.filter { $0 == "referenceResumed" }.count == 1)
    let figure = events.last { $0.name == "echoReturn" }
    #expect((figure?.number("erle") ?? 0) > 20)
  }

  @Test("a reference that arrives ahead of its time, like a loudspeaker's, is aligned to what was heard")
  func ahead() throws {
    let (far, near) = scene(seconds: 4)
    let bench = try bench()
    // Every packet arrives 100 ms before it is heard.
    let lead = 1_600
    let early = Array(far[lead...]) + [Int16](repeating: 0, count: lead)
    let output = try run(bench, far: early, near: near, referenceAhead: 100_000_000)
    #expect(level(near, 3, 4) - level(output, 3, 4) > 65)
  }

  @Test("without a reference the microphone passes, at most 20 ms late")
  func missing() throws {
    let bench = try bench()
    let near = Fixture.noise16(seed: 3, count: 8_000)
    for first in stride(from: 0, to: near.count, by: 160) {
      bench.push(Array(near[first..<first + 160]), to: "near")
      try bench.advance(by: 10_000_000)
    }
    let heard = bench.int16()
    #expect(heard.count >= near.count - 640)
    #expect(heard == Array(near[..<heard.count]))
    #expect(bench.events().map(\.name) == ["referenceStopped"])
  }

  @Test("audio waits for its reference rather than being processed without it")
  func waits() throws {
    let bench = try bench()
    bench.push([Int16](repeating: 100, count: 1_600), to: "near")
    try bench.run()
    #expect(bench.int16() == [])
    bench.push([Int16](repeating: 0, count: 1_600), to: "reference")
    try bench.run()
    // The rest waits for the 40 ms by which the reference is read ahead.
    #expect(bench.int16().count >= 1_600 - 128 - 160 - 640)
  }

  @Test("a reference that is far ahead stays on its link until needed, with the same result")
  func farAhead() throws {
    let (far, near) = scene(seconds: 5)
    let beside = try run(bench(), far: far, near: near)
    let bench = try bench()
    bench.push(far, to: "reference")
    try bench.run()
    bench.push(near, to: "near")
    try bench.finish()
    let output = bench.int16()
    #expect(output == beside)
    #expect(level(near, 4, 5) - level(output, 4, 5) > 65)
    #expect(bench.close() == [])
  }

  @Test("a reference that begins later counts as silence until then, and none of it is lost")
  func beginsLater() throws {
    let (far, near) = scene(seconds: 4)
    let bench = try bench()
    // All of it arrives before the microphone's first audio, which begins 3 s earlier.
    bench.push(far, to: "reference", timestamp: 3_000_000_000)
    let quiet = Fixture.noise16(seed: 9, count: 48_000)
    bench.push(quiet + near, to: "near", timestamp: 0)
    try bench.finish()
    let output = bench.int16()
    #expect(Array(output[..<47_000]) == Array(quiet[..<47_000]))
    #expect(level(near, 3, 4) - level(Array(output[48_000...]), 3, 4) > 60)
  }

  @Test("unpaced files on the real clock are aligned by position, however far apart they were opened")
  func openedApart() throws {
    let (far, near) = scene(seconds: 3)
    func output(opened delay: Nanoseconds, _ clock: Clock.Kind) throws -> [Int16] {
      let bench = try NodeBench(
        AudioEchoCancel.self, inputs: ["near": shape(frames: 160), "reference": shape(frames: 160)],
        clock: clock, pacing: .waits)
      bench.push(far, to: "reference", timestamp: delay)
      bench.push(near, to: "near", timestamp: 0)
      try bench.finish()
      return bench.int16()
    }
    let together = try output(opened: 0, .virtual)
    #expect(level(near, 2, 3) - level(together, 2, 3) > 60)
    #expect(try output(opened: .milliseconds(700), .realtime) == together)
  }

  @Test("a reference with a gap longer than the buffer waits at the end of the gap")
  func hole() throws {
    let (far, near) = scene(seconds: 6)
    let silent = near.enumerated().map { (16_000..<40_000).contains($0) ? 0 : $1 }
    let bench = try bench()
    bench.push(Array(far[..<16_000]), to: "reference", timestamp: 0)
    bench.setPosition(40_000, of: "reference")
    bench.push(Array(far[40_000...]), to: "reference", timestamp: 2_500_000_000)
    bench.push(silent, to: "near", timestamp: 0)
    try bench.finish()
    let output = bench.int16()
    #expect(level(silent, 5, 6) - level(output, 5, 6) > 55)
    #expect(!bench.events().contains { $0.name == "referenceLost" })
  }

  @Test("going back to where the reference is no longer kept is reported")
  func lost() throws {
    let (far, near) = scene(seconds: 5)
    let bench = try bench()
    bench.push(far, to: "reference", timestamp: 0)
    bench.push(near, to: "near", timestamp: 0)
    try bench.run()
    _ = bench.packets()
    bench.setPosition(0, of: "near")
    bench.push(near, to: "near", timestamp: 0, flags: .discontinuity)
    try bench.finish()
    let lost = bench.events().filter { $0.name == "referenceLost" }
    #expect(lost.count == 1)
    #expect(lost.first?.number("position") == 0)
    // The lost reference counts as silence, and the microphone passes.
    let output = bench.int16()
    #expect(abs(level(near, 0.2, 1) - level(output, 0.2, 1)) < 1)
  }

  @Test("float and 16-bit streams may be mixed; a NaN leaves no trace")
  func types() throws {
    let bench = try bench(near: shape(16_000, .f32, frames: 160), reference: shape(frames: 160))
    var near = Fixture.noise(seed: 6, count: 16_000, amplitude: 0.2)
    near[3_000] = .nan
    bench.push([Int16](repeating: 0, count: 16_000), to: "reference")
    bench.push(near, to: "near")
    try bench.finish()
    let output = bench.float()
    #expect(output.count == 16_000 && output.allSatisfy { $0.isFinite })
    #expect(abs(output[5_000] - near[5_000]) < 1e-5)
  }

  @Test("a discontinuity restarts at its position; lost packets are silence of their length")
  func breaks() throws {
    let bench = try bench()
    bench.end("reference")
    bench.push([Int16](repeating: 50, count: 320), to: "near")
    bench.push(bytes: [], to: "near", duration: 160, flags: .lost)
    bench.setPosition(32_000, of: "near")
    bench.push([Int16](repeating: 70, count: 1_600), to: "near", flags: .discontinuity)
    try bench.finish()
    let packets = bench.packets()
    let broken = try #require(packets.firstIndex { $0.position >= 32_000 })
    #expect(packets[broken].position == 32_000 && packets[broken].flags.contains(.discontinuity))
    #expect(packets[broken...].flatMap(\.int16) == [Int16](repeating: 70, count: 1_600))
  }

  @Test("suppression, comfort noise and voice probability can be changed at run time")
  func live() throws {
    let (far, near) = scene(seconds: 3)
    // Near-end speech over the echo in the third second.
    let voice = Fixture.noise(seed: 7, count: 16_000, amplitude: 0.1)
    let spoken = near.enumerated().map { $0 < 32_000 ? $1 : $1 &+ Int16(voice[$0 - 32_000] * 32_768) }
    func rest(
      _ parameter: String? = nil, _ value: ParameterValue = 0, of near: [Int16]
    ) throws -> Double {
      let bench = try bench()
      if let parameter { try bench.set(parameter, value) }
      let output = try run(bench, far: far, near: near)
      #expect(output.count == near.count)
      return level(output, 2, 3)
    }
    let asItIs = try rest(of: near)
    #expect(try rest("suppression", false, of: near) > asItIs + 30)
    #expect(try rest("comfortNoise", false, of: near) < asItIs - 30)
    let (known, denied) = (try rest("voice", 1, of: spoken), try rest("voice", 0, of: spoken))
    #expect(known > denied + 10)
  }

  @Test("a call allocates nothing", arguments: ["millrace", "speex"])
  func heap(engine: String) throws {
    let (far, near) = scene(seconds: 1.6)
    let bench = try bench(["engine": .string(engine)])
    for first in stride(from: 0, to: near.count, by: 160) {
      bench.push(Array(far[first..<first + 160]), to: "reference")
      bench.push(Array(near[first..<first + 160]), to: "near")
      try bench.run()
      // After the first event, the Swift runtime's per-type allocations are done.
      if first == 9_600 { bench.resetHeapRequests() }
    }
    #expect(bench.heapRequests == 0)
  }

  @Test(
    "a reference of another rate is refused with the cure; the latency is a block, plus 2 ms above 16 kHz"
  )
  func contract() throws {
    let text = refusal(
      AudioEchoCancel.self, [:], inputs: ["near": shape(frames: 160), "reference": shape(48_000)])
    #expect(text?.contains("put audio.resample (rate 16000) before reference") == true)
    func latency(_ rate: Int) throws -> Nanoseconds {
      try NodeBench.resolve(
        AudioEchoCancel.self, [:], inputs: ["near": shape(rate), "reference": shape(rate)]
      ).latency
    }
    #expect(try latency(8_000) == 8_000_000)
    #expect(try latency(16_000) == 8_000_000)
    #expect(try latency(48_000) <= 10_100_000)
  }
}
