internal import CFFmpeg
internal import MillraceCore

/// Fits decoded pictures of any size into planar 4:2:0 pictures of one size, with black bars. Not thread-safe; allocates when the input size
/// changes.
@safe
final class LetterboxedPicture {
  let width: Int
  let height: Int
  private var place: PictureRect
  private var scaler: PictureScaler
  /// Black in full range: luma, and neutral chroma.
  private static let black: (UInt8, UInt8) = (0, 128)

  init(width: Int, height: Int) {
    self.width = width
    self.height = height
    place = PictureRect(left: 0, top: 0, width: width, height: height)
    scaler = PictureScaler(to: .i420, width: width, height: height)
  }

  /// Bytes per picture.
  var byteCount: Int { PixelType.i420.byteCount(width: width, height: height) }

  /// Takes a picture; false if its pixel format is not supported.
  func take(_ frame: UnsafePointer<AVFrame>) -> Bool {
    let whole = PictureRect(left: 0, top: 0, width: width, height: height)
    let (w, h) = unsafe (Int(frame.pointee.width), Int(frame.pointee.height))
    guard w > 0, h > 0 else { return false }
    // Pixels may not be square.
    let pixel = unsafe frame.pointee.sample_aspect_ratio
    let isSquare = pixel.num <= 0 || pixel.den <= 0
    let shown = isSquare ? (w, h) : (w * Int(pixel.num), h * Int(pixel.den))
    let wanted = whole.fitting(width: shown.0, height: shown.1)
    if wanted != place {
      place = wanted
      scaler = PictureScaler(to: .i420, width: wanted.width, height: wanted.height)
    }
    return unsafe scaler.scale(frame)
  }

  /// Writes the last picture.
  func write(into target: inout MutableSpan<UInt8>) {
    if place.width < width || place.height < height {
      let luma = width * height
      for index in 0..<luma { target[index] = Self.black.0 }
      for index in luma..<byteCount { target[index] = Self.black.1 }
    }
    scaler.copy(onto: &target, width: width, height: height, left: place.left, top: place.top)
  }
}
