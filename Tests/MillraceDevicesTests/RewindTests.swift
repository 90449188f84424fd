import MillraceCore
import MillraceDevices
import MillraceTesting
import Testing

/// Queued audio of a cancelled reply is not heard.
@Suite("audio.play rewinds queued audio")
struct RewindTests {
  private static let rate = 16_000
  /// Frames of the fade: 1 ms.
  private static let fade = 16
  private static let period = 160
  /// What the device may fetch before it sees a change: 5 ms.
  private static let reaction = 80

  private func bench(_ values: [String: ParameterValue], sample: SampleType = .f32) throws -> NodeBench {
    let defaults: [String: ParameterValue] = ["fade": 1, "prebuffer": 0]
    return try NodeBench(
      AudioPlay.self, defaults.merging(values) { $1 },
      inputs: ["in": .pcm(rate: Self.rate, channels: 1, sample: sample, frames: Self.period)])
  }

  /// The samples of a reply, each encoding its index.
  private func count(_ range: Range<Int>) -> [Float] { range.map { Float($0 + 1) } }

  @Test(
    "the fade starts within a period of the interruption, silence follows it, and the count is exact",
    arguments: [8, 15, 20, 50, 400], [0, 3, 7] as [Int64])
  func soon(latency: Int, after: Int64) throws {
    let bench = try bench(["latency": .number(Double(latency))])
    bench.setGeneration(1)
    bench.push(count(0..<16_000))
    let time = 500 + after
    try bench.advance(to: .milliseconds(time))
    bench.interrupt()
    let cut = try #require(bench.events().first { $0.name == "interrupted" }, "it waits for nothing")
    try bench.advance(to: .milliseconds(time + 1_000))
    let packets = bench.packets("reference")
    let heard = packets.flatMap(\.float)
    // Frame 0 of the reference is heard `latency` after the start.
    let now = (Int(time) - latency) * Self.rate / 1_000
    let silent = try #require(heard.lastIndex { $0 != 0 }) + 1
    let faded = silent - Self.fade
    #expect(faded >= now + Self.reaction)
    #expect(faded <= now + max(Self.period, Self.reaction + Self.fade))
    #expect(Array(heard.prefix(faded)) == count(0..<faded))
    for index in 0..<Self.fade {
      let wanted = Float(faded + index + 1) * Float(Self.fade - index) / Float(Self.fade + 1)
      #expect(abs(heard[faded + index] - wanted) < 0.01)
    }
    #expect(cut.number("samples") == Double(silent) && cut.number("position") == Double(silent))
    #expect(packets.allSatisfy { $0.flags == [] && $0.duration == Self.period })
    #expect(bench.close() == [])
  }

  @Test("a reference packet is emitted before the device plays it, whatever the latency")
  func reference() throws {
    for latency in [0, 4, 8, 20, 21, 50] {
      let bench = try bench(["latency": .number(Double(latency))])
      bench.push(count(0..<8_000))
      var seen = 0
      for time in 1...400 {
        try bench.advance(to: .milliseconds(Int64(time)))
        seen += bench.packets("reference").count
        // Utterances that were heard to the end were reported.
        #expect(seen >= (time - latency) / 10, "\(latency), \(time)")
      }
      #expect(seen > 30)
    }
  }

  @Test("a finished utterance is not rewound; the next one of the same reply is")
  func finished() throws {
    let bench = try bench(["latency": 50])
    bench.setGeneration(1)
    bench.push(count(0..<160))
    bench.push(count(160..<320), flags: .endOfUtterance)
    bench.push(count(320..<3_200))
    try bench.advance(to: .milliseconds(55))
    bench.interrupt()
    try bench.advance(to: .milliseconds(400))
    let heard = bench.float("reference")
    #expect(Array(heard.prefix(320)) == count(0..<320))
    let silent = try #require(heard.lastIndex { $0 != 0 }) + 1
    #expect(silent == 320 + Self.fade)
    let events = bench.events()
    #expect(events.first { $0.name == "replyFinished" }?.number("samples") == 320)
    #expect(events.first { $0.name == "interrupted" }?.number("samples") == Double(Self.fade))
  }

