import MillraceCodecs
import MillraceCore
import MillraceTesting
import Testing

private let length = 32_000
private let sent = chirp(rate: 16_000, frames: length)

private func packets(
  _ parameters: [String: ParameterValue] = ["application": "audio", "bitrate": 64_000]
) throws -> [CapturedPacket] {
  try encode(sent, rate: 16_000, cut: 320, parameters)
}

private func gap(_ event: BenchEvent) -> [Double?] {
  [event.number("position"), event.number("ms"), event.number("recovered_ms")]
}

@Suite("opus.decode") struct OpusDecodeTests {
  @Test("rates that Opus does not support are refused with a cure")
  func refusals() {
    #expect(
      refusal(OpusDecode.self, ["rate": 44_100], inputs: ["in": opusShape(rate: 48_000)])
        == "\"rate\": Opus cannot decode to 44100 Hz; use 8000, 12000, 16000, 24000 or 48000; for another rate add audio.resample after it"
    )
  }

  @Test("the output has the link's rate and channels by default, in packets of the input's length")
  func resolution() throws {
    let input = ["in": opusShape(rate: 16_000, channels: 2, milliseconds: 60)]
    let plain = try NodeBench.resolve(OpusDecode.self, inputs: input)
    #expect(plain.outputs["out"] == .pcm(rate: 16_000, channels: 2, sample: .s16, frames: 960))
    #expect(plain.latency == 0)
    let told = try NodeBench.resolve(
      OpusDecode.self, ["rate": 48_000, "channels": 1, "sample": "f32", "fec": true], inputs: input)
    #expect(told.outputs["out"] == .pcm(rate: 48_000, channels: 1, sample: .f32, frames: 2880))
    #expect(told.latency == .milliseconds(60))
  }

  @Test("a packet longer than usual is emitted in several pieces")
  func longPackets() throws {
    let packets = try encode(sent, rate: 16_000, cut: 320, ["frame": 60])
    let bench = try decoderBench(rate: 16_000)
    for packet in packets { bench.push(packet) }
    try bench.finish()
    let heard = bench.packets()
    #expect(heard.allSatisfy { $0.duration <= 320 })
    #expect(zip(heard, heard.dropFirst()).allSatisfy { $1.position == $0.position + Int64($0.duration) })
    #expect(heard.reduce(0) { $0 + $1.duration } == length)
  }

  @Test(
    "missing packets change neither the count nor the positions",
    arguments: [[10], [10, 11, 12], [1], [0], [30, 40, 50, 60], Array(50..<75)])
  func missing(indices: [Int]) throws {
    let all = try packets()
    let bench = try decoderBench(rate: 16_000)
    for (index, packet) in all.enumerated() where !indices.contains(index) { bench.push(packet) }
    try bench.finish()
    let heard = bench.int16()
    // A missing first packet cannot be noticed: the stream starts with the second.
    #expect(heard.count == length - (indices == [0] ? 216 : 0))
    let lost = indices == [0] ? 0 : indices.count
    #expect(bench.events().reduce(0) { $0 + ($1.number("ms") ?? 0) } == Double(lost * 20))
    let after = indices.max()! * 320 + 2000
    if indices != [0] && after + 3000 < length {
      #expect(lag(sent, heard, reach: 30, from: after, count: 3000) == 0)
    }
  }

  @Test("a packet marked lost is concealed at once, even the last one")
  func marked() throws {
    var all = try packets()
    for index in [20, 21, all.count - 1] {
      all[index].bytes = []
      all[index].flags = .lost
    }
    let bench = try decoderBench(rate: 16_000)
    for packet in all[...21] { bench.push(packet) }
    try bench.run()
    #expect(bench.packets().map { Int($0.position) + $0.duration }.max() == 22 * 320 - 104)
    for packet in all[22...] { bench.push(packet) }
    try bench.finish()
    #expect(bench.packets().map { Int($0.position) + $0.duration }.max() == length)
    #expect(bench.events().map(gap) == [[0.394, 40, 0], [1.994, 6.5, 0]])
  }

  @Test("extrapolation is closer to the lost audio than silence")
  func concealment() throws {
    let tone = Fixture.sine16(220, rate: 16_000, frames: 16_000, amplitude: 0.3)
    let all = try encode(tone, rate: 16_000, cut: 320)
    let kept = all.enumerated().filter { $0.offset != 25 }.map(\.element)
    let lost = 25 * 320 - 104..<26 * 320 - 104
    let extrapolated = try decode(kept, rate: 16_000)
    let silent = try decode(kept, rate: 16_000, ["plc": false])
    #expect(silent[lost].allSatisfy { $0 == 0 })
    #expect(signalToNoise(tone[lost], extrapolated[lost]) > signalToNoise(tone[lost], silent[lost]) + 3)
  }

  @Test("a long loss is extrapolated for a while, then silent, and the decoder is reset after it")
  func bounded() throws {
    let noise = Fixture.noise16(seed: 5, count: length, amplitude: 0.4)
    let all = try encode(noise, rate: 16_000, cut: 320)
    let kept = all.enumerated().filter { !(20..<60).contains($0.offset) }.map(\.element)
    let heard = try decode(kept, rate: 16_000, ["conceal": 50])
    let start = 20 * 320 - 104
    #expect(heard.count == length)
    #expect(heard[start..<start + 320].contains { $0 != 0 })
    #expect(heard[start + 800..<60 * 320 - 104].allSatisfy { $0 == 0 })
    #expect(Fixture.rms(Array(heard[(62 * 320)...])) > 0.1)
  }

  @Test("a jump longer than `fill` stays a jump")
  func leap() throws {
    let all = try packets()
    let bench = try decoderBench(rate: 16_000, ["fill": 100])
    for (index, packet) in all.enumerated() where !(20..<60).contains(index) { bench.push(packet) }
    try bench.finish()
    let heard = bench.packets()
    let jumps = zip(heard, heard.dropFirst()).filter { $1.position != $0.position + Int64($0.duration) }
    #expect(jumps.map { $1.position - $0.position - Int64($0.duration) } == [40 * 320])
    #expect(jumps.first?.1.flags == .discontinuity)
    let events = bench.events()
    #expect(events.map(\.name) == ["gap"])
    #expect(events.first?.bool("filled") == false)
    #expect(events.first?.number("ms") == 800)
  }

  @Test("the copy in the next packet is closer to the lost audio than extrapolation")
  func errorCorrection() throws {
    let rich = ["fec": true, "loss": 20, "bitrate": 32_000] as [String: ParameterValue]
    let all = try encode(voice(frames: length), rate: 16_000, cut: 320, rich)
    var (with, without) = ([Int16](), [Int16]())
    let lost = Set(stride(from: 15, to: 95, by: 8))
    let kept = all.enumerated().filter { !lost.contains($0.offset) }.map(\.element)
    let bench = try decoderBench(rate: 16_000, ["fec": true])
    for packet in kept { bench.push(packet) }
    try bench.finish()
    with = bench.int16()
    without = try decode(kept, rate: 16_000)
    let clean = try decode(all, rate: 16_000)
    func error(_ heard: [Int16]) -> Double {
      let places = lost.flatMap { Array($0 * 320 - 104..<($0 + 1) * 320 - 104) }
      return signalToNoise(places.map { clean[$0] }[...], places.map { heard[$0] }[...])
    }
    #expect(with.count == length)
    #expect(error(with) > error(without) + 2)
    let events = bench.events()
    #expect(events.count == lost.count)
    #expect(events.count { $0.number("recovered_ms") == 20 } >= lost.count / 2)
  }

  @Test("with error correction a packet marked lost waits for the next, and two in a row wait for one")
  func waiting() throws {
    var all = try packets(["fec": true, "loss": 20])
    for index in [20, 21] {
      all[index].bytes = []
      all[index].flags = .lost
    }
    let bench = try decoderBench(rate: 16_000, ["fec": true])
    func end() -> Int? { bench.packets().map { Int($0.position) + $0.duration }.max() }
    for packet in all[..<20] { bench.push(packet) }
    try bench.run()
    #expect(end() == 20 * 320 - 104)
    bench.push(all[20])
    try bench.run()
    #expect(end() == nil)
    bench.push(all[21])
    try bench.run()
    #expect(end() == 21 * 320 - 104)
    bench.push(all[22])
    try bench.run()
    #expect(end() == 23 * 320 - 104)
    #expect(bench.events().map { $0.number("ms") } == [40])
    var last = all[23]
    last.bytes = []
    last.flags = .lost
    bench.push(last)
    try bench.finish()
    #expect(end() == 24 * 320 - 104)
    #expect(bench.events().map { $0.number("ms") } == [20])
  }

  @Test("an invalid packet, or one with a false length, is concealed and reported")
  func damaged() throws {
    var all = try packets()
    // Code 3 with no frames (RFC 6716 section 3.2.5), and a packet of 60 ms that claims 20.
    all[30].bytes = [0x03, 0x00]
    all[40].bytes = [all[40].bytes[0] & 0xFC | 3, 3, 0, 0, 0]
    let bench = try decoderBench(rate: 16_000)
    for packet in all { bench.push(packet) }
    try bench.finish()
    #expect(bench.int16().count == length)
    let events = bench.events()
    #expect(events.filter { $0.name == "damaged" }.map { $0.number("count") } == [1, 2])
    #expect(events.filter { $0.name == "damaged" }.map { $0.number("bytes") } == [2, 5])
    // Each packet starts 104 samples, the encoder's look-ahead, before a multiple of its length.
    #expect(events.filter { $0.name == "damaged" }.map { $0.number("position") } == [0.594, 0.794])
    #expect(events.count { $0.name == "gap" } == 2)
  }

  @Test("continuous damage is reported at once, then once a second, and completely at the end")
  func damageIsGathered() throws {
    let bench = try decoderBench(rate: 16_000)
    for index in 0..<250 {
      bench.push(
        CapturedPacket(
          bytes: [0x03, 0x00], timestamp: bench.now, position: Int64(320 * index), duration: 320,
          flags: index == 249 ? .endOfUtterance : []))
      try bench.advance(by: .milliseconds(20))
    }
    let damage = bench.events().filter { $0.name == "damaged" }
    let told = expectGathered(damage, from: 0, seconds: 5)
    #expect(told.count == 250 && told.bytes == 500)
    #expect(damage[1].number("position") == 0.02, "the first of those that were gathered")
    #expect(bench.close() == [])
  }

  @Test("a packet found to be damaged only on decoding is concealed at its position and reported")
  func undecodable() throws {
    var all = try packets()
    // Two frames of 10 ms with an odd number of bytes in all (RFC 6716 section 3.2.3): the length is valid, the frames are not.
    all[30].bytes = [0xD1, 1]
    let bench = try decoderBench(rate: 16_000)
    for packet in all { bench.push(packet) }
    try bench.finish()
    let heard = bench.packets()
    #expect(heard.reduce(0) { $0 + $1.duration } == length)
    #expect(zip(heard, heard.dropFirst()).allSatisfy { $1.position == $0.position + Int64($0.duration) })
    let events = bench.events()
    #expect(events.map(\.name) == ["damaged", "gap"])
    #expect(events.first?.number("position") == 0.594)
    #expect(events.first?.number("bytes") == 2 && events.first?.number("count") == 1)
    #expect(events.last.map(gap) == [0.594, 20, 0])
  }

  @Test("random bytes never stop it, and every packet keeps its length")
  func fuzz() throws {
    var random = SplitMix64(seed: 11)
    for channels in [1, 2] {
      let bench = try decoderBench(
        rate: 48_000, channels: channels, ["fec": channels == 2 ? true : false, "fill": 1000])
      var position: Int64 = 0
      for _ in 0..<3000 {
        let count = Int(random.next() % 80)
        let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        bench.push(
          CapturedPacket(
            bytes: bytes, position: position, duration: 960, trimStart: random.next() % 16 == 0 ? 5000 : 0,
            trimEnd: random.next() % 16 == 0 ? 100 : 0,
            flags: PacketFlags(rawValue: UInt16(truncatingIfNeeded: random.next() & random.next() & 31))))
        position += random.next() % 64 == 0 ? Int64(truncatingIfNeeded: random.next() >> 20) : 960
        if random.next() % 128 == 0 { position = -312 }
        try bench.run()
        _ = bench.packets()
        _ = bench.events()
      }
      try bench.finish()
      #expect(!bench.packets().contains { $0.duration > 960 })
      #expect(bench.close() == [])
    }
  }

  @Test("packets with flipped bits produce as many samples as intact ones")
  func flipped() throws {
    var random = SplitMix64(seed: 12)
    var all = try packets(["fec": true, "loss": 10])
    for index in all.indices where index % 3 == 1 && !all[index].bytes.isEmpty {
      let place = Int(random.next() % UInt64(all[index].bytes.count))
      all[index].bytes[place] ^= 1 << UInt8(random.next() % 8)
    }
    #expect(try decode(all, rate: 16_000).count == length)
    #expect(try decode(all, rate: 16_000, ["fec": true]).count == length)
  }

  @Test("packets without position and length follow each other")
  func unplaced() throws {
    let bare = try packets().map { CapturedPacket(bytes: $0.bytes) }
    let heard = try decode(bare, rate: 16_000)
    #expect(heard.count == bare.count * 320)
    #expect(lag(sent, Array(heard.dropFirst(104)), reach: 30, from: 1000, count: 2000) == 0)
  }

  @Test("a position that goes back starts a new stream, with its own pre-skip")
  func restart() throws {
    let all = try packets()
    let bench = try decoderBench(rate: 16_000)
    for packet in all[..<30] { bench.push(packet) }
    for packet in all[..<30] { bench.push(packet) }
    try bench.finish()
    let heard = bench.packets()
    let second = heard.firstIndex { $0.flags.contains(.discontinuity) }
    #expect(second == 30)
    #expect(heard[30].position == 0)
    let once = heard[..<30].flatMap(\.int16)
    #expect(heard[30...].flatMap(\.int16) == once)
    #expect(bench.events().isEmpty)
  }

  @Test("a stream joined in the middle keeps its position")
  func joined() throws {
    let all = try packets()
    let bench = try decoderBench(rate: 16_000)
    for packet in all[40...] { bench.push(packet) }
    try bench.finish()
    let first = bench.packets().first
    #expect(first?.position == Int64(40 * 320 - 104))
    #expect(bench.events().isEmpty)
  }

  @Test("an interruption discards the reply and what was decoded of it")
  func interruption() throws {
    let all = try packets()
    let bench = try decoderBench(rate: 16_000)
    bench.interrupt()
    bench.hold()
    for packet in all[..<20] {
      var packet = packet
      packet.generation = 1
      bench.push(packet)
    }
    try bench.run()
    bench.interrupt()
    bench.release()
    _ = bench.packets()
    for packet in all[..<30] {
      var packet = packet
      packet.generation = 2
      bench.push(packet)
    }
    try bench.finish()
    let heard = bench.packets()
    #expect(heard.allSatisfy { $0.generation == 2 })
    #expect(heard.flatMap(\.int16) == Array(try decode(all, rate: 16_000)[..<(30 * 320 - 104)]))
  }

  @Test("an empty packet marked silence becomes comfort noise of its length, and is not a loss")
  func unsent() throws {
    var all = try packets()
    for index in 30..<40 {
      all[index].bytes = []
      all[index].flags = .silence
    }
    let bench = try decoderBench(rate: 16_000)
    for packet in all { bench.push(packet) }
    try bench.finish()
    #expect(bench.int16().count == length)
    #expect(bench.events().isEmpty)
  }

  @Test("gain applies to the output and can change while it runs")
  func gain() throws {
    let all = try packets()
    let bench = try decoderBench(rate: 16_000, ["gain": -6.0])
    for packet in all[..<50] { bench.push(packet) }
    try bench.run()
    try bench.set("gain", 0.0)
    for packet in all[50...] { bench.push(packet) }
    try bench.finish()
    let heard = bench.int16().map(Float.init)
    let plain = try decode(all, rate: 16_000).map(Float.init)
    let quiet = Fixture.rms(Array(heard[2000..<15_000])) / Fixture.rms(Array(plain[2000..<15_000]))
    #expect(abs(quiet - 0.5012) < 0.002)
    #expect(Array(heard[20_000...]) == Array(plain[20_000...]))
  }

  @Test(
    "decoding and concealment allocate nothing",
    .enabled(if: HeapScope.isCounting, "\(HeapScope.skipReason)"), arguments: [false, true])
  func heap(fec: Bool) throws {
    var all = try packets(["fec": true, "loss": 20])
    all[60].bytes = [3, 0]
    let bench = try decoderBench(rate: 16_000, ["fec": .bool(fec)])
    all[10].bytes = [3, 0]
    // The first loss and the first damage make the runtime look up types, once per process.
    for (index, packet) in all[..<20].enumerated() where index % 7 != 0 { bench.push(packet) }
    try bench.run()
    bench.resetHeapRequests()
    for (index, packet) in all.enumerated() where index >= 20 && index % 7 != 0 { bench.push(packet) }
    try bench.finish()
    #expect(bench.heapRequests == 0)
  }
}
