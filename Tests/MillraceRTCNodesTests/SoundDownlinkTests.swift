import MillraceCore
import MillraceTesting
import Testing

@testable import MillraceRTCNodes
@testable import MillraceRTCSound

private let pcmu = SoundCodec(kind: .pcmu, clockRate: 8_000, channels: 1)

/// A way from one node to another.
struct SoundWay: Sendable, CustomTestStringConvertible {
  var codec: SoundCodec
  var rate: Int
  var channels: Int
  var output: OutputShape

  var testDescription: String { "\(rate) Hz \(channels) ch as \(codec) to \(output.format)" }

  static let all: [SoundWay] = {
    let codecs = [
      SoundCodec.opus, pcmu, SoundCodec(kind: .pcma, clockRate: 8_000, channels: 1),
      SoundCodec(kind: .l16, clockRate: 44_100, channels: 2),
      SoundCodec(kind: .l16, clockRate: 16_000, channels: 1),
    ]
    var ways: [SoundWay] = []
    for codec in codecs {
      for (rate, channels) in [(8_000, 1), (16_000, 2), (44_100, 1), (48_000, 2), (96_000, 1)] {
        ways.append(
          SoundWay(
            codec: codec, rate: rate, channels: channels,
            output: .pcm(rate: 48_000, channels: 1, sample: .f32, frames: 480, burst: 0)))
      }
    }
    for (rate, channels) in [(8_000, 1), (16_000, 1), (32_000, 2), (44_100, 2), (48_000, 2)] {
      ways.append(
        SoundWay(
          codec: .opus, rate: 48_000, channels: 1,
          output: .pcm(
            rate: rate, channels: channels, sample: .s16, frames: rate / 100, burst: 0)))
    }
    return ways
  }()
}

extension [CapturedPacket] {
  /// The samples of a shape's first channel.
  func samples(_ shape: OutputShape) -> [Float] {
    let channels = shape.format.channels ?? 1
    let all: [Float] =
      shape.format.sample == .s16 ? flatMap(\.int16).map { Float($0) / 32_768 } : flatMap(\.float)
    return stride(from: 0, to: all.count, by: channels).map { all[$0] }
  }
}

@Suite("sound that is received") struct SoundDownlinkTests {
  private let shape = OutputShape.pcm(rate: 48_000, channels: 1, sample: .f32, frames: 480, burst: 0)

  @Test("a tone keeps its frequency and its level on every way", arguments: SoundWay.all)
  func ways(_ way: SoundWay) throws {
    let sender = SoundProbe()
    sender.up.codecs = [way.codec]
    sender.up.application = .audio
    sender.up.stereo = true
    let samples = Fixture.sine(
      440, rate: way.rate, frames: way.rate * 3, channels: way.channels, amplitude: 0.25)
    let packets = try sender.send(samples, rate: way.rate, channels: way.channels, codec: way.codec)
    let probe = SoundProbe(way.output)
    let heard = try probe.hear(onTime(packets)).samples(way.output)
    let rate = way.output.format.rate ?? 48_000
    let (level, rest) = toneLevel(Array(heard[rate * 2..<rate * 29 / 10]), 440, rate: rate)
    // The RMS of a sine of a quarter of full scale.
    #expect(abs(level - -15.05) < 0.5)
    #expect(rest < 0.02)
    #expect(probe.heard.lost == 0 && probe.heard.damaged == 0)
  }

  @Test("packets leave every 10 ms from the first sound on")
  func grid() throws {
    let probe = SoundProbe()
    let packets = try probe.hear(onTime(SoundProbe.tone(1)))
    #expect(packets.allSatisfy { $0.duration == 480 })
    #expect(zip(packets, packets.dropFirst()).allSatisfy { $1.timestamp == $0.timestamp + .milliseconds(10) })
    #expect(zip(packets, packets.dropFirst()).allSatisfy { $1.position == $0.position + 480 })
  }

