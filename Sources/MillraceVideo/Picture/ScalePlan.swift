internal import MillraceCore

/// What `video.scale` does to a picture, in numbers: a part of it, a size, a turn.
struct ScalePlan: Sendable, Equatable {
  /// The part that is kept.
  var left = 0
  var top = 0
  var partWidth: Int
  var partHeight: Int
  /// Size before turning.
  var width: Int
  var height: Int
  var turn: PictureTurn

  /// Size after turning.
  var outputWidth: Int { turn.isSideways ? height : width }
  var outputHeight: Int { turn.isSideways ? width : height }

  /// Whether what comes out of a picture of this size is that picture.
  func changesNothing(width: Int, height: Int) -> Bool {
    turn.isIdentity && (partWidth, partHeight) == (width, height)
      && (self.width, self.height) == (width, height)
  }

  /// Why a plan cannot be made: the parameter, the reason, the cure.
  struct Refusal: Error, Equatable {
    var parameter: String
    var text: String
    var cure: String
  }

  /// Sides that are handled.
  static let sides = 1...16_384

  /// From the node's parameters and the size of what comes in.
  init(_ values: ParameterValues, width: Int, height: Int, pixel: PixelType) throws(Refusal) {
    turn = PictureTurn(quarters: (Int(values.string("rotate")) ?? 0) / 90, isMirrored: values.bool("mirror"))
    (partWidth, partHeight) = (width, height)
    if values.has("crop") {
      let crop = values.numbers("crop").map { Int($0) }
      (left, top, partWidth, partHeight) = (crop[0], crop[1], crop[2], crop[3])
      guard partWidth > 0 && partHeight > 0 && left + partWidth <= width && top + partHeight <= height else {
        throw Refusal(
          parameter: "crop",
          text: "a part of \(partWidth)x\(partHeight) at (\(left), \(top)) is not within \(width)x\(height)",
          cure: "give left, top, width and height of a part of the picture")
      }
      // A chroma sample of 4:2:0 stands for two columns and two rows.
      let isHalved = pixel == .i420 || pixel == .nv12
      guard !isHalved || (left % 2 == 0 && top % 2 == 0) else {
        throw Refusal(
          parameter: "crop",
          text: "\(pixel.rawValue) pictures can be cut at even places only, not at (\(left), \(top))",
          cure: "begin at (\(left / 2 * 2), \(top / 2 * 2))")
      }
    }
    let natural = turn.isSideways ? (partHeight, partWidth) : (partWidth, partHeight)
    let asked = (Self.side(values, "width"), Self.side(values, "height"))
    let wanted = Self.size(asked.0, asked.1, natural: natural)
    guard Self.sides.contains(wanted.0) && Self.sides.contains(wanted.1) else {
      throw Refusal(
        parameter: "width", text: "\(wanted.0)x\(wanted.1) is no size for a picture",
        cure: "stay within \(Self.sides.lowerBound) to \(Self.sides.upperBound)")
    }
    (self.width, self.height) = turn.isSideways ? (wanted.1, wanted.0) : wanted
  }

  private static func side(_ values: ParameterValues, _ name: String) -> Int? {
    values.has(name) ? values.integer(name) : nil
  }

  /// The side that is not given follows from the other, even so that chroma fits.
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
