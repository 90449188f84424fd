/// The size of a picture, read from its head.
enum TuyaImageSize {
  /// Pixels of a JPEG or a PNG; nil: it is neither, or cut off.
  static func read(_ bytes: [UInt8]) -> (width: Int, height: Int)? {
    switch TuyaImageFormat(of: bytes) {
    case .jpeg?: jpeg(bytes)
    case .png?: png(bytes)
    case nil: nil
    }
  }

  /// W3C PNG section 11.2.1: the first chunk is `IHDR`, with width and height in four bytes each.
  private static func png(_ bytes: [UInt8]) -> (width: Int, height: Int)? {
    guard bytes.count >= 24, bytes[12..<16].elementsEqual("IHDR".utf8) else { return nil }
    return (number(bytes, 16, 4), number(bytes, 20, 4))
  }

  /// ITU-T T.81 section B.2.2: a frame header has the height and then the width, two bytes each, behind its length and precision.
  private static func jpeg(_ bytes: [UInt8]) -> (width: Int, height: Int)? {
    var index = 2
    while index + 9 <= bytes.count {
      guard bytes[index] == 0xFF else { return nil }
      let marker = bytes[index + 1]
      switch marker {
      case 0xFF: index += 1
      case 0x01, 0xD0...0xD8: index += 2
      case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
        return (number(bytes, index + 7, 2), number(bytes, index + 5, 2))
      case 0xD9, 0xDA: return nil
      default:
        let length = number(bytes, index + 2, 2)
        guard length >= 2 else { return nil }
        index += 2 + length
      }
    }
    return nil
  }

  private static func number(_ bytes: [UInt8], _ from: Int, _ count: Int) -> Int {
    bytes[from..<from + count].reduce(0) { $0 << 8 | Int($1) }
  }
}

extension TuyaImageFormat {
  /// The format that a picture begins like; nil: another.
  init?(of bytes: [UInt8]) {
    if bytes.starts(with: [0xFF, 0xD8, 0xFF]) {
      self = .jpeg
    } else if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
      self = .png
    } else {
      return nil
    }
  }
}