  @Test("with 5 % of the packets lost, no silence is longer than 120 ms", arguments: [SoundCodec.opus, pcmu])
  func loss(codec: SoundCodec) throws {
    var random = SplitMix64(seed: 3)
    let all = onTime(try SoundProbe.tone(8, codec: codec))
    let kept = all.filter { _ in Int.random(in: 0..<20, using: &random) > 0 }
    let probe = SoundProbe()
    let heard = try probe.hear(kept).samples(shape)
    #expect(longestSilence(Array(heard[4_800..<48_000 * 7]), rate: 48_000) <= 120)
    #expect(probe.heard.lost + probe.heard.concealed > .milliseconds(100))
    #expect(heard.allSatisfy { abs($0) <= 1 })
  }

  @Test("after ten seconds with a fifth of the packets lost, sound is as before")
  func recovery() throws {
    var random = SplitMix64(seed: 4)
    let all = onTime(try SoundProbe.tone(16))
    let kept = all.enumerated().filter {
      !(100..<600).contains($0.offset) || Int.random(in: 0..<5, using: &random) > 0
    }
    let probe = SoundProbe()
    let heard = try probe.hear(kept.map(\.element)).samples(shape)
    let (level, rest) = toneLevel(Array(heard[48_000 * 14..<48_000 * 15]), 440, rate: 48_000)
    #expect(abs(level - -15.05) < 0.5 && rest < 0.02)
    #expect(probe.lastDelay < .milliseconds(300))
  }

  @Test("reordered and repeated packets are sorted out and counted")
  func disorder() throws {
    var arrivals = onTime(try SoundProbe.tone(4))
    for index in stride(from: 60, to: 180, by: 10) {
      arrivals[index].time += 32
      arrivals.append((arrivals[index + 4].packet, arrivals[index + 4].time + 3))
    }
    let probe = SoundProbe()
    probe.down.delays = Nanoseconds.milliseconds(60)...Nanoseconds.milliseconds(200)
    let heard = try probe.hear(arrivals).samples(shape)
    #expect(probe.heard.reordered == 12 && probe.heard.duplicates == 12)
    #expect(probe.heard.late == 0 && probe.heard.lost == 0)
    let (_, rest) = toneLevel(Array(heard[48_000 * 2..<48_000 * 3]), 440, rate: 48_000)
    #expect(rest < 0.02)
  }

  /// What may happen to the clock of a source.
  enum ClockChange: CaseIterable {
    case wrap, restart, jump, back
  }

  @Test("numbers that wrap, restart or jump cost no more than the break", arguments: ClockChange.allCases)
  func clocks(_ change: ClockChange) throws {
    var packets = try SoundProbe.tone(6)
    let start: Int64 = change == .wrap ? (1 << 32) - 150 * 960 : 5_000
    packets = packets.numbered(sequence: change == .wrap ? 65_386 : 100, timestamp: start)
    for index in packets.indices.dropFirst(150) {
      switch change {
      case .wrap: break
      case .restart:
        packets[index].timestamp += 77_777
        packets[index].sequence -= 200
        packets[index].restarts = index == 150
      case .jump: packets[index].timestamp += 1 << 40
      case .back: packets[index].timestamp -= 1 << 36
      }
    }
    let probe = SoundProbe()
    let times: [(packet: SoundPacket, time: Double)] = packets.enumerated().map {
      ($1, Double($0) * 20 + 5)
    }
    let heard = try probe.hear(times).samples(shape)
    let (level, rest) = toneLevel(Array(heard[48_000 * 5..<48_000 * 11 / 2]), 440, rate: 48_000)
    #expect(abs(level - -15.05) < 0.5 && rest < 0.02)
    #expect(probe.heard.lost == 0)
    #expect(longestSilence(Array(heard[4_800..<48_000 * 5]), rate: 48_000) <= 120)
  }

  @Test("two sources are heard together, each at its level")
  func mix() throws {
    let first = onTime(try SoundProbe.tone(3))
    let second = onTime(try SoundProbe.tone(3, frequency: 1_000, codec: pcmu)).map { packet, time in
      var packet = packet
      packet.source = 2 << 32 | 9
      return (packet: packet, time: time + 7)
    }
    let probe = SoundProbe()
    probe.readsSources = true
    let heard = try probe.hear(first + second).samples(shape)
    let stretch = Array(heard[96_000..<120_000])
    for frequency in [440.0, 1_000] {
      #expect(abs(toneLevel(stretch, frequency, rate: 48_000).level - -15.05) < 0.5)
    }
    let expected: Set<UInt64> = [1 << 32 | 7, 2 << 32 | 9]
    #expect(Set(probe.sources.map(\.source)) == expected)
  }

