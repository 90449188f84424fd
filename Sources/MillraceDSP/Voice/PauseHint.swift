/// Detects that a talker has fallen silent, well before it is certain that the utterance has ended.
///
/// A hint is given when the level has been 12 dB below its recent peak and within 9 dB of the noise floor for 40 ms; the next one
/// only after the voice has returned to within 9 dB of the peak. It also occurs in gaps between words: use it to prepare a reply,
/// never to start one.
public struct PauseHint: Sendable {
  private static let drop = 12.0
  private static let nearFloor = 9.0
  private static let back = 9.0
  /// Decay of the peak in dB per second.
  private static let decay = 10.0
  private static let hold = 40.0

  private var floor: NoiseFloor
  private var peak = Decibels.floor
  private var quiet = 0.0
  private var isArmed = false
  private let block: Double

  /// A hint that receives a level every `milliseconds`.
  public init(every milliseconds: Double) {
    block = milliseconds
    floor = NoiseFloor(every: milliseconds)
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

  /// Clears the history.
  public mutating func reset() {
    floor.reset()
    (peak, quiet, isArmed) = (Decibels.floor, 0, false)
  }
}
