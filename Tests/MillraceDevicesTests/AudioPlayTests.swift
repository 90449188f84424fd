import MillraceDevices
import MillraceCore
import MillraceTesting
import Testing

/// Frames of a ramp at 16 kHz with the tests' fade of 1 ms.
private let fade = 16

@Suite("audio.play")
struct AudioPlayTests {
  /// A float bench whose samples encode their index: sample n of a reply is n + 1. A device without latency has nothing queued that could
  /// be rewound.
  private func bench(_ values: [String: ParameterValue] = [:], frames: Int = 320) throws -> NodeBench {
    let defaults: [String: ParameterValue] = ["fade": 1, "prebuffer": 0, "latency": 0]
    return try NodeBench(
      AudioPlay.self, defaults.merging(values) { $1 }, inputs: ["in": shape(.f32, frames: frames)])
  }

  private func shape(_ sample: SampleType, frames: Int) -> OutputShape {
    .pcm(rate: 16_000, channels: 1, sample: sample, frames: frames)
  }

  private func count(_ range: Range<Int>) -> [Float] { range.map { Float($0 + 1) } }

  @Test("plays every sample once, in periods on the clock, and ends when the last one was heard")
  func plays() throws {
    let bench = try bench(["latency": 20])
    bench.push(count(0..<1_000))
    try bench.finish()
    let packets = bench.packets("reference")
    #expect(packets.allSatisfy { $0.duration == 160 && $0.generation == 0 && $0.flags == [] })
    #expect(packets.map(\.position) == packets.indices.map { Int64($0) * 160 })
    #expect(packets.map(\.timestamp) == packets.indices.map { .milliseconds(10 * Int64($0) + 20) })
    let heard = packets.flatMap(\.float)
    #expect(Array(heard.prefix(1_000)) == count(0..<1_000))
    // Then a ramp to silence from where the audio ended, at most one ramp long.
    #expect(heard.dropFirst(1_000).prefix { $0 != 0 }.count == fade)
    #expect(heard.dropFirst(1_000 + fade).allSatisfy { $0 == 0 })
    #expect(bench.hasEnded)
    // 1,000 samples end in the seventh period, which is played to its end.
    #expect(packets.count == 9)
    #expect(bench.close() == [])
  }

  @Test("periods that can no longer be heard in time are skipped, reported, and leave a gap")
  func late() throws {
    let bench = try bench(["latency": 20])
    bench.hold("reference")
    try bench.advance(to: .milliseconds(300))
    bench.release("reference")
    try bench.advance(to: .milliseconds(340))
    let packets = bench.packets("reference")
    let jumps = zip(packets, packets.dropFirst()).filter { $1.position != $0.position + 160 }
    let (before, after) = try #require(jumps.first)
    #expect(jumps.count == 1 && after.position == 30 * 160)
    #expect(after.timestamp == .milliseconds(300 + 20))
    #expect(packets.filter { $0.flags.contains(.discontinuity) }.map(\.position) == [30 * 160])
    let lates = bench.events().filter { $0.name == "late" }
    #expect(lates.map { $0.number("ms") } == [Double((after.position - before.position) / 160 - 1) * 10])
    #expect(lates.map { $0.number("count") } == [1])
  }

  @Test("waits for the prebuffer when audio starts")
  func prebuffer() throws {
    let bench = try bench(["prebuffer": 30])
    try bench.advance(to: .milliseconds(12))
    bench.push(count(0..<640))
    try bench.advance(to: .milliseconds(100))
    let heard = bench.float("reference")
    // Arrived at 20 ms, started at the first period 30 ms later.
    #expect(heard.firstIndex { $0 != 0 } == 5 * 160)
    #expect(Array(heard[800..<800 + 640]) == count(0..<640))
  }

  @Test("skips frames before position 0")
  func runIn() throws {
    let bench = try bench()
    bench.setPosition(-200)
    bench.push(count(0..<640))
    try bench.advance(to: .milliseconds(30))
    #expect(Array(bench.float("reference").prefix(440)) == count(200..<640))
  }

