/// The background of the near end: how loud it is in every bin, and noise of that colour to fill what suppression empties.
///
/// A minimum follower, far under the mean of what it follows: falls within a tenth of a second, rises 0.4 dB a second. Memory is taken in `init`; one thread at a time.
@safe struct ComfortNoise: ~Copyable {
  /// Power of the background in each bin, in units of a frame's spectrum.
  let power: FloatStore
  private var seed: UInt32 = 1

  /// Share of the way down a block.
  private static let fall: Float = 0.1
  /// Growth a block of 8 ms.
  private static let rise: Float = 1.0008
  private static let least: Float = 1e-7
  /// Amplitude beside the follower's. The follower lies 18 dB under the mean of a steady noise, and noise that is made afresh for each of
  /// two frames that overlap loses 3 dB: what fills a gap is 29 dB under a steady background. It keeps the line from going dead and
  /// takes nothing from the depth of cancellation, which louder noise would bound.
  private static let share: Float = 0.4

  init(bins: Int) { power = FloatStore(bins, 1e-3) }

  /// Takes the power of a frame in a bin.
  @inline(__always)
  func track(_ now: Float, _ bin: Int) {
    let held = power[bin]
    power[bin] = max(now < held ? held + Self.fall * (now - held) : held * Self.rise, Self.least)
  }

  /// Applies gains to a spectrum and adds noise where they take away.
  mutating func add(
    to re: borrowing FloatStore, _ im: borrowing FloatStore, gains: borrowing FloatStore
  ) {
    for bin in 0..<power.count {
      let gain = gains[bin]
      let level = (power[bin] * max(0, 1 - gain * gain)).squareRoot() * Self.share
      re[bin] = re[bin] * gain + level * random()
      im[bin] = im[bin] * gain + level * random()
    }
  }

  /// Even in -1.22...1.22, so that two make a power of one. Numerical Recipes' generator.
  private mutating func random() -> Float {
    seed = seed &* 1_664_525 &+ 1_013_904_223
    return (Float(seed >> 8) * (2 / 16_777_216) - 1) * 1.2247
  }
}
