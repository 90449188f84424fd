import CMallocCount
import Foundation
import MillraceCore
import MillraceDevices
import MillraceTesting
import Testing

/// Playback to a device whose clock is skewed, on a virtual clock: the whole path of `audio.play` except the device itself.
@Suite("audio.play to a device with its own clock")
struct AudioPlayDeviceTests {
  private static let rate = 16_000
  private static let frames = 160

  /// A bench whose device runs `skew` ppm fast.
  private func bench(_ values: [String: ParameterValue] = [:], skew: Double = 200) throws -> NodeBench {
    let defaults: [String: ParameterValue] = [
      "fade": 1, "prebuffer": 2, "latency": 6, "skew": .number(skew),
    ]
    return try NodeBench(
      AudioPlay.self, defaults.merging(values) { $1 },
      inputs: ["in": .pcm(rate: Self.rate, channels: 1, sample: .f32, frames: Self.frames)])
  }

  @Test("a device that fails to open leaks no memory")
  func refusedOpenings() async {
    // In a separate process: other tests allocate meanwhile.
    await #expect(processExitsWith: .success) {
      // 100 ms periods of eight channels: one open takes more than 300 kB.
      let shape = OutputShape.pcm(rate: 96_000, channels: 8, sample: .f32, frames: 960)
      func open() {
        #expect(throws: BenchProblem.self) {
          _ = try NodeBench(
            AudioPlay.self, ["device": "file", "path": "/nowhere/at/all.wav", "period": 100],
            inputs: ["in": shape], clock: .realtime)
        }
      }
      open()
      let before = try memoryInUse()
      for _ in 0..<200 { open() }
      // Far less than 200 leaked periods would be.
      let leak = 200 * 9_600 * 8 * MemoryLayout<Float>.stride
      #expect(try memoryInUse() - before < leak / 2)
    }
  }

  /// A simulated microphone: each packet is delivered once it is complete plus `delay`; its rate is `skew` ppm off.
  private struct Microphone {
    var skew = 0.0
    var delay: Nanoseconds = 1_000_000
    /// Offset added to later timestamps.
    var pause: Nanoseconds = 0
    var position: Int64 = 0

    func time(_ position: Int64) -> Nanoseconds {
      Nanoseconds(Double(position) * 1e9 / (Double(rate) * (1 + skew * 1e-6))) + pause
    }

    /// When the next packet is delivered.
    var next: Nanoseconds { time(position + Int64(frames)) + delay }

    /// Delivers the next packet now. Every sample encodes its index, so that its position can be recovered.
    mutating func give(to bench: NodeBench) {
      let samples = (0..<frames).map { Float(position + Int64($0) + 1) }
      bench.push(
        CapturedPacket(
          bytes: samples.flatMap { value in withUnsafeBytes(of: value) { Array($0) } },
          timestamp: time(position),
          position: position, duration: frames))
      position += Int64(frames)
    }

    /// Delivers packets on time until `end`.
    mutating func run(_ bench: NodeBench, until end: Nanoseconds) throws {
      while next <= end {
        try bench.advance(to: max(bench.now, next))
        give(to: bench)
        try bench.run()
      }
      try bench.advance(to: end)
    }
  }

  /// The ages in ms at which the samples of a reference packet were heard: its timestamp minus that of the samples it carries.
  private func ages(_ packets: [CapturedPacket], _ microphone: Microphone) -> [Double] {
    packets.compactMap { packet in
      guard let first = packet.float.first, packet.float.allSatisfy({ $0 > 1 }) else { return nil }
      return Double(packet.timestamp - microphone.time(Int64(first.rounded()) - 1)) / 1e6
    }
  }

  @Test("without drift compensation every sample is played exactly once")
  func plain() throws {
    let bench = try bench(["drift": false])
    var microphone = Microphone()
    try microphone.run(bench, until: .milliseconds(300))
    let heard = bench.float("reference").filter { $0 != 0 }
    #expect(heard.count > 4_000)
    #expect(heard == (0..<heard.count).map { Float($0 + 1) })
  }

  @Test("the reference has no gaps, and its timestamps follow the device's clock")
  func reference() throws {
    let bench = try bench()
    var microphone = Microphone()
    try microphone.run(bench, until: .milliseconds(2_000))
    let packets = bench.packets("reference")
    #expect(packets.allSatisfy { $0.duration <= Self.frames && $0.flags == [] && $0.generation == 0 })
    var position = packets[0].position
    let begin = packets[0].timestamp
    for packet in packets {
      #expect(packet.position == position)
      let expected = Double(position - packets[0].position) * 1e9 / (Double(Self.rate) * (1 + 200e-6))
      #expect(abs(Double(packet.timestamp - begin) - expected) < 2)
      position += Int64(packet.duration)
    }
    #expect(Double(position) > 1.97 * Double(Self.rate))
  }

  @Test("mouth to ear is one packet plus prebuffer plus latency, regardless of period boundaries")
  func age() throws {
    for delay in [0, 1_000_000, 3_700_000, 9_900_000] as [Nanoseconds] {
      let bench = try bench(skew: 50)
      var microphone = Microphone()
      microphone.delay = delay
      microphone.pause = 123_456_789
      try bench.advance(to: .milliseconds(110))
      try microphone.run(bench, until: .milliseconds(1_000))
      let ages = ages(bench.packets("reference"), microphone)
      // The resampler adds half a millisecond of lead-in and 20 frames.
      let wanted = 10 + Double(delay) / 1e6 + 2 + 6 + 0.5 + 1.25
      #expect(ages.count > 80)
      #expect(ages.allSatisfy { $0 > wanted - 0.3 && $0 < wanted + 0.3 }, "\(delay): \(ages.prefix(5))")
    }
  }

  @Test("clock drift does not change the age of what is heard", arguments: [-300.0, -100, 200])
  func drift(skew: Double) throws {
    let bench = try bench(skew: skew)
    var microphone = Microphone()
    microphone.skew = -skew / 2
    try microphone.run(bench, until: .milliseconds(60_000))
    let ages = ages(bench.packets("reference"), microphone)
    let settled = ages.suffix(2_000)
    let middle = settled.reduce(0, +) / Double(settled.count)
    #expect(settled.allSatisfy { abs($0 - middle) < 0.25 }, "\(settled.min() ?? 0) to \(settled.max() ?? 0)")
    #expect(abs(middle - 20.75) < 1, "\(middle)")
    #expect(bench.events().filter { ["underrun", "jump", "late"].contains($0.name) }.isEmpty)
    let apart = ages.max()! - ages.min()!
    #expect(apart < 2, "\(apart)")
  }

  @Test("the device clock and the drift are reported every ten seconds")
  func told() throws {
    let bench = try bench(skew: 200)
    var microphone = Microphone()
    microphone.skew = -100
    try microphone.run(bench, until: .milliseconds(61_000))
    let told = bench.events().filter { $0.name == "deviceClock" }
    #expect(told.count == 6)
    #expect(abs(try #require(told.last?.number("ppm")) - 200) < 1)
    #expect(abs(try #require(told.last?.number("drift")) - -300) < 15)
    #expect(try #require(told.last?.number("age")) > 10)
  }

  @Test("live audio that queued up before the graph ran is skipped instead of becoming delay")
  func pileUp() throws {
    let bench = try bench()
    var microphone = Microphone()
    // Six packets wait at the first call, the oldest recorded 60 ms before.
    microphone.pause = -.milliseconds(60)
    for _ in 0..<6 { microphone.give(to: bench) }
    try microphone.run(bench, until: .milliseconds(1_000))
    let ages = ages(bench.packets("reference"), microphone)
    #expect(ages.count > 80 && ages.allSatisfy { $0 < 22 }, "\(ages.prefix(5))")
  }

  @Test("an underrun does not increase the age of the audio")
  func underrun() throws {
    let bench = try bench()
    var microphone = Microphone()
    try microphone.run(bench, until: .milliseconds(1_000))
    let before = try #require(ages(bench.packets("reference"), microphone).last)
    // Nothing is delivered for 45 ms; then everything at once.
    try bench.advance(to: .milliseconds(1_050))
    while microphone.next <= bench.now { microphone.give(to: bench) }
    try bench.run()
    try microphone.run(bench, until: .milliseconds(2_000))
    // It is reported, although the late audio is skipped.
    #expect(bench.events().count { $0.name == "underrun" } == 1)
    let packets = bench.packets("reference")
    let after = ages(packets.filter { $0.timestamp > .milliseconds(1_100) }, microphone)
    #expect(after.count > 80)
    #expect(after.allSatisfy { $0 < before + 4.5 }, "\(before), then \(after.prefix(3)), \(after.max() ?? 0)")
    // It fades in; there is no step.
    let samples = packets.flatMap(\.float)
    let back = try #require(samples.indices.dropFirst(400).first { samples[$0] != 0 && samples[$0 - 1] == 0 })
    // The resampler smooths a step over its 20 frames; the ramp of 16 has barely started by then.
    #expect(samples[back] < 4_000 && samples[back + 40] > 14_000)
    #expect(samples[back + 26] < 0.7 * samples[back + 60], "\(samples[back..<back + 60])")
  }

  @Test("arrivals that drift earlier, then jump a fragment later, cause no underrun")
  func beats() throws {
    let bench = try bench(skew: 1)
    var microphone = Microphone()
    // The way a server's fragments beat against packets: 2.7 ms in 8 s.
    for index in 0..<4_000 {
      microphone.delay = 3_700_000 - Nanoseconds(index % 800) * 3_375
      try bench.advance(to: max(bench.now, microphone.next))
      microphone.give(to: bench)
      try bench.run()
    }
    let told = bench.events().filter { $0.name == "underrun" }
    #expect(told.isEmpty, "\(told.map { $0.number("position") ?? -1 })")
    let ages = ages(bench.packets("reference"), microphone).suffix(2_400)
    #expect(ages.max()! - ages.min()! < 1, "\(ages.min()!) to \(ages.max()!)")
  }

  @Test("a source that stalls causes one jump, reported once")
  func jump() throws {
    let bench = try bench()
    var microphone = Microphone()
    try microphone.run(bench, until: .milliseconds(1_000))
    _ = bench.events()
    // Its timestamps are 100 ms older from here on although it delivers on time, as after a stall of its clock.
    for _ in 0..<100 {
      try bench.advance(to: microphone.next)
      microphone.pause -= 100_000_000
      microphone.give(to: bench)
      microphone.pause += 100_000_000
      try bench.run()
    }
    let told = bench.events()
    #expect(told.count { $0.name == "jump" } == 1, "\(told.map(\.name))")
  }

  @Test("nothing of a reply is skipped, however old it is, and what was heard is reported to the sample")
  func reply() throws {
    let bench = try bench(["prebuffer": 0])
    // Live audio before it, which establishes the arrival delay.
    var microphone = Microphone()
    try microphone.run(bench, until: .milliseconds(300))
    bench.setGeneration(1)
    try bench.advance(to: .milliseconds(500))
    _ = bench.events()
    for index in 0..<20 {
      bench.push(
        CapturedPacket(
          bytes: (0..<160).flatMap { n in withUnsafeBytes(of: -Float(index * 160 + n + 1)) { Array($0) } },
          timestamp: .milliseconds(Int64(index) * 10), position: Int64(index) * 160, duration: 160,
          generation: 1, flags: index == 19 ? .endOfUtterance : []))
    }
    try bench.advance(to: .milliseconds(900))
    let events = bench.events()
    #expect(events.filter { $0.name == "jump" || $0.name == "underrun" }.isEmpty)
    let end = try #require(events.first { $0.name == "replyFinished" })
    #expect(end.number("samples") == 3_200)
    // Only its samples are below zero, apart from the resampler's ringing at the edges.
    let heard = bench.packets("reference").filter { $0.timestamp > .milliseconds(500) }
      .flatMap(\.float).filter { $0 < -0.5 }
    #expect(abs(heard.count - 3_200) < 60, "\(heard.count)")
  }

  @Test("an interruption fades and counts, and drops the packets that wait")
  func interruption() throws {
    let bench = try bench(["prebuffer": 0, "drift": false])
    bench.setGeneration(1)
    bench.push((0..<3_200).map { Float($0 + 1) })
    try bench.advance(to: .milliseconds(45))
    bench.interrupt()
    try bench.advance(to: .milliseconds(300))
    let cut = try #require(bench.events().first { $0.name == "interrupted" })
    let heard = bench.float("reference").filter { $0 != 0 }
    // After the last packet, the fade holds its last frame, which counts once.
    let counted = try #require(cut.number("samples"))
    #expect(counted <= Double(heard.count) && counted >= Double(heard.count - 16))
    #expect(heard.count < 1_200)
    #expect(bench.close() == [])
  }

  @Test(
    "a machine that is too late skips what can no longer be heard, and later audio is no older",
    arguments: [12, 20])
  func late(packets: Int) throws {
    let bench = try bench()
    var microphone = Microphone()
    try microphone.run(bench, until: .milliseconds(1_000))
    let before = try #require(ages(bench.packets("reference"), microphone).last)
    bench.hold("reference")
    // Eight periods fit behind the node. A stall of 40 ms is caught up by skipping audio, one of 120 ms by a jump.
    for _ in 0..<packets {
      try bench.advance(to: microphone.next)
      microphone.give(to: bench)
    }
    bench.release("reference")
    try bench.run()
    try microphone.run(bench, until: .milliseconds(2_500))
    let told = bench.events()
    #expect(told.contains { $0.name == "late" || $0.name == "jump" }, "\(told.map(\.name))")
    let after = ages(bench.packets("reference").filter { $0.timestamp > .milliseconds(1_600) }, microphone)
    #expect(after.count > 50)
    #expect(after.allSatisfy { $0 < before + 6 }, "\(before), then \(after.max() ?? 0)")
  }

  @Test(
    "following a device clock allocates nothing",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func heap() throws {
    let bench = try bench()
    var microphone = Microphone()
    // The first clock event comes after ten seconds, and the first event of a process sets up formatting.
    try microphone.run(bench, until: .milliseconds(10_500))
    bench.resetHeapRequests()
    try microphone.run(bench, until: .milliseconds(20_500))
    #expect(bench.heapRequests == 0)
  }

  @Test("an unknown device, or one that cannot follow the clock, is refused with a cure")
  func refusals() {
    func refusal(_ values: [String: ParameterValue]) -> String {
      do throws(BenchProblem) {
        _ = try NodeBench(
          AudioPlay.self, values, inputs: ["in": .pcm(rate: 16_000, channels: 1, sample: .s16, frames: 160)])
        return ""
      } catch {
        return error.description
      }
    }
    #expect(refusal(["device": "speaker"]).contains("unknown device \"speaker\""))
    #expect(refusal(["device": "speaker"]).contains("millrace devices"))
    #expect(refusal(["device": "file"]).contains("set \"path\""))
    #expect(refusal(["device": "pulse"]).contains("cannot follow a virtual clock"))
    #expect(refusal(["device": "null:one"]).contains("unknown device"))
  }
}

/// Memory of this process in bytes: what it holds on the heap; under a sanitizer, which has the heap to itself, what is resident. What is
/// resident also grows with the arenas that the allocator gives to new threads, by half of what a leak would be.
private func memoryInUse() throws -> Int {
  if millrace_malloc_counting_available() != 0 { return Int(millrace_malloc_process_bytes()) }
  let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
  return try #require(Int(fields[1])) * Int(sysconf(Int32(_SC_PAGESIZE)))
}
