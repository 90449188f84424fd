import MillraceCodecs
import MillraceCore
import MillraceTesting
import Testing

private let rate = 16_000

/// A simulated network: the arrival time of each packet in ms; absent if it is lost.
private typealias Arrivals = [(packet: CapturedPacket, time: Double)]

/// Packets on time, each arriving slightly after it was sent.
private func regular(_ packets: [CapturedPacket]) -> Arrivals {
  packets.enumerated().map { ($1, Double($0) * 20 + 5) }
}

private func bench(_ parameters: [String: ParameterValue] = [:], input: OutputShape? = nil) throws
  -> NodeBench
{
  try NodeBench(
    AudioJitter.self, ["report": 100].merging(parameters) { $1 },
    inputs: ["in": input ?? opusShape(rate: rate)], outputLimit: 64)
}

extension NodeBench {
  /// Delivers the packets and advances the clock to half a second after the last one.
  fileprivate func receive(_ arrivals: Arrivals) throws {
    for (packet, time) in arrivals.sorted(by: { $0.time < $1.time }) {
      try advance(to: max(now, Nanoseconds(time * 1e6)))
      push(packet)
      try run()
    }
    try advance(by: .milliseconds(500))
  }

}

extension [BenchEvent] {
  fileprivate func state(_ name: String) -> Double { last { $0.name == "state" }?.number(name) ?? -1 }
  fileprivate func delays() -> [Double] { compactMap { $0.number("delay") } }
}

@Suite("audio.jitter")
struct AudioJitterTests {
  private let sent = chirp(rate: 16_000, frames: 48_000)

  private func packets(_ parameters: [String: ParameterValue] = ["application": "audio", "bitrate": 64_000])
    throws
    -> [CapturedPacket]
  {
    try encode(sent, rate: rate, cut: 320, parameters)
  }

  /// The same audio as PCM packets.
  private func pcm() -> [CapturedPacket] {
    stride(from: 0, to: sent.count, by: 320).map { start in
      CapturedPacket(
        bytes: sent[start..<start + 320].withUnsafeBytes(Array.init), timestamp: 0, position: Int64(start),
        duration: 320)
    }
  }

  private func pcmBench(_ parameters: [String: ParameterValue] = [:]) throws -> NodeBench {
    try bench(parameters, input: .pcm(rate: rate, channels: 1, sample: .s16, frames: 320))
  }

  @Test("packets on time are played as sent, 10 ms every 10 ms")
  func regularly() throws {
    let bench = try pcmBench(["least": 60])
    try bench.receive(regular(pcm()))
    let told = bench.events()
    let packets = bench.packets()
    #expect(packets.allSatisfy { $0.duration == 160 })
    #expect(zip(packets, packets.dropFirst()).allSatisfy { $1.timestamp == $0.timestamp + .milliseconds(10) })
    #expect(zip(packets, packets.dropFirst()).allSatisfy { $1.position == $0.position + 160 })
    let heard = packets.flatMap(\.float).map { Int16(($0 * 32_768).rounded()) }
    #expect(Array(heard.prefix(sent.count - 1_600)) == Array(sent.prefix(sent.count - 1_600)))
    #expect(told.state("late") == 0 && told.state("lost") == 0)
    #expect(bench.close() == [])
  }

  @Test("reordered and duplicate packets are sorted out and counted")
  func disorder() throws {
    var arrivals = regular(pcm())
    for index in stride(from: 20, to: 140, by: 10) {
      arrivals[index].time += 32
      arrivals.append((arrivals[index + 4].packet, arrivals[index + 4].time + 3))
    }
    let bench = try pcmBench(["least": 60])
    try bench.receive(arrivals)
    let told = bench.events()
    #expect(told.state("reordered") == 12)
    #expect(told.state("duplicates") == 12)
    #expect(told.state("late") == 0 && told.state("lost") == 0)
    let heard = bench.float().map { Int16(($0 * 32_768).rounded()) }
    #expect(Array(heard.prefix(44_000)) == Array(sent.prefix(44_000)))
  }

  @Test("a packet that arrives after its time is late and is dropped")
  func late() throws {
    var arrivals = regular(pcm())
    for index in [40, 80, 120] { arrivals[index].time += 300 }
    let bench = try pcmBench()
    try bench.receive(arrivals)
    let told = bench.events()
    #expect(told.state("late") == 3)
    // With no other packet there, it first waited; that then counts towards the gap.
    #expect(told.state("lost") > 0 && told.state("lost") <= 61)
  }

  @Test("lost packets are concealed, and later audio keeps its position", arguments: [true, false])
  func lost(isOpus: Bool) throws {
    let all = isOpus ? try packets() : pcm()
    let kept = regular(all).enumerated().filter { ![30, 60, 61, 90].contains($0.offset) }.map(\.element)
    let bench = isOpus ? try bench(["least": 60]) : try pcmBench(["least": 60])
    try bench.receive(kept)
    let told = bench.events()
    #expect(abs(told.state("lost") - 80) <= 1)
    #expect(told.state("late") == 0 && told.state("waited") < 700)
    let heard = bench.float().map { Int16(($0.clamped * 32_767).rounded()) }
    // The first Opus packet starts before position 0.
    let shift = isOpus ? Int(-all[0].position) : 0
    #expect(lag(sent, heard, reach: 150, from: 32_000, count: 4_000) == shift)
    // There is no silence where a packet is missing.
    for start in [30, 60, 90] {
      let place = start * 320 + shift
      #expect(Fixture.rms(Array(heard[place..<place + 320])) > 0.005)
    }
  }

