internal import MillraceCore

/// A rectangle of a picture, in pixels from its left upper corner.
struct PicturePlace: Sendable, Hashable {
  var left: Int
  var top: Int
  var width: Int
  var height: Int

  /// The largest place in this one for something of another shape, in the middle. Where something lies in a picture of 4:2:0 begins at
  /// even pixels, and is even as long as this place leaves room.
  func fitting(width: Int, height: Int) -> PicturePlace {
    let isWide = width * self.height >= height * self.width
    let w = isWide ? self.width : Self.even(Double(self.height) * Double(width) / Double(height), self.width)
    let h = isWide ? Self.even(Double(self.width) * Double(height) / Double(width), self.height) : self.height
    return PicturePlace(
      left: left + (self.width - w) / 4 * 2, top: top + (self.height - h) / 4 * 2, width: w, height: h)
  }

  /// The largest part, from the middle, of a picture of a size that has the shape of this place.
  func filling(width: Int, height: Int) -> PicturePlace {
    let isWide = width * self.height >= height * self.width
    let w = isWide ? Self.even(Double(height) * Double(self.width) / Double(self.height), width) : width
    let h = isWide ? height : Self.even(Double(width) * Double(self.height) / Double(self.width), height)
    return PicturePlace(left: (width - w) / 4 * 2, top: (height - h) / 4 * 2, width: w, height: h)
  }

  /// The nearest even length from 2 to what there is.
  private static func even(_ length: Double, _ most: Int) -> Int {
    min(most, max(2, Int((length / 2).rounded()) * 2))
  }
}