  @Test(
    "an interruption fades out and counts what was heard, to the sample",
    arguments: [0, 1, 5, 15, 16, 17, 100, 160, 319])
  func interruption(left: Int) throws {
    // Samples of the packet that are left when the interruption comes, two periods in.
    let bench = try bench(frames: 320 + left)
    bench.setGeneration(1)
    bench.push(count(0..<320 + left))
    try bench.advance(to: .milliseconds(15))
    bench.push(count(0..<320))
    bench.interrupt()
    try bench.advance(to: .milliseconds(45))
    let faded = min(left, fade)
    let heard = bench.float("reference")
    #expect(Array(heard.prefix(320)) == count(0..<320))
    for index in 0..<fade {
      // If the packet ends before the ramp does, the last frame is held.
      let source = Float(min(321 + index, 320 + left))
      #expect(abs(heard[320 + index] - source * Float(fade - index) / Float(fade + 1)) < 0.01)
    }
    #expect(heard.dropFirst(320 + fade).allSatisfy { $0 == 0 })
    let cut = try #require(bench.events().filter { $0.name == "interrupted" }.first)
    #expect(cut.number("samples") == Double(320 + faded))
    #expect(cut.number("position") == Double(320 + faded))
    #expect(cut.number("reply") == 1)
    #expect(abs(try #require(cut.number("ms")) - Double(320 + faded) / 16) < 0.001)
    #expect(bench.close() == [])
  }

  @Test("the next reply starts at full level as soon as the old one has faded out")
  func nextReply() throws {
    let bench = try bench()
    bench.setGeneration(1)
    bench.push(count(0..<640))
    try bench.advance(to: .milliseconds(15))
    bench.interrupt()
    bench.setGeneration(2)
    bench.setPosition(0)
    bench.push(count(0..<320))
    try bench.advance(to: .milliseconds(60))
    let heard = bench.float("reference")
    #expect(Array(heard[320 + fade..<640 + fade]) == count(0..<320))
    let events = bench.events().filter { $0.name != "underrun" }
    #expect(events.map(\.name) == ["replyAudible", "interrupted", "replyAudible"])
    #expect(events[0].number("at") == 0)
    #expect(events[2].number("reply") == 2)
  }

  @Test("audio outside replies, and uninterruptible audio, keeps playing through an interruption")
  func spared() throws {
    for (generation, flags) in [(0, []), (1, .uninterruptible)] as [(UInt32, PacketFlags)] {
      let bench = try bench()
      bench.setGeneration(generation)
      bench.push(count(0..<320), flags: flags)
      try bench.advance(to: .milliseconds(5))
      bench.interrupt()
      try bench.advance(to: .milliseconds(25))
      #expect(Array(bench.float("reference").prefix(320)) == count(0..<320))
      #expect(bench.events().first { $0.name == "interrupted" }?.number("samples") == 0)
    }
  }

  @Test("a held reply continues with the sample after the last one heard, however often it is held")
  func hold() throws {
    let bench = try bench()
    bench.setGeneration(1)
    bench.push(count(0..<1_600))
    var at: Int64 = 0
    for pause in [15, 50, 21, 20] as [Int64] {
      at += pause
      try bench.advance(to: .milliseconds(at))
      try bench.duck()
      at += 33
      try bench.advance(to: .milliseconds(at))
      try bench.resume()
    }
    try bench.advance(to: .milliseconds(400))
    let heard = bench.float("reference")
    // Undo the ramps: every nonzero sample belongs to one of the source, in order, each once.
    var next = 0
    var level = fade + 1
    for sample in heard where sample != 0 && next < 1_600 {
      let gain = sample / Float(next + 1)
      let now = Int((gain * Float(fade + 1)).rounded())
      #expect(abs(gain * Float(fade + 1) - Float(now)) < 0.01)
      // The level moves one step a frame; after each silence it starts again from the bottom.
      #expect(now == level || abs(now - level) == 1 || level == 1 && now == 1)
      level = now
      next += 1
    }
    #expect(next == 1_600)
    let events = bench.events()
    #expect(events.count { $0.name == "ducked" } == 4 && events.count { $0.name == "resumed" } == 4)
    #expect(bench.close() == [])
  }

