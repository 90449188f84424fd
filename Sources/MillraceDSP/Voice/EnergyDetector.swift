internal import Glibc

/// Voice activity by level alone, for use without a model: what is well above the noise floor counts as speech.
///
/// Takes levels of ``SpeechBand`` and returns a pseudo-probability: one half at 9 dB above the floor, nine tenths at 15.
/// Distinguishes speech from a steady hum, not from a slamming door. Anything below -65 dBFS is not speech.
public struct EnergyDetector: Sendable {
  /// dB above the floor at even odds, and dB that change the odds by a factor of e.
  private static let middle = 9.0
  private static let slope = 2.7
  /// Quieter than any speech meant for the microphone, in dBFS.
  private static let quietest = -65.0

  private var floor: NoiseFloor
  private var smooth = Decibels.floor

  /// A detector that receives a level every `milliseconds`.
  public init(every milliseconds: Double) { floor = NoiseFloor(every: milliseconds) }

  /// Takes the level of the next block in dBFS and returns the probability of speech, 0 to 1.
  public mutating func probability(_ level: Double) -> Float {
    // Up at once, down by a quarter of the difference, so that gaps within a syllable do not count.
    smooth = level > smooth ? level : smooth + (level - smooth) / 4
    let above = smooth - floor.follow(level)
    guard smooth > Self.quietest else { return 0 }
    return Float(1 / (1 + exp((Self.middle - above) / Self.slope)))
  }

  /// Clears the history.
  public mutating func reset() {
    floor.reset()
    smooth = Decibels.floor
  }
}
