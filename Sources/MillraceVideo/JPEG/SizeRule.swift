/// How large a picture is encoded when its bytes are few: a smaller picture of good quality looks better than a large one of bad.
///
/// Measured by exhaustive search (SSIM at the source's size, 180,000 and 134,997 bytes): pictures of up to 1920x1080 look best
/// whole as long as their tables can be scaled to 60 % or finer (quality 70), at 7/8 up to 150 %, at 3/4 beyond; larger ones are
/// brought to the area of 2560x1440 first. Nothing is gained below 720 lines.
package struct SizeRule: Sendable {
  /// The most pixels that are encoded: 2560x1440.
  private static let mostPixels = 2_560.0 * 1_440
  /// Larger sources are made smaller whatever their content: 1920x1080, and the 8 lines that coders add to it.
  private static let wholePixels = 1_920.0 * 1_088
  /// The shorter side is not made smaller than this.
  private static let leastSide = 720.0
  /// The coarsest scales of the tables at which the whole picture and 7/8 of it are best.
  private static let limits = (whole: 60.0, most: 150.0)
  /// A scale this far beyond a limit, as a factor, is needed to leave the size of the picture before.
  private static let hold = 1.15

  package let width: Int
  package let height: Int
  /// What the source is brought to before its content is looked at.
  package let first: Double
  /// The factor the picture before was given after that.
  private var previous = 1.0

  package init(width: Int, height: Int) {
    self.width = width
    self.height = height
    let pixels = Double(width) * Double(height)
    first =
      pixels > Self.wholePixels
      ? Self.bounded(min(1, (Self.mostPixels / pixels).squareRoot()), width, height) : 1
  }

  /// False when every picture keeps its size, so that nothing has to be found out.
  package var mayChange: Bool { Double(min(width, height)) * first > Self.leastSide }

  /// The factor of width and height for a picture that would need the tables at this scale at its first size.
  package mutating func factor(scale: Double) -> Double {
    let wholeLimit = previous == 1 ? Self.limits.whole * Self.hold : Self.limits.whole / Self.hold
    let mostLimit = previous >= 0.875 ? Self.limits.most * Self.hold : Self.limits.most / Self.hold
    previous = scale <= wholeLimit ? 1 : scale <= mostLimit ? 0.875 : 0.75
    return Self.bounded(first * previous, width, height)
  }

  /// Width and height at a factor: even, so that no chroma sample stands for half a pixel; odd ones stay where nothing changes.
  package func size(factor: Double) -> (width: Int, height: Int) {
    guard factor < 1 else { return (width, height) }
    func even(_ side: Int) -> Int { side == 1 ? 1 : max(2, Int((Double(side) * factor / 2).rounded()) * 2) }
    return (even(width), even(height))
  }

  private static func bounded(_ factor: Double, _ width: Int, _ height: Int) -> Double {
    min(1, max(factor, leastSide / Double(min(width, height))))
  }
}
