import Glibc
import MillraceAudio
import MillraceCore
import MillraceDevices
import MillraceTesting
import Testing

@Suite("audio.capture")
struct AudioCaptureTests {
  /// Writes a file of this many frames, each sample holding its own index.
  private func file(frames: Int, rate: Int = 16_000) throws -> String {
    var name = Array("/tmp/millrace-devices-XXXXXX".utf8CString)
    close(name.withUnsafeMutableBufferPointer { mkstemp($0.baseAddress!) })
    let path = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    var writer = try WAVWriter(
      path: path, format: WAVFormat(sampleRate: rate, channels: 1, encoding: .s16))
    let samples = (0..<frames).map { Int16($0 % 30_000 + 1) }
    try writer.write(samples.span)
    try writer.finish()
    return path
  }

  @Test("the device null delivers silence on the graph's clock, and timestamps are those of the first frame")
  func silence() throws {
    let bench = try NodeBench(AudioCapture.self, ["device": "null", "rate": 16_000, "sample": "s16"])
    try bench.advance(to: .milliseconds(100))
    let packets = bench.packets()
    #expect(packets.map(\.position) == (0..<10).map { Int64($0) * 160 })
    #expect(packets.map(\.timestamp) == (0..<10).map { .milliseconds(Int64($0) * 10) })
    #expect(packets.allSatisfy { $0.int16 == [Int16](repeating: 0, count: 160) && $0.flags == [] })
  }

  @Test("the device null can run faster than nominal")
  func fast() throws {
    let bench = try NodeBench(
      AudioCapture.self, ["device": "null", "rate": 16_000, "sample": "s16", "skew": 1_000])
    try bench.advance(to: .milliseconds(10_000))
    #expect(bench.packets().count == 1_001)
  }

  @Test("the format is what the consumers take, unless the graph sets one")
  func format() throws {
    let wanted = [
      "out": FormatConstraint.pcm(rates: .oneOf([16_000]), channels: .oneOf([1]), samples: [.f32])
    ]
    let open = try NodeBench.resolve(AudioCapture.self, ["device": "null"], wanted: wanted)
    #expect(open.outputs["out"] == .pcm(rate: 16_000, channels: 1, sample: .f32, frames: 160))
    let given = try NodeBench.resolve(
      AudioCapture.self, ["device": "null", "rate": 8_000, "channels": 2, "frame": 20])
    #expect(given.outputs["out"] == .pcm(rate: 8_000, channels: 2, sample: .s16, frames: 160))
    #expect(given.pacing == .live)
  }

