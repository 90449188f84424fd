import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

/// `video.read` that emits only what a sampler takes.
@Suite("pictures of a video at the slots of a grid")
struct VideoSlotTests {
  private let folder = TemporaryFolder()

  private func makeVideo(_ change: (inout TestVideo) -> Void = { _ in }) -> String {
    var video = TestVideo()
    video.pictures = 40
    change(&video)
    let path = folder.file("video.mkv")
    video.write(to: path)
    return path
  }

  private func read(_ path: String, _ interval: Double?, _ more: [String: ParameterValue] = [:]) throws
    -> NodeBench
  {
    var values = more.merging(["path": .string(path)]) { $1 }
    if let interval { values["interval"] = .number(interval) }
    return try NodeBench(VideoRead.self, values, outputs: ["out"])
  }

  /// The pictures that a sampler takes: their positions and bytes.
  private func sample(_ video: NodeBench, _ interval: Double) throws -> (
    slots: [Int64], jpegs: [[UInt8]], given: Int
  ) {
    let sampler = try NodeBench(
      VideoSample.self, ["interval": .number(interval)], inputs: ["in": video.shape()], pacing: .waits)
    try video.run()
    let given = video.packets()
    for packet in given {
      sampler.push(packet)
      try sampler.run()
    }
    try sampler.finish()
    let taken = sampler.packets()
    #expect(video.close() == [] && sampler.close() == [])
    return (taken.map(\.position), taken.map(\.bytes), given.count)
  }

  @Test(
    "are the pictures that a sampler takes, with the same bytes",
    arguments: [40.0, 70, 200, 333, 500, 10, 1_560, 1_600, 5_000])
  func same(interval: Double) throws {
    let path = makeVideo()
    let all = try sample(try read(path, nil), interval)
    let few = try sample(try read(path, interval), interval)
    #expect(few.slots == all.slots && few.jpegs == all.jpegs)
    #expect(all.given == 40 && few.given <= all.slots.count + 2, "\(few.given) of \(all.slots)")
  }

  @Test("even if pictures have different durations", arguments: [100.0, 250, 410])
  func uneven(interval: Double) throws {
    let path = makeVideo { video in
      video.codec = "mpeg4"
      video.time = { ($0 * $0 / 4 + $0, $0 / 2 + 1) }
    }
    let all = try sample(try read(path, nil), interval)
    let few = try sample(try read(path, interval), interval)
    #expect(few.slots == all.slots && few.jpegs == all.jpegs && few.given < 40)
  }

  @Test("continue through a loop, and follow the clock when paced")
  func looped() throws {
    let path = makeVideo { $0.pictures = 25 }
    let bench = try read(path, 200, ["loop": true, "pace": true])
    try bench.advance(to: .milliseconds(2_399))
    #expect(
      bench.packets().map { $0.timestamp / 1_000_000 } == [
        // The last picture of each pass is emitted too.
        0, 200, 400, 600, 800, 960, 1_000, 1_200, 1_400, 1_600, 1_800, 1_960, 2_000, 2_200,
      ])
    #expect(bench.close() == [])
  }

  @Test("follow one grid over all passes of a loop")
  func loopedGrid() throws {
    let path = makeVideo { $0.pictures = 25 }
    func slots(_ interval: Double?) throws -> [Nanoseconds] {
      let bench = try read(path, interval, ["loop": true])
      let sampler = try NodeBench(
        VideoSample.self, ["interval": 300], inputs: ["in": bench.shape()], pacing: .waits)
      var last: Nanoseconds = 0
      while last < 3_500_000_000 {
        try bench.run(calls: 50)
        for packet in bench.packets() {
          last = packet.timestamp
          sampler.push(packet)
          try sampler.run()
        }
      }
      return sampler.packets().map(\.timestamp).filter { $0 < 3_000_000_000 }
    }
    #expect(try slots(300) == slots(nil))
  }

  @Test("leave the audio complete and in place")
  func sound() throws {
    let path = makeVideo { $0.sound = [Int16](repeating: 100, count: 76_800) }
    func samples(_ interval: ParameterValue?) throws -> [Int16] {
      var values: [String: ParameterValue] = ["path": .string(path), "pace": true]
      values["interval"] = interval
      let bench = try NodeBench(VideoRead.self, values, outputs: ["out", "audio"])
      try bench.advance(to: .milliseconds(2_000))
      let packets = bench.packets("audio")
      #expect(packets.map(\.timestamp) == packets.map(\.timestamp).sorted())
      return packets.flatMap(\.int16)
    }
    let all = try samples(nil)
    #expect(try all.count >= 76_800 && samples(500) == all)
  }

  @Test("do not delay late audio while the pictures between them are skipped")
  func lateSound() throws {
    let path = makeVideo { $0.sound = [Int16](repeating: 100, count: 76_800) }
    let bench = try NodeBench(
      VideoRead.self, ["path": .string(path), "pace": true, "interval": 1_000], outputs: ["out", "audio"])
    try bench.advance(to: .milliseconds(800))
    // Late before a picture is emitted, with others after it that are skipped.
    bench.hold("audio")
    try bench.advance(to: .milliseconds(1_500))
    bench.release("audio")
    var heard = bench.packets("audio").map(\.timestamp)
    var (silent, longest) = (0, 0)
    while heard.last ?? 0 < 1_400_000_000, silent < 100 {
      try bench.run(calls: 1)
      let packets = bench.packets("audio")
      silent = packets.isEmpty ? silent + 1 : 0
      longest = max(longest, silent)
      heard += packets.map(\.timestamp)
    }
    // One call emits a picture, another skips one, between calls that emit 40 ms of audio.
    #expect(longest <= 2 && bench.packets().count == 2, "\(longest) calls without sound")
    #expect(heard == heard.sorted() && bench.close() == [])
  }
}
