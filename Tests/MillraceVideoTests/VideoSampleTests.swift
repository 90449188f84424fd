import MillraceCore
import MillraceTesting
import MillraceVideo
import Testing

@Suite("video.sample")
struct VideoSampleTests {
  private static let small = OutputShape.video(width: 64, height: 48, rate: FrameRate(25))

  private func bench(
    _ parameters: [String: ParameterValue] = [:], shape: OutputShape = small, pacing: Pacing? = .paced
  ) throws -> NodeBench {
    try NodeBench(VideoSample.self, parameters, inputs: ["in": shape], pacing: pacing)
  }

  /// Pushes a picture at a time, as a camera would.
  private func push(_ bench: NodeBench, at time: Int64, seed: Int) throws {
    try bench.advance(to: .milliseconds(time))
    bench.push(CapturedPacket(bytes: TestPicture.i420(64, 48, seed: seed), timestamp: bench.now))
    try bench.run()
  }

  @Test("samples the newest picture at every slot of an absolute grid")
  func grid() throws {
    let bench = try bench()
    // 40 ms apart, so that only the first picture falls on a slot; the last are at 2.96 and 3 s.
    for frame in 0...75 { try push(bench, at: Int64(frame) * 40 + (frame == 0 ? 0 : 3), seed: frame) }
    let packets = bench.packets()
    #expect(packets.map(\.position) == [0, 1, 2, 3, 4, 5, 6])
    #expect(packets.map(\.timestamp) == [0, 483, 963, 1_483, 1_963, 2_483, 2_963].map { $0 * 1_000_000 })
    let events = bench.events().filter { $0.name == "picture" }
    #expect(events.map { ($0.time * 1e3).rounded() } == [0, 500, 1_000, 1_500, 2_000, 2_500, 3_000])
    #expect(events.map { $0.number("age") } == [0, 17, 37, 17, 37, 17, 37])
    #expect(events.allSatisfy { $0.number("encodes") == 1 && $0.number("scale") == 1 })
    for packet in packets {
      let decoded = try #require(DecodedJPEG(packet.bytes))
      #expect(decoded.width == 64 && decoded.height == 48)
      #expect(decoded.lumaPSNR(TestPicture.i420(64, 48, seed: Int(packet.timestamp / 40_000_000))) > 35)
    }
    try bench.finish()
    let total = try #require(bench.events().last)
    #expect(total.name == "sampled" && total.number("pictures") == 7)
    #expect(total.number("superseded") == 68)
    #expect(bench.close() == [])
  }

  @Test(
    "slots of a stalled source pass without a picture, reported once, and sampling continues when it resumes")
  func frozen() throws {
    let bench = try bench()
    try push(bench, at: 0, seed: 1)
    try push(bench, at: 2_200, seed: 2)
    try bench.advance(to: .milliseconds(3_100))
    #expect(bench.packets().map(\.position) == [0, 5])
    let events = bench.events()
    #expect(events.map(\.name) == ["picture", "skipped", "picture", "skipped"])
    #expect(events[1].string("reason") == "noNew" && events[1].number("count") == 1)
    #expect(events[3].number("count") == 5)
  }

  @Test("skips slots while the reader still uses two pictures")
  func busy() throws {
    let bench = try bench()
    bench.hold()
    for slot in 0..<5 { try push(bench, at: max(0, Int64(slot) * 500 - 10), seed: slot) }
    try bench.advance(to: .milliseconds(2_000))
    let held = [bench.take()?.position, bench.take()?.position]
    #expect(held == [0, 1])
    #expect(bench.linkCounts()?.pushed == 2)
    // Both were released by the line above.
    try push(bench, at: 2_490, seed: 9)
    try bench.advance(to: .milliseconds(2_500))
    #expect(bench.take()?.position == 5)
    let events = bench.events()
    #expect(events.map(\.name) == ["picture", "picture", "skipped", "picture"])
    #expect(events[2].string("reason") == "busy")
    try bench.finish()
    #expect(bench.events().last?.number("busy") == 3)
    #expect(bench.close() == [])
  }

  @Test(
    "every picture is strictly under the limit, as a file or as base64 text",
    arguments: ["jpeg", "base64"])
  func limit(count: String) throws {
    let shape = OutputShape.video(width: 320, height: 240, rate: FrameRate(25))
    let bench = try bench(["maxBytes": 9_000, "count": .string(count), "interval": 40], shape: shape)
    for frame in 0..<12 {
      try bench.advance(to: .milliseconds(max(0, Int64(frame) * 40 - 10)))
      let noise = [0, 10, 120, 40][frame % 4]
      bench.push(
        CapturedPacket(bytes: TestPicture.i420(320, 240, noise: noise, seed: frame), timestamp: bench.now))
      try bench.run()
    }
    try bench.advance(to: .milliseconds(440))
    let packets = bench.packets()
    #expect(packets.count == 12)
    for packet in packets {
      let counted = count == "jpeg" ? packet.bytes.count : (packet.bytes.count + 2) / 3 * 4
      #expect(counted < 9_000)
      #expect(DecodedJPEG(packet.bytes) != nil)
    }
    #expect(packets.contains { $0.bytes.count > (count == "jpeg" ? 8_000 : 6_000) })
    #expect(bench.shape().packetBytes == (count == "jpeg" ? 8_999 : 6_747))
  }

