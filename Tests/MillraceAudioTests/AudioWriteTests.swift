import Glibc
import MillraceCore
import MillraceTesting
import Synchronization
import TestSystem
import Testing

@testable import MillraceAudio

@Suite("audio.write")
struct AudioWriteTests {
  private let folder = TemporaryFolder()
  private var path: String { folder.file("out.wav") }

  private func bench(
    _ parameters: [String: ParameterValue] = [:], input: OutputShape = shape()
  ) throws -> NodeBench {
    try NodeBench(
      AudioWrite.self, parameters.merging(["path": .string(path)]) { first, _ in first },
      inputs: ["in": input])
  }

  @Test("the input is written, and reported at the end")
  func writes() throws {
    let samples = Fixture.noise16(seed: 4, count: 2_000)
    let bench = try bench(input: shape(16_000, channels: 2))
    bench.push(samples)
    try bench.finish()
    let event = try #require(bench.events().last)
    #expect(event.name == "written" && event.number("samples") == 1_000 && event.number("bytes") == 4_000)
    #expect(event.number("seconds") == 0.063 && event.number("gaps") == 0)
    #expect(bench.close() == [])
    #expect(try readWAV(path) == samples)
    #expect(try WAVReader(path: path).format == WAVFormat(sampleRate: 16_000, channels: 2, encoding: .s16))
  }

  @Test("the file's sample type can differ from the input's")
  func types() throws {
    let float = try bench(["sample": "s16"], input: shape(16_000, .f32))
    float.push([0.5, -2] as [Float])
    try float.finish()
    #expect(float.close() == [])
    #expect(try readWAV(path) == [16_384, -32_768])
    let short = try bench(["sample": "f32"])
    short.push([16_384, -1] as [Int16])
    try short.finish()
    #expect(short.close() == [])
    let encoding = try WAVReader(path: path).format.encoding
    #expect(encoding == .f32)
    #expect(try readWAV(path) == [16_384, -1])
  }

  @Test("audio before position 0 is dropped")
  func runIn() throws {
    let bench = try bench()
    bench.setPosition(-3)
    bench.push([9, 9] as [Int16])
    bench.push([9, 1, 2] as [Int16])
    bench.push([3] as [Int16])
    try bench.finish()
    #expect(bench.events().map(\.name) == ["written"])
    #expect(bench.close() == [])
    #expect(try readWAV(path) == [1, 2, 3])
  }

  @Test("a gap becomes silence, up to the longest allowed")
  func gaps() throws {
    let bench = try bench(["gap": 1])
    bench.push([1, 2] as [Int16])
    bench.setPosition(5)
    bench.push([3] as [Int16])
    try bench.run()
    try bench.advance(by: 2_000_000_000)
    bench.setPosition(1_000)
    bench.push([4] as [Int16])
    try bench.finish()
    let events = bench.events()
    #expect(events.map(\.name) == ["gap", "gap", "written"])
    #expect(events.map { $0.number("samples") } == [3, 994, 7])
    #expect(events.map { $0.bool("filled") } == [true, false, nil])
    #expect(events.map { $0.number("position") } == [5, 1_000, nil])
    #expect(bench.close() == [])
    #expect(try readWAV(path) == [1, 2, 0, 0, 0, 3, 4])
  }

  @Test("repeated audio is kept and reported, at most once a second")
  func overlap() throws {
    let bench = try bench()
    for _ in 0..<4 {
      bench.setPosition(0)
      bench.push([1, 2] as [Int16])
    }
    try bench.finish()
    let events = bench.events()
    #expect(events.map(\.name) == ["gap", "written"])
    #expect(events[0].number("samples") == -2 && events[1].number("gaps") == 3)
    #expect(bench.close() == [])
    #expect(try readWAV(path) == [1, 2, 1, 2, 1, 2, 1, 2])
  }

