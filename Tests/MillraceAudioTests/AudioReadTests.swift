import Glibc
import MillraceAudio
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@Suite("audio.read")
struct AudioReadTests {
  private let folder = TemporaryFolder()
  private var path: String { folder.file("in.wav") }
  private static let samples = Fixture.noise16(seed: 6, count: 1_000)

  private func bench(_ parameters: [String: ParameterValue] = [:]) throws -> NodeBench {
    try NodeBench(AudioRead.self, parameters.merging(["path": .string(path)]) { first, _ in first })
  }

  init() throws { try writeWAV(Self.samples, rate: 16_000, to: folder.file("in.wav")) }

  @Test("the file's samples come in packets of 20 ms, the last one short")
  func reads() throws {
    let bench = try bench()
    try bench.run()
    let packets = bench.packets()
    #expect(packets.map(\.duration) == [320, 320, 320, 40])
    #expect(packets.map(\.position) == [0, 320, 640, 960])
    #expect(packets.map(\.timestamp) == [0, 20_000_000, 40_000_000, 60_000_000])
    #expect(packets.flatMap(\.int16) == Self.samples)
    #expect(bench.hasEnded && bench.events().isEmpty && bench.close() == [])
    #expect(bench.resolution.pacing == .waits)
  }

  @Test("floats are available, and every WAV encoding in either type")
  func types() throws {
    let bench = try bench(["sample": "f32"])
    try bench.run()
    #expect(bench.float() == Self.samples.map { Float($0) / 32_768 })
    #expect(bench.shape().format == .pcm(rate: 16_000, channels: 1, sample: .f32))
  }

  @Test("paced packets are due at times computed from their positions")
  func paced() throws {
    let bench = try bench(["pace": true, "frame": 10])
    try bench.advance(to: .milliseconds(25))
    #expect(bench.packets().map(\.timestamp) == [0, 10_000_000, 20_000_000])
    #expect(bench.timerRequest == 30_000_000)
    try bench.advance(to: .milliseconds(200))
    let packets = bench.packets()
    #expect(packets.map(\.timestamp) == [30_000_000, 40_000_000, 50_000_000, 60_000_000])
    #expect(packets.last?.duration == 40 && bench.hasEnded)
    #expect(bench.resolution.pacing == .paced)
  }

  @Test("a start of 0 is the first sample, even in a file without audio")
  func startAtZero() throws {
    let fromZero = try bench(["start": 0])
    try fromZero.run()
    #expect(fromZero.int16() == Self.samples)
    let path = folder.file("empty.wav")
    try writeWAV([], rate: 16_000, to: path)
    let empty = try NodeBench(AudioRead.self, ["path": .string(path), "start": 0, "loop": true])
    try empty.run()
    #expect(empty.hasEnded && empty.packets().isEmpty && empty.events().isEmpty)
  }

  @Test("floats are sanitised: NaN and infinities become silence, the rest is clamped to +120 dBFS")
  func rubbish() throws {
    let path = folder.file("rubbish.wav")
    var writer = try WAVWriter(
      path: path, format: WAVFormat(sampleRate: 16_000, channels: 1, encoding: .f32))
    try writer.write(([.nan, .infinity, -.infinity, 3e38, -3e38, 1e6, 0.5] as [Float]).span)
    try writer.finish()
    let bench = try NodeBench(AudioRead.self, ["path": .string(path), "sample": "f32"])
    try bench.run()
    #expect(bench.float() == [0, 0, 0, 1_048_576, -1_048_576, 1e6, 0.5])
  }

  @Test("start and length select a part")
  func part() throws {
    let bench = try bench(["start": 10, "length": 25])
    try bench.run()
    let packets = bench.packets()
    #expect(packets.map(\.position) == [0, 320])
    #expect(packets.flatMap(\.int16) == Array(Self.samples[160..<560]))
    #expect(bench.events().isEmpty)
  }

