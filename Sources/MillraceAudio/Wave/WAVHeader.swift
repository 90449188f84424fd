/// The header of a WAV file: its format, and where the audio is.
///
/// Reads RIFF (Microsoft, "Multimedia Programming Interface and Data Specifications 1.0"), RF64 and BW64 with 64-bit sizes (EBU Tech
/// 3306, ITU-R BS.2088), `fmt ` chunks of 16, 18 and 40 bytes (WAVE_FORMAT_EXTENSIBLE), chunks of odd length with their pad byte, and
/// any unknown chunks between. Sizes in the file are never trusted: nothing is allocated by them, and the audio never extends beyond
/// the end of the file. Audio after the stated end, as a killed recorder leaves it, is read to the end of the file.
public struct WAVHeader: Sendable, Equatable {
  /// Rate, channels, encoding.
  public let format: WAVFormat
  /// Offset of the first frame in bytes.
  public let dataOffset: Int64
  /// Whole frames of audio.
  public let frameCount: Int64
  /// Defects that were repaired, in the order found.
  public let repairs: [WAVProblem]

  /// Most chunks examined.
  static let chunkLimit = 1_000

  /// Reads the header. Blocks while it reads; allocates a little.
  ///
  /// - Throws: ``WAVProblem`` when there is no audio, or it is of an unsupported kind.
  public init(reading source: any ByteSource) throws(WAVProblem) {
    var scan = ChunkScan(source: source, end: source.byteCount)
    let wide = try scan.start()
    var format: WAVFormat?
    var large: (riff: Int64, data: Int64)?
    var data: Chunk?
    while data == nil || format == nil, let chunk = try scan.next() {
      switch chunk.name {
      case "fmt ": if format == nil { format = try scan.format(chunk) }
      case "ds64": if wide, large == nil { large = try scan.largeSizes(chunk) }
      case "data":
        guard data == nil else { continue }
        var sound = chunk
        if chunk.declared == 0xFFFF_FFFF { sound.declared = large?.data ?? Chunk.unknownSize }
        scan.skip(sound)
        data = sound
      default: break
      }
    }
    guard let format else { throw .noFormat(name: source.name) }
    guard let data else { throw .noData(name: source.name) }
    let riff = scan.riffSize == 0xFFFF_FFFF ? large?.riff ?? scan.riffSize : scan.riffSize
    let isStale = try scan.isStale(data, riffSize: riff)
    self.init(format: format, data: data, isStale: isStale, fileSize: scan.end)
  }

  /// Determines how much audio there really is. `isStale`: what follows the declared end is audio too.
  private init(format: WAVFormat, data: Chunk, isStale: Bool, fileSize: Int64) {
    let start = data.offset + Chunk.headSize
    let present = max(fileSize - start, 0)
    var length = data.declared
    var repairs: [WAVProblem] = []
    if length == Chunk.unknownSize || (isStale && length == 0) {
      length = present
      repairs.append(.unknownLength(offset: data.offset, byteCount: present))
    } else if isStale {
      repairs.append(.undercounted(offset: data.offset, declared: length, byteCount: present))
      length = present
    } else if length > present || length < 0 {
      repairs.append(.cutShort(offset: data.offset, declared: length, byteCount: present))
      length = present
    }
    let frame = Int64(format.frameByteCount)
    if length % frame != 0 {
      let whole = length / frame * frame
      repairs.append(.brokenFrame(offset: start + whole, byteCount: Int(length - whole)))
    }
    self.format = format
    dataOffset = start
    frameCount = length / frame
    self.repairs = repairs
  }
}

/// A chunk header: name, offset of the header, and declared size.
struct Chunk {
  /// Bytes in a chunk header: name and size.
  static let headSize: Int64 = 8
  /// A size the file does not state; no file is that long.
  static let unknownSize = Int64.max

  var name: String
  var offset: Int64
  var declared: Int64
}

/// Iterates over the chunks of a file.
struct ChunkScan {
  let source: any ByteSource
  let end: Int64
  var riffSize: Int64 = 0
  private var place: Int64 = 12
  private var seen = 0

  init(source: any ByteSource, end: Int64) {
    self.source = source
    self.end = end
  }

  /// Reads the RIFF header and returns whether sizes may be 64 bits wide.
  mutating func start() throws(WAVProblem) -> Bool {
    let head = try bytes(12, at: 0)
    let outer = head.count < 4 ? "" : name(head, at: 0)
    let isWAV = ["RIFF", "RF64", "BW64"].contains(outer)
    // Fewer than four bytes may be the beginning of anything.
    guard head.count == 12 || !(isWAV || head.count < 4) else {
      throw .tooShort(name: source.name, byteCount: Int64(head.count))
    }
    guard isWAV, name(head, at: 8) == "WAVE" else {
      throw .notWAV(name: source.name, begins: Self.quoted(head))
    }
    riffSize = Int64(word(head, at: 4))
    return outer != "RIFF"
  }

