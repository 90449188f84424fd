import Glibc
import MillraceAudio

/// Builds WAV files byte by byte, valid or not.
struct WAVBytes {
  var bytes: [UInt8] = []

  init(_ outer: String = "RIFF", size: UInt32 = 0, form: String = "WAVE") {
    text(outer)
    word(size)
    text(form)
  }

  mutating func text(_ text: String) { bytes += Array(text.utf8) }
  mutating func half(_ value: Int) { bytes += [UInt8(value & 255), UInt8(value >> 8 & 255)] }
  mutating func word(_ value: UInt32) {
    for shift in [0, 8, 16, 24] { bytes.append(UInt8(value >> shift & 255)) }
  }
  mutating func long(_ value: UInt64) {
    word(UInt32(truncatingIfNeeded: value))
    word(UInt32(truncatingIfNeeded: value >> 32))
  }

  /// A `fmt ` chunk of 16 bytes, or 40 with `extensible`.
  mutating func format(
    tag: Int = 1, channels: Int = 1, rate: UInt32 = 16000, bits: Int = 16, align: Int? = nil,
    size: UInt32? = nil,
    extensible: Bool = false
  ) {
    text("fmt ")
    word(size ?? (extensible ? 40 : 16))
    half(extensible ? 0xFFFE : tag)
    half(channels)
    word(rate)
    word(rate * UInt32(channels * bits / 8))
    half(align ?? channels * bits / 8)
    half(bits)
    guard extensible else { return }
    half(22)
    half(bits)
    word(0)
    half(tag)
    bytes += [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]
  }

  mutating func chunk(_ name: String, size: UInt32? = nil, _ body: [UInt8]) {
    text(name)
    word(size ?? UInt32(body.count))
    bytes += body
    if body.count % 2 == 1 { bytes.append(0) }
  }

  /// The bytes with a correct RIFF size.
  var sized: [UInt8] {
    var result = self
    let size = UInt32(bytes.count - 8)
    for index in 0..<4 { result.bytes[4 + index] = UInt8(size >> (8 * index) & 255) }
    return result.bytes
  }
}

/// A path in the temporary directory, removed with the last reference.
final class TemporaryFile {
  let path: String

  init(_ bytes: [UInt8]? = nil) {
    var name = Array("/tmp/millrace-wave-XXXXXX".utf8CString)
    let descriptor = mkstemp(&name)
    path = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    if let bytes { _ = write(descriptor, bytes, bytes.count) }
    close(descriptor)
  }

  deinit { unlink(path) }

  var bytes: [UInt8] {
    let descriptor = open(path, O_RDONLY)
    defer { close(descriptor) }
    var status = stat()
    fstat(descriptor, &status)
    return [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, count in
      count = max(read(descriptor, buffer.baseAddress, buffer.count), 0)
    }
  }
}

/// All frames from `start` on, read in pieces of `piece` frames.
func readShorts(
  _ reader: inout WAVReader, from start: Int64 = 0, piece: Int = 1000
) throws(WAVProblem) -> [Int16] {
  try readAll(&reader, from: start, piece: piece, silence: 0 as Int16) {
    reader, frame, span throws(WAVProblem) in try reader.read(at: frame, into: &span)
  }
}

func readFloats(_ reader: inout WAVReader, piece: Int = 1000) throws(WAVProblem) -> [Float] {
  try readAll(&reader, from: 0, piece: piece, silence: 0 as Float) {
    reader, frame, span throws(WAVProblem) in try reader.read(at: frame, into: &span)
  }
}

private func readAll<Sample>(
  _ reader: inout WAVReader, from start: Int64, piece: Int, silence: Sample,
  _ read: (inout WAVReader, Int64, inout MutableSpan<Sample>) throws(WAVProblem) -> Int
) throws(WAVProblem) -> [Sample] {
  var (result, frame) = ([Sample](), start)
  var room = [Sample](repeating: silence, count: piece * reader.format.channels)
  while true {
    var span = room.mutableSpan
    let count = try read(&reader, frame, &span)
    if count == 0 { return result }
    result += room[..<(count * reader.format.channels)]
    frame += Int64(count)
  }
}

func readShorts(_ bytes: [UInt8]) throws(WAVProblem) -> [Int16] {
  var reader = try WAVReader(source: MemoryBytes(bytes, name: "a.wav"))
  return try readShorts(&reader)
}

/// The message of the problem in `bytes`.
func problem(reading bytes: [UInt8]) -> String {
  do {
    _ = try WAVHeader(reading: MemoryBytes(bytes, name: "a.wav"))
    return "no problem"
  } catch { return error.description }
}
