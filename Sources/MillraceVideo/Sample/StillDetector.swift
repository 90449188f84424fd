internal import MillraceCore

/// Detects whether a picture looks like the last one sampled, by every fourth point of every fourth row.
///
/// Camera noise counts as no change; a cursor of 16x16 pixels in 1280x720 counts as a change. Allocates once.
struct StillDetector: ~Copyable {
  /// Distance of the compared points, in columns and rows.
  private static let step = 4
  /// A luma difference that noise does not reach.
  private static let visible = 16
  /// A still picture may have one changed point in this many.
  private static let tolerance = 5_000

  private var points: [UInt8] = []
  private var candidate: [UInt8] = []

  init() {}

  /// True if almost no point has changed since the remembered picture. The new points are kept until `remember`.
  mutating func isStill(_ picture: borrowing PictureView) -> Bool {
    read(picture)
    guard candidate.count == points.count else { return false }
    var changed = 0
    for index in candidate.indices {
      if abs(Int(candidate[index]) - Int(points[index])) > Self.visible { changed += 1 }
    }
    return changed * Self.tolerance <= candidate.count
  }

  /// Makes the last compared picture the reference.
  mutating func remember() { swap(&points, &candidate) }

  private mutating func read(_ picture: borrowing PictureView) {
    let (plane, stride) = unsafe (picture.planes.0, picture.strides.0)
    candidate.removeAll(keepingCapacity: true)
    for y in Swift.stride(from: 0, to: picture.height, by: Self.step) {
      for x in Swift.stride(from: 0, to: picture.width, by: Self.step) {
        candidate.append(unsafe plane[y * stride + x])
      }
    }
  }
}
