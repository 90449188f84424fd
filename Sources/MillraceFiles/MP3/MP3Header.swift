/// The four-byte header of an MPEG audio frame: ISO/IEC 11172-3 and 13818-3, section 2.4.2.3, and the unofficial "MPEG 2.5" for 8 to
/// 12 kHz. Layers I to III. Free-format frames, which do not state their length, are not recognised.
package struct MP3Header: Equatable, Sendable {
  /// Bytes in a header.
  package static let byteCount = 4
  /// Bytes in the longest frame: layer II at 160 kbit/s and 8 kHz, padded.
  package static let longestFrame = 2_881

  private let bits: UInt32
  /// Length of the frame in bytes, header included.
  package let frameBytes: Int
  /// Sample rate in Hz.
  package let rate: Int

  /// Nil when the bytes are not a header, or one of free format.
  package init?(_ bits: UInt32) {
    guard bits >> 21 == 0x7FF else { return nil }
    // 3 is MPEG 1, 2 is MPEG 2, 0 is MPEG 2.5.
    let version = Int(bits >> 19 & 3)
    let layer = 4 - Int(bits >> 17 & 3)
    let (bitRate, rate, padding) = (Int(bits >> 12 & 15), Int(bits >> 10 & 3), Int(bits >> 9 & 1))
    guard version != 1, layer != 4, bitRate != 0, bitRate != 15, rate != 3 else { return nil }
    let isFirst = version == 3
    self.bits = bits
    self.rate = Self.rate(rate) >> (isFirst ? 0 : version == 2 ? 1 : 2)
    let bitsPerSecond = 1_000 * Self.kilobits(bitRate, layer: layer, isFirst: isFirst)
    switch layer {
    case 1: frameBytes = (12 * bitsPerSecond / self.rate + padding) * 4
    case 2: frameBytes = 144 * bitsPerSecond / self.rate + padding
    default: frameBytes = (isFirst ? 144 : 72) * bitsPerSecond / self.rate + padding
    }
  }

  /// Header bits that stay the same throughout a stream: sync word, version, layer and rate.
  private static let kept: UInt32 = 0xFFFE_0C00

  /// True when both can belong to the same stream.
  package func agrees(with other: MP3Header) -> Bool { (bits ^ other.bits) & Self.kept == 0 }

  /// True when `count` bytes, fewer than a header, can begin another frame of the stream; `first` holds them in its upper bits.
  package func agrees(withFirst first: UInt32, count: Int) -> Bool {
    (bits ^ first) & Self.kept & ~(UInt32.max >> UInt32(8 * count)) == 0
  }

  /// True when both have the same layer. A file may continue at another rate, and so with another MPEG version.
  package func hasLayer(of other: MP3Header) -> Bool { (bits ^ other.bits) & 0x0006_0000 == 0 }

  private static func rate(_ index: Int) -> Int { index == 0 ? 44_100 : index == 1 ? 48_000 : 32_000 }

  private static func kilobits(_ index: Int, layer: Int, isFirst: Bool) -> Int {
    let row = isFirst ? layer - 1 : layer == 1 ? 3 : 4
    return Int(table[row * 14 + index - 1])
  }

  /// kbit/s by bit rate index from 1 on, 14 to a row: MPEG 1 layers I, II and III; then layer I, and layers II and III together, of
  /// the lower rates.
  private static let table: [UInt16] = [
    32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448,
    32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384,
    32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
    32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256,
    8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160,
  ]
}
