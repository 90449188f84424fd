import MillraceAudio
import MillraceCore
import MillraceTesting
import Testing

/// What `audio.denoise` and `audio.autoGain` have in common: latency, with every sample at its position.
@Suite("Nodes with latency")
struct LateNodesTests {
  struct Kind: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let bench: @Sendable (OutputShape) throws -> NodeBench
  }

  static let kinds = [
    Kind(testDescription: "audio.denoise, wiener") { try NodeBench(AudioDenoise.self, inputs: ["in": $0]) },
    Kind(testDescription: "audio.denoise, speex") {
      try NodeBench(AudioDenoise.self, ["engine": "speex"], inputs: ["in": $0])
    },
    Kind(testDescription: "audio.autoGain") { try NodeBench(AudioAutoGain.self, inputs: ["in": $0]) },
  ]

  /// Checks that packets are contiguous from a position on, and returns where they end.
  private func end(of packets: [CapturedPacket], from start: Int64, rate: Int, frameBytes: Int) -> Int64 {
    var position = start
    for packet in packets {
      #expect(packet.position == position)
      #expect(packet.duration == packet.bytes.count / frameBytes && packet.duration > 0)
      // Times are computed from the last packet taken: rounding may differ by a nanosecond.
      #expect(abs(packet.timestamp - .samples(position, rate: rate)) <= 1)
      position += Int64(packet.duration)
    }
    return position
  }

  @Test(
    "as many samples come out as go in, each with its position and time", arguments: kinds,
    [(16_000, 1, 320), (48_000, 2, 480), (44_100, 1, 100), (8_000, 1, 8_000)])
  func places(kind: Kind, form: (rate: Int, channels: Int, frames: Int)) throws {
    for sample in [SampleType.s16, .f32] {
      let bench = try kind.bench(shape(form.rate, channels: form.channels, sample, frames: form.frames))
      #expect(bench.resolution.latency > 0)
      let count = form.rate * form.channels
      bench.setPosition(777)
      let sound = Fixture.noise(seed: 2, count: count, amplitude: 0.1)
      if sample == .s16 { bench.push(sound.map { Int16($0 * 32_767) }) } else { bench.push(sound) }
      try bench.finish()
      let bytes = form.channels * sample.byteCount
      #expect(
        end(of: bench.packets(), from: 777, rate: form.rate, frameBytes: bytes) == 777 + Int64(form.rate))
      #expect(bench.close() == [])
    }
  }

  @Test("held audio is emitted at a break in the stream, and the next packet is marked", arguments: kinds)
  func breaks(kind: Kind) throws {
    let bench = try kind.bench(shape())
    let sound = Fixture.noise16(seed: 2, count: 3_200, amplitude: 0.1)
    bench.push(sound, lengths: [320])
    bench.push(sound, lengths: [320], from: 10_000)
    bench.push(bytes: [], duration: 320, flags: .lost)
    bench.push(sound, lengths: [320], from: 13_520)
    try bench.finish()
    let packets = bench.packets()
    let marked = packets.indices.filter { packets[$0].flags.contains(.discontinuity) }
    #expect(marked.map { packets[$0].position } == [10_000, 13_520])
    let (second, third) = (try #require(marked.first), try #require(marked.last))
    #expect(end(of: Array(packets[..<second]), from: 0, rate: 16_000, frameBytes: 2) == 3_200)
    #expect(end(of: Array(packets[second..<third]), from: 10_000, rate: 16_000, frameBytes: 2) == 13_200)
    #expect(end(of: Array(packets[third...]), from: 13_520, rate: 16_000, frameBytes: 2) == 16_720)
  }

  @Test(
    "an interruption drops held audio of the cancelled reply only", arguments: kinds,
    [(0, true), (1, false)] as [(UInt32, Bool)])
  func interruption(kind: Kind, reply: (generation: UInt32, stays: Bool)) throws {
    let bench = try kind.bench(shape())
    bench.interrupt()
    bench.setGeneration(reply.generation)
    bench.push(Fixture.noise16(seed: 2, count: 3_200))
    try bench.run()
    bench.interrupt()
    let before = bench.packets().reduce(0) { $0 + $1.duration }
    try bench.finish()
    #expect(bench.packets().isEmpty != reply.stays)
    #expect(before < 3_200)
  }

  @Test("the result does not depend on how the stream is chunked", arguments: kinds, [[1, 7, 312], [53]])
  func cut(kind: Kind, lengths: [Int]) throws {
    func samples(_ lengths: [Int]) throws -> [UInt8] {
      let bench = try kind.bench(shape())
      bench.push(Fixture.noise16(seed: 8, count: 8_000), lengths: lengths)
      try bench.finish()
      return bench.packets().flatMap(\.bytes)
    }
    #expect(try samples(lengths) == samples([320]))
  }
}