  @Test("a sum above full scale is limited, not clipped")
  func limit() throws {
    let probe = SoundProbe()
    var all: [(packet: SoundPacket, time: Double)] = []
    for source in 0..<6 {
      all += onTime(try SoundProbe.tone(2)).map { packet, time in
        var packet = packet
        packet.source = UInt64(source) << 32
        return (packet: packet, time: time)
      }
    }
    let heard = try probe.hear(all).samples(shape)
    #expect(heard.allSatisfy { abs($0) <= 1 })
    #expect(toneLevel(Array(heard[60_000..<84_000]), 440, rate: 48_000).rest < 0.05)
  }

  @Test("a ninth source is counted, not heard, until another one has ended or was silent for 25 s")
  func room() throws {
    let packets = try SoundProbe.tone(1)
    let probe = SoundProbe()
    probe.readsSources = true
    let bench = try probe.downBench()
    func put(_ source: Int, _ index: Int, kind: UInt8 = MediaRecord.sound) throws {
      var packet = packets[index]
      packet.source = UInt64(source)
      probe.exchange.deliver(packet, at: bench.now, kind: kind)
      try bench.run()
    }
    for source in 1...9 { try put(source, 0) }
    #expect(probe.sources.count == 8)
    #expect(probe.heard.unheard == 1)
    try put(3, 1, kind: MediaRecord.soundEnd)
    try put(9, 1)
    #expect(probe.sources.map(\.source).contains(9))
    #expect(!probe.sources.map(\.source).contains(3))
    try bench.advance(by: .milliseconds(26_000))
    #expect(probe.sources.isEmpty)
    _ = bench.packets()
    #expect(bench.close() == [])
  }

  @Test("as many sources are heard as there may be")
  func manySources() throws {
    let packets = try SoundProbe.tone(1)
    let probe = SoundProbe()
    probe.most = 16
    probe.readsSources = true
    let bench = try probe.downBench()
    for source in UInt64(1)...17 {
      var packet = packets[0]
      packet.source = source
      probe.exchange.deliver(packet, at: bench.now)
      try bench.run()
    }
    let expected = Set<UInt64>(1...16)
    #expect(Set(probe.sources.map(\.source)) == expected)
    #expect(probe.heard.unheard == 1)
    _ = bench.packets()
    #expect(bench.close() == [])
  }