  /// The next chunk, or nil at the end of the file.
  mutating func next() throws(WAVProblem) -> Chunk? {
    let head = place < end ? try bytes(8, at: place) : []
    guard head.count == 8 else { return nil }
    guard seen < WAVHeader.chunkLimit else { throw .tooManyChunks(name: source.name, offset: place) }
    seen += 1
    let chunk = Chunk(name: name(head, at: 0), offset: place, declared: Int64(word(head, at: 4)))
    skip(chunk)
    return chunk
  }

  /// Continues after `chunk` and its pad byte.
  mutating func skip(_ chunk: Chunk) {
    let body = chunk.offset + Chunk.headSize
    // A size beyond the end of the file ends the iteration there; it cannot overflow.
    guard chunk.declared >= 0, chunk.declared < end - body else {
      place = end
      return
    }
    place = body + chunk.declared + (chunk.declared & 1)
  }

  func largeSizes(_ chunk: Chunk) throws(WAVProblem) -> (riff: Int64, data: Int64)? {
    let body = try bytes(16, at: chunk.offset + Chunk.headSize)
    guard body.count == 16, chunk.declared >= 16 else { return nil }
    return (Int64(bitPattern: long(body, at: 0)), Int64(bitPattern: long(body, at: 8)))
  }

  func format(_ chunk: Chunk) throws(WAVProblem) -> WAVFormat {
    let body = try bytes(Int(min(chunk.declared, 40)), at: chunk.offset + Chunk.headSize)
    guard body.count >= 16 else {
      throw .shortFormat(name: source.name, offset: chunk.offset, byteCount: Int64(body.count))
    }
    var tag = half(body, at: 0)
    let (channels, bits) = (half(body, at: 2), half(body, at: 14))
    // WAVE_FORMAT_EXTENSIBLE keeps the real tag in the first two bytes of its GUID.
    if tag == 0xFFFE, body.count >= 26 { tag = half(body, at: 24) }
    guard let encoding = Self.encoding(tag: tag, bits: bits) else {
      throw .encoding(name: source.name, offset: chunk.offset, tag: tag, bits: bits)
    }
    guard WAVFormat.channelCounts.contains(channels) else {
      throw .channels(name: source.name, offset: chunk.offset, count: channels)
    }
    let rate = Int64(word(body, at: 4))
    guard WAVFormat.sampleRates.contains(Int(rate)) else {
      throw .sampleRate(name: source.name, offset: chunk.offset, hertz: rate)
    }
    let format = WAVFormat(sampleRate: Int(rate), channels: channels, encoding: encoding)
    let declared = half(body, at: 12)
    guard declared == format.frameByteCount else {
      throw .frameSize(
        name: source.name, offset: chunk.offset, declared: declared, expected: format.frameByteCount)
    }
    return format
  }

  /// Tags 1 (WAVE_FORMAT_PCM) and 3 (WAVE_FORMAT_IEEE_FLOAT) of mmreg.h.
  private static func encoding(tag: Int, bits: Int) -> WAVFormat.Encoding? {
    switch (tag, bits) {
    case (1, 8): .u8
    case (1, 16): .s16
    case (1, 24): .s24
    case (1, 32): .s32
    case (3, 32): .f32
    case (3, 64): .f64
    default: nil
    }
  }

  // MARK: Bytes

  func bytes(_ count: Int, at offset: Int64) throws(WAVProblem) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let read: Int
    do {
      var span = bytes.mutableSpan
      var raw = unsafe span.mutableBytes
      read = try source.read(at: offset, into: &raw)
    } catch { throw .file(error) }
    return Array(bytes.prefix(read))
  }

  func name(_ bytes: [UInt8], at offset: Int) -> String {
    String(decoding: bytes[offset..<offset + 4], as: UTF8.self)
  }

  private func half(_ bytes: [UInt8], at offset: Int) -> Int {
    Int(bytes[offset]) | Int(bytes[offset + 1]) << 8
  }

  func word(_ bytes: [UInt8], at offset: Int) -> UInt32 {
    UInt32(half(bytes, at: offset)) | UInt32(half(bytes, at: offset + 2)) << 16
  }

  private func long(_ bytes: [UInt8], at offset: Int) -> UInt64 {
    UInt64(word(bytes, at: offset)) | UInt64(word(bytes, at: offset + 4)) << 32
  }

  /// The first bytes for a message: as text if they are text, otherwise in hexadecimal.
  private static func quoted(_ head: [UInt8]) -> String {
    let first = head.prefix(4)
    if first.allSatisfy({ (0x20..<0x7F).contains($0) }) {
      let whole =
        ["RIFF", "RF64", "BW64"].contains(String(decoding: first, as: UTF8.self)) ? head : Array(first)
      return "\"" + String(String(decoding: whole, as: UTF8.self).map { $0.isASCII && $0 >= " " ? $0 : "." })
        + "\""
    }
    let digits = Array("0123456789abcdef")
    return "bytes " + first.map { "\(digits[Int($0 >> 4)])\(digits[Int($0 & 15)])" }.joined(separator: " ")
  }
}