@Suite("audio.denoise")
struct AudioDenoiseTests {
  private func level(_ engine: String, reduction: Double, live: Double? = nil) throws -> Double {
    let bench = try NodeBench(
      AudioDenoise.self, ["engine": .string(engine), "reduction": .number(reduction)], inputs: ["in": shape()]
    )
    if let live { try bench.set("reduction", .number(live)) }
    bench.push(Fixture.noise16(seed: 1, count: 16_000 * 6, amplitude: 0.05))
    try bench.finish()
    return Fixture.rms(Array(bench.int16().suffix(32_000))) / (0.05 / 3.0.squareRoot())
  }

  @Test("noise is reduced, more with more reduction, also at run time", arguments: ["wiener", "speex"])
  func reduction(engine: String) throws {
    let (little, much) = (try level(engine, reduction: 6), try level(engine, reduction: 24))
    #expect(little < 0.75 && much < 0.2 && much < little / 2)
    #expect(try abs(level(engine, reduction: 6, live: 24) / much - 1) < 0.05)
  }

  @Test("a sustained voice is preserved; NaN and infinities leave no trace", arguments: ["wiener", "speex"])
  func voice(engine: String) throws {
    let bench = try NodeBench(
      AudioDenoise.self, ["engine": .string(engine)], inputs: ["in": shape(16_000, .f32)])
    let voice = Fixture.voice16(rate: 16_000, frames: 48_000).map { Float($0) / 65_536 }
    bench.push([Float.nan, .infinity, -.infinity] + [Float](repeating: 0, count: 15_997) + voice)
    try bench.finish()
    let output = bench.float()
    #expect(output.allSatisfy { $0.isFinite })
    let kept = Fixture.rms(Array(output[24_000..<60_000])) / Fixture.rms(Array(voice[8_000..<44_000]))
    #expect(kept > 0.6 && kept < 1.1, "\(kept)")
  }

  @Test("unsupported rates are refused with the cure")
  func rates() {
    #expect(refusal(AudioDenoise.self, [:], inputs: ["in": shape(96_000)]) != nil)
  }
}

@Suite("audio.autoGain")
struct AudioAutoGainTests {
  @Test("no sample exceeds the ceiling, in 16 bits or float", arguments: [SampleType.s16, .f32])
  func ceiling(sample: SampleType) throws {
    let bench = try NodeBench(
      AudioAutoGain.self, ["ceiling": -6, "target": 0, "maxGain": 60], inputs: ["in": shape(16_000, sample)])
    let voice = Fixture.voice16(rate: 16_000, frames: 160_000)
    let ceiling = 0.501_187_233_6
    if sample == .s16 {
      bench.push(voice)
      try bench.finish()
      #expect(bench.int16().allSatisfy { abs(Double($0)) <= (ceiling * 32_768).rounded() })
    } else {
      bench.push(voice.map { Float($0) / 2_000 } + [.infinity, -.infinity, .nan])
      try bench.finish()
      #expect(bench.float().allSatisfy { $0.isFinite && Double($0.magnitude) <= ceiling })
    }
  }

  @Test("quiet speech is raised, and events report by how much")
  func louder() throws {
    let bench = try NodeBench(AudioAutoGain.self, ["report": 1_000], inputs: ["in": shape()])
    bench.push(Fixture.voice16(rate: 16_000, frames: 160_000).map { $0 / 10 })
    try bench.finish()
    let events = bench.events()
    #expect(events.count == 10 && events.allSatisfy { $0.isValid && $0.name == "gain" })
    #expect(events.first?.number("gain") ?? 99 <= 4)
    let (gain, loudness) = (events.last?.number("gain") ?? 0, events.last?.number("loudness") ?? 0)
    #expect(gain > 4 && abs(gain + loudness - -20) < 1.5)
    #expect(events.last?.number("position") == 160_000)
  }

  @Test("target and limits can be changed at run time")
  func live() throws {
    let bench = try NodeBench(
      AudioAutoGain.self, ["report": 1_000, "rise": 100, "fall": 100], inputs: ["in": shape()])
    let voice = Fixture.voice16(rate: 16_000, frames: 96_000).map { $0 / 40 }
    bench.push(voice)
    try bench.run()
    let before = bench.events().last?.number("gain") ?? 0
    try bench.set("maxGain", .number(3))
    bench.push(voice)
    try bench.run()
    #expect(before > 5 && bench.events().last?.number("gain") == 3)
    try bench.set("target", .number(-60))
    bench.push(voice)
    try bench.finish()
    #expect(bench.events().last?.number("gain") ?? 0 < -10)
  }
}