  @Test("a loop continues without a gap", arguments: [nil, 12.5] as [Double?])
  func loops(length: Double?) throws {
    var parameters: [String: ParameterValue] = ["loop": true, "start": 10]
    if let length { parameters["length"] = .number(length) }
    let bench = try bench(parameters)
    bench.hold()
    var given: [Int16] = []
    for position in 0..<20 {
      try bench.run(calls: 1)
      let packet = bench.take()!
      let (place, count) = (packet.position, packet.duration)
      #expect(place == Int64(position * 320) && count == 320)
      let samples = packet.samples(of: Int16.self)
      for index in samples.indices { given.append(samples[index]) }
    }
    let region = Array(Self.samples[160..<(length == nil ? 1_000 : 360)])
    #expect(given == (0..<6_400).map { region[$0 % region.count] })
  }

  @Test("a loop over nothing ends")
  func emptyLoop() throws {
    let bench = try bench(["loop": true, "length": 0])
    try bench.run(calls: 10)
    #expect(bench.hasEnded && bench.packets().isEmpty)
  }

  @Test("a file without samples ends at once")
  func noSamples() throws {
    try writeWAV([], rate: 16_000, to: path)
    let bench = try bench()
    try bench.run()
    #expect(bench.hasEnded && bench.packets().isEmpty && bench.events().isEmpty)
  }

  @Test("a truncated file plays what it has and is reported")
  func truncated() throws {
    put(Array(contents(path).dropLast(500)), at: path)
    let bench = try bench()
    try bench.run()
    #expect(bench.int16() == Array(Self.samples[..<750]))
    let events = bench.events()
    #expect(events.map(\.name) == ["truncated"])
    #expect(events[0].number("samples") == 750 && events[0].number("expected") == 1_000)
  }

