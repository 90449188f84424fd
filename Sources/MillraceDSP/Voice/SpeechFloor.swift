/// Follows the level of what is there when nobody speaks: down at once, up slowly.
///
/// The first level is believed. Speech has pauses of some tens of milliseconds all the time, which keep the floor down.
public struct SpeechFloor: Sendable {
  /// How fast the floor rises under sound that stays, in dB a second: a fan that starts is floor after some seconds.
  public static let rise = 4.0
  /// No room is quieter, in dBFS: below, a microphone has not begun, or is switched off.
  public static let lowest = -70.0

  /// The level in dBFS; nil before the first one.
  public private(set) var level: Double?
  private let step: Double

  /// A floor that is told a level every `milliseconds`.
  public init(every milliseconds: Double) { step = Self.rise * milliseconds / 1_000 }

  /// Takes the level of the next block in dBFS and answers the floor.
  public mutating func follow(_ block: Double) -> Double {
    let floor = max(Self.lowest, min(block, (level ?? block) + step))
    level = floor
    return floor
  }

  /// Forgets it.
  public mutating func reset() { level = nil }
}
