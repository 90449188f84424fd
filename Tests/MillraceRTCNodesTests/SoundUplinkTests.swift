import MillraceCore
import MillraceTesting
import Testing

@testable import MillraceRTCNodes
@testable import MillraceRTCSound

private let pcmu = SoundCodec(kind: .pcmu, clockRate: 8_000, channels: 1)
private let pcma = SoundCodec(kind: .pcma, clockRate: 8_000, channels: 1)

/// 20 ms of 48 kHz.
private let input = OutputShape.pcm(rate: 48_000, channels: 1, sample: .f32, frames: 960)

private func piece(_ frames: Int = 960, from: Int = 0) -> [Float] {
  Fixture.sine(440, rate: 48_000, frames: frames, from: from)
}

@Suite("sound that is sent") struct SoundUplinkTests {
  @Test("sound of any length is cut into packets of ptime", arguments: [10, 20, 40, 60])
  func packetTimes(ptime: Int) throws {
    let probe = SoundProbe()
    probe.up.ptime = ptime
    let packets = try probe.send(piece(48_000), rate: 48_000, codec: .opus)
    #expect(packets.allSatisfy { $0.duration == 48 * ptime && $0.pause == 0 })
    #expect(packets.count == (1_000 + ptime - 1) / ptime)
    #expect(probe.sent.packets == packets.count && probe.sent.dropped == 0)
  }

  @Test("the end of the input sends what is left, completed with silence")
  func end() throws {
    let probe = SoundProbe()
    let packets = try probe.send(piece(1_440), rate: 48_000, codec: .opus)
    #expect(packets.map(\.duration) == [960, 960])
  }

  @Test(
    "the end of an utterance sends what is left at once; the next gap is shorter by what was sent early"
  )
  func utterance() throws {
    let probe = SoundProbe()
    let bench = try probe.upBench(input)
    probe.agree(.opus)
    bench.push(piece(480), flags: .endOfUtterance)
    try bench.run()
    #expect(probe.exchange.takeSent().map(\.duration) == [960])
    // One second later; half a packet was sent ahead.
    bench.push(CapturedPacket(bytes: bytes(piece()), position: 480 + 48_000, duration: 960))
    try bench.run()
    let sent = probe.exchange.takeSent()
    #expect(sent.map(\.pause) == [48_000 - 480])
    #expect(bench.close() == [])
  }

  @Test("a gap of positions becomes the pause of the next packet, and the clock keeps its time")
  func gap() throws {
    let probe = SoundProbe()
    let bench = try probe.upBench(.pcm(rate: 16_000, channels: 1, sample: .f32, frames: 320))
    probe.agree(.opus)
    var total = 0
    for start in [0, 320, 640, 16_000, 16_320] {
      let samples = Fixture.sine(440, rate: 16_000, frames: 320)
      bench.push(CapturedPacket(bytes: bytes(samples), position: Int64(start), duration: 320))
      try bench.run()
      for packet in probe.exchange.takeSent() { total += packet.duration + packet.pause }
    }
    try bench.finish()
    for packet in probe.exchange.takeSent() { total += packet.duration + packet.pause }
    // Up to 16,640 samples of the input, within a packet.
    #expect(abs(total - 16_640 * 3) <= 960)
    #expect(bench.close() == [])
  }

  @Test("positions that go back or jump by hours pause nothing")
  func jumps() throws {
    let probe = SoundProbe()
    let bench = try probe.upBench(input)
    probe.agree(.opus)
    for position in [0, 1 << 50, 5, -(1 << 60), Int64.max - 2_000] {
      bench.push(CapturedPacket(bytes: bytes(piece()), position: position, duration: 960))
      try bench.run()
    }
    #expect(probe.exchange.takeSent().allSatisfy { $0.pause == 0 })
    #expect(bench.close() == [])
  }

  @Test("without takers, or a codec, the input is drained and counted", arguments: [true, false])
  func unheard(hasCodec: Bool) throws {
    let probe = SoundProbe()
    let bench = try probe.upBench(input)
    probe.agree(hasCodec ? .opus : nil, takers: hasCodec ? 0 : 1)
    for _ in 0..<10 { bench.push(piece()) }
    try bench.run()
    #expect(probe.sent.unheard == 10)
    #expect(probe.exchange.takeSent().isEmpty)
    probe.agree(.opus)
    bench.push(piece())
    try bench.run()
    #expect(probe.exchange.takeSent().map(\.pause) == [0])
    #expect(bench.close() == [])
  }

  @Test("while it is muted, packets of silence keep the time")
  func muted() throws {
    let probe = SoundProbe()
    probe.isMuted = true
    let packets = try probe.send(piece(9_600), rate: 48_000, codec: pcmu)
    #expect(packets.count >= 10)
    #expect(packets.allSatisfy { $0.payload.allSatisfy { $0 == 0xFF } && !$0.isVoice && $0.level >= 120 })
  }

