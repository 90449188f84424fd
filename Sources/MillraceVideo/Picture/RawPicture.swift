internal import CMediaShim
package import MillraceCore

/// A planar 4:2:0 picture that owns its memory, for measurements.
package struct RawPicture: Sendable {
  package let width: Int
  package let height: Int
  /// The planes, without row padding.
  package let bytes: [UInt8]

  package init(width: Int, height: Int, bytes: [UInt8]) {
    self.width = width
    self.height = height
    // swscale reads whole vectors, beyond the last pixel too.
    var padded = bytes
    padded.reserveCapacity(bytes.count + 64)
    self.bytes = padded
  }

  package var view: PictureView {
    @_lifetime(borrow self) get {
      let view = PictureView(bytes.span, .i420, width: width, height: height)
      return unsafe _overrideLifetime(view, borrowing: self)
    }
  }

  /// The pictures of a video or photograph: the first one, then one per interval.
  package static func read(_ path: String, every interval: Nanoseconds) throws -> [RawPicture] {
    let video = try VideoFileReader(Demuxer.Source(file: path), threads: 1, sound: nil)
    guard let pictures = video.pictures else { return [] }
    var all: [RawPicture] = []
    var due: Nanoseconds = 0
    while let time = video.pictureTime {
      if time >= due {
        var bytes = [UInt8](repeating: 0, count: pictures.byteCount)
        var span = bytes.mutableSpan
        try pictures.write(into: &span)
        all.append(RawPicture(width: pictures.width, height: pictures.height, bytes: bytes))
        due += interval
      }
      try video.advancePicture()
    }
    return all
  }

  /// A scaled copy; nil if swscale fails.
  package func scaled(width: Int, height: Int) -> RawPicture? {
    part(left: 0, top: 0, width: self.width, height: self.height, toWidth: width, height: height)
  }

  /// A cropped copy; left and top are even.
  package func part(left: Int, top: Int, width: Int, height: Int) -> RawPicture? {
    part(left: left, top: top, width: width, height: height, toWidth: width, height: height)
  }

  private func part(
    left: Int, top: Int, width: Int, height: Int, toWidth: Int, height toHeight: Int
  ) -> RawPicture? {
    let scaler = PictureScaler(to: .i420, width: toWidth, height: toHeight)
    guard scaler.scale(view, left: left, top: top, width: width, height: height) else { return nil }
    var bytes = [UInt8](repeating: 0, count: PixelType.i420.byteCount(width: toWidth, height: toHeight))
    var span = bytes.mutableSpan
    scaler.copy(into: &span)
    return RawPicture(width: toWidth, height: toHeight, bytes: bytes)
  }

  /// Decodes a 4:2:0 JPEG; nil if it is damaged.
  package static func decoded(_ jpeg: UnsafeRawBufferPointer, width: Int, height: Int) -> RawPicture? {
    var bytes = [UInt8](repeating: 0, count: PixelType.i420.byteCount(width: width, height: height))
    guard let start = unsafe jpeg.baseAddress?.assumingMemoryBound(to: UInt8.self),
      unsafe millrace_jpeg_decode(start, jpeg.count, Int32(width), Int32(height), &bytes) == 0
    else { return nil }
    return RawPicture(width: width, height: height, bytes: bytes)
  }

  /// Structural similarity of the luma of two pictures of equal size: 1 means identical. Windows of 8x8 pixels, 4 apart, as in x264 and
  /// FFmpeg's filter (Wang et al., IEEE Transactions on Image Processing 13(4), 2004).
  package func similarity(to other: RawPicture) -> Double {
    precondition(width == other.width && height == other.height, "pictures of different sizes")
    let (columns, rows) = (width / 4, height / 4)
    guard columns > 1 && rows > 1 else { return 1 }
    var above: [SIMD4<Int32>] = []
    var sum = 0.0
    for row in 0..<rows {
      let present = (0..<columns).map { moments(other, column: $0, row: row) }
      if row > 0 {
        for column in 1..<columns {
          sum += Self.window(above[column - 1] &+ above[column] &+ present[column - 1] &+ present[column])
        }
      }
      above = present
    }
    return sum / Double((columns - 1) * (rows - 1))
  }

  /// Sums over a 4x4 block: of each picture, of the squares of both, and of the products.
  private func moments(_ other: RawPicture, column: Int, row: Int) -> SIMD4<Int32> {
    var sums = SIMD4<Int32>.zero
    for y in 4 * row..<4 * row + 4 {
      for x in 4 * column..<4 * column + 4 {
        let (a, b) = (Int32(bytes[y * width + x]), Int32(other.bytes[y * width + x]))
        sums &+= SIMD4(a, b, a &* a &+ b &* b, a &* b)
      }
    }
    return sums
  }

  private static func window(_ sums: SIMD4<Int32>) -> Double {
    let (a, b) = (Double(sums.x), Double(sums.y))
    let (squares, products) = (Double(sums.z), Double(sums.w))
    let (first, second) = (0.01 * 0.01 * 255 * 255 * 64, 0.03 * 0.03 * 255 * 255 * 64 * 63)
    let variance = squares * 64 - a * a - b * b
    let covariance = products * 64 - a * b
    return (2 * a * b + first) * (2 * covariance + second) / ((a * a + b * b + first) * (variance + second))
  }
}
