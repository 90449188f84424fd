import MillraceCodecs
import MillraceCore
import MillraceTesting
import Testing

private func shape(_ rate: Int, _ channels: Int = 1, frames: Int = 320) -> OutputShape {
  .pcm(rate: rate, channels: channels, sample: .s16, frames: frames)
}

/// A bench around `opus.encode` at 16 kHz, in packets of 20 ms.
private func encoderBench(_ parameters: [String: ParameterValue] = [:]) throws -> NodeBench {
  try NodeBench(OpusEncode.self, parameters, inputs: ["in": shape(16_000)])
}

private let speech = chirp(rate: 16_000, frames: 16_000)

@Suite("opus.encode") struct OpusEncodeTests {
  @Test("unsupported settings are refused with a cure")
  func refusals() throws {
    #expect(
      refusal(OpusEncode.self, ["frame": 15], inputs: ["in": shape(16_000)])
        == "\"frame\": an Opus packet cannot last 15.0 ms; use 2.5, 5, 10, 20, 40 or 60")
    #expect(
      refusal(OpusEncode.self, ["fec": true, "application": "lowdelay"], inputs: ["in": shape(16_000)])
        == "\"fec\": application \"lowdelay\" has no SILK layer, and only that carries error correction; "
        + "use application \"voip\" with packets of 10 ms or more, or remove \"fec\"")
    #expect(
      refusal(OpusEncode.self, ["fec": true, "frame": 5], inputs: ["in": shape(16_000)])
        == "\"fec\": packets of 5.0 ms have no SILK layer, and only that carries error correction; "
        + "use application \"voip\" with packets of 10 ms or more, or remove \"fec\"")
    #expect(
      refusal(OpusEncode.self, [:], inputs: ["in": shape(44_100)])
        == "input \"in\" of opus.encode accepts s16/f32 8000, 12000, 16000, 24000, 48000 Hz 1 to 2 ch, not s16 44100 Hz 1 ch"
    )
  }

  @Test(
    "a rate that Opus does not have names the resampler", arguments: [(44_100, 48_000), (22_050, 24_000)])
  func wrongRate(rate: Int, cure: Int) {
    var values = ParameterValues()
    for parameter in OpusEncode.contract.parameters { values[parameter.name] = parameter.defaultValue }
    var resolution = Resolution(
      node: "enc", parameters: values, inputs: ["in": shape(rate)], linkedInputs: ["in"], wanted: [:])
    OpusEncode.contract.resolve(&resolution)
    #expect(resolution.outputs.isEmpty)
    #expect(resolution.problems.map(\.text) == ["Opus cannot encode \(rate) Hz"])
    #expect(resolution.problems.map(\.cure) == ["add audio.resample (rate \(cure)) before it"])
  }

  @Test("positions count at the input's rate, and the latency is a frame plus the look-ahead")
  func resolution() throws {
    let voip = try NodeBench.resolve(OpusEncode.self, ["frame": 60], inputs: ["in": shape(24_000, 2)])
    #expect(voip.outputs["out"]?.format == .opus(rate: 24_000, channels: 2))
    #expect(voip.outputs["out"]?.packetDuration == .milliseconds(60))
    #expect(voip.latency == 66_500_000)
    let quick = try NodeBench.resolve(
      OpusEncode.self, ["frame": 2.5, "application": "lowdelay"], inputs: ["in": shape(48_000)])
    #expect(quick.latency == 5_000_000)
  }

  @Test(
    "no packet exceeds the link's declared size, even at the highest bitrate", arguments: [2.5, 20, 40, 60])
  func largest(frame: Double) throws {
    let bench = try NodeBench(
      OpusEncode.self,
      ["frame": .number(frame), "bitrate": 510_000, "rateControl": "cbr", "application": "audio"],
      inputs: ["in": shape(48_000, 2, frames: 960)])
    bench.push(Fixture.noise16(seed: 3, count: 48_000, amplitude: 0.9))
    try bench.finish()
    let sizes = bench.packets().map(\.bytes.count)
    #expect(sizes.max()! <= bench.shape().packetBytes)
    let rate = Double(sizes.dropLast().reduce(0, +) * 8) / (Double(sizes.count - 1) * frame / 1000)
    #expect(rate > min(400_000, 1200 * 8 * 1000 / frame))
  }

  @Test("bitrate and complexity can change while it runs")
  func live() throws {
    let bench = try encoderBench(["bitrate": 32_000])
    bench.push(Array(speech[..<8000]))
    try bench.run()
    let before = bench.packets().map(\.bytes.count)
    try bench.set("bitrate", 8000)
    try bench.set("complexity", 0)
    bench.push(Array(speech[8000...]))
    try bench.run()
    let after = bench.packets().map(\.bytes.count)
    #expect(before.reduce(0, +) / before.count > 60)
    #expect(after.dropFirst(2).reduce(0, +) / (after.count - 2) < 30)
  }

  @Test("constant bitrate makes all packets equally large, constrained variable bitrate does not")
  func rateControl() throws {
    let constant = try encode(speech, rate: 16_000, cut: 320, ["rateControl": "cbr"])
    #expect(Set(constant.map(\.bytes.count)) == [60])
    let constrained = try encode(speech, rate: 16_000, cut: 320)
    #expect(Set(constrained.map(\.bytes.count)).count > 5)
  }

  @Test("error correction can be switched on while it runs, without an expected loss")
  func liveErrorCorrection() throws {
    let bench = try encoderBench(["bitrate": 24_000])
    let voice = voice(frames: 32_000)
    bench.push(Array(voice[..<16_000]))
    try bench.run()
    _ = bench.packets()
    try bench.set("fec", true)
    bench.push(Array(voice[16_000...]))
    try bench.run()
    let packets = bench.packets()
    #expect(packets.dropFirst(3).contains { carriesCopy($0.bytes) })
  }

  /// The copy flag of a mono 20 ms packet of one frame (RFC 6716 section 4.2.3).
  private func carriesCopy(_ bytes: [UInt8]) -> Bool { bytes[0] & 0x80 == 0 && bytes[1] & 0x40 != 0 }

  @Test("a gap in the input becomes silence; whole frames of it are not sent")
  func gap() throws {
    let bench = try encoderBench()
    bench.push(Array(speech[..<1700]))
    bench.setPosition(1700 + 8000)
    bench.push(Array(speech[9700..<16_000]))
    try bench.finish()
    let packets = bench.packets()
    let jumps = zip(packets, packets.dropFirst()).filter { $1.position != $0.position + Int64($0.duration) }
    #expect(jumps.count == 1)
    #expect(jumps.first?.1.flags == .discontinuity)
    // Everything stays on the frame grid.
    #expect(packets.allSatisfy { ($0.position + 104) % 320 == 0 })
    let heard = try decode(packets, rate: 16_000, ["plc": false])
    #expect(heard.count == 16_000)
    #expect(Fixture.rms(Array(heard[2600..<9000])) < 0.001)
    let tail = Array(heard[9700...])
    #expect(lag(Array(speech[9700...]), tail, reach: 30, from: 1000, count: 2000) == 0)
  }

  @Test("a gap shorter than a frame is only silenced")
  func shortGap() throws {
    let bench = try encoderBench()
    bench.push(Array(speech[..<1000]))
    bench.setPosition(1100)
    bench.push(Array(speech[1100..<3200]))
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.allSatisfy { $0.flags == [] })
    #expect(packets.map(\.position) == packets.indices.map { Int64($0 * 320 - 104) })
    #expect(try decode(packets, rate: 16_000).count == 3200)
  }

  @Test("a lost packet is silence of its length, even at the end")
  func lost() throws {
    let bench = try encoderBench()
    bench.push(Array(speech[..<640]))
    bench.push(bytes: [], duration: 640, flags: .lost)
    bench.push(Array(speech[..<640]))
    bench.push(bytes: [], duration: 3200, flags: .lost)
    try bench.finish()
    #expect(try decode(bench.packets(), rate: 16_000).count == 5120)
  }

  @Test("positions that start late or go back are ignored: the stream has no gap")
  func positions() throws {
    let bench = try encoderBench()
    bench.setPosition(1_000_000)
    bench.push(Array(speech[..<640]))
    bench.setPosition(5)
    bench.push(Array(speech[..<640]))
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.position) == [-104, 216, 536, 856, 1176])
    #expect(packets.last?.trimEnd == 216)
  }

  @Test("an input without samples produces no packet")
  func empty() throws {
    let bench = try encoderBench()
    try bench.finish()
    #expect(bench.packets().isEmpty)
  }

  @Test("with DTX silence is not sent; the next packet is marked, and the length stays exact")
  func discontinuous() throws {
    let bench = try encoderBench(["dtx": true])
    let sent =
      Array(speech[..<8000]) + [Int16](repeating: 0, count: 48_000) + Array(speech[..<8000])
      + [Int16](repeating: 0, count: 16_001)
    bench.push(sent)
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.count < 100)
    let jumps = zip(packets, packets.dropFirst()).filter { $1.position != $0.position + Int64($0.duration) }
    #expect(jumps.count > 4)
    #expect(jumps.allSatisfy { $1.flags.contains(.silence) })
    #expect(packets.count { $0.flags.contains(.silence) } == jumps.count)
    #expect(packets.dropLast().allSatisfy { $0.bytes.count > 2 })

    let decoder = try decoderBench(rate: 16_000)
    for packet in packets { decoder.push(packet) }
    try decoder.finish()
    let heard = decoder.int16()
    #expect(heard.count == sent.count)
    #expect(decoder.events().isEmpty)
    #expect(Fixture.rms(Array(heard[16_000..<50_000])) < 0.01)
  }

  @Test("a call encodes at most one frame, including untransmitted ones")
  func oneFrameACall() throws {
    let bench = try NodeBench(
      OpusEncode.self, ["dtx": true], inputs: ["in": shape(16_000, frames: 16_000)])
    bench.push([Int16](repeating: 0, count: 16_000))
    try bench.run()
    #expect(bench.packets().count < 40)
    #expect(bench.callCount >= 50)
    try bench.finish()
  }

  @Test("an interruption silences pending samples of the old reply and does not affect uplink audio")
  func interruption() throws {
    let reply = try encoderBench()
    reply.setGeneration(1)
    reply.interrupt()
    reply.push([Int16](repeating: 9000, count: 300))
    try reply.run()
    reply.interrupt()
    reply.setGeneration(2)
    reply.push([Int16](repeating: 0, count: 660))
    try reply.finish()
    let packets = reply.packets()
    #expect(packets.allSatisfy { $0.generation == 2 })
    #expect(packets.first?.flags == .discontinuity)
    #expect(try decode(packets, rate: 16_000).allSatisfy { abs(Int($0)) < 10 })

    let uplink = try encoderBench()
    uplink.push(Array(speech[..<300]))
    try uplink.run()
    uplink.interrupt()
    uplink.push(Array(speech[300..<3200]))
    try uplink.finish()
    #expect(uplink.packets() == (try encode(Array(speech[..<3200]), rate: 16_000, cut: 320)))
  }

  @Test("back-pressure stops the encoder and loses nothing")
  func pressure() throws {
    let bench = try encoderBench(["frame": 5])
    bench.hold()
    bench.push(Array(speech[..<3200]))
    try bench.run()
    var packets: [CapturedPacket] = []
    while let packet = bench.take() { packets.append(CapturedPacket(packet)) }
    #expect(packets.count == 8)
    bench.release()
    try bench.finish()
    packets += bench.packets()
    #expect(packets == (try encode(Array(speech[..<3200]), rate: 16_000, cut: 320, ["frame": 5])))
  }

  @Test(
    "encoding allocates nothing, in any mode",
    .enabled(if: HeapScope.isCounting, "\(HeapScope.skipReason)"),
    arguments: [
      [:], ["dtx": true, "fec": true, "loss": 10], ["frame": 60, "rateControl": "cbr"],
      ["frame": 2.5, "application": "lowdelay"],
    ] as [[String: ParameterValue]])
  func heap(parameters: [String: ParameterValue]) throws {
    let bench = try encoderBench(parameters)
    bench.push(speech)
    try bench.run()
    bench.resetHeapRequests()
    for _ in 0..<5 {
      bench.push(speech)
      bench.push([Int16](repeating: 0, count: 8000))
      try bench.run()
    }
    #expect(bench.heapRequests == 0)
    try bench.finish()
    #expect(bench.close() == [])
  }
}
