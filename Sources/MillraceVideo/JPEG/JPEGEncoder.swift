internal import CMediaShim
internal import MillraceCore

/// libjpeg behind its C shell: one picture at one scale of the tables. One thread at a time; takes heap with every picture.
@safe
package final class JPEGEncoder {
  private let encoder: OpaquePointer
  /// The longest side that libjpeg takes (JPEG_MAX_DIMENSION of jmorecfg.h).
  static let mostSide = 65_500

  /// Refuses pictures that no JPEG can be of.
  static func check(_ resolution: inout Resolution) {
    guard case .video(let width, let height, _, _)? = resolution.input?.format,
      max(width, height) > mostSide
    else { return }
    resolution.refuse(
      nil, "JPEG has no pictures of \(width)x\(height); the longest side is \(mostSide)",
      cure: "put video.scale before it")
  }

  package init() {
    guard let encoder = unsafe millrace_jpeg_new() else { fatalError("no memory for a JPEG encoder") }
    unsafe self.encoder = unsafe encoder
  }

  deinit { unsafe millrace_jpeg_free(encoder) }

  /// Encodes a picture and answers how many bytes its JPEG has; what is beyond the target's end is only counted. nil when
  /// libjpeg refuses: see `words`.
  package func encode(
    _ picture: borrowing PictureView, scale: Double, into target: UnsafeMutableRawBufferPointer
  ) -> Int? {
    let bytes = unsafe target.baseAddress?.assumingMemoryBound(to: UInt8.self)
    let size = unsafe picture.withPlanes { planes in
      unsafe millrace_jpeg_encode(encoder, &planes, scale, 0, 1, bytes, target.count)
    }
    return size < 0 ? nil : Int(size)
  }

  /// How many bytes a sample of a picture has: every `step`-th row of 16 lines, from row `first` on.
  package func probe(_ picture: borrowing PictureView, scale: Double, first: Int, step: Int) -> Int? {
    let size = unsafe picture.withPlanes { planes in
      unsafe millrace_jpeg_encode(encoder, &planes, scale, Int32(first), Int32(step), nil, 0)
    }
    return size < 0 ? nil : Int(size)
  }

  /// What libjpeg said when it refused.
  package var words: String { unsafe String(cString: millrace_jpeg_error(encoder)) }
}
