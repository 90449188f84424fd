internal import CFFmpeg
internal import Glibc

/// How a picture is displayed: mirrored horizontally, then rotated clockwise by quarter turns.
struct PictureOrientation: Sendable, Hashable {
  var quarters = 0
  var isMirrored = false

  /// No change.
  init() {}

  init(quarters: Int, isMirrored: Bool = false) {
    self.quarters = quarters & 3
    self.isMirrored = isMirrored
  }

  /// The orientation in a file's display matrix (phones write one). Angles are rounded to quarter turns.
  init(_ matrix: UnsafePointer<Int32>) {
    // The matrix maps (x, y) to (a x + c y, b x + d y), in 16.16: rows are a b u, c d v.
    let (a, b) = unsafe (Double(matrix[0]), Double(matrix[1]))
    let (c, d) = unsafe (Double(matrix[3]), Double(matrix[4]))
    isMirrored = a * d - b * c < 0
    // Mirroring left and right first negates the first column.
    let angle = atan2(isMirrored ? -b : b, isMirrored ? -a : a) / (.pi / 2)
    quarters = angle.isFinite ? Int(angle.rounded()) & 3 : 0
  }

  /// True if width and height are swapped.
  var isSideways: Bool { quarters & 1 == 1 }
  var isIdentity: Bool { quarters == 0 && !isMirrored }
}

extension StreamDecoder {
  /// The orientation requested by the stream.
  func turn(_ stream: UnsafeMutablePointer<AVStream>?) -> PictureOrientation {
    var size = 0
    guard let stream = unsafe stream,
      let bytes = unsafe av_stream_get_side_data(stream, millrace_av_display_matrix, &size), size >= 36
    else { return PictureOrientation() }
    return unsafe UnsafeRawPointer(bytes).withMemoryRebound(to: Int32.self, capacity: 9) {
      unsafe PictureOrientation($0)
    }
  }
}
