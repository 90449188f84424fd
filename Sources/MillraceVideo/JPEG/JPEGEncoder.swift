internal import CMediaShim
internal import MillraceCore

/// Encodes one picture at one table scale with libjpeg, through a C shim. Not thread-safe; allocates with every picture.
@safe
package final class JPEGEncoder {
  private let encoder: OpaquePointer
  /// The longest side that libjpeg supports (JPEG_MAX_DIMENSION of jmorecfg.h).
  static let longestSide = 65_500

  /// Refuses pictures that JPEG cannot represent.
  static func check(_ resolution: inout Resolution) {
    guard case .video(let width, let height, _, _)? = resolution.input?.format,
      max(width, height) > longestSide
    else { return }
    resolution.refuse(
      nil, "JPEG does not support pictures of \(width)x\(height); the longest side is \(longestSide)",
      cure: "add video.scale before it")
  }

  package init() {
    guard let encoder = unsafe millrace_jpeg_new() else { fatalError("no memory for a JPEG encoder") }
    unsafe self.encoder = unsafe encoder
  }

  deinit { unsafe millrace_jpeg_free(encoder) }

  /// Encodes a picture and returns the size of its JPEG; bytes beyond the end of the target are only counted. nil if libjpeg fails: see
  /// `words`.
  package func encode(
    _ picture: borrowing PictureView, scale: Double, into target: UnsafeMutableRawBufferPointer
  ) -> Int? {
    let bytes = unsafe target.baseAddress?.assumingMemoryBound(to: UInt8.self)
    let size = unsafe picture.withPlanes { planes in
      unsafe millrace_jpeg_encode(encoder, &planes, scale, 0, 1, bytes, target.count)
    }
    return size < 0 ? nil : Int(size)
  }

  /// The encoded size of a sample of a picture: every `step`-th row of 16 lines, from row `first` on.
  package func probe(_ picture: borrowing PictureView, scale: Double, first: Int, step: Int) -> Int? {
    let size = unsafe picture.withPlanes { planes in
      unsafe millrace_jpeg_encode(encoder, &planes, scale, Int32(first), Int32(step), nil, 0)
    }
    return size < 0 ? nil : Int(size)
  }

  /// The libjpeg error message.
  package var words: String { unsafe String(cString: millrace_jpeg_error(encoder)) }
}
