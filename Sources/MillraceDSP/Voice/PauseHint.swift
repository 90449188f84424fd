/// Notices that a voice has fallen silent, long before it is sure that it will not go on.
///
/// A hint comes when the level has stood 12 dB under its recent peak and within 9 dB of the floor for 40 ms; the next one
/// after the voice has come back to within 9 dB of the peak. It comes in the gaps between words too: good for getting an
/// answer ready, never for giving it.
public struct PauseHint: Sendable {
  private static let drop = 12.0
  private static let nearFloor = 9.0
  private static let back = 9.0
  /// How fast the peak is forgotten, in dB a second.
  private static let decay = 10.0
  private static let hold = 40.0

  private var floor: SpeechFloor
  private var peak = Decibels.floor
  private var quiet = 0.0
  private var isArmed = false
  private let block: Double

  /// A hint that is told a level every `milliseconds`.
  public init(every milliseconds: Double) {
    block = milliseconds
    floor = SpeechFloor(every: milliseconds)
  }

  /// Takes the level of the next block in dBFS; true when a pause seems to have begun.
  public mutating func take(_ level: Double) -> Bool {
    let floor = floor.follow(level)
    peak = max(level, peak - Self.decay * block / 1_000)
    if level > peak - Self.back && peak - floor > Self.drop { isArmed = true }
    let isQuiet = level < peak - Self.drop && level < floor + Self.nearFloor
    quiet = isQuiet ? quiet + block : 0
    guard isArmed, quiet >= Self.hold else { return false }
    isArmed = false
    return true
  }

  /// Forgets what was heard.
  public mutating func reset() {
    floor.reset()
    (peak, quiet, isArmed) = (Decibels.floor, 0, false)
  }
}
