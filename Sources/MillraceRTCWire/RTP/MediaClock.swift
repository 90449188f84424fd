/// Maps the RTP timestamps of a source to the wall clock of its sender, by sender reports (RFC 3550, section 6.4.1).
///
/// Two sources of one sender are in lip sync when packets with equal wall-clock times are played together. The clock rate is
/// measured between the last two reports, so that a drift of the media clock does not add up; a rate that is not plausible is
/// replaced by the nominal one. No heap request.
public struct MediaClock: Sendable {
  /// The largest deviation from the nominal rate that counts as drift: ten times that of poor crystals (100 ppm).
  private static let largestDrift = 0.001
  /// Reports closer than this, in nanoseconds, do not measure a rate: their rounding would dominate.
  private static let shortestInterval: Int64 = 1_000_000_000
  /// A report that is older than the last one by less than this, in nanoseconds, was overtaken on its way.
  private static let longestReordering: Int64 = 30_000_000_000
  /// Far above any clock of RTP, so that times in its units fit 64 bits.
  private static let largestClockRate = 100_000_000

  private let nominal: Double
  /// The point that times are measured from: the last report.
  private var reference: (time: Int64, timestamp: UInt32)?

  /// Timestamp units per nanosecond.
  private var rate: Double

  /// Creates a clock of a source whose timestamps count in `clockRate` Hz.
  public init(clockRate: Int) {
    nominal = Double(max(1, min(clockRate, Self.largestClockRate))) / 1_000_000_000
    rate = nominal
  }

  /// True after the first report.
  public var isSynchronized: Bool { reference != nil }

  /// The measured deviation from the nominal clock rate: 0.0001 is 100 ppm fast.
  public var drift: Double { rate / nominal - 1 }

  /// Notes a sender report: its wall-clock time and the timestamp of the same instant.
  ///
  /// Ignored are a report that was overtaken by a later one, and a time of zero: its sender has no clock (RFC 3550, section 6.4.1).
  public mutating func note(_ time: NTPTime, timestamp: UInt32) {
    guard time.rawValue != 0 else { return }
    let now = time.unixNanoseconds
    guard let before = reference else {
      reference = (now, timestamp)
      return
    }
    let passed = now - before.time
    let ticks = Int64(Int32(bitPattern: timestamp &- before.timestamp))
    if passed <= 0, passed > -Self.longestReordering, ticks <= 0 { return }
    reference = (now, timestamp)
    guard passed >= Self.shortestInterval else {
      // Either the rate is known better from before, or the wall clock was set back.
      if passed < 0 { rate = nominal }
      return
    }
    let measured = Double(ticks) / Double(passed)
    rate = abs(measured / nominal - 1) <= Self.largestDrift ? measured : nominal
  }

  /// The sender's wall-clock time of a timestamp, in nanoseconds since 1970; nil before the first report.
  ///
  /// The timestamp must lie within 2³¹ units of the last report.
  public func time(of timestamp: UInt32) -> Int64? {
    guard let reference else { return nil }
    let ticks = Int64(Int32(bitPattern: timestamp &- reference.timestamp))
    return reference.time + Int64((Double(ticks) / rate).rounded())
  }

  /// The timestamp of a wall-clock time in nanoseconds since 1970; nil before the first report.
  public func timestamp(at time: Int64) -> UInt32? {
    guard let reference else { return nil }
    let ticks = (Double(time &- reference.time) * rate).rounded()
    return reference.timestamp &+ UInt32(truncatingIfNeeded: Int64(ticks))
  }

  /// Forgets the reports, for a source that restarted.
  public mutating func reset() {
    reference = nil
    rate = nominal
  }
}