  @Test("a still picture is skipped if requested, and sampled again as soon as it changes")
  func still() throws {
    let bench = try bench(["skipStill": true])
    for (slot, seed) in [1, 1, 1, 40, 40].enumerated() {
      try push(bench, at: max(0, Int64(slot) * 500 - 10), seed: seed)
    }
    try bench.advance(to: .milliseconds(2_000))
    #expect(bench.packets().map(\.position) == [0, 3])
    let plain = try self.bench()
    for slot in 0..<3 { try push(plain, at: max(0, Int64(slot) * 500 - 10), seed: 1) }
    try plain.advance(to: .milliseconds(1_000))
    #expect(plain.packets().count == 3)
  }

  @Test("with a waiting source, slots follow the pictures' own timestamps")
  func byTimes() throws {
    let bench = try bench(pacing: nil)
    for frame in 0..<60 {
      bench.push(
        CapturedPacket(
          bytes: TestPicture.i420(64, 48, seed: frame), timestamp: .milliseconds(Int64(frame) * 40)))
    }
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.timestamp) == [0, 480, 1_000, 1_480, 2_000].map { $0 * 1_000_000 })
    #expect(bench.events().filter { $0.name == "picture" }.map { $0.number("age") } == [0, 20, 0, 20, 0])
    #expect(bench.hasEnded && bench.close() == [])
  }

  @Test(
    "a photograph yields one JPEG",
    arguments: [nil, .paced] as [Pacing?])
  func single(pacing: Pacing?) throws {
    let bench = try bench(pacing: pacing)
    bench.push(CapturedPacket(bytes: TestPicture.i420(64, 48), timestamp: 0))
    try bench.finish()
    #expect(bench.packets().count == 1)
  }

  @Test("a picture whose timestamp is decades away blocks nothing")
  func leap() throws {
    let bench = try bench(["interval": 10], pacing: nil)
    let decades: Nanoseconds = 2_000_000_000 * 1_000_000_000
    for time in [0, 5_000_000, decades, decades + 5_000_000] {
      bench.push(CapturedPacket(bytes: TestPicture.i420(64, 48), timestamp: time))
    }
    try bench.finish()
    #expect(bench.packets().map(\.position) == [0, 1, 200_000_000_000])
    #expect(bench.events().last?.number("noNew") == 199_999_999_998)
  }

  @Test("pictures further apart than slots are each sampled once")
  func slowSource() throws {
    let bench = try bench(["interval": 100], pacing: nil)
    for frame in 0..<4 {
      bench.push(
        CapturedPacket(
          bytes: TestPicture.i420(64, 48, seed: frame), timestamp: .milliseconds(Int64(frame) * 250)))
    }
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.map(\.timestamp) == [0, 250_000_000, 500_000_000])
    #expect(packets.map(\.position) == [0, 3, 5])
  }

  @Test("a picture that does not fit at any size is dropped and counted")
  func tooLarge() throws {
    let shape = OutputShape.video(width: 16, height: 16, rate: FrameRate(25))
    let bench = try bench(["maxBytes": 1_000], shape: shape)
    bench.push(CapturedPacket(bytes: TestPicture.i420(16, 16), timestamp: 0))
    try bench.run()
    #expect(bench.packets().count == 1)
    let encoder = BudgetEncoder(limit: 300, width: 16, height: 16)
    let picture = TestPicture.i420(16, 16)
    #expect(throws: BudgetEncoder.Failure.tooLarge) {
      _ = try encoder.encode(PictureView(picture.span, .i420, width: 16, height: 16))
    }
  }

  @Test("accepts every pixel type, with its colours", arguments: PixelType.allCases)
  func pixels(pixel: PixelType) throws {
    let shape = OutputShape.video(width: 34, height: 20, pixel: pixel, rate: FrameRate(25))
    let bench = try bench(shape: shape)
    // Pure red: Y 76, U 85, V 255 in BT.601 of full range.
    let count = 34 * 20
    let bytes: [UInt8] =
      switch pixel {
      case .i420: TestPicture.flat(34, 20, y: 76, u: 85, v: 255)
      case .nv12:
        [UInt8](repeating: 76, count: count) + (0..<count / 4).flatMap { _ in [85, 255] as [UInt8] }
      case .rgb24: (0..<count).flatMap { _ in [255, 0, 0] as [UInt8] }
      case .bgrx: (0..<count).flatMap { _ in [0, 0, 255, 7] as [UInt8] }
      }
    bench.push(CapturedPacket(bytes: bytes, timestamp: 0))
    try bench.run()
    let packet = try #require(bench.packets().first)
    let decoded = try #require(DecodedJPEG(packet.bytes))
    #expect(abs(Int(decoded.planes[0]) - 76) <= 2, "Y \(decoded.planes[0])")
    #expect(abs(Int(decoded.planes[count]) - 85) <= 2, "U \(decoded.planes[count])")
    #expect(decoded.planes[count + count / 4] >= 252, "V \(decoded.planes[count + count / 4])")
  }

  @Test("slots missed by a busy machine are counted, and the grid stays where it is")
  func late() throws {
    let bench = try bench()
    try push(bench, at: 0, seed: 0)
    // The bench fires timers exactly; a jump of the clock simulates a late machine.
    bench.clock.advance(to: .milliseconds(1_730))
    bench.push(CapturedPacket(bytes: TestPicture.i420(64, 48, seed: 2), timestamp: bench.now))
    try bench.run()
    #expect(bench.timerRequest == .milliseconds(2_000))
    let late = try #require(bench.events().first { $0.name == "late" })
    #expect(late.number("slots") == 2)
    // It belongs to the last past slot, not the first.
    #expect(bench.packets().map(\.position) == [0, 3])
  }
}