  @Test("a held reply leaves its packets in the link, and silence is played meanwhile")
  func holdsBack() throws {
    let bench = try bench()
    bench.setGeneration(1)
    bench.push(count(0..<3_200))
    try bench.advance(to: .milliseconds(5))
    try bench.duck()
    try bench.advance(to: .milliseconds(500))
    let heard = bench.float("reference")
    #expect(heard.count == 51 * 160)
    #expect(heard.dropFirst(160 + fade).allSatisfy { $0 == 0 })
    bench.interrupt()
    try bench.advance(to: .milliseconds(520))
    let cut = try #require(bench.events().first { $0.name == "interrupted" })
    #expect(cut.number("samples") == Double(160 + fade))
  }

  @Test("a lowered reply continues at the lower level and returns to full level")
  func lower() throws {
    let bench = try bench(["duck": "lower", "lowering": -20])
    bench.push([Float](repeating: 1, count: 1_600))
    try bench.advance(to: .milliseconds(15))
    try bench.duck()
    try bench.advance(to: .milliseconds(55))
    try bench.resume()
    try bench.advance(to: .milliseconds(95))
    let heard = bench.float("reference")
    #expect(heard[319] == 1)
    #expect(heard[320 + fade..<960].allSatisfy { abs($0 - 0.1) < 0.03 })
    #expect(heard[960 + fade..<1_600].allSatisfy { $0 == 1 })
  }

  @Test("late audio fades out and in, loses nothing, and is reported")
  func underrun() throws {
    let bench = try bench()
    bench.push(count(0..<240))
    try bench.advance(to: .milliseconds(35))
    bench.push(count(240..<800))
    try bench.advance(to: .milliseconds(95))
    let heard = bench.float("reference")
    #expect(Array(heard.prefix(240)) == count(0..<240))
    #expect(heard[240..<240 + fade].allSatisfy { $0 > 0 && $0 < 240 })
    #expect(heard[240 + fade..<640].allSatisfy { $0 == 0 })
    #expect(heard[640] > 0 && heard[640] < 241 * 0.1)
    #expect(Array(heard[640 + fade..<640 + 560]) == count(240 + fade..<800))
    let event = try #require(bench.events().first { $0.name == "underrun" })
    #expect(event.number("ms") == 25)
    #expect(event.number("position") == 240)
  }

  @Test("16-bit stereo keeps its channels separate through a ramp")
  func stereo() throws {
    let bench = try NodeBench(
      AudioPlay.self, ["fade": 1, "prebuffer": 0, "latency": 0],
      inputs: ["in": .pcm(rate: 16_000, channels: 2, sample: .s16, frames: 320)])
    bench.setGeneration(1)
    bench.push((0..<640).map { Int16($0 % 2 == 0 ? 17_000 : -1_700) })
    try bench.advance(to: .milliseconds(5))
    bench.interrupt()
    try bench.advance(to: .milliseconds(15))
    let heard = bench.int16("reference")
    for frame in 0..<fade {
      let place = 2 * (160 + frame)
      #expect(heard[place] == Int16(1_000 * (fade - frame)))
      #expect(heard[place + 1] == Int16(-100 * (fade - frame)))
    }
    #expect(heard.dropFirst(2 * (160 + fade)).allSatisfy { $0 == 0 })
  }

  @Test("empty packets have no effect")
  func empty() throws {
    let bench = try bench()
    bench.push(count(0..<160))
    bench.push(bytes: [])
    bench.push(count(160..<320))
    try bench.advance(to: .milliseconds(15))
    #expect(Array(bench.float("reference").prefix(320)) == count(0..<320))
  }

  @Test(
    "playback, interruption and ducking allocate nothing",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func heap() throws {
    let bench = try bench(["latency": 20])
    for round in 0..<20 {
      bench.setGeneration(UInt32(round + 1))
      bench.push(count(0..<640))
      if round == 3 { bench.resetHeapRequests() }
      try bench.advance(by: .milliseconds(15))
      try bench.duck()
      try bench.advance(by: .milliseconds(10))
      try bench.resume()
      bench.interrupt()
    }
    #expect(bench.heapRequests == 0)
  }
}