  @Test(
    "the header is updated once per second of audio, and once per second of clock time when audio is slow")
  func refresh() throws {
    let bench = try bench()
    bench.push([Int16](repeating: 1, count: 16_000 + 320))
    try bench.run()
    // Read while the node still writes, as after a kill: the header decides.
    #expect(try WAVHeader(reading: MemoryBytes(contents(path))).frameCount >= 16_000)
    let slow = folder.file("slow.wav")
    let other = try NodeBench(AudioWrite.self, ["path": .string(slow)], inputs: ["in": shape()])
    other.push([1, 2, 3] as [Int16])
    try other.run()
    #expect(announced(slow) == 0)
    try other.advance(by: 1_100_000_000)
    #expect(announced(slow) == 6)
  }

  /// Bytes of audio the header states.
  private func announced(_ path: String) -> UInt32 {
    let bytes = contents(path)
    let start = (0..<bytes.count - 4).first { Array(bytes[$0..<$0 + 4]) == Array("data".utf8) }! + 4
    return (0..<4).reduce(0) { $0 | UInt32(bytes[start + $1]) << UInt32(8 * $1) }
  }

  @Test("a full disk is a fault with the cure, and what was written before stays readable")
  func fullDisk() throws {
    let bench = try NodeBench(
      OnFullDisk<AudioWrite>.self, ["path": .string(path)], inputs: ["in": shape()])
    bench.push([Int16](repeating: 7, count: 16_000))
    let fault = #expect(throws: BenchFault.self) { try bench.run() }
    #expect(fault?.fault.reason == .system && fault?.fault.code == ENOSPC)
    let frames = try readWAV(path)
    let room = (fullDiskRoom - 44) / 2
    #expect(frames.count <= room && frames.count > room - 2 * 16, "all but a millisecond or two")
    #expect(frames.allSatisfy { $0 == 7 })
    #expect(
      fault?.text
        == "writing \"\(path)\" failed: No space left on device (errno 28); the \(frames.count / 16) ms before it are "
        + "readable; free disk space")
    // A restart makes the new node before the failed one is destroyed: the file must be unlocked by then.
    let again = try self.bench()
    #expect(again.close() == [])
  }

  @Test("a path that cannot be written is refused with the cure, before anything is touched")
  func refused() throws {
    func text(_ path: String) -> String? {
      refusal(AudioWrite.self, ["path": .string(path)], inputs: ["in": shape()])
    }
    let path = folder.path
    #expect(text(path) == "\"path\": \"\(path)\" is a directory; name a file in it")
    #expect(
      text(path + "/no/out.wav")
        == "\"path\": cannot write \"\(path)/no/out.wav\": the directory \"\(path)/no\" does not exist; create it: mkdir -p \"\(path)/no\""
    )
    // The directory exists, but accepts no files: root gets a system error, others lack permission.
    let kernel = text("/proc/out.wav")
    #expect(kernel?.contains("\"/proc/out.wav\"") == true && kernel?.hasSuffix("choose another path") == true)
    let pipe = folder.file("pipe")
    mkfifo(pipe, 0o600)
    #expect(
      text(pipe)
        == "\"path\": \"\(pipe)\" is a pipe, but the length in a WAV header is written last; write to a file, or send "
        + "the audio to process.pipe")
  }

  @Test("a file that another node reads or writes is not overwritten")
  func claimed() throws {
    try writeWAV([1, 2, 3], rate: 16_000, to: path)
    let reader = try NodeBench(AudioRead.self, ["path": .string(path)])
    let text = refusal(AudioWrite.self, ["path": .string(path)], inputs: ["in": shape()])
    #expect(
      text == "\"\(path)\" is being read or written by another node or program; write to another file; "
        + "several instances need one each (put {instance} in the name)")
    try reader.run()
    #expect(reader.int16() == [1, 2, 3])
    #expect(reader.close() == [])
    // A graph that fails to start because of another node leaves the file intact.
    #expect(try bench().close() == [])
    #expect(try readWAV(path) == [1, 2, 3])
    let writer = try bench()
    #expect(
      refusal(AudioRead.self, ["path": .string(path)])
        == "\"\(path)\" is being written by another node or program; read it after its writer has finished, or write to "
        + "another file")
    #expect(writer.close() == [])
  }
}
