import CMallocCount
import Glibc
import Synchronization
import Testing

@testable import MillraceAudio

@Suite("Writing WAV files")
struct WaveWriterTests {
  static let samples = (0..<6000).map { Int16(truncatingIfNeeded: $0 &* 7919) }
  static let mono = WAVFormat(sampleRate: 16000, channels: 1, encoding: .s16)

  @Test(
    "what is written is read back, in both types and any channel count", arguments: [1, 2, 3, 6],
    [WAVFormat.Encoding.s16, .f32])
  func roundTrip(channels: Int, encoding: WAVFormat.Encoding) throws {
    let stored = TemporaryFile()
    let format = WAVFormat(sampleRate: 44100, channels: channels, encoding: encoding)
    var writer = try WAVWriter(path: stored.path, format: format)
    let floats = Self.samples.map { Float($0) / 32768 }
    try writer.write(Self.samples.span)
    try writer.write(floats.span)
    #expect(writer.frameCount == Int64(12000 / channels))
    try writer.finish()
    var reader = try WAVReader(path: stored.path)
    #expect(reader.format == format)
    #expect(reader.header.repairs == [])
    #expect(try readShorts(&reader) == Self.samples + Self.samples)
    #expect(try readFloats(&reader) == floats + floats)
  }

  @Test("floats beyond full scale saturate in a 16-bit file and stay in a float file")
  func saturation() throws {
    for (encoding, expected) in [
      (WAVFormat.Encoding.s16, [32767.0 / 32768, -1] as [Float]), (.f32, [2, -3]),
    ] {
      let stored = TemporaryFile()
      var writer = try WAVWriter(
        path: stored.path, format: WAVFormat(sampleRate: 8000, channels: 1, encoding: encoding))
      try writer.write([Float(2), -3].span)
      try writer.finish()
      var reader = try WAVReader(path: stored.path)
      #expect(try readFloats(&reader) == expected)
    }
  }

  @Test("an incomplete last frame is ignored")
  func brokenFrame() throws {
    let stored = TemporaryFile()
    var writer = try WAVWriter(
      path: stored.path, format: WAVFormat(sampleRate: 8000, channels: 2, encoding: .s16))
    try writer.write([Int16(1), 2, 3].span)
    try writer.write([Int16(4), 5].span)
    try writer.finish()
    var reader = try WAVReader(path: stored.path)
    #expect(try readShorts(&reader) == [1, 2, 4, 5])
  }

  @Test("a 16-bit file is laid out byte by byte as specified")
  func layout() throws {
    let stored = TemporaryFile()
    var writer = try WAVWriter(path: stored.path, format: Self.mono)
    try writer.write([Int16(258)].span)
    try writer.finish()
    var expected = WAVBytes()
    expected.chunk("JUNK", [UInt8](repeating: 0, count: 28))
    expected.format()
    expected.chunk("data", [2, 1])
    #expect(stored.bytes == expected.sized)
  }

  @Test("a writer destroyed without finishing leaves a correct header")
  func letGo() throws {
    let stored = TemporaryFile()
    do {
      var writer = try WAVWriter(path: stored.path, format: Self.mono)
      try writer.write(Self.samples.span)
    }
    let header = try WAVHeader(reading: FileBytes(reading: stored.path))
    #expect(header.frameCount == 6000)
    #expect(header.repairs == [])
  }