  @Test("if so set, a truncated file fails after playing what it has; a complete one does not")
  func truncatedFails() throws {
    let whole = try bench(["truncated": "fail"])
    try whole.run()
    #expect(whole.int16() == Self.samples && whole.hasEnded)
    put(Array(contents(path).dropLast(500)), at: path)
    let bench = try bench(["truncated": "fail"])
    let fault = #expect(throws: BenchFault.self) { try bench.run() }
    #expect(bench.int16() == Array(Self.samples[..<750]))
    #expect(bench.events().map(\.name) == ["truncated"])
    #expect(
      fault?.text
        == "\"\(path)\" is truncated: it has 46 ms of 62 ms, and \"truncated\" is \"fail\"; use a complete file"
    )
  }

  @Test(
    "a file that ends before the requested length, or during a loop, is truncated as well")
  func truncatedInParts() throws {
    put(Array(contents(path).dropLast(500)), at: path)
    let enough = try bench(["length": 40, "truncated": "fail"])
    try enough.run()
    #expect(enough.int16() == Array(Self.samples[..<640]) && enough.events().isEmpty)
    for extra: [String: ParameterValue] in [["length": 60], ["loop": true], ["start": 10, "length": 60]] {
      let bench = try bench(extra.merging(["truncated": "fail"]) { first, _ in first })
      let fault = #expect(throws: BenchFault.self) { try bench.run() }
      let events = bench.events()
      #expect(events.map(\.name) == ["truncated"] && events.first?.number("samples") == 750, "\(extra)")
      #expect(fault?.text?.contains("is truncated: it has 46 ms of 62 ms") == true, "\(extra)")
    }
  }

  @Test("a recording whose program was killed plays to its last sample", arguments: [false, true])
  func killed(goesOn: Bool) throws {
    let path = folder.file("killed.wav")
    var writer = try WAVWriter(
      path: goesOn ? path : folder.file("whole.wav"),
      format: WAVFormat(sampleRate: 16_000, channels: 1, encoding: .s16))
    let (before, behind) = (Array(Self.samples[..<700]), Array(Self.samples[700...]))
    try writer.write(before.span)
    try writer.refreshHeader()
    try writer.write(behind.span)
    // The disk now has what a killed program leaves; the header states 700 samples.
    if !goesOn { put(contents(folder.file("whole.wav")), at: path) }
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    try bench.run()
    #expect(bench.int16() == Self.samples)
    #expect(bench.hasEnded && bench.events().isEmpty)
    try writer.finish()
  }

  @Test("other codecs in WAV files are left to the libraries")
  func aLaw() throws {
    try #require(MediaFile.canEncode("pcm_alaw"))
    MediaFile.write(Self.samples.map { $0 / 4 }, codec: "pcm_alaw", rate: 8_000, to: path)
    let bench = try bench()
    try bench.run()
    let given = bench.int16()
    #expect(given.count == 1_000)
    #expect(zip(given, Self.samples).allSatisfy { abs(Int($0) - Int($1) / 4) <= 160 })
  }

  @Test("a missing file or one without audio is refused with the cure")
  func refused() throws {
    func text(_ path: String) -> String? { refusal(AudioRead.self, ["path": .string(path)]) }
    let missing = folder.file("missing.wav")
    #expect(
      text(missing)
        == "\"path\": there is no file \"\(missing)\"; check the path: in a graph it is relative to the graph file, with --set to the current directory"
    )
    #expect(text(folder.path) == "\"path\": \"\(folder.path)\" is a directory; name a file in it")
    let empty = folder.file("empty.wav")
    put([], at: empty)
    #expect(text(empty) == "\"path\": \"\(empty)\" is empty; record it again")
    let pipe = folder.file("pipe")
    mkfifo(pipe, 0o600)
    #expect(
      text(pipe) == "\"path\": \"\(pipe)\" is a pipe or a device, not a file; read a stream with process.pipe"
    )
    let random = folder.file("random.bin")
    put((0..<4_000).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 3) }, at: random)
    let noSound = text(random)
    #expect(noSound?.hasPrefix("\"path\": \"\(random)\" ") == true)
    #expect(noSound?.contains("@ 0x") == false)
    let short = folder.file("short.flac")
    put(Array("fLaC 10 by".utf8), at: short)
    #expect(text(short)?.contains("WAV file") == false)
    #expect(text("") == "\"path\": the path is empty; name a file")
    let cut = folder.file("cut.wav")
    put(Array("RIFF".utf8), at: cut)
    #expect(
      text(cut)
        == "\"path\": \"\(cut)\" is not a WAV file: it has 4 bytes, but a WAV file has at least 44; record it again"
    )
  }

  @Test("a start after the end, and an unsupported rate, are refused")
  func bounds() throws {
    #expect(
      refusal(AudioRead.self, ["path": .string(path), "start": 63])
        == "\"start\": \"\(path)\" lasts 62 ms and ends before the start; set an earlier start")
    try writeWAV([1, 2], rate: 4_000, to: path)
    #expect(
      refusal(AudioRead.self, ["path": .string(path)])
        == "\"path\": \"\(path)\" has 4000 Hz; 8000 to 192000 Hz are supported; convert it first: "
        + "ffmpeg -i \"\(path)\" -ar 48000 sound.wav")
  }

  @Test("an interruption ends a reply, restarts it if it loops, and spares a file that is not a reply")
  func interruption() throws {
    func heard(_ more: [String: ParameterValue]) throws -> (packets: [CapturedPacket], hasEnded: Bool) {
      let bench = try bench(more.merging(["pace": true]) { $1 })
      try bench.advance(to: .milliseconds(25))
      bench.interrupt()
      try bench.advance(to: .milliseconds(45))
      return (bench.packets(), bench.hasEnded)
    }
    let plain = try heard([:])
    #expect(plain.packets.flatMap(\.int16) == Array(Self.samples[..<960]) && !plain.hasEnded)
    let reply = try heard(["reply": true])
    #expect(reply.packets.flatMap(\.int16) == Array(Self.samples[..<640]) && reply.hasEnded)
    let loop = try heard(["reply": true, "loop": true])
    #expect(loop.packets.map(\.position) == [0, 320, 640] && !loop.hasEnded)
    #expect(loop.packets.last?.int16 == Array(Self.samples[..<320]))
    #expect(loop.packets.map(\.generation) == [0, 0, 1])
  }
}