  @Test("the copy in the next packet is used if there is one")
  func copies() throws {
    let voice = voice(frames: 64_000)
    let all = try encode(voice, rate: rate, cut: 320, ["bitrate": 24_000, "fec": true, "loss": 20])
    let arrivals = regular(all).enumerated().filter { $0.offset % 10 != 7 }.map(\.element)
    let with = try bench(["least": 60])
    try with.receive(arrivals)
    let told = with.events()
    #expect(told.state("recovered") > 200)
    let without = try bench(["least": 60, "fec": false])
    try without.receive(arrivals)
    let other = without.events()
    #expect(other.state("recovered") == 0)
    #expect(other.state("lost") > told.state("lost") + 200)
  }

  @Test("untransmitted silence is filled and adds no delay")
  func pause() throws {
    let all = regular(pcm())
    let arrivals = all.enumerated().filter { !(50..<90).contains($0.offset) }.map(\.element)
    let bench = try pcmBench(["least": 40])
    try bench.receive(arrivals)
    let told = bench.events()
    #expect(told.state("lost") < 100)
    #expect(told.state("late") == 0)
    let delays = told.delays()
    // Before the pause and one second after it.
    #expect(abs(delays[7] - delays[24]) < 25, "\(delays)")
  }

  @Test("after long untransmitted silence, packets that arrive together are all played")
  func longPause() throws {
    let bench = try pcmBench()
    let before = Array(pcm().prefix(10))
    // Two seconds later in the stream and in time; three packets at once.
    let after = pcm().dropFirst(10).prefix(10).map { packet in
      var later = packet
      later.position += 2 * Int64(rate)
      return later
    }
    try bench.receive(
      regular(before) + after.enumerated().map { ($1, Double(max($0, 2)) * 20 + 2_205) })
    let told = bench.events()
    #expect(told.state("skipped") == 0 && told.state("late") == 0)
    #expect(told.state("packets") == 20)
    #expect(bench.packets().filter { $0.flags.contains(.discontinuity) }.map(\.position) == [])
  }

  @Test("a burst after a stall is waited for, not lost, and the delay recovers")
  func burst() throws {
    var arrivals = regular(pcm())
    for index in 50..<60 { arrivals[index].time = max(arrivals[index].time, 60 * 20) }
    let bench = try pcmBench()
    try bench.receive(arrivals)
    let told = bench.events()
    #expect(told.state("late") == 0 && told.state("lost") == 0)
    #expect(told.state("waited") >= 100)
    let delays = told.delays()
    #expect(delays.max()! > 150)
    #expect(delays[25] < 120, "\(delays)")
    let samples = bench.float()
    #expect(samples.allSatisfy { abs($0) <= 1 })
  }

  @Test("after an excessive stall, the oldest packets are dropped")
  func skips() throws {
    var arrivals = regular(pcm())
    for index in 20..<100 { arrivals[index].time = 2_000 }
    let bench = try pcmBench(["longest": 100])
    try bench.receive(arrivals)
    let told = bench.events()
    #expect(told.state("skipped") > 20)
    #expect(told.delays()[21] < 350)
  }

  @Test("a stream that starts over is played from its start")
  func restart() throws {
    var packets = pcm()
    for index in 75..<packets.count { packets[index].position += 100_000_000 }
    let bench = try pcmBench(["least": 60])
    try bench.receive(regular(packets))
    let told = bench.events()
    #expect(bench.packets().contains { $0.flags.contains(.discontinuity) })
    #expect(told.state("lost") == 0)
  }

  @Test("random packets never cause a fault", arguments: 1...4)
  func noise(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for input in [opusShape(rate: rate), .pcm(rate: rate, channels: 1, sample: .f32, frames: 320)] {
      let bench = try bench(input: input)
      for _ in 0..<400 {
        let count = Int.random(in: 0...1_280, using: &random)
        var packet = CapturedPacket(
          bytes: (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }, timestamp: 0)
        packet.position =
          Bool.random(using: &random)
          ? Int64.random(in: .min ... .max, using: &random) : Int64.random(in: 0...90_000, using: &random)
        packet.duration = Int.random(in: 0...2_000, using: &random)
        if Int.random(in: 0...30, using: &random) == 0 { packet.flags = .discontinuity }
        bench.push(packet)
        try bench.advance(by: .milliseconds(Int64.random(in: 0...30, using: &random)))
      }
      #expect(bench.float().allSatisfy { $0.isFinite })
      try bench.finish()
      #expect(bench.close() == [])
    }
  }

  @Test(
    "minutes on a bad network change neither memory nor delay, and allocate nothing",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)),
    .timeLimit(.minutes(30)))
  func long() throws {
    let all = try packets()
    var random = SplitMix64(seed: 9)
    let bench = try bench()
    var position: Int64 = 0
    for index in 0..<9_000 {
      var packet = all[index % 100 + 10]
      packet.position = position
      position += 320
      if index == 100 { bench.resetHeapRequests() }
      if Int.random(in: 0..<50, using: &random) > 0 { bench.push(packet) }
      let late = Int.random(in: 0..<200, using: &random) == 0 ? 160 : 0
      try bench.advance(to: .milliseconds(Int64(index * 20 + late)))
      try bench.run()
    }
    #expect(bench.heapRequests == 0)
    #expect(bench.events().delays().suffix(100).allSatisfy { $0 < 400 })
    #expect(bench.close() == [])
  }
}

extension Float {
  fileprivate var clamped: Float { min(max(self, -1), 1) }
}
