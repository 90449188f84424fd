import Glibc
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

@testable import MillraceAudio

@Suite("audio.record")
struct AudioRecordTests {
  private let folder = TemporaryFolder()
  private var path: String { folder.file("call.wav") }

  private func bench(
    _ parameters: [String: ParameterValue] = [:], _ inputs: [OutputShape] = [shape(8_000), shape(8_000)]
  ) throws -> NodeBench {
    try NodeBench(
      AudioRecord.self, parameters.merging(["path": .string(path)]) { first, _ in first },
      inputs: Dictionary(uniqueKeysWithValues: inputs.enumerated().map { ("in\($0 + 1)", $1) }))
  }

  /// One channel of the file.
  private func channel(_ number: Int, of count: Int = 2) throws -> [Int16] {
    let samples = try readWAV(path)
    return stride(from: number, to: samples.count, by: count).map { samples[$0] }
  }

  /// The members with which a file's event `completed` ends.
  private func ending(_ reason: String) -> String {
    #""bytes":\#(contents(path).count),"reason":"\#(reason)","path":"\#(path)""#
  }

  private func ramp(_ count: Int, from start: Int = 1) -> [Int16] { (0..<count).map { Int16(start + $0) } }

  @Test("inputs are recorded side by side, each from its first packet's time on")
  func places() throws {
    let bench = try bench()
    bench.push(ramp(320), to: "in1")
    // 10.04 ms are 80.32 samples; how late the following packets arrive does not matter.
    bench.push(ramp(160, from: 1_000), to: "in2", timestamp: 10_040_000)
    bench.push(ramp(80, from: 1_160), to: "in2", timestamp: 77_000_000)
    try bench.finish()
    #expect(
      bench.events().map(\.json) == [
        #"{"time":0.000000,"node":"node","event":"began","path":"\#(path)","rate":8000,"channels":2}"#,
        #"{"time":0.000000,"node":"node","event":"completed","seconds":0.040,"samples":320,\#(ending("ended"))}"#,
      ])
    #expect(bench.close() == [])
    #expect(try channel(0) == ramp(320))
    #expect(try channel(1) == [Int16](repeating: 0, count: 80) + ramp(240, from: 1_000))
  }

  @Test(
    "recording WAV allocates nothing, even if an input is missing for longer than the patience",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func heap() throws {
    let bench = try bench(["patience": 100])
    for round in 0..<400 {
      // Event `late` is posted at most once a second; the runtime's one-time allocations are done by then.
      if round == 150 { bench.resetHeapRequests() }
      bench.push(ramp(160), to: "in1")
      if round % 100 < 50 { bench.push(ramp(160), to: "in2") }
      try bench.advance(by: .milliseconds(20))
    }
    #expect(bench.heapRequests == 0)
    #expect(bench.close() == [])
  }

  @Test("gaps, lost packets and inputs without audio are silence")
  func silence() throws {
    let bench = try bench([:], [shape(8_000), shape(8_000), shape(8_000, channels: 2)])
    bench.push(ramp(4), to: "in1")
    bench.setPosition(8, of: "in1")
    bench.push(ramp(4), to: "in1")
    bench.push(bytes: [], to: "in1", duration: 4, flags: .lost)
    bench.push(ramp(4), to: "in1")
    bench.push([5, -5, 6, -6] as [Int16], to: "in3")
    try bench.finish()
    #expect(bench.close() == [])
    #expect(try channel(0, of: 4) == ramp(4) + [0, 0, 0, 0] + ramp(4) + [0, 0, 0, 0] + ramp(4))
    #expect(try channel(1, of: 4) == [Int16](repeating: 0, count: 20))
    #expect(try channel(2, of: 4).prefix(4) == [5, 6, 0, 0])
    #expect(try channel(3, of: 4).prefix(4) == [-5, -6, 0, 0])
  }

  @Test("audio before position 0 is dropped, and the rest keeps its position")
  func runIn() throws {
    let bench = try bench()
    bench.setPosition(-8, of: "in1")
    bench.push(ramp(24), to: "in1")
    bench.push(ramp(8), to: "in2")
    try bench.finish()
    #expect(bench.close() == [])
    #expect(try channel(0) == ramp(16, from: 9))
    #expect(try channel(1) == ramp(8) + [Int16](repeating: 0, count: 8))
  }

  @Test("missing audio is waited for up to the patience; later audio is dropped and counted")
  func patience() throws {
    let bench = try bench(["patience": 100, "progress": 10])
    bench.push(ramp(80), to: "in1")
    bench.push(ramp(80), to: "in2")
    try bench.run()
    bench.push(ramp(160, from: 81), to: "in1")
    try bench.advance(to: 99_000_000)
    #expect(bench.events().map(\.name) == ["began", "progress"])
    bench.push(ramp(40, from: 81), to: "in2")
    try bench.advance(to: 101_000_000)
    #expect(bench.events().map(\.name) == ["progress", "progress"], "all that had waited 100 ms")
    bench.push(ramp(120, from: 121), to: "in2")
    bench.push(ramp(40, from: 241), to: "in1")
    bench.push(ramp(40, from: 241), to: "in2")
    try bench.finish()
    #expect(
      bench.events().map(\.json) == [
        #"{"time":0.101000,"node":"node","event":"late","input":2,"samples":120}"#,
        #"{"time":0.101000,"node":"node","event":"completed","seconds":0.035,"samples":280,\#(ending("ended"))}"#,
      ])
    #expect(bench.close() == [])
    #expect(try channel(0) == ramp(280))
    #expect(try channel(1) == ramp(120) + [Int16](repeating: 0, count: 120) + ramp(40, from: 241))
  }

  @Test("an input that jumps far ahead or restarts does not displace the others")
  func jumps() throws {
    let bench = try bench()
    bench.push(ramp(8), to: "in1")
    bench.setPosition(8_000 * 7_200, of: "in1")
    bench.push(ramp(8, from: 9), to: "in1")
    bench.push(ramp(8), to: "in2")
    bench.setPosition(0, of: "in2")
    bench.push(ramp(4, from: 50), to: "in2", timestamp: 1_500_000, flags: .discontinuity)
    try bench.finish()
    #expect(bench.close() == [])
    #expect(try channel(0) == ramp(16))
    #expect(try channel(1) == ramp(8) + [0, 0, 0, 0] + ramp(4, from: 50))
  }

  @Test("a mix adds all inputs, mono to both sides, limited to full scale; NaN is silence")
  func mix() throws {
    let bench = try bench(
      ["layout": "mix", "sample": "f32"], [shape(8_000, channels: 2, .f32), shape(8_000, .f32)])
    bench.push([0.25, -0.25, 0.75, -0.75, .nan, 0] as [Float], to: "in1")
    bench.push([0.125, 0.5, -0.5] as [Float], to: "in2")
    try bench.finish()
    #expect(bench.close() == [])
    var reader = try WAVReader(path: path)
    #expect(try readFloats(&reader) == [0.375, -0.125, 1, -0.25, -0.5, -0.5])
  }

  @Test("pausing skips all inputs, to the sample")
  func pause() throws {
    let bench = try bench()
    func second(_ from: Int) {
      bench.push(ramp(80, from: from), to: "in1")
      bench.push(ramp(80, from: from + 1_000), to: "in2")
    }
    for number in 0..<4 {
      second(80 * number)
      if number == 1 {
        try bench.advance(to: 15_000_000)
        try bench.set("recording", false)
      }
      if number == 2 {
        try bench.advance(to: 25_000_000)
        try bench.set("recording", true)
      }
    }
    try bench.finish()
    #expect(bench.close() == [])
    // What was written before the switch stays: the pause begins after it.
    #expect(try channel(0) == ramp(160, from: 0) + ramp(80, from: 240))
    #expect(try channel(1) == ramp(160, from: 1_000) + ramp(80, from: 1_240))
  }

  @Test("a switch ahead of what was written takes effect at its own sample")
  func pauseAhead() throws {
    let bench = try bench()
    bench.push(ramp(160), to: "in1")
    try bench.advance(to: 5_000_000)
    try bench.set("recording", false)
    try bench.advance(to: 15_000_000)
    try bench.set("recording", true)
    bench.push(ramp(160), to: "in2")
    try bench.finish()
    #expect(bench.close() == [])
    #expect(try channel(0) == ramp(40) + ramp(40, from: 121))
    #expect(try channel(1) == ramp(40) + ramp(40, from: 121))
  }

  @Test("stop completes the file, cancel removes it, and nothing is recorded afterwards")
  func ends() throws {
    let stopped = try bench([:], [shape(8_000)])
    stopped.push(ramp(80))
    try stopped.run()
    try stopped.set("stop", true)
    try stopped.run()
    #expect(stopped.hasEnded)
    #expect(
      stopped.events().last?.json
        == #"{"time":0.000000,"node":"node","event":"completed","seconds":0.010,"samples":80,\#(ending("stopped"))}"#
    )
    #expect(try readWAV(path) == ramp(80))
    #expect(stopped.close() == [])
    let cancelled = try bench([:], [shape(8_000)])
    cancelled.push(ramp(80))
    try cancelled.run()
    try cancelled.set("cancel", true)
    try cancelled.run()
    #expect(cancelled.hasEnded)
    #expect(
      cancelled.events().last?.json == #"{"time":0.000000,"node":"node","event":"cancelled"}"#)
    #expect(contents(path).isEmpty)
    #expect(refusal(AudioRead.self, ["path": .string(path)])?.contains("there is no file") == true)
    #expect(cancelled.close() == [])
  }

  @Test("cancel never removes a device that was recorded to")
  func cancelsOnDevice() throws {
    // Through a link, which is removed instead of the device if this fails.
    let link = folder.file("device.wav")
    #expect(symlink("/dev/null", link) == 0)
    let bench = try bench(["path": .string(link)], [shape(8_000)])
    bench.push(ramp(80))
    try bench.run()
    try bench.set("cancel", true)
    try bench.run()
    #expect(bench.hasEnded && bench.close() == [])
    #expect(folder.names.contains("device.wav"))
  }

  @Test("the duration is exact to the sample")
  func duration() throws {
    let bench = try bench(["duration": 12.5], [shape(8_000)])
    bench.push(ramp(400))
    try bench.run()
    #expect(bench.hasEnded)
    #expect(
      bench.events().last?.json
        == #"{"time":0.000000,"node":"node","event":"completed","seconds":0.013,"samples":100,\#(ending("duration"))}"#
    )
    #expect(try readWAV(path) == ramp(100))
    #expect(bench.close() == [])
  }

  @Test("progress reports peak and average of each window, however the packets are chunked")
  func progress() throws {
    let bench = try bench(["progress": 25], [shape(8_000)])
    bench.push([Int16](repeating: 16_384, count: 200) + [Int16](repeating: -3_277, count: 250))
    try bench.finish()
    let events = bench.events().filter { $0.name == "progress" }
    #expect(
      events.map(\.json) == [
        #"{"time":0.000000,"node":"node","event":"progress","seconds":0.025,"peak":-6.0,"average":-6.0}"#,
        #"{"time":0.000000,"node":"node","event":"progress","seconds":0.050,"peak":-20.0,"average":-20.0}"#,
      ])
    #expect(bench.close() == [])
  }

  @Test("a recording without samples is a valid file without samples", arguments: RecordingFormat.allCases)
  func nothing(format: RecordingFormat) throws {
    let path = folder.file("none.\(format.rawValue)")
    let bench = try bench(["path": .string(path)])
    try bench.finish()
    #expect(bench.events().last?.number("samples") == 0)
    #expect(bench.close() == [])
  }

  @Test("an hour with stalls: every sample of both sides at its position")
  func hour() throws {
    let rate = 8_000
    let bench = try bench(["patience": 2_000, "progress": 60_000])
    var random = Fixture.noise16(seed: 9, count: 3_600).makeIterator()
    // One packet per second on each side; the rest is silence. The far end's packets are stamped and arrive with network jitter.
    var (waiting, offset) = (0, 0)
    for second in 0..<3_600 {
      let stall = Int(random.next() ?? 0) & 3
      bench.setPosition(Int64(second * rate), of: "in1")
      bench.push(mark(second), to: "in1", timestamp: Nanoseconds(second) * 1_000_000_000)
      try bench.advance(to: Nanoseconds(second) * 1_000_000_000 + 20_000_000)
      if stall == 0 && second - waiting < 1 && second < 3_599 { continue }
      // 41 ms are 328 samples: the first packet's timestamp places the far end for the whole hour.
      if waiting == 0 { offset = stall * 328 }
      for late in waiting...second {
        bench.setPosition(Int64(late * rate), of: "in2")
        bench.push(
          mark(late + 7), to: "in2",
          timestamp: Nanoseconds(late) * 1_000_000_000 + Nanoseconds(stall) * 41_000_000)
      }
      waiting = second + 1
    }
    try bench.finish()
    let events = bench.events()
    #expect(!events.contains { $0.name == "late" })
    #expect(bench.close() == [])
    var reader = try WAVReader(path: path)
    var piece = [Int16](repeating: 0, count: 2 * 2_000)
    for second in 0..<3_600 {
      var span = piece.mutableSpan
      _ = try reader.read(at: Int64(second * rate), into: &span)
      let near = mark(second)
      let far = mark(second + 7)
      #expect((0..<160).allSatisfy { piece[2 * $0] == near[$0] }, "near end, second \(second)")
      #expect(
        (0..<160).allSatisfy { piece[2 * ($0 + offset) + 1] == far[$0] }, "far end, second \(second)")
    }
  }

  /// A packet that encodes its second.
  private func mark(_ second: Int) -> [Int16] { (0..<160).map { Int16(second & 8_191) + Int16($0) + 1 } }
}
