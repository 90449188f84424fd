import Glibc
import MillraceAudio
import Testing

@Suite("Reading WAV files")
struct WaveReaderTests {
  static let samples: [Int16] = [0, 1, -1, 256, -256, 32767, -32768, 12345]

  /// `samples` in each encoding, exactly.
  static func encoded(_ encoding: WAVFormat.Encoding) -> [UInt8] {
    samples.flatMap { sample -> [UInt8] in
      let value = Int(sample)
      switch encoding {
      case .u8: return [UInt8((value >> 8) + 128)]
      case .s16: return [UInt8(value & 255), UInt8(value >> 8 & 255)]
      case .s24: return [0, UInt8(value & 255), UInt8(value >> 8 & 255)]
      case .s32: return [0, 0, UInt8(value & 255), UInt8(value >> 8 & 255)]
      case .f32:
        let bits = (Float(sample) / 32768).bitPattern
        return (0..<4).map { UInt8(bits >> (8 * $0) & 255) }
      case .f64:
        let bits = (Double(sample) / 32768).bitPattern
        return (0..<8).map { UInt8(bits >> (8 * UInt64($0)) & 255) }
      }
    }
  }

  static func file(_ encoding: WAVFormat.Encoding, channels: Int = 1, extensible: Bool = false) -> [UInt8] {
    var file = WAVBytes()
    let bits = encoding.byteCount * 8
    file.format(tag: encoding.isFloat ? 3 : 1, channels: channels, bits: bits, extensible: extensible)
    file.chunk("data", encoded(encoding))
    return file.sized
  }

  @Test(
    "every encoding is read, in both sample types", arguments: WAVFormat.Encoding.allCases,
    [false, true])
  func encodings(encoding: WAVFormat.Encoding, extensible: Bool) throws {
    var reader = try WAVReader(source: MemoryBytes(Self.file(encoding, channels: 2, extensible: extensible)))
    #expect(reader.format == WAVFormat(sampleRate: 16000, channels: 2, encoding: encoding))
    #expect(reader.frameCount == 4)
    #expect(reader.header.repairs == [])
    let expected = encoding == .u8 ? Self.samples.map { ($0 >> 8) << 8 } : Self.samples
    #expect(try readShorts(&reader, piece: 3) == expected)
    #expect(try readFloats(&reader, piece: 3) == expected.map { Float($0) / 32768 })
    #expect(try readShorts(&reader, from: 3) == Array(expected[6...]))
    #expect(try readShorts(&reader, from: 4) == [])
    #expect(try readShorts(&reader, from: -1) == [])
  }

  @Test("wider samples round to nearest and saturate, NaN is 0")
  func rounding() throws {
    var file = WAVBytes()
    file.format(bits: 24)
    file.chunk("data", [0x7F, 0, 0, 0x80, 0, 0, 0xFF, 0xFF, 0x7F, 0, 0, 0x80])
    #expect(try readShorts(file.sized) == [0, 1, 32767, -32768])
    file = WAVBytes()
    file.format(bits: 32)
    file.chunk("data", [0xFF, 0x7F, 0, 0, 0, 0x80, 0, 0, 0xFF, 0xFF, 0xFF, 0x7F])
    #expect(try readShorts(file.sized) == [0, 1, 32767])
    file = WAVBytes()
    file.format(tag: 3, bits: 32)
    file.chunk("data", [0, 0, 0xC0, 0x7F, 0, 0, 0, 0x40, 0, 0, 0x80, 0xFF])
    #expect(try readShorts(file.sized) == [0, 32767, -32768])
  }