  @Test("after a kill at any byte the file is readable up to there")
  func killed() throws {
    let stored = TemporaryFile()
    var writer = try WAVWriter(path: stored.path, format: Self.mono)
    let before = stored.bytes
    try writer.write(Self.samples.span.extracting(first: 100))
    let unannounced = stored.bytes
    try writer.refreshHeader()
    let announced = stored.bytes
    try writer.write(Self.samples.span.extracting(100..<150))
    let later = stored.bytes
    #expect(try readShorts(before) == [])
    #expect(try readShorts(unannounced) == Array(Self.samples[..<100]))
    #expect(try readShorts(later) == Array(Self.samples[..<150]))
    for length in 80...announced.count {
      let got = try readShorts(Array(announced[..<length]))
      #expect(got == Array(Self.samples[..<((length - 80) / 2)]))
    }
    for length in 80...unannounced.count {
      #expect(try readShorts(Array(unannounced[..<length])).count == (length - 80) / 2)
    }
    try writer.finish()
    var reader = try WAVReader(path: stored.path)
    #expect(try readShorts(&reader) == Array(Self.samples[..<150]))
  }

  @Test("refreshing a correct header does nothing, and writing continues after it")
  func refresh() throws {
    let stored = TemporaryFile()
    var writer = try WAVWriter(path: stored.path, format: Self.mono)
    for start in stride(from: 0, to: 6000, by: 500) {
      try writer.write(Self.samples.span.extracting(start..<start + 500))
      try writer.refreshHeader()
      try writer.refreshHeader()
      let header = try WAVHeader(reading: MemoryBytes(stored.bytes))
      #expect(header.frameCount == Int64(start + 500))
    }
    try writer.finish()
    var reader = try WAVReader(path: stored.path)
    #expect(try readShorts(&reader) == Self.samples)
  }

  @Test("a file that outgrows 32-bit sizes becomes RF64 in place")
  func wide() throws {
    let stored = TemporaryFile()
    var writer = try WAVWriter(file: FileBytes(creating: stored.path), format: Self.mono, largest: 280)
    try writer.write(Self.samples.span.extracting(first: 100))
    try writer.refreshHeader()
    #expect(Array(stored.bytes[..<16]) == Array("RIFF".utf8) + [16, 1, 0, 0] + Array("WAVEJUNK".utf8))
    try writer.write(Self.samples.span.extracting(100..<101))
    try writer.refreshHeader()
    #expect(Array(stored.bytes[..<16]) == Array("RF64".utf8) + [255, 255, 255, 255] + Array("WAVEds64".utf8))
    let header = try WAVHeader(reading: MemoryBytes(stored.bytes))
    #expect(header.frameCount == 101)
    #expect(header.repairs == [])
    try writer.finish()
    #expect(try readShorts(stored.bytes) == Array(Self.samples[..<101]))
  }

  @Test("a recording passes 4 GiB, with its silence as a hole")
  func sparse() throws {
    let stored = TemporaryFile()
    var writer = try WAVWriter(path: stored.path, format: Self.mono)
    try writer.write([Int16(5)].span)
    try writer.writeSilence(frames: 1 << 31)
    try writer.write([Int16(6)].span)
    try writer.finish()
    var reader = try WAVReader(path: stored.path)
    #expect(reader.header.repairs == [])
    #expect(reader.frameCount == 1 << 31 + 2)
    #expect(try readShorts(&reader, from: 1 << 31 - 1) == [0, 0, 6])
    var status = stat()
    stat(stored.path, &status)
    #expect(status.st_blocks < 1000)
  }

  /// System calls that take a few bytes at a time, are interrupted, and fail beyond a limit.
  private static func tiresome(limit: Int, sometimes: Bool = true) -> (FileBytes.Calls, Counter) {
    let counter = Counter()
    var calls = FileBytes.Calls()
    calls.write = { file, bytes, count, offset in
      if sometimes, counter.value.add(1, ordering: .relaxed).newValue % 3 == 0 {
        errno = EINTR
        return -1
      }
      let room = min(count, 77, counter.limit.load(ordering: .relaxed) - offset)
      guard room > 0 else {
        errno = ENOSPC
        return -1
      }
      return pwrite(file, bytes, room, off_t(offset))
    }
    calls.read = { file, bytes, count, offset in
      if counter.value.add(1, ordering: .relaxed).newValue % 3 == 0 {
        errno = EINTR
        return -1
      }
      return pread(file, bytes, min(count, 77), off_t(offset))
    }
    counter.limit.store(limit, ordering: .relaxed)
    return (calls, counter)
  }