  @Test("a file is recorded sample for sample in real time, and its end ends the node")
  func file() throws {
    let path = try file(frames: 28_800)
    defer { remove(path) }
    // A machine that stands still for longer than the line holds loses blocks: then it is recorded again.
    var packets: [CapturedPacket] = []
    var duration: Nanoseconds = 0
    for _ in 0..<20 {
      packets = []
      var hasOverrun = false
      let bench = try NodeBench(
        AudioCapture.self, ["device": "file", "path": .string(path), "rate": 16_000, "sample": "s16"],
        clock: .realtime)
      let begin = bench.now
      #expect(
        try bench.wait(120) {
          packets += bench.packets()
          hasOverrun = bench.events().contains { $0.name == "overrun" } || hasOverrun
          return bench.hasEnded
        })
      duration = bench.now - begin
      #expect(bench.close() == [])
      if !hasOverrun && !packets.isEmpty { break }
    }
    // 180 blocks of 10 ms; those before the first call are discarded.
    try #require(packets.count > 0 && packets.count <= 180)
    #expect(packets.first?.position == 0)
    let first = try #require(packets.first?.int16.first)
    #expect(packets.flatMap(\.int16) == (0..<packets.count * 160).map { Int16(Int(first) + $0) })
    #expect(packets.allSatisfy { $0.flags == [] && $0.duration == 160 })
    #expect(duration > .milliseconds(Int64(packets.count) * 5))
  }

  @Test(
    "a graph that does not keep up loses audio, reported and counted, and its latency stays the same"
  )
  func overrun() throws {
    let frames = 16_000 * 6
    let path = try file(frames: frames)
    defer { remove(path) }
    let bench = try NodeBench(
      AudioCapture.self, ["device": "file", "path": .string(path), "rate": 16_000, "sample": "s16"],
      clock: .realtime)
    var packets: [CapturedPacket] = []
    var told: [BenchEvent] = []
    #expect(try bench.wait(120) { bench.packets().count > 0 })
    // Works on slow machines: stall for longer than the line can hold, until one stall was long enough.
    while told.isEmpty && !bench.hasEnded {
      bench.hold("out")
      let begin = bench.now
      _ = try bench.wait(0.6) { false }
      bench.release("out")
      packets += bench.packets()
      _ = try bench.wait(120) {
        told += bench.events().filter { $0.name == "overrun" }
        return !told.isEmpty || bench.hasEnded || bench.now - begin > .milliseconds(1_000)
      }
    }
    #expect(
      try bench.wait(120) {
        packets += bench.packets()
        told += bench.events().filter { $0.name == "overrun" }
        return bench.hasEnded
      })
    #expect(told.map { $0.number("count") } == (1...max(1, told.count)).map { Double($0) })
    let lost = told.reduce(0) { $0 + ($1.number("ms") ?? 0) } * 16
    let gaps = zip(packets, packets.dropFirst()).filter { $1.position != $0.position + 160 }
    #expect(gaps.reduce(0) { $0 + Double($1.1.position - $1.0.position - 160) } == lost && lost > 0)
    #expect(gaps.allSatisfy { $1.flags.contains(.discontinuity) })
    let first = try #require(packets.first)
    let origin = try #require(first.int16.first)
    // The position is that of the recording, and the timestamp matches the position.
    let misplaced = packets.filter { packet in
      let steps = Int(packet.position - first.position)
      return packet.int16.first != Int16((Int(origin) - 1 + steps) % 30_000 + 1)
    }
    #expect(misplaced.isEmpty, "\(misplaced.map(\.position))")
    let late = packets.map { $0.timestamp - first.timestamp - ($0.position - first.position) * 62_500 }
    // A machine that stands still may make single blocks late by seconds, but not most of them.
    let middle = late.sorted()[late.count / 2]
    let spread = late.map { abs($0 - middle) }.sorted()[late.count / 2]
    #expect(spread < .milliseconds(300), "\(spread) ns")
    #expect(late.allSatisfy { abs($0) < .milliseconds(5_000) }, "\(late.min() ?? 0) to \(late.max() ?? 0) ns")
    #expect(bench.close() == [])
  }

  @Test("a device that cannot be opened is reported with the reason")
  func refusals() throws {
    func refusal(_ values: [String: ParameterValue], _ clock: Clock.Kind = .realtime) -> String {
      do throws(BenchProblem) {
        _ = try NodeBench(AudioCapture.self, values, clock: clock)
        return ""
      } catch {
        return error.description
      }
    }
    let path = try file(frames: 100)
    defer { remove(path) }
    #expect(refusal(["device": "microphone"]).contains("unknown device \"microphone\""))
    #expect(refusal(["device": "file", "path": "/nowhere.wav"]).contains("/nowhere.wav"))
    // A pipe without a writer would block forever.
    let pipe = path + ".pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    defer { remove(pipe) }
    #expect(refusal(["device": "file", "path": .string(pipe)]).contains("is a pipe or a device, not a file"))
    #expect(
      refusal(["device": "file", "path": .string(path), "rate": 48_000])
        .contains("is 16000 Hz with 1 channels, not 48000 Hz with 1"))
    #expect(refusal(["device": "alsa:nosuchcard"]).contains("cannot open ALSA device \"nosuchcard\""))
    #expect(
      refusal(["device": "file", "path": .string(path)], .virtual).contains("cannot follow a virtual clock"))
  }

  @Test(
    "recording allocates nothing",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func heap() throws {
    let path = try file(frames: 48_000)
    defer { remove(path) }
    let bench = try NodeBench(
      AudioCapture.self, ["device": "file", "path": .string(path), "rate": 16_000, "sample": "s16"],
      clock: .realtime)
    #expect(try bench.wait(120) { bench.packets().count > 0 })
    bench.resetHeapRequests()
    #expect(try bench.wait(120) { bench.hasEnded })
    #expect(bench.heapRequests == 0)
  }
}

@Suite("device nodes")
struct DeviceNodesTests {
  @Test("the catalogue lists both nodes")
  func catalogue() { #expect(Catalogue.devices.types == ["audio.capture", "audio.play"]) }

  @Test("every contract is fully documented", arguments: Catalogue.devices.types)
  func documented(type: String) throws {
    let contract = try #require(Catalogue.devices[type]).contract
    #expect(!contract.summary.isEmpty && !contract.text.isEmpty && !contract.examples.isEmpty)
    #expect(contract.examples.allSatisfy { $0.contains("\"type\": \"\(type)\"") })
    for port in contract.inputs + contract.outputs { #expect(!port.text.isEmpty) }
    for parameter in contract.parameters { #expect(!parameter.text.isEmpty) }
    for event in contract.events { #expect(!event.text.isEmpty) }
  }

  @Test("devices that need no hardware are always listed")
  func list() {
    let own = AudioDeviceList.all().filter { $0.device == "null" || $0.device == "file" }
    #expect(own.count == 2 && own.allSatisfy { $0.records && $0.plays })
  }
}
