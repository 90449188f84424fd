internal import Glibc

/// Recovers the clock of an audio device from the times at which its blocks were seen.
///
/// Blocks are seen when a thread gets to run: usually fractions of a millisecond late, sometimes many. A second-order loop (F.
/// Adriaensen, "Using a DLL to filter time", LAC 2005) fits a line through those times, which maps every stream position to a time
/// and back. It adapts quickly for the first seconds and slowly afterwards, and restarts after a jump.
///
/// Pure: times are nanoseconds of the caller's clock; positions count frames. No allocation. One thread at a time.
public struct TimestampLoop: Sendable {
  /// Bandwidth in Hz, during warm-up and afterwards. The slow one leaves 3 to 13 ppm of noise where raw times have 200.
  static let fastBandwidth = 0.5
  static let slowBandwidth = 0.05
  /// Length of the warm-up in nanoseconds.
  static let warmUp: Int64 = 3_000_000_000
  /// A block that is off by more, in nanoseconds, is a jump: the device or the machine stalled.
  static let jump = 80_000_000.0
  /// Largest rate error of a device. Crystals are within 300 ppm; anything more is noise.
  static let maximumSkew = 1e-3

  /// Nominal rate in frames per second.
  public let nominalRate: Double
  /// Number of restarts after a jump.
  public private(set) var jumps = 0
  private let nominalPeriod: Double
  /// Nanoseconds per frame.
  private var period: Double
  /// A position and its time, relative to the first ones: a double would lose nanoseconds after a long uptime.
  private var originTime: Int64 = 0
  private var originPosition: Int64 = 0
  private var time = 0.0
  private var position: Int64 = 0
  /// Time of the first block since the last restart; nil before it.
  private var startTime: Int64?

  /// Makes a loop without any observation.
  public init(rate: Int) {
    precondition(rate > 0, "the rate must be positive")
    nominalRate = Double(rate)
    nominalPeriod = 1e9 / Double(rate)
    period = 1e9 / Double(rate)
  }

  /// True once a block was seen.
  public var isRunning: Bool { startTime != nil }

  /// Measured rate in frames per second.
  public var rate: Double { 1e9 / period }

  /// How much faster than its nominal rate the device runs, in parts per million.
  public var skew: Double { (nominalPeriod / period - 1) * 1e6 }

  /// Records that the stream was at `position` when the clock read `now`. Positions that do not advance are ignored.
  public mutating func update(position newPosition: Int64, at now: Int64) {
    guard let startTime else { return begin(newPosition, now) }
    let step = newPosition &- originPosition &- position
    guard step > 0 else { return }
    let predicted = time + Double(step) * period
    let error = Double(now &- originTime) - predicted
    guard abs(error) <= Self.jump else {
      jumps += 1
      return begin(newPosition, now)
    }
    let bandwidth = now &- startTime < Self.warmUp ? Self.fastBandwidth : Self.slowBandwidth
    // Above half a radian a loop of this kind overshoots, which a block of several seconds would cause.
    let angle = min(0.5, 2 * Double.pi * bandwidth * Double(step) / nominalRate)
    time = predicted + 2.0.squareRoot() * angle * error
    position += step
    let limits = nominalPeriod * (1 - Self.maximumSkew)...nominalPeriod * (1 + Self.maximumSkew)
    period = min(limits.upperBound, max(limits.lowerBound, period + angle * angle * error / Double(step)))
  }

  private mutating func begin(_ newPosition: Int64, _ now: Int64) {
    startTime = now
    originTime = now
    originPosition = newPosition
    time = 0
    position = 0
  }

  /// Forgets the stream position but keeps the rate.
  public mutating func restart() { startTime = nil }

  /// When the stream was, or will be, at a position. 0 before the first block.
  public func time(of wanted: Double) -> Int64 {
    let offset = time + (wanted - Double(originPosition) - Double(position)) * period
    return originTime &+ Int64(offset.rounded())
  }

  /// Where the stream was, or will be, at a time. 0 before the first block.
  public func position(at wanted: Int64) -> Double {
    Double(originPosition) + Double(position) + (Double(wanted &- originTime) - time) / period
  }
}
