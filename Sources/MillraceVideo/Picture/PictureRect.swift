internal import MillraceCore

/// A rectangle in a picture, in pixels from its upper left corner.
struct PictureRect: Sendable, Hashable {
  var left: Int
  var top: Int
  var width: Int
  var height: Int

  /// The largest centred rectangle in this one with another aspect ratio. In 4:2:0 it starts at even pixels and has even sides, as far as this
  /// rectangle leaves room.
  func fitting(width: Int, height: Int) -> PictureRect {
    let isWide = width * self.height >= height * self.width
    let w = isWide ? self.width : Self.even(Double(self.height) * Double(width) / Double(height), self.width)
    let h = isWide ? Self.even(Double(self.width) * Double(height) / Double(width), self.height) : self.height
    return PictureRect(
      left: left + (self.width - w) / 4 * 2, top: top + (self.height - h) / 4 * 2, width: w, height: h)
  }

  /// The largest centred part of a picture of this size that has the aspect ratio of this rectangle.
  func filling(width: Int, height: Int) -> PictureRect {
    let isWide = width * self.height >= height * self.width
    let w = isWide ? Self.even(Double(height) * Double(self.width) / Double(self.height), width) : width
    let h = isWide ? height : Self.even(Double(width) * Double(self.height) / Double(self.width), height)
    return PictureRect(left: (width - w) / 4 * 2, top: (height - h) / 4 * 2, width: w, height: h)
  }

  /// The nearest even length from 2 to `most`.
  private static func even(_ length: Double, _ most: Int) -> Int {
    min(most, max(2, Int((length / 2).rounded()) * 2))
  }
}
