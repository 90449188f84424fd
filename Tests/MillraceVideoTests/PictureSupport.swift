import CMediaShim
import Glibc
import MillraceCore
import MillraceTesting
import MillraceVideo

/// Raw test pictures.
enum TestPicture {
  /// Planar 4:2:0 of a scene with soft shades, edges and adjustable noise. `seed` moves it.
  static func i420(_ width: Int, _ height: Int, noise: Int = 0, seed: Int = 0) -> [UInt8] {
    let (half, halfHeight) = ((width + 1) / 2, (height + 1) / 2)
    var bytes = [UInt8](repeating: 0, count: width * height + 2 * half * halfHeight)
    var state = UInt32(truncatingIfNeeded: 12_345 &+ seed &* 7_919)
    bytes.withUnsafeMutableBufferPointer { target in
      for y in 0..<height {
        for x in 0..<width {
          state = state &* 1_664_525 &+ 1_013_904_223
          let shade = (x + seed) * 180 / max(1, width + seed) + ((x / 24 + y / 16) & 1) * 30
          let grain = noise == 0 ? 0 : Int(state >> 16) % (2 * noise + 1) - noise
          target[y * width + x] = UInt8(max(0, min(255, shade + 20 + grain)))
        }
      }
      for y in 0..<halfHeight {
        for x in 0..<half {
          target[width * height + y * half + x] = UInt8(100 + x * 50 / max(1, half))
          target[width * height + half * halfHeight + y * half + x] = UInt8(110 + y * 50 / max(1, halfHeight))
        }
      }
    }
    return bytes
  }

  /// A picture of one colour.
  static func flat(_ width: Int, _ height: Int, y: UInt8, u: UInt8 = 128, v: UInt8 = 128) -> [UInt8] {
    let half = ((width + 1) / 2) * ((height + 1) / 2)
    return [UInt8](repeating: y, count: width * height) + [UInt8](repeating: u, count: half)
      + [UInt8](repeating: v, count: half)
  }
}

/// A JPEG as another decoder sees it.
struct DecodedJPEG {
  let width: Int
  let height: Int
  /// Planar 4:2:0 without row padding.
  let planes: [UInt8]

  /// Decodes; nil if it is not a complete 4:2:0 JPEG.
  init?(_ bytes: [UInt8]) {
    guard bytes.starts(with: [0xFF, 0xD8, 0xFF]), bytes.suffix(2) == [0xFF, 0xD9],
      let size = Self.size(bytes)
    else { return nil }
    (width, height) = size
    var planes = [UInt8](repeating: 0, count: PixelType.i420.byteCount(width: width, height: height))
    guard millrace_jpeg_decode(bytes, bytes.count, Int32(width), Int32(height), &planes) == 0 else {
      return nil
    }
    self.planes = planes
  }

  /// Width and height from the frame header (SOF0).
  private static func size(_ bytes: [UInt8]) -> (Int, Int)? {
    var place = 2
    while place + 9 < bytes.count, bytes[place] == 0xFF {
      let length = Int(bytes[place + 2]) << 8 | Int(bytes[place + 3])
      if bytes[place + 1] == 0xC0 {
        return (
          Int(bytes[place + 7]) << 8 | Int(bytes[place + 8]),
          Int(bytes[place + 5]) << 8 | Int(bytes[place + 6])
        )
      }
      place += 2 + length
    }
    return nil
  }

  /// Mean squared error of the luma against a picture of the same size, in dB.
  func lumaPSNR(_ other: [UInt8]) -> Double {
    var sum = 0
    for index in 0..<width * height {
      let difference = Int(planes[index]) - Int(other[index])
      sum += difference * difference
    }
    return sum == 0 ? 99 : 10 * log10(65_025 * Double(width * height) / Double(sum))
  }
}
