internal import CFFmpeg
internal import MillraceCore

/// Puts decoded pictures of any size whole onto pictures of one size, planar 4:2:0, black where they leave room. One thread at a
/// time; takes heap where the size of what comes in changes.
@safe
final class FittedPicture {
  let width: Int
  let height: Int
  private var place: PicturePlace
  private var scaler: PictureScaler
  /// Luma of black, of full range, and the chroma of no colour.
  private static let black: (UInt8, UInt8) = (0, 128)

  init(width: Int, height: Int) {
    self.width = width
    self.height = height
    place = PicturePlace(left: 0, top: 0, width: width, height: height)
    scaler = PictureScaler(to: .i420, width: width, height: height)
  }

  /// Bytes of a picture.
  var byteCount: Int { PixelType.i420.byteCount(width: width, height: height) }

  /// Takes a picture; false when it is of a kind that cannot be converted.
  func take(_ frame: UnsafePointer<AVFrame>) -> Bool {
    let whole = PicturePlace(left: 0, top: 0, width: width, height: height)
    let (w, h) = unsafe (Int(frame.pointee.width), Int(frame.pointee.height))
    guard w > 0, h > 0 else { return false }
    // Pixels need not be square.
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

  /// Writes the picture taken last.
  func write(into target: inout MutableSpan<UInt8>) {
    if place.width < width || place.height < height {
      let luma = width * height
      for index in 0..<luma { target[index] = Self.black.0 }
      for index in luma..<byteCount { target[index] = Self.black.1 }
    }
    scaler.copy(onto: &target, width: width, height: height, left: place.left, top: place.top)
  }
}