  private final class Counter: Sendable {
    let value = Atomic(0)
    let limit = Atomic(0)
  }

  @Test("interrupted and short system calls change nothing")
  func shortCalls() throws {
    let stored = TemporaryFile()
    let (calls, _) = Self.tiresome(limit: .max)
    var writer = try WAVWriter(
      file: FileBytes(creating: stored.path, calls: calls), format: Self.mono, largest: .max)
    try writer.write(Self.samples.span)
    try writer.finish()
    var reader = try WAVReader(source: FileBytes(reading: stored.path, calls: calls))
    #expect(try readShorts(&reader) == Self.samples)
  }

  @Test("a full disk is an error with the system's number, and what was written is still readable")
  func fullDisk() throws {
    let stored = TemporaryFile()
    let (calls, counter) = Self.tiresome(limit: 80 + 1001)
    var writer = try WAVWriter(
      file: FileBytes(creating: stored.path, calls: calls), format: Self.mono, largest: .max)
    var text = ""
    do { try writer.write(Self.samples.span) } catch { text = error.description }
    #expect(text == "cannot write \"\(stored.path)\": No space left on device (errno 28)")
    #expect(writer.frameCount == 500)
    try writer.refreshHeader()
    #expect(try readShorts(stored.bytes) == Array(Self.samples[..<500]))
    // Room again: the next frames follow the last whole one.
    counter.limit.store(.max, ordering: .relaxed)
    try writer.write(Self.samples.span.extracting(500..<600))
    try writer.finish()
    var reader = try WAVReader(path: stored.path)
    #expect(reader.header.repairs == [])
    #expect(try readShorts(&reader) == Array(Self.samples[..<600]))
  }

  @Test("unsupported formats are refused with a message")
  func problems() {
    func text(_ path: String, _ format: WAVFormat = Self.mono) -> String {
      do {
        _ = try WAVWriter(path: path, format: format)
        return "no problem"
      } catch { return error.description }
    }
    #expect(
      text("/nowhere/a.wav") == "cannot create \"/nowhere/a.wav\": No such file or directory (errno 2)")
    #expect(text("/dev/full") == "cannot write \"/dev/full\": No space left on device (errno 28)")
    #expect(
      text("a.wav", WAVFormat(sampleRate: 8000, channels: 0, encoding: .s24))
        == "\"a.wav\" cannot be written as s24 8000 Hz 0 ch; use s16 or f32, 1 to 64 channels, up to 1000000 Hz"
    )
  }

  @Test("writing and reading allocate nothing once the file is open")
  func heap() throws {
    let stored = TemporaryFile()
    var writer = try WAVWriter(path: stored.path, format: Self.mono)
    let floats = Self.samples.map { Float($0) / 32768 }
    func pass(_ writer: inout WAVWriter) throws {
      try writer.write(Self.samples.span)
      try writer.write(floats.span)
      try writer.refreshHeader()
    }
    try pass(&writer)
    let before = millrace_malloc_thread_requests()
    try pass(&writer)
    #expect(millrace_malloc_thread_requests() == before)
    var reader = try WAVReader(path: stored.path)
    var room = [Int16](repeating: 0, count: 6000)
    var wide = [Float](repeating: 0, count: 6000)
    func pass(_ reader: inout WAVReader) throws -> Int {
      var span = room.mutableSpan
      var wideSpan = wide.mutableSpan
      return try reader.read(at: 0, into: &span) + reader.read(at: 0, into: &wideSpan)
    }
    _ = try pass(&reader)
    let start = millrace_malloc_thread_requests()
    let count = try pass(&reader)
    #expect(millrace_malloc_thread_requests() == start)
    #expect(count == 12000)
    try writer.finish()
  }
}