  @Test("pictures of one of several participants keep to their own sound")
  func lipSyncOfOne() throws {
    let probe = SoundProbe()
    let wall: Int64 = 3_900_000_000_000_000_000
    var arrivals: [(packet: SoundPacket, time: Double)] = []
    for medium in UInt8(0)..<2 {
      let packets = try SoundProbe.tone(4).enumerated().map { index, packet in
        var packet = packet
        packet.source = 1 << 32 | UInt64(medium)
        packet.medium = medium
        // The clock of the second is a second behind.
        packet.capture = wall + Int64(index) * 20_000_000 - Int64(medium) * 1_000_000_000
        return packet
      }
      arrivals += onTime(packets)
    }
    let bench = try probe.downBench()
    for (packet, time) in arrivals.sorted(by: { $0.time < $1.time }) where time < 3_000 {
      try bench.advance(to: max(bench.now, Nanoseconds(time * 1e6)))
      probe.exchange.deliver(packet, at: bench.now)
      try bench.run()
    }
    probe.capture = wall + 3_000_000_000
    var times: [Nanoseconds?] = []
    for sound in [0, 1, PictureDownHead.anySound, PictureDownHead.noSound] {
      probe.sound = sound
      probe.exchange.waker.wake()
      try bench.run()
      times.append(probe.playTime)
    }
    let (first, second) = (try #require(times[0]), try #require(times[1]))
    #expect(first > .milliseconds(3_000) && first < .milliseconds(3_150))
    #expect(second > .milliseconds(4_000) && second < .milliseconds(4_150))
    #expect(times[2] == first && times[3] == nil)
    _ = bench.packets()
    #expect(bench.close() == [])
  }

  @Test("a source that stops becomes silent within a second", arguments: [SoundCodec.opus, pcmu])
  func stops(codec: SoundCodec) throws {
    let probe = SoundProbe()
    let bench = try probe.downBench()
    for (packet, time) in onTime(try SoundProbe.tone(2, codec: codec)) {
      try bench.advance(to: max(bench.now, Nanoseconds(time * 1e6)))
      probe.exchange.deliver(packet, at: bench.now)
      try bench.run()
    }
    try bench.advance(by: .milliseconds(1_300))
    _ = bench.packets()
    try bench.advance(by: .milliseconds(5_000))
    #expect(bench.packets().samples(shape).allSatisfy { $0 == 0 })
    #expect(bench.close() == [])
  }

  @Test("a pause that was not sent is no loss, and adds no delay")
  func pause() throws {
    let probe = SoundProbe()
    var packets = try SoundProbe.tone(4)
    for index in packets.indices.dropFirst(100) { packets[index].timestamp += 48_000 }
    _ = try probe.hear(onTime(packets))
    #expect(probe.heard.lost == 0 && probe.heard.late == 0 && probe.heard.skipped == 0)
    #expect(probe.lastDelay < .milliseconds(100))
  }

  @Test("the drift of a sender's clock is followed for minutes", arguments: [-200.0, 200])
  func drift(parts: Double) throws {
    let packets = try SoundProbe.tone(1)
    let probe = SoundProbe()
    let bench = try probe.downBench()
    for index in 0..<6_000 {
      try bench.advance(to: Nanoseconds(Double(index) * 20e6 * (1 + parts / 1e6)))
      var packet = packets[10 + index % 30]
      packet.sequence = Int64(index)
      packet.timestamp = Int64(index) * 960
      probe.exchange.deliver(packet, at: bench.now)
      try bench.run()
      if index % 500 == 499 {
        #expect(probe.lastDelay < .milliseconds(100))
        _ = bench.packets()
      }
    }
    #expect(probe.heard.lost == 0 && probe.heard.late == 0 && probe.heard.skipped == 0)
    #expect(bench.close() == [])
  }

  @Test("the time at which captured sound plays is known to a few milliseconds, whatever the sender's clock")
  func lipSync() throws {
    let probe = SoundProbe()
    let wall: Int64 = 3_900_000_000_000_000_000
    let packets = try SoundProbe.tone(4).enumerated().map { index, packet in
      var packet = packet
      packet.capture = wall + Int64(index) * 20_000_000
      return packet
    }
    let bench = try probe.downBench()
    probe.capture = wall + 3_000_000_000
    var told: Nanoseconds?
    for (packet, time) in onTime(packets) {
      try bench.advance(to: max(bench.now, Nanoseconds(time * 1e6)))
      probe.exchange.deliver(packet, at: bench.now)
      try bench.run()
      if time > 2_900, told == nil { told = probe.playTime }
    }
    let time = try #require(told)
    // Captured at 3.000 s, arrived 5 ms later, and played after the delay of the jitter buffer.
    #expect(time > .milliseconds(3_005) && time < .milliseconds(3_105))
    #expect(abs(time - .milliseconds(3_005) - probe.heard.delay) < .milliseconds(25))
    _ = bench.packets()
    #expect(bench.close() == [])
  }

  @Test("sound of another session does not time pictures")
  func otherSession() throws {
    let downlink = try SoundDownlink(shape, SoundDownlinkSettings())
    let time = downlink.playTime(ofCapture: 5, source: 1 << 32)
    #expect(time == nil)
  }

  @Test("broken packets are counted and cost nothing else", arguments: [SoundCodec.opus, pcmu])
  func garbage(codec: SoundCodec) throws {
    var random = SplitMix64(seed: 5)
    let probe = SoundProbe()
    let bench = try probe.downBench()
    for index in 0..<2_000 {
      var packet = SoundPacket(
        codec: Bool.random(using: &random) ? codec.packed : UInt64.random(in: 0...(.max), using: &random),
        payload: [], duration: 0, pause: 0, level: 255, isVoice: false)
      let count = [0, 1, 2, 3, 100, 1_500, 24_000].randomElement(using: &random) ?? 0
      packet.payload = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      packet.sequence = Int64(index)
      packet.timestamp =
        index % 3 == 0 ? Int64.random(in: .min ... .max, using: &random) : Int64(index) * 960
      packet.capture = Int64.random(in: .min ... .max, using: &random)
      packet.marker = Bool.random(using: &random)
      let arrival = Int64.random(in: .min ... .max, using: &random)
      probe.exchange.deliver(packet, at: arrival, kind: index % 50 == 0 ? 9 : MediaRecord.sound)
      probe.capture = packet.capture &+ 5
      try bench.advance(by: .milliseconds(Int64.random(in: 0...15, using: &random)))
    }
    #expect(probe.heard.damaged > 0 && probe.heard.unheard > 0)
    #expect(bench.packets().samples(shape).allSatisfy { $0.isFinite && abs($0) <= 1 })
    #expect(bench.close() == [])
  }

  @Test("what waits is discarded on demand")
  func discard() throws {
    let probe = SoundProbe()
    let bench = try probe.downBench()
    for packet in try SoundProbe.tone(1).prefix(8) { probe.exchange.deliver(packet, at: 0) }
    try bench.advance(by: .milliseconds(80))
    probe.discards = true
    probe.exchange.waker.wake()
    try bench.run()
    _ = bench.packets()
    // What the limiter holds back still comes.
    try bench.advance(by: .milliseconds(20))
    _ = bench.packets()
    try bench.advance(by: .milliseconds(300))
    #expect(bench.packets().samples(shape).allSatisfy { abs($0) < 1e-4 })
    #expect(!probe.hasSound)
    #expect(bench.close() == [])
  }

  @Test("an output without room delays nothing for ever, and the grid jumps to the present")
  func stall() throws {
    let probe = SoundProbe()
    let bench = try probe.downBench()
    bench.hold()
    for (packet, time) in onTime(try SoundProbe.tone(4)) {
      try bench.advance(to: max(bench.now, Nanoseconds(time * 1e6)))
      probe.exchange.deliver(packet, at: bench.now)
      try bench.run()
    }
    bench.release()
    try bench.run()
    try bench.advance(by: .milliseconds(100))
    let packets = bench.packets()
    #expect(packets.contains { $0.flags.contains(.discontinuity) })
    #expect(packets.last.map { $0.timestamp > bench.now - .milliseconds(20) } == true)
    #expect(bench.close() == [])
  }

  @Test("rates that 10 ms have no whole number of samples of are refused with a cure")
  func rates() {
    for rate in [11_025, 22_050, 7_900] {
      let shape = OutputShape.pcm(rate: rate, channels: 1, sample: .f32, frames: rate / 100)
      #expect(throws: NodeProblem.self) { _ = try SoundDownlink(shape, SoundDownlinkSettings()) }
    }
  }

  @Test(
    "receiving allocates nothing",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func heap() throws {
    let packets = try SoundProbe.tone(1)
    let probe = SoundProbe()
    let bench = try probe.downBench()
    var random = SplitMix64(seed: 9)
    for index in 0..<2_000 {
      if index == 200 { bench.resetHeapRequests() }
      var packet = packets[10 + index % 30]
      packet.sequence = Int64(index)
      packet.timestamp = Int64(index) * 960
      if Int.random(in: 0..<20, using: &random) > 0 { probe.exchange.deliver(packet, at: bench.now) }
      try bench.advance(to: .milliseconds(Int64(index) * 20))
      if index % 50 == 0 { _ = bench.packets() }
    }
    #expect(bench.heapRequests == 0)
    _ = bench.packets()
    #expect(bench.close() == [])
  }
}
