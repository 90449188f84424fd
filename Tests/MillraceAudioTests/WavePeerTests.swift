import TestSystem
import Testing

@testable import MillraceAudio

/// Interoperability with other programs, in both directions. Skipped if they are not installed.
@Suite("WAV interoperability")
struct WavePeerTests {
  static let samples = (0..<4410).map { Int16(truncatingIfNeeded: $0 &* 7919) }

  private static func run(_ program: String, _ arguments: [String]) throws {
    let path = try #require(TestProgram.path(of: program))
    #expect(try TestProgram(path, arguments).wait() == 0, "\(program) \(arguments)")
  }

  private static func written(
    channels: Int = 2, encoding: WAVFormat.Encoding = .s16, largest: Int64 = .max
  ) throws -> TemporaryFile {
    let stored = TemporaryFile()
    let format = WAVFormat(sampleRate: 44100, channels: channels, encoding: encoding)
    var writer = try WAVWriter(file: FileBytes(creating: stored.path), format: format, largest: largest)
    try writer.write(samples.span)
    try writer.finish()
    return stored
  }

  private static var expected: [UInt8] {
    samples.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
  }

  @Test(
    "FFmpeg reads every sample written here", .enabled(if: TestProgram.isInstalled("ffmpeg")),
    arguments: [1, 2, 5])
  func ffmpegReads(channels: Int) throws {
    for (encoding, largest) in [(WAVFormat.Encoding.s16, .max), (.s16, 100), (.f32, .max)] as [(_, Int64)] {
      let (stored, raw) = (
        try Self.written(channels: channels, encoding: encoding, largest: largest), TemporaryFile()
      )
      try Self.run("ffmpeg", ["-y", "-i", stored.path, "-f", "s16le", "-c:a", "pcm_s16le", raw.path])
      #expect(raw.bytes == Self.expected)
    }
  }

  @Test("SoX reads every sample written here", .enabled(if: TestProgram.isInstalled("sox")))
  func soxReads() throws {
    for encoding in [WAVFormat.Encoding.s16, .f32] {
      let (stored, raw) = (try Self.written(encoding: encoding), TemporaryFile())
      try Self.run(
        "sox", ["-D", "-t", "wav", stored.path, "-t", "raw", "-e", "signed", "-b", "16", raw.path])
      #expect(raw.bytes == Self.expected)
    }
  }

  @Test(
    "files by FFmpeg are read sample by sample", .enabled(if: TestProgram.isInstalled("ffmpeg")),
    arguments: ["pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_f64le"], ["never", "always"])
  func ffmpegWrites(codec: String, rf64: String) throws {
    let (stored, other) = (try Self.written(), TemporaryFile())
    try Self.run("ffmpeg", ["-y", "-i", stored.path, "-c:a", codec, "-rf64", rf64, "-f", "wav", other.path])
    var reader = try WAVReader(path: other.path)
    #expect(reader.header.repairs == [])
    #expect(try readShorts(&reader) == Self.samples)
  }

  @Test(
    "files by SoX are read sample by sample", .enabled(if: TestProgram.isInstalled("sox")),
    arguments: [
      ["-b", "16"], ["-b", "24"], ["-b", "32"], ["-e", "float", "-b", "32"], ["-e", "float", "-b", "64"],
    ])
  func soxWrites(encoding: [String]) throws {
    let (stored, other) = (try Self.written(), TemporaryFile())
    try Self.run("sox", ["-D", "-t", "wav", stored.path] + encoding + ["-t", "wav", other.path])
    var reader = try WAVReader(path: other.path)
    #expect(reader.header.repairs == [])
    #expect(try readShorts(&reader) == Self.samples)
  }
}
