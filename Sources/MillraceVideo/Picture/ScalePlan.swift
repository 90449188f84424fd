internal import MillraceCore

/// The numbers of `video.scale`: a region, a size, a rotation.
struct ScalePlan: Sendable, Equatable {
  /// The region that is kept.
  var left = 0
  var top = 0
  var partWidth: Int
  var partHeight: Int
  /// Size before rotation.
  var width: Int
  var height: Int
  var turn: PictureOrientation

  /// Size after rotation.
  var outputWidth: Int { turn.isSideways ? height : width }
  var outputHeight: Int { turn.isSideways ? width : height }

  /// Whether a picture of this size passes unchanged.
  func isIdentity(width: Int, height: Int) -> Bool {
    turn.isIdentity && (partWidth, partHeight) == (width, height)
      && (self.width, self.height) == (width, height)
  }

  /// Why a plan is invalid: parameter, reason, cure.
  struct Refusal: Error, Equatable {
    var parameter: String
    var text: String
    var cure: String
  }

  /// Supported side lengths.
  static let sides = 1...16_384

  /// Makes the plan from the node's parameters and the input size.
  init(_ values: ParameterValues, width: Int, height: Int, pixel: PixelType) throws(Refusal) {
    turn = PictureOrientation(
      quarters: (Int(values.string("rotate")) ?? 0) / 90, isMirrored: values.bool("mirror"))
    (partWidth, partHeight) = (width, height)
    if values.has("crop") {
      let crop = values.numbers("crop").map { Int($0) }
      (left, top, partWidth, partHeight) = (crop[0], crop[1], crop[2], crop[3])
      guard partWidth > 0 && partHeight > 0 && left + partWidth <= width && top + partHeight <= height else {
        throw Refusal(
          parameter: "crop",
          text:
            "a region of \(partWidth)x\(partHeight) at (\(left), \(top)) is not within \(width)x\(height)",
          cure: "set left, top, width and height of a region of the picture")
      }
      // A 4:2:0 chroma sample covers two columns and two rows.
      let isHalved = pixel == .i420 || pixel == .nv12
      guard !isHalved || (left % 2 == 0 && top % 2 == 0) else {
        throw Refusal(
          parameter: "crop",
          text: "\(pixel.rawValue) pictures can be cropped at even positions only, not at (\(left), \(top))",
          cure: "use (\(left / 2 * 2), \(top / 2 * 2))")
      }
    }
    let natural = turn.isSideways ? (partHeight, partWidth) : (partWidth, partHeight)
    let asked = (Self.side(values, "width"), Self.side(values, "height"))
    let wanted = Self.size(asked.0, asked.1, natural: natural)
    guard Self.sides.contains(wanted.0) && Self.sides.contains(wanted.1) else {
      throw Refusal(
        parameter: "width", text: "\(wanted.0)x\(wanted.1) is not a valid picture size",
        cure: "stay within \(Self.sides.lowerBound) to \(Self.sides.upperBound)")
    }
    (self.width, self.height) = turn.isSideways ? (wanted.1, wanted.0) : wanted
  }

  private static func side(_ values: ParameterValues, _ name: String) -> Int? {
    values.has(name) ? values.integer(name) : nil
  }

  /// A missing side follows from the other one, rounded so that chroma fits.
  private static func size(_ width: Int?, _ height: Int?, natural: (Int, Int)) -> (Int, Int) {
    func following(_ given: Int, _ own: Int, _ other: Int) -> Int {
      let exact = Double(given) * Double(other) / Double(own)
      return max(1, exact < 2 ? Int(exact.rounded()) : Int((exact / 2).rounded()) * 2)
    }
    switch (width, height) {
    case (let width?, let height?): return (width, height)
    case (let width?, nil): return (width, following(width, natural.0, natural.1))
    case (nil, let height?): return (following(height, natural.1, natural.0), height)
    case (nil, nil): return natural
    }
  }
}