  @Test("long files are read across block boundaries, at any offset", arguments: [1, 3, 7])
  func blocks(channels: Int) throws {
    let samples = (0..<channels * 10000).map { Int16(truncatingIfNeeded: $0 &* 7919) }
    var file = WAVBytes()
    file.format(channels: channels)
    file.chunk(
      "data", samples.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] })
    let stored = TemporaryFile(file.sized)
    var reader = try WAVReader(path: stored.path)
    for piece in [1, 777, 5000, 20000] where piece > 1 || channels == 1 {
      #expect(try readShorts(&reader, piece: piece) == samples)
    }
    #expect(try readShorts(&reader, from: 9000) == Array(samples[(9000 * channels)...]))
  }

  @Test("unknown chunks are skipped, odd ones with their pad byte, before and after the format")
  func chunks() throws {
    var file = WAVBytes()
    file.chunk("LIST", [1, 2, 3])
    file.format()
    file.chunk("bext", [9])
    file.chunk("data", [1, 0, 2, 0])
    file.chunk("id3 ", [5, 5, 5])
    #expect(try readShorts(file.sized) == [1, 2])
    var late = WAVBytes()
    late.chunk("data", [1, 0, 2, 0])
    late.format()
    #expect(try readShorts(late.sized) == [1, 2])
  }

  @Test(
    "a file of a killed recorder is read to its end", arguments: [0, 0xFFFF_FFFF] as [UInt32])
  func unknownLength(size: UInt32) throws {
    var file = WAVBytes("RIFF", size: size == 0 ? 0 : 0xFFFF_FFFF)
    file.format()
    file.chunk("data", size: size, [1, 0, 2, 0, 3, 0])
    #expect(try readShorts(file.bytes) == [1, 2, 3])
    let repairs = try WAVHeader(reading: MemoryBytes(file.bytes)).repairs
    #expect(
      repairs.map(\.description) == [
        "byte 36: the header does not state the length, as when a recorder was killed; "
          + "read all 6 bytes to the end of the file"
      ])
  }

  /// A file whose header states `counted` bytes of audio, with `behind` after them; `outer` is added to the RIFF size.
  private static func stale(_ counted: [UInt8], behind: [UInt8], outer: Int = 0, bits: Int = 16) -> [UInt8] {
    var file = WAVBytes()
    file.format(bits: bits)
    file.text("data")
    file.word(UInt32(counted.count))
    file.bytes += counted
    var bytes = file.sized
    bytes[4] = UInt8(truncatingIfNeeded: Int(bytes[4]) + outer)
    return bytes + behind
  }

  @Test("data that a killed recorder wrote after the last stated length is audio as well")
  func undercounted() throws {
    let bytes = Self.stale([1, 0, 2, 0], behind: [3, 0, 4, 0, 5, 0])
    #expect(try readShorts(bytes) == [1, 2, 3, 4, 5])
    #expect(
      try WAVHeader(reading: MemoryBytes(bytes)).repairs.map(\.description) == [
        "byte 36: the header states 4 bytes of audio but 10 follow, as when a recorder was killed; read all of them"
      ])
    // In the middle of a frame, with less than a chunk header after it, and with no length stated yet.
    #expect(try readShorts(Self.stale([1, 0, 2, 0], behind: [3, 0, 4])) == [1, 2, 3])
    #expect(try readShorts(Self.stale([], behind: [3, 0, 4, 0])) == [3, 4])
    // An odd length: the next sample is where a pad byte would be.
    #expect(try readShorts(Self.stale([128], behind: [129, 130, 131], bits: 8)) == [0, 256, 512, 768])
    // Audio whose bytes are letters is not a chunk: its length would not reach exactly to the end of the file.
    let letters = Array("fade and so on, letters without end".utf8)
    #expect(try readShorts(Self.stale([1, 0], behind: letters)).count == 1 + letters.count / 2)
  }

  @Test(
    "chunks and tags after the audio are not audio, whatever the RIFF size", arguments: [0, 12, 200])
  func followed(outer: Int) throws {
    var chunks = WAVBytes()
    chunks.bytes = []
    chunks.chunk("xtra", [9, 9, 9])
    chunks.chunk("LIST", [7, 7, 7, 7])
    let tag = Array("TAG".utf8) + [UInt8](repeating: 0x20, count: 125)
    for behind in [
      chunks.bytes, Array(chunks.bytes[12...].dropLast(2)), tag, Array("ID3".utf8) + [4, 0, 0, 0, 0, 0, 0],
    ] {
      #expect(try readShorts(Self.stale([1, 0, 2, 0], behind: behind, outer: outer)) == [1, 2])
      // With the pad byte of an odd length and without it.
      for pad in [[], [0]] as [[UInt8]] {
        #expect(try readShorts(Self.stale([129], behind: pad + behind, outer: outer, bits: 8)) == [256])
      }
    }
    #expect(try readShorts(Self.stale([129], behind: [0], bits: 8)) == [256])
  }

  @Test(
    "sizes at the ends of their range do not trap",
    arguments: [0, 4, .max >> 1, .max] as [UInt64])
  func extremes(size: UInt64) throws {
    for outer in [0, .max >> 1, 1 << 63, .max] as [UInt64] {
      for declared in [0, 3, 0xFFFF_FFFE, 0xFFFF_FFFF] as [UInt32] {
        var file = WAVBytes("RF64", size: 0xFFFF_FFFF)
        file.text("ds64")
        file.word(28)
        file.long(outer)
        file.long(size)
        file.long(size)
        file.word(0)
        file.format()
        file.chunk("data", size: declared, [1, 0, 2, 0, 3, 0])
        #expect(try readShorts(file.bytes).count <= 3)
      }
    }
  }

  @Test("a data chunk of length zero is empty if the RIFF size is right")
  func empty() throws {
    var file = WAVBytes()
    file.format()
    file.chunk("data", [])
    #expect(try readShorts(file.sized) == [])
    file.chunk("LIST", [1, 2, 3, 4])
    let header = try WAVHeader(reading: MemoryBytes(file.sized))
    #expect(header.frameCount == 0)
    #expect(header.repairs == [])
  }

  @Test("a truncated file gives its whole frames and reports what is missing")
  func cutShort() throws {
    var file = WAVBytes()
    file.format(channels: 2)
    file.chunk("data", size: 4000, [1, 0, 2, 0, 3, 0])
    #expect(try readShorts(file.bytes) == [1, 2])
    let repairs = try WAVHeader(reading: MemoryBytes(file.bytes)).repairs
    #expect(
      repairs.map(\.description) == [
        "byte 36: the header states 4000 bytes of audio but the file has 6; read those",
        "byte 48: the last 2 bytes are less than a frame; ignored",
      ])
  }

  @Test("RF64 and BW64 take their sizes from the ds64 chunk", arguments: ["RF64", "BW64"])
  func wide(outer: String) throws {
    var file = WAVBytes(outer, size: 0xFFFF_FFFF)
    file.text("ds64")
    file.word(28)
    file.long(1000)
    file.long(4)
    file.long(2)
    file.word(0)
    file.format()
    file.chunk("data", size: 0xFFFF_FFFF, [1, 0, 2, 0, 3, 0])
    let header = try WAVHeader(reading: MemoryBytes(file.bytes))
    #expect(header.frameCount == 2)
    #expect(header.repairs == [])
    #expect(try readShorts(file.bytes) == [1, 2])
    // Without the chunk the length is unknown; with implausible sizes the end of the file counts.
    var bare = WAVBytes(outer, size: 0xFFFF_FFFF)
    bare.format()
    bare.chunk("data", size: 0xFFFF_FFFF, [1, 0, 2, 0])
    #expect(try readShorts(bare.bytes) == [1, 2])
    for size in [UInt64.max, 1 << 63, .max >> 1, 1 << 40] {
      var wild = file.bytes
      for index in 0..<8 { wild[28 + index] = UInt8(truncatingIfNeeded: size >> (8 * UInt64(index))) }
      #expect(try readShorts(wild) == [1, 2, 3])
    }
  }

  @Test("audio after the first 4 GiB is read")
  func sparse() throws {
    var file = WAVBytes("RF64", size: 0xFFFF_FFFF)
    let length: Int64 = 5 << 30
    file.text("ds64")
    file.word(28)
    file.long(UInt64(length + 72))
    file.long(UInt64(length))
    file.long(UInt64(length / 2))
    file.word(0)
    file.format()
    file.chunk("data", size: 0xFFFF_FFFF, [])
    let stored = TemporaryFile(file.bytes)
    let start = Int64(file.bytes.count)
    let descriptor = open(stored.path, O_WRONLY)
    pwrite(descriptor, [7, 0, 8, 0] as [UInt8], 4, Int(start + length - 4))
    close(descriptor)
    var reader = try WAVReader(path: stored.path)
    #expect(reader.frameCount == length / 2)
    #expect(reader.header.repairs == [])
    #expect(try readShorts(&reader, from: length / 2 - 3) == [0, 7, 8])
  }

  @Test("invalid files are refused with the offset and the cure")
  func problems() {
    func with(_ build: (inout WAVBytes) -> Void) -> String {
      var file = WAVBytes()
      build(&file)
      file.chunk("data", [0, 0])
      return problem(reading: file.sized)
    }
    let again = "; record or convert it again"
    let convert = "convert it first, for example: ffmpeg -i \"a.wav\" sound.wav"
    let instead = "instead of \"RIFF\", \"RF64\" or \"BW64\" and \"WAVE\"; "
    let only = "is not supported, only PCM of 8, 16, 24 or 32 bits and float of 32 or 64; "
    let table: [(String, String)] = [
      (
        problem(reading: Array("Ogg".utf8)),
        "\"a.wav\" is not a WAV file: it has 3 bytes, but a WAV file has at least 44; record it again"
      ),
      (
        problem(reading: Array("OggSxxxxxxxxxxxx".utf8)),
        "\"a.wav\" is not a WAV file: it begins with \"OggS\" " + instead + convert
      ),
      (
        problem(reading: Array("RIFF\u{1}\u{1}\u{1}\u{1}AVI LIST".utf8)),
        "\"a.wav\" is not a WAV file: it begins with \"RIFF....AVI \" " + instead + convert
      ),
      (
        problem(reading: [0xFF, 0xFB, 0x90, 0] + [UInt8](repeating: 0, count: 40)),
        "\"a.wav\" is not a WAV file: it begins with bytes ff fb 90 00 " + instead + convert
      ),
      (
        problem(reading: WAVBytes().sized),
        "\"a.wav\" has no \"fmt \" chunk, so its rate and sample type are unknown" + again
      ),
      (with { _ in }, "\"a.wav\" has no \"fmt \" chunk, so its rate and sample type are unknown" + again),
      (
        with { $0.chunk("fmt ", [1, 0, 1, 0]) },
        "\"a.wav\" at byte 12: the \"fmt \" chunk has 4 bytes instead of 16 or more" + again
      ),
      (
        with { $0.format(tag: 2, bits: 4) },
        "\"a.wav\" at byte 12: format tag 2 with 4 bits " + only + convert
      ),
      (with { $0.format(bits: 20) }, "\"a.wav\" at byte 12: format tag 1 with 20 bits " + only + convert),
      (
        with { $0.format(tag: 85, bits: 16, extensible: true) },
        "\"a.wav\" at byte 12: format tag 85 with 16 bits " + only + convert
      ),
      (
        with { $0.format(channels: 0) },
        "\"a.wav\" at byte 12: 0 channels are not supported, only 1 to 64; convert it first"
      ),
      (
        with { $0.format(channels: 65) },
        "\"a.wav\" at byte 12: 65 channels are not supported, only 1 to 64; convert it first"
      ),
      (
        with { $0.format(rate: 0) },
        "\"a.wav\" at byte 12: a sample rate of 0 Hz is not supported, only 1 Hz to 1000000 Hz" + again
      ),
      (
        with { $0.format(align: 4) },
        "\"a.wav\" at byte 12: the stated frame size is 4 bytes, but its channels and bits give 2; convert it again"
      ),
    ]
    for (got, expected) in table { #expect(got == expected) }
    var noSound = WAVBytes()
    noSound.format()
    #expect(
      problem(reading: noSound.sized) == "\"a.wav\" has no \"data\" chunk, so it holds no audio" + again
    )
    var endless = WAVBytes()
    for _ in 0..<1001 { endless.chunk("junk", []) }
    #expect(
      problem(reading: endless.sized) == "\"a.wav\" at byte 8012: no audio within 1000 chunks" + again)
  }

  @Test("a file that cannot be opened is refused with the system's reason")
  func files() {
    func text(_ path: String) -> String {
      do {
        _ = try WAVReader(path: path)
        return "no problem"
      } catch { return error.description }
    }
    #expect(text("/nowhere/a.wav") == "cannot open \"/nowhere/a.wav\": No such file or directory (errno 2)")
    #expect(text("/tmp") == "cannot open \"/tmp\": Is a directory (errno 21)")
  }

  @Test("no header makes the reader trap, whatever bytes are changed or missing")
  func corruption() throws {
    var original = WAVBytes("RF64", size: 0xFFFF_FFFF)
    original.text("ds64")
    original.word(28)
    original.long(100)
    original.long(8)
    original.long(4)
    original.word(0)
    original.format(extensible: true)
    original.chunk("data", size: 0xFFFF_FFFF, [1, 0, 2, 0, 3, 0, 4, 0])
    for place in original.bytes.indices {
      for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
        var bytes = original.bytes
        bytes[place] = value
        if let samples = try? readShorts(bytes) { #expect(samples.count <= bytes.count) }
      }
      if let samples = try? readShorts(Array(original.bytes[..<place])) { #expect(samples.count <= 4) }
    }
  }
}