  @Test("a packet that finds no room is dropped, counted, and paused for")
  func noRoom() throws {
    let probe = SoundProbe()
    let bench = try probe.upBench(input)
    probe.agree(pcmu)
    for index in 0..<1_000 {
      bench.push(piece(from: index * 960))
      try bench.run()
    }
    let before = probe.exchange.takeSent()
    #expect(probe.sent.dropped > 0 && probe.sent.packets == before.count)
    bench.push(piece(from: 960_000))
    try bench.run()
    #expect(probe.exchange.takeSent().first?.pause == probe.sent.dropped * 160)
    #expect(bench.close() == [])
  }

  @Test("NaN and infinity become silence, and reach nothing after them")
  func notANumber() throws {
    let probe = SoundProbe()
    let bad: [Float] = (0..<960).map { [Float.nan, .infinity, -.infinity, 1e30][$0 % 4] }
    let packets = try probe.send(bad + piece(9_600), rate: 48_000, codec: pcma)
    let heard = try probe.decoded(packets)
    #expect(heard.allSatisfy { $0.isFinite && abs($0) <= 1 })
    let (level, rest) = toneLevel(Array(heard.suffix(800).prefix(640)), 440, rate: 8_000)
    #expect(abs(level - -9) < 0.5 && rest < 0.05)
  }

  @Test("level and voice are those of the sound")
  func levels() throws {
    let probe = SoundProbe()
    let loud = try probe.send(piece(48_000), rate: 48_000, codec: pcmu)
    // A sine of half of full scale: -9 dBFS.
    #expect(loud.dropFirst(2).dropLast().allSatisfy { abs(Int($0.level) - 9) <= 1 && $0.isVoice })
    let quiet = try probe.send([Float](repeating: 0, count: 48_000), rate: 48_000, codec: pcmu)
    #expect(quiet.allSatisfy { $0.level >= 120 && !$0.isVoice })
  }

  @Test(
    "sound below the least bit of 16 counts as silence, and so does what is muted",
    arguments: [
      (0, false, true), (1e-5, false, true), (1e-4, false, false), (0.5, false, false), (0.5, true, true),
    ] as [(Double, Bool, Bool)])
  func silence(amplitude: Double, isMuted: Bool, isSilent: Bool) throws {
    for codec in [pcmu, .opus] {
      let probe = SoundProbe()
      probe.isMuted = isMuted
      let bench = try probe.upBench(input)
      probe.agree(codec)
      for index in 0..<10 {
        bench.push(Fixture.sine(440, rate: 48_000, frames: 960, amplitude: amplitude, from: index * 960))
        try bench.run()
      }
      #expect(probe.sent.packets >= 9 && probe.isSilent == isSilent, "\(codec)")
      _ = probe.exchange.takeSent()
      #expect(bench.close() == [])
    }
  }

  @Test("packets of Opus are never silence: nobody has listened to them")
  func opaque() throws {
    let silence = try SoundProbe().send([Float](repeating: 0, count: 960), rate: 48_000, codec: .opus)
    let packet = try #require(silence.first)
    let probe = SoundProbe()
    let bench = try probe.upBench(
      OutputShape(.opus(rate: 48_000, channels: 1), packetDuration: nil, packetBytes: 1_500))
    probe.agree(.opus)
    bench.push(CapturedPacket(bytes: packet.payload, position: 0, duration: 960))
    try bench.run()
    #expect(probe.sent.packets == 1 && probe.isSilent == false)
    #expect(bench.close() == [])
  }

  @Test("with DTX, silence is not sent, and the pause tells its length")
  func dtx() throws {
    let probe = SoundProbe()
    probe.up.dtx = true
    let sound = piece(48_000) + [Float](repeating: 0, count: 96_000) + piece(48_000)
    let packets = try probe.send(sound, rate: 48_000, codec: .opus)
    #expect(probe.sent.silent > 20)
    #expect(packets.reduce(0) { $0 + $1.duration + $1.pause } >= 4 * 48_000 - 960)
  }

