internal import MillraceCore

/// Tells whether a picture looks like the one taken last, by every fourth point of every fourth row.
///
/// The noise of a camera passes for no change, a cursor of 16x16 pixels in 1280x720 does not. Memory is taken once.
struct StillWatch: ~Copyable {
  /// Points in a row and rows apart that are looked at.
  private static let step = 4
  /// A difference in luma that noise does not reach.
  private static let visible = 16
  /// One of so many points that may differ in a still picture.
  private static let tolerance = 5_000

  private var points: [UInt8] = []
  private var candidate: [UInt8] = []

  init() {}

  /// True when hardly a point has changed since the picture remembered last. The picture's points are kept until `remember`.
  mutating func isStill(_ picture: borrowing PictureView) -> Bool {
    read(picture)
    guard candidate.count == points.count else { return false }
    var changed = 0
    for index in candidate.indices {
      if abs(Int(candidate[index]) - Int(points[index])) > Self.visible { changed += 1 }
    }
    return changed * Self.tolerance <= candidate.count
  }

  /// The picture looked at last is the one others are compared with.
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
