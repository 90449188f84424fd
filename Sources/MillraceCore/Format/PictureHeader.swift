/// The picture size that the header of a JPEG, PNG, GIF or WebP file declares, read before memory is allocated to decode it. Never
/// reads beyond the given bytes, whatever they contain. No heap; any thread.
public struct PictureHeader: Sendable, Hashable {
  /// Declared width in pixels; at least 1.
  public let width: Int
  /// Declared height in pixels; at least 1.
  public let height: Int

  /// Width times height; `Int.max` on overflow.
  public var pixels: Int { width.multipliedClamped(by: height) }

  /// The default size limit of nodes: 8192x8192 pixels, which covers 8K (7680x4320) in either orientation.
  public static let defaultMaxPixels = 8_192 * 8_192

  /// The largest picture that FFmpeg's libraries decode (`av_image_check_size2`: an eighth of an `int`).
  public static let maxDecodablePixels = 268_435_455

  /// Bytes from the start of a file within which the header is expected; in a JPEG it follows colour profiles and thumbnails.
  public static let maxHeaderBytes = 1 << 20

  /// Reads the size; nil when the bytes are of another format or too few.
  public init?(_ bytes: Span<UInt8>) {
    guard let size = Self.jpeg(bytes) ?? Self.png(bytes) ?? Self.gif(bytes) ?? Self.webP(bytes),
      size.width > 0, size.height > 0
    else { return nil }
    (width, height) = size
  }

  private typealias Size = (width: Int, height: Int)

  /// ITU-T T.81, annex B: segments of a marker and a length, up to the header of a frame (SOF).
  private static func jpeg(_ bytes: Span<UInt8>) -> Size? {
    guard bytes.count >= 2, bytes.big(at: 0, 2) == 0xFFD8 else { return nil }
    var place = 2
    while place + 9 <= bytes.count {
      guard bytes[place] == 0xFF else {
        place += 1
        continue
      }
      let marker = bytes[place + 1]
      switch marker {
      // A fill byte, and markers without a length: TEM, RST, SOI.
      case 0xFF: place += 1
      case 0x01, 0xD0...0xD8: place += 2
      // DHT, JPG and DAC share the range of the frame markers, but are not frames.
      case 0xC0...0xCF where marker != 0xC4 && marker != 0xC8 && marker != 0xCC:
        return (bytes.big(at: place + 7, 2), bytes.big(at: place + 5, 2))
      // The scan or the end of the image, without a frame header before it.
      case 0xD9, 0xDA: return nil
      default: place += 2 + max(2, bytes.big(at: place + 2, 2))
      }
    }
    return nil
  }

  /// W3C PNG, 5.2 and 11.2.2: the signature, and IHDR as the first chunk.
  private static func png(_ bytes: Span<UInt8>) -> Size? {
    guard bytes.count >= 24, bytes.big(at: 0, 4) == 0x8950_4E47, bytes.big(at: 4, 4) == 0x0D0A_1A0A else {
      return nil
    }
    return (bytes.big(at: 16, 4), bytes.big(at: 20, 4))
  }

  /// GIF89a, 17 and 18: the logical screen.
  private static func gif(_ bytes: Span<UInt8>) -> Size? {
    guard bytes.count >= 10, bytes.big(at: 0, 4) == 0x4749_4638 else { return nil }
    return (bytes.little(at: 6, 2), bytes.little(at: 8, 2))
  }

  /// RFC 9649, 2.5 to 2.7: a canvas (VP8X), lossless (VP8L), or a key frame of VP8 (RFC 6386, 9.1).
  private static func webP(_ bytes: Span<UInt8>) -> Size? {
    guard bytes.count >= 30, bytes.big(at: 0, 4) == 0x5249_4646,
      bytes.big(at: 8, 4) == 0x5745_4250, bytes.big(at: 12, 3) == 0x56_5038
    else { return nil }
    switch bytes[15] {
    case UInt8(ascii: "X"): return (bytes.little(at: 24, 3) + 1, bytes.little(at: 27, 3) + 1)
    case UInt8(ascii: "L"):
      let word = bytes.little(at: 21, 4)
      return ((word & 0x3FFF) + 1, (word >> 14 & 0x3FFF) + 1)
    default: return (bytes.little(at: 26, 2) & 0x3FFF, bytes.little(at: 28, 2) & 0x3FFF)
    }
  }
}

extension Span<UInt8> {
  /// A big-endian number of `bytes` bytes.
  fileprivate func big(at place: Int, _ bytes: Int) -> Int {
    var value = 0
    for index in place..<place + bytes { value = value << 8 | Int(self[index]) }
    return value
  }

  /// A little-endian number of `bytes` bytes.
  fileprivate func little(at place: Int, _ bytes: Int) -> Int {
    var value = 0
    for index in (place..<place + bytes).reversed() { value = value << 8 | Int(self[index]) }
    return value
  }
}
