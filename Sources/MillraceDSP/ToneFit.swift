internal import Glibc

/// A least-squares fit of a sine of known frequency to a signal, and the power of the remainder: how pure a tone is. For measurements
/// and tests, not for the hot path.
package struct ToneFit: Sendable {
  /// Mean square of the sine.
  package let tone: Double
  /// Mean square of the signal minus the sine.
  package let rest: Double

  /// - Parameters:
  ///   - samples: at least a few periods of the tone; with less than one the fit is meaningless.
  ///   - frequency: in Hz, between 0 and half the rate.
  ///   - rate: in Hz.
  package init(_ samples: [Double], frequency: Double, rate: Int) {
    let step = 2 * .pi * frequency / Double(rate)
    // The normal equations of signal = a * sine + b * cosine.
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
