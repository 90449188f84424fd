internal import CFFmpeg
internal import Glibc

/// How a picture is to be turned before it is shown: after mirroring, by quarters of a circle, clockwise.
struct PictureTurn: Sendable, Hashable {
  var quarters = 0
  var isMirrored = false

  /// As it lies.
  init() {}

  init(quarters: Int, isMirrored: Bool = false) {
    self.quarters = quarters & 3
    self.isMirrored = isMirrored
  }

  /// What a file's display matrix asks for (phones write one). Angles between quarters are rounded to the nearest.
  init(_ matrix: UnsafePointer<Int32>) {
    // The matrix maps (x, y) to (a x + c y, b x + d y), in 16.16: rows are a b u, c d v.
    let (a, b) = unsafe (Double(matrix[0]), Double(matrix[1]))
    let (c, d) = unsafe (Double(matrix[3]), Double(matrix[4]))
    isMirrored = a * d - b * c < 0
    // Mirroring left and right first negates the first column.
    let angle = atan2(isMirrored ? -b : b, isMirrored ? -a : a) / (.pi / 2)
    quarters = angle.isFinite ? Int(angle.rounded()) & 3 : 0
  }

  /// True when width and height change places.
  var isSideways: Bool { quarters & 1 == 1 }
  var isIdentity: Bool { quarters == 0 && !isMirrored }
}

extension StreamDecoder {
  /// How the stream asks its pictures to be turned.
  func turn(_ stream: UnsafeMutablePointer<AVStream>?) -> PictureTurn {
    var size = 0
    guard let stream = unsafe stream,
      let bytes = unsafe av_stream_get_side_data(stream, millrace_av_display_matrix, &size), size >= 36
    else { return PictureTurn() }
    return unsafe UnsafeRawPointer(bytes).withMemoryRebound(to: Int32.self, capacity: 9) {
      unsafe PictureTurn($0)
    }
  }
}
