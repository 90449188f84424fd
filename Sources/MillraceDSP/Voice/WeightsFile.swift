/// Reads weights files; `Models/silero-vad.py` documents the format.
enum WeightsFile {
  private static let magic = Array("MRSILERO".utf8)
  private static let layout = 1
  private static let sumOffset = 12
  private static let sourceOffset = 20
  private static let sourceBytes = 16
  private static let countOffset = 36

  /// All `count` floats of the network for a rate, and the origin stated in the file.
  static func tensors(
    of file: Span<UInt8>, rate: Int, count: Int
  ) throws(VoiceModelProblem) -> (floats: [Float], source: String) {
    guard file.count >= magic.count, magic.indices.allSatisfy({ file[$0] == magic[$0] }) else {
      throw .notWeights
    }
    guard file.count >= countOffset + 4 else { throw .cutShort(bytes: file.count, of: nil) }
    let version = number(file, at: magic.count)
    guard version == layout else { throw .unknownLayout(version) }
    let whole = number(file, at: 16) + sourceOffset
    guard file.count >= whole else { throw .cutShort(bytes: file.count, of: whole) }
    guard CRC32.checksum(file.extracting(16..<whole)) == UInt32(number(file, at: sumOffset)) else {
      throw .damaged
    }
    var offset = countOffset + 4
    for _ in 0..<number(file, at: countOffset) {
      guard offset + 8 <= whole else { break }
      let floats = number(file, at: offset + 4)
      let start = offset + 8
      offset = start + 4 * floats
      guard number(file, at: start - 8) == rate else { continue }
      guard floats == count, offset <= whole else { throw .wrongShape(rate: rate, floats: floats, of: count) }
      let values = (0..<count).map {
        Float(bitPattern: UInt32(truncatingIfNeeded: number(file, at: start + 4 * $0)))
      }
      return (values, source(of: file))
    }
    throw .noNetwork(rate: rate)
  }

  /// A 32-bit number, little-endian.
  private static func number(_ file: Span<UInt8>, at offset: Int) -> Int {
    Int(file[offset]) | Int(file[offset + 1]) << 8 | Int(file[offset + 2]) << 16 | Int(file[offset + 3]) << 24
  }

  private static func source(of file: Span<UInt8>) -> String {
    let bytes = (sourceOffset..<sourceOffset + sourceBytes).map { file[$0] }.prefix { $0 != 0 }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// The cyclic redundancy check of zip, PNG and Ethernet: ISO 3309, reflected polynomial 0xEDB88320.
enum CRC32 {
  private static let table: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1 }
  }

  static func checksum(_ bytes: Span<UInt8>) -> UInt32 {
    var sum = ~UInt32(0)
    unsafe bytes.withUnsafeBufferPointer { bytes in
      unsafe table.withUnsafeBufferPointer { table in
        for index in bytes.indices {
          sum = unsafe table[Int(UInt8(truncatingIfNeeded: sum) ^ bytes[index])] ^ sum >> 8
        }
      }
    }
    return ~sum
  }
}
