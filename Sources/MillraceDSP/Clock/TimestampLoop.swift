internal import Glibc

/// The clock of a sound device, out of the times at which its blocks were seen.
///
/// Blocks come when a thread gets round to them: some fractions of a millisecond late, now and then many. A second-order loop
/// (F. Adriaensen, "Using a DLL to filter time", LAC 2005) keeps the line through those times, with which every position of
/// the stream has a time and every time a position. It follows quickly for the first seconds, slowly from then on, and begins
/// anew after a jump.
///
/// Pure: times are nanoseconds of whatever clock the caller reads; positions count frames. No allocation. One thread at a time.
public struct TimestampLoop: Sendable {
  /// Bandwidth while the loop is young, and later. Hz. The slow one leaves 3 to 13 ppm of noise where raw times have 200.
  static let fastBandwidth = 0.5
  static let slowBandwidth = 0.05
  /// How long the loop is young, nanoseconds.
  static let youth: Int64 = 3_000_000_000
  /// A block that is off by more is a jump: the device stood still, or the machine did. Nanoseconds.
  static let jump = 80_000_000.0
  /// Most that a device's rate is off. Crystals are within 300 ppm; what shows as more is noise.
  static let mostSkew = 1e-3

  /// Frames a second, as the device says.
  public let nominalRate: Double
  /// Times the loop has begun anew because of a jump.
  public private(set) var jumps = 0
  private let nominalPeriod: Double
  /// Nanoseconds a frame takes.
  private var period: Double
  /// A position and its time, relative to the first ones: a double would lose nanoseconds of a long uptime.
  private var originTime: Int64 = 0
  private var originPosition: Int64 = 0
  private var time = 0.0
  private var position: Int64 = 0
  /// Time of the first block since the loop began; nil before it.
  private var began: Int64?

  /// Makes a loop that has seen nothing.
  public init(rate: Int) {
    precondition(rate > 0, "a device has a rate")
    nominalRate = Double(rate)
    nominalPeriod = 1e9 / Double(rate)
    period = 1e9 / Double(rate)
  }

  /// True once a block was seen.
  public var isRunning: Bool { began != nil }

  /// Frames a second, as measured.
  public var rate: Double { 1e9 / period }

  /// How much faster than its nominal rate the device runs, in parts per million.
  public var skew: Double { (nominalPeriod / period - 1) * 1e6 }

  /// Notes that the stream stood at `position` when the clock read `now`. Positions that do not grow are left out.
  public mutating func update(position newPosition: Int64, at now: Int64) {
    guard let began else { return begin(newPosition, now) }
    let step = newPosition &- originPosition &- position
    guard step > 0 else { return }
    let predicted = time + Double(step) * period
    let error = Double(now &- originTime) - predicted
    guard abs(error) <= Self.jump else {
      jumps += 1
      return begin(newPosition, now)
    }
    let bandwidth = now &- began < Self.youth ? Self.fastBandwidth : Self.slowBandwidth
    // Beyond half a radian a loop of this kind overshoots: a block of seconds is no reason to.
    let angle = min(0.5, 2 * Double.pi * bandwidth * Double(step) / nominalRate)
    time = predicted + 2.0.squareRoot() * angle * error
    position += step
    let limits = nominalPeriod * (1 - Self.mostSkew)...nominalPeriod * (1 + Self.mostSkew)
    period = min(limits.upperBound, max(limits.lowerBound, period + angle * angle * error / Double(step)))
  }

  private mutating func begin(_ newPosition: Int64, _ now: Int64) {
    began = now
    originTime = now
    originPosition = newPosition
    time = 0
    position = 0
  }

  /// Forgets where the stream stands, and keeps the rate.
  public mutating func restart() { began = nil }

  /// When the stream stood, or will stand, at a position. 0 before the first block.
  public func time(of wanted: Double) -> Int64 {
    let offset = time + (wanted - Double(originPosition) - Double(position)) * period
    return originTime &+ Int64(offset.rounded())
  }

  /// Where the stream stood, or will stand, at a time. 0 before the first block.
  public func position(at wanted: Int64) -> Double {
    Double(originPosition) + Double(position) + (Double(wanted &- originTime) - time) / period
  }
}
