internal import Glibc

/// The sine of a known frequency that fits a stretch of sound best, by least squares over its sine and its cosine part, and
/// what the sound is beside it. How clean a tone is: for measurements and tests, not for the hot path.
package struct ToneFit: Sendable {
  /// Mean square of the sine.
  package let tone: Double
  /// Mean square of what is left when the sine is taken out of the sound.
  package let rest: Double

  /// - Parameters:
  ///   - samples: some periods of the tone at least; with less than one the fit says nothing.
  ///   - frequency: in Hz, between 0 and half the rate.
  ///   - rate: in Hz.
  package init(_ samples: [Double], frequency: Double, rate: Int) {
    let step = 2 * .pi * frequency / Double(rate)
    // The normal equations of sound = a * sine + b * cosine.
    var (ss, sc, cc, sy, cy) = (0.0, 0.0, 0.0, 0.0, 0.0)
    for (index, sample) in samples.enumerated() {
      let (s, c) = (sin(step * Double(index)), cos(step * Double(index)))
      ss += s * s
      sc += s * c
      cc += c * c
      sy += s * sample
      cy += c * sample
    }
    let determinant = ss * cc - sc * sc
    let a = (sy * cc - cy * sc) / determinant
    let b = (cy * ss - sy * sc) / determinant
    var left = 0.0
    for (index, sample) in samples.enumerated() {
      let difference = sample - a * sin(step * Double(index)) - b * cos(step * Double(index))
      left += difference * difference
    }
    tone = (a * a + b * b) / 2
    rest = left / Double(samples.count)
  }
}
