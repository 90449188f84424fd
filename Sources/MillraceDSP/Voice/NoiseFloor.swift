/// Tracks the noise floor, the level between utterances: down at once, up slowly.
///
/// Starts at the first level. Speech has pauses of some tens of milliseconds all the time, which keep the floor down.
public struct NoiseFloor: Sendable {
  /// How fast the floor rises under sustained sound, in dB per second: a fan that starts is part of the floor after some seconds.
  public static let rise = 4.0
  /// Lower bound in dBFS. No room is quieter: below this, a microphone has not started or is off.
  public static let lowest = -70.0

  /// The level in dBFS; nil before the first one.
  public private(set) var level: Double?
  private let step: Double

  /// A floor that receives a level every `milliseconds`.
  public init(every milliseconds: Double) { step = Self.rise * milliseconds / 1_000 }

  /// Takes the level of the next block in dBFS and returns the floor.
  public mutating func follow(_ block: Double) -> Double {
    let floor = max(Self.lowest, min(block, (level ?? block) + step))
    level = floor
    return floor
  }

  /// Clears the floor.
  public mutating func reset() { level = nil }
}
