internal import Glibc

/// Voice activity by loudness alone, for where there is no model: what stands well above the floor is taken for speech.
///
/// Takes levels of ``SpeechBand`` and answers a figure like a probability: one half at 9 dB above the floor, nine tenths at
/// 15. Tells speech from a steady hum, not from a door. What lies below -65 dBFS is never speech.
public struct EnergyDetector: Sendable {
  /// dB above the floor that count as even odds, and dB that change the odds by e.
  private static let middle = 9.0
  private static let slope = 2.7
  /// Quieter than any speech a microphone was meant to carry, in dBFS.
  private static let quietest = -65.0

  private var floor: SpeechFloor
  private var smooth = Decibels.floor

  /// A detector that is told a level every `milliseconds`.
  public init(every milliseconds: Double) { floor = SpeechFloor(every: milliseconds) }

  /// Takes the level of the next block in dBFS and answers how likely it holds speech, 0 to 1.
  public mutating func probability(_ level: Double) -> Float {
    // Up at once, down by a quarter of the way, so that the gaps within a syllable do not count.
    smooth = level > smooth ? level : smooth + (level - smooth) / 4
    let above = smooth - floor.follow(level)
    guard smooth > Self.quietest else { return 0 }
    return Float(1 / (1 + exp((Self.middle - above) / Self.slope)))
  }

  /// Forgets what was heard.
  public mutating func reset() {
    floor.reset()
    smooth = Decibels.floor
  }
}
