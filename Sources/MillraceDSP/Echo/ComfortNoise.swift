/// The near-end background noise: its level in every bin, and noise of that spectrum to fill what suppression removes.
///
/// A minimum follower, well below the mean of what it follows: falls within a tenth of a second, rises 0.4 dB per second. Memory is
/// allocated in `init`; one thread at a time.
@safe struct ComfortNoise: ~Copyable {
  /// Background power in each bin, in units of a frame's spectrum.
  let power: FloatBuffer
  private var seed: UInt32 = 1

  /// Fraction of the distance it falls per block.
  private static let fall: Float = 0.1
  /// Growth per block of 8 ms.
  private static let rise: Float = 1.0008
  private static let least: Float = 1e-7
  /// Amplitude relative to the follower's. The follower lies 18 dB below the mean of steady noise, and noise generated independently
  /// for two overlapping frames loses 3 dB, so the fill is 29 dB below a steady background. It keeps the line from sounding dead
  /// without limiting the cancellation depth, as louder noise would.
  private static let share: Float = 0.4

  init(bins: Int) { power = FloatBuffer(bins, 1e-3) }

  /// Updates the background with a frame's power in a bin.
  @inline(__always)
  func track(_ now: Float, _ bin: Int) {
    let held = power[bin]
    power[bin] = max(now < held ? held + Self.fall * (now - held) : held * Self.rise, Self.least)
  }

  /// Applies gains to a spectrum and adds noise where they attenuate.
  mutating func add(
    to re: borrowing FloatBuffer, _ im: borrowing FloatBuffer, gains: borrowing FloatBuffer
  ) {
    for bin in 0..<power.count {
      let gain = gains[bin]
      let level = (power[bin] * max(0, 1 - gain * gain)).squareRoot() * Self.share
      re[bin] = re[bin] * gain + level * random()
      im[bin] = im[bin] * gain + level * random()
    }
  }

  /// Uniform in -1.22...1.22, so that two have a power of one. Generator from Numerical Recipes.
  private mutating func random() -> Float {
    seed = seed &* 1_664_525 &+ 1_013_904_223
    return (Float(seed >> 8) * (2 / 16_777_216) - 1) * 1.2247
  }
}
