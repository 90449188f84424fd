internal import Glibc

/// Levels of the speech band, 200 to 4,000 Hz, every eight milliseconds.
///
/// Two second-order filters; below a rate of 9 kHz only the high-pass. One channel, one thread. No allocation.
public struct SpeechBand: Sendable {
  /// Samples per level: 8 ms.
  public let blockSamples: Int
  private var low: Biquad
  private var high: Biquad?

  /// Levels of audio at `rate` Hz.
  public init(rate: Int) {
    blockSamples = rate * 8 / 1_000
    low = Biquad(highPass: 200, rate: rate)
    high = rate > 9_000 ? Biquad(lowPass: 4_000, rate: rate) : nil
  }

  /// The level of the next block in dBFS, never below ``Decibels/floor``. A NaN counts as 0.
  public mutating func level(_ samples: Span<Float>) -> Double {
    var sum = 0.0
    for index in samples.indices {
      let sample = samples[index]
      var value = low.filter(sample == sample ? max(-1, min(1, sample)) : 0)
      if high != nil { value = high!.filter(value) }
      sum += Double(value * value)
    }
    return Decibels.decibels(power: sum / Double(max(samples.count, 1)))
  }

  /// Clears the history.
  public mutating func reset() {
    low.reset()
    high?.reset()
  }
}

/// A second-order Butterworth filter; coefficients from Robert Bristow-Johnson's audio EQ cookbook.
struct Biquad: Sendable {
  private let gains: (Float, Float, Float)
  private let feedback: (Float, Float)
  private var first: Float = 0
  private var second: Float = 0

  init(lowPass frequency: Double, rate: Int) { self.init(frequency, rate, sign: -1) }
  init(highPass frequency: Double, rate: Int) { self.init(frequency, rate, sign: 1) }

  private init(_ frequency: Double, _ rate: Int, sign: Double) {
    let angle = 2 * Double.pi * frequency / Double(rate)
    let width = sin(angle) / 2.0.squareRoot()
    let scale = 1 / (1 + width)
    let outer = (1 + sign * cos(angle)) / 2 * scale
    gains = (Float(outer), Float(-2 * sign * outer), Float(outer))
    feedback = (Float(-2 * cos(angle) * scale), Float((1 - width) * scale))
  }

  mutating func filter(_ input: Float) -> Float {
    let output = gains.0 * input + first
    first = gains.1 * input - feedback.0 * output + second
    second = gains.2 * input - feedback.1 * output
    return output
  }

  mutating func reset() { (first, second) = (0, 0) }
}