  @Test("audio before the reply, and uninterruptible audio, is not rewound")
  func spared() throws {
    let bench = try bench(["latency": 100])
    bench.push(count(0..<320))
    bench.setGeneration(1)
    bench.push((0..<3_200).map { Float(-$0 - 1) })
    try bench.advance(to: .milliseconds(60))
    bench.interrupt()
    try bench.advance(to: .milliseconds(500))
    let heard = bench.float("reference")
    #expect(Array(heard.prefix(320)) == count(0..<320))
    #expect(heard.dropFirst(320).prefix { $0 < 0 }.count == Self.fade)
    #expect(heard.dropFirst(320 + Self.fade).allSatisfy { $0 == 0 })
  }

  @Test("silence in a reply, from an underrun or while held, does not count as heard")
  func gaps() throws {
    let bench = try bench(["latency": 100])
    bench.setGeneration(1)
    bench.push(count(0..<160))
    try bench.advance(to: .milliseconds(35))
    bench.push(count(160..<3_200))
    try bench.advance(to: .milliseconds(150))
    bench.interrupt()
    try bench.advance(to: .milliseconds(500))
    let cut = try #require(bench.events().first { $0.name == "interrupted" })
    let heard = bench.float("reference")
    // After an underrun, the ramp that holds the last frame does not count.
    let sounds = heard.count { $0 != 0 } - Self.fade
    #expect(cut.number("samples") == Double(sounds))
    #expect(sounds > 320 && sounds < 1_600)
  }

  @Test("the next reply starts after the rewound audio, at full level")
  func next() throws {
    let bench = try bench(["latency": 30])
    bench.setGeneration(1)
    bench.push(count(0..<3_200))
    try bench.advance(to: .milliseconds(105))
    bench.interrupt()
    bench.setGeneration(2)
    bench.setPosition(0)
    bench.push((0..<320).map { Float(-$0 - 1) })
    try bench.advance(to: .milliseconds(400))
    let heard = bench.float("reference")
    let first = try #require(heard.firstIndex { $0 < 0 })
    let whole: [Float] = (1...320).map { -Float($0) }
    #expect(Array(heard[first..<first + 320]) == whole)
    // At 105 ms the device plays what was queued at 75 ms; the reference was emitted up to 80 ms, and 110 ms were queued.
    let last = try #require(heard[..<first].lastIndex { $0 > 0 })
    #expect(last + 1 == 80 * 16 + Self.fade)
    #expect(first >= 110 * 16)
  }

  @Test("16-bit audio is rewound too")
  func shorts() throws {
    let bench = try bench(["latency": 40], sample: .s16)
    bench.setGeneration(1)
    bench.push((0..<3_200).map { Int16($0 + 1) })
    try bench.advance(to: .milliseconds(105))
    bench.interrupt()
    try bench.advance(to: .milliseconds(400))
    let heard = bench.int16("reference")
    let cut = try #require(bench.events().first { $0.name == "interrupted" })
    let silent = try #require(heard.lastIndex { $0 != 0 }) + 1
    #expect(cut.number("samples") == Double(silent))
    let whole: [Int16] = (1...silent - Self.fade).map { Int16($0) }
    #expect(Array(heard.prefix(whole.count)) == whole)
  }

  @Test(
    "a device with its own clock plays exactly what is counted of a cancelled reply",
    arguments: [false, true])
  func ownClock(drift: Bool) throws {
    let bench = try bench(["latency": 40, "skew": 300, "drift": .bool(drift)])
    bench.setGeneration(1)
    for part in 0..<40 { bench.push(count(part * 160..<(part + 1) * 160)) }
    try bench.advance(to: .milliseconds(203))
    bench.interrupt()
    let cut = try #require(bench.events().first { $0.name == "interrupted" }, "it waits for nothing")
    try bench.advance(to: .milliseconds(600))
    // The resampler rings slightly before the first sample and after the last.
    let heard = bench.float("reference").count { abs($0) > 0.5 }
    let counted = try #require(cut.number("samples"))
    #expect(abs(counted - Double(heard)) <= (drift ? 24 : 0), "\(counted) counted, \(heard) heard")
    // At 203 ms the device plays what was queued 40 ms before.
    #expect(heard > 2_000 && heard < 203 * 16)
  }
}
