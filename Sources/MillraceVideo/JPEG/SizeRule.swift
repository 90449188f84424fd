/// Chooses the size at which a picture is encoded under a small budget: a smaller picture of good quality looks better than a large one of bad
/// quality.
///
/// Measured by exhaustive search (SSIM at the source's size, 180,000 and 134,997 bytes): pictures of up to 1920x1080 look best at full size
/// as long as their tables can be scaled to 60 % or finer (quality 70), at 7/8 up to 150 %, at 3/4 beyond; larger ones are first scaled to
/// the area of 2560x1440. There is no gain below 720 lines.
package struct SizeRule: Sendable {
  /// Most pixels encoded: 2560x1440.
  private static let mostPixels = 2_560.0 * 1_440
  /// Larger sources are scaled down whatever their content: 1920x1080, and the 8 lines that video encoders add to it.
  private static let wholePixels = 1_920.0 * 1_088
  /// The shorter side is not scaled below this.
  private static let leastSide = 720.0
  /// The coarsest table scales at which full size and 7/8 are best.
  private static let limits = (whole: 60.0, most: 150.0)
  /// Hysteresis: the size changes only if the scale is beyond a limit by this factor.
  private static let hold = 1.15

  package let width: Int
  package let height: Int
  /// The scale factor applied before the content is considered.
  package let first: Double
  /// The factor of the previous picture after that.
  private var previous = 1.0

  package init(width: Int, height: Int) {
    self.width = width
    self.height = height
    let pixels = Double(width) * Double(height)
    first =
      pixels > Self.wholePixels
      ? Self.bounded(min(1, (Self.mostPixels / pixels).squareRoot()), width, height) : 1
  }

  /// False if every picture keeps its size, so that no probe is needed.
  package var mayChange: Bool { Double(min(width, height)) * first > Self.leastSide }

  /// The scale factor for a picture that would need this table scale at its first size.
  package mutating func factor(scale: Double) -> Double {
    let wholeLimit = previous == 1 ? Self.limits.whole * Self.hold : Self.limits.whole / Self.hold
    let mostLimit = previous >= 0.875 ? Self.limits.most * Self.hold : Self.limits.most / Self.hold
    previous = scale <= wholeLimit ? 1 : scale <= mostLimit ? 0.875 : 0.75
    return Self.bounded(first * previous, width, height)
  }

  /// Width and height at a factor: even, so that no chroma sample covers half a pixel; odd sides stay if nothing changes.
  package func size(factor: Double) -> (width: Int, height: Int) {
    guard factor < 1 else { return (width, height) }
    func even(_ side: Int) -> Int { side == 1 ? 1 : max(2, Int((Double(side) * factor / 2).rounded()) * 2) }
    return (even(width), even(height))
  }

  private static func bounded(_ factor: Double, _ width: Int, _ height: Int) -> Double {
    min(1, max(factor, leastSide / Double(min(width, height))))
  }
}
