import MillraceAudio

/// Feeds arbitrary bytes to the WAV header parser, and reads the samples of accepted files in both sample types.
///
/// It must never crash or report more frames than the file has. Every error and repair has a message, and the samples do not depend on
/// the chunk size.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzWAV(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  do throws(WAVProblem) {
    var reader = try WAVReader(source: MemoryBytes(bytes, name: "input.wav"))
    check(reader.header, count: count)
    let whole = try samples(&reader, piece: 1 << 14)
    if whole.count != Int(reader.frameCount) * reader.format.channels { fatalError("frames are missing") }
    if try samples(&reader, piece: 97) != whole { fatalError("the samples depend on the chunks") }
    try readFloats(&reader)
  } catch {
    if error.description.isEmpty { fatalError("an error without a message") }
  }
  return 0
}

private func check(_ header: WAVHeader, count: Int) {
  let end = header.dataOffset + header.frameCount * Int64(header.format.frameByteCount)
  if header.frameCount < 0 || header.dataOffset < 20 || end > Int64(count) {
    fatalError("frames outside the file: \(header)")
  }
  if !WAVFormat.channelCounts.contains(header.format.channels) { fatalError("\(header.format)") }
  if !WAVFormat.sampleRates.contains(header.format.sampleRate) { fatalError("\(header.format)") }
  for repair in header.repairs where repair.description.isEmpty { fatalError("a repair without a message") }
}

private func samples(_ reader: inout WAVReader, piece: Int) throws(WAVProblem) -> [Int16] {
  var result: [Int16] = []
  var frame: Int64 = 0
  var room = [Int16](repeating: 0, count: piece)
  while true {
    var span = room.mutableSpan
    let frames = try reader.read(at: frame, into: &span)
    if frames == 0 { return result }
    result += room[..<(frames * reader.format.channels)]
    frame += Int64(frames)
  }
}

private func readFloats(_ reader: inout WAVReader) throws(WAVProblem) {
  var room = [Float](repeating: 0, count: 64 * 5)
  for frame in [-1, 0, 1, reader.frameCount / 2, reader.frameCount - 1, reader.frameCount, .max] {
    var span = room.mutableSpan
    _ = try reader.read(at: frame, into: &span)
  }
}