  @Test("copies are sent only while packets are lost, and the bitrate follows the network")
  func network() throws {
    func bytes(loss: Int, bitrate: Int) throws -> Int {
      let probe = SoundProbe()
      let bench = try probe.upBench(.pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320))
      probe.agree(.opus)
      probe.exchange.soundLoss.store(loss, ordering: .relaxed)
      probe.exchange.soundBitrate.store(bitrate, ordering: .relaxed)
      var count = 0
      let voice = Fixture.voice16(rate: 16_000, frames: 48_000)
      for start in stride(from: 0, to: voice.count, by: 320) {
        bench.push(Array(voice[start..<start + 320]))
        try bench.run()
        count += probe.exchange.takeSent().reduce(0) { $0 + $1.payload.count }
      }
      #expect(bench.close() == [])
      return count
    }
    let usual = try bytes(loss: 0, bitrate: 0)
    #expect(try bytes(loss: 0, bitrate: 12_000) < usual * 2 / 3)
    // Never above the parameter.
    #expect(try bytes(loss: 0, bitrate: 200_000) < usual * 11 / 10)
  }

  @Test("Opus packets pass unchanged, with the length they state, and gaps become pauses")
  func opus() throws {
    let packets = try SoundProbe.tone(1)
    let probe = SoundProbe()
    let bench = try probe.upBench(
      OutputShape(.opus(rate: 16_000, channels: 1), packetDuration: nil, packetBytes: 1_500))
    probe.agree(.opus)
    for index in 0..<10 where index != 5 {
      bench.push(
        CapturedPacket(bytes: packets[index].payload, position: Int64(index) * 320, duration: 320))
      try bench.run()
    }
    let sent = probe.exchange.takeSent()
    #expect(sent.map(\.payload) == (0..<10).filter { $0 != 5 }.map { packets[$0].payload })
    #expect(sent.map(\.duration) == Array(repeating: 960, count: 9))
    #expect(sent.map(\.pause) == [0, 0, 0, 0, 0, 960, 0, 0, 0])
    #expect(bench.close() == [])
  }

  @Test("Opus packets are refused with the reason where another codec was agreed on, and broken ones always")
  func refusedOpus() throws {
    let shape = OutputShape(.opus(rate: 48_000, channels: 1), packetDuration: nil, packetBytes: 1_500)
    let probe = SoundProbe()
    let bench = try probe.upBench(shape)
    probe.agree(pcmu)
    bench.push(bytes: [0xF8, 1, 2, 3], duration: 960)
    try bench.run()
    #expect(probe.refusals == [.opusNotAgreed(pcmu)])
    #expect(
      probe.refusals.first?.description
        == "the input \"audio\" carries Opus, and the peers agreed on PCMU/8000; add opus.decode before it")
    probe.agree(.opus)
    // 63 frames of 20 ms.
    bench.push(bytes: [0xFB, 63, 1, 2], duration: 960)
    bench.push(bytes: [UInt8](repeating: 0xF8, count: 1_200), duration: 960)
    try bench.run()
    #expect(probe.sent.refused == 3)
    #expect(probe.exchange.takeSent().isEmpty)
    #expect(bench.close() == [])
  }

  @Test("a codec that was not listed is refused, and named")
  func unlisted() throws {
    let probe = SoundProbe()
    probe.up.codecs = [.opus]
    let bench = try probe.upBench(input)
    probe.agree(pcma)
    bench.push(piece())
    try bench.run()
    #expect(probe.refusals == [.noEncoder(pcma)])
    #expect(probe.sent.refused == 1)
    #expect(bench.close() == [])
  }

  @Test(
    "an interruption discards what is left of a reply, and nothing of a voice", arguments: [0, 1] as [UInt32])
  func interruption(generation: UInt32) throws {
    let probe = SoundProbe()
    let bench = try probe.upBench(input)
    probe.agree(.opus)
    bench.setGeneration(generation)
    bench.push(piece(480))
    try bench.run()
    bench.interrupt()
    bench.setGeneration(generation == 0 ? 0 : bench.generation)
    bench.push(piece(960, from: 480))
    try bench.run()
    try bench.finish()
    // One and a half packets, or the one behind the interruption.
    #expect(probe.exchange.takeSent().count == (generation == 0 ? 2 : 1))
    #expect(bench.close() == [])
  }

  @Test("lengths of packets that no codec has are refused with a cure")
  func wrongPacketTime() throws {
    let probe = SoundProbe()
    probe.up.ptime = 15
    #expect(throws: BenchProblem.self) { try probe.upBench(input) }
  }

  @Test(
    "sending allocates nothing", .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)),
    arguments: [SoundCodec.opus, pcmu])
  func heap(codec: SoundCodec) throws {
    let probe = SoundProbe()
    probe.up.fec = true
    let bench = try probe.upBench(.pcm(rate: 44_100, channels: 2, sample: .s16, frames: 882))
    probe.agree(codec)
    for index in 0..<400 {
      if index == 100 { bench.resetHeapRequests() }
      probe.exchange.soundLoss.store(index % 50, ordering: .relaxed)
      bench.push(Fixture.sine16(440, rate: 44_100, frames: 882, channels: 2, from: index * 882))
      try bench.run()
      _ = probe.exchange.takeSent()
    }
    #expect(bench.heapRequests == 0)
    #expect(bench.close() == [])
  }
}

private func bytes(_ samples: [Float]) -> [UInt8] { samples.withUnsafeBytes(Array.init) }

extension SoundProbe {
  /// The sound of G.711 packets of A-law, without a jitter buffer.
  fileprivate func decoded(_ packets: [SoundPacket]) throws -> [Float] {
    packets.flatMap { packet in packet.payload.map { Float(alaw($0)) / 32_768 } }
  }
}

/// A-law by the definition (ITU-T G.711 table 1).
private func alaw(_ code: UInt8) -> Int {
  let bits = Int(code ^ 0x55)
  let (segment, mantissa) = (bits >> 4 & 7, bits & 15)
  let magnitude = segment == 0 ? (mantissa << 4) + 8 : ((mantissa << 4) + 0x108) << (segment - 1)
  return bits & 0x80 != 0 ? magnitude : -magnitude
}
