/// Estimates at the receiver how much a sender may send, for REMB to a peer that does not speak transport-wide feedback
/// (draft-alvestrand-rmcat-remb-03; the method is that of `BandwidthEstimator`, by delays alone).
///
/// A plain value without heap memory; any values may be given to it. Times are nanoseconds of one monotonic clock, rates bits per
/// second. With timestamps of RTP, the packets must be those of one stream: a second stream has a clock of its own.
public struct ReceiverEstimator: Sendable {
  /// What says when a packet was sent.
  public enum SendClock: Sendable, Equatable {
    /// The header extension abs-send-time: seconds with 18 bits after the point, 24 bits in all.
    case absoluteSendTime
    /// The RTP timestamp, in ticks of this rate in Hz.
    case timestamps(rate: Int)
  }

  /// Between two values, unless the estimate falls (libwebrtc, `kRembSendIntervalMs`, sends up to five times as often).
  private static let interval = CongestionUnit.nanosecondsPerSecond
  /// Below this part of the last value, the estimate has fallen (libwebrtc, `kSendThresholdPercent`).
  private static let fall = 0.97
  /// Between two increases.
  private static let step = 100 * CongestionUnit.nanosecondsPerMillisecond
  /// A stream is over after so long without packets (libwebrtc, `kStreamTimeOut`).
  private static let silence = 2 * CongestionUnit.nanosecondsPerSecond
  /// The range of a round trip.
  private static let roundTrips = 0...10 * CongestionUnit.nanosecondsPerSecond

  /// Bits per second that may be sent, within the limits; nil: too little has arrived for an estimate.
  public var estimate: Int64? { arrived.rate == nil ? nil : Int64(control.rate) }
  /// What the delays say.
  public var usage: BandwidthUsage { detector.usage }
  /// Bits per second that arrive; nil: not known.
  public var throughput: Int64? { arrived.rate.map { Int64(min($0, Double(BandwidthLimits.highest))) } }

  private var clock: SendClockReader
  private var detector = OveruseDetector()
  private var arrived = ThroughputEstimator()
  private var control: DelayRateControl
  private var lastPacket: Int64?
  private var lastStep: Int64?
  private var lastReport: (time: Int64, value: Int64)?

  /// Creates an estimator; a rate of timestamps that is not positive becomes 90 kHz.
  public init(_ limits: BandwidthLimits = BandwidthLimits(), clock: SendClock) {
    self.clock = SendClockReader(clock)
    control = DelayRateControl(limits)
  }

  /// Changes the limits.
  public mutating func set(_ limits: BandwidthLimits) { control.set(limits) }

  /// Notes a packet that arrived: `stamp` is its abs-send-time or timestamp, `bytes` are those that the network carried.
  public mutating func note(stamp: UInt32, bytes: Int, at now: Int64) {
    if let last = lastPacket, now.elapsed(since: last) > Self.silence {
      (clock, arrived) = (clock.restarted, ThroughputEstimator())
    }
    lastPacket = now
    let wasKnown = arrived.rate != nil
    arrived.note(bytes: CongestionUnit.packetBytes(bytes), at: now)
    detector.note(sent: clock.time(of: stamp), arrival: now, at: now)
    let isEarly = lastStep.map { (0..<Self.step).contains(now.elapsed(since: $0)) } ?? false
    // The first estimate must not be older than the throughput that it follows.
    let isKnown = wasKnown == (arrived.rate != nil)
    if isEarly, isKnown, detector.usage != .overusing { return }
    lastStep = now
    control.update(detector.usage, throughput: arrived.rate, at: now)
  }

  /// Notes a round trip in nanoseconds.
  public mutating func note(roundTrip: Int64) {
    control.roundTrip = max(Self.roundTrips.lowerBound, min(roundTrip, Self.roundTrips.upperBound))
  }

  /// The value for a REMB, when one is due: once in a second, or as soon as the estimate falls by 3 %; nil: none is due, or
  /// nothing arrives.
  public mutating func takeReport(at now: Int64) -> Int64? {
    guard let estimate, let lastPacket, now.elapsed(since: lastPacket) <= Self.silence else { return nil }
    if let last = lastReport, now >= last.time, now.elapsed(since: last.time) < Self.interval,
      Double(estimate) >= Self.fall * Double(last.value)
    {
      return nil
    }
    lastReport = (now, estimate)
    return estimate
  }
}

/// Turns stamps that wrap into nanoseconds.
private struct SendClockReader: Sendable {
  /// Bits of abs-send-time, and its ticks in a second (www.webrtc.org/experiments/rtp-hdrext/abs-send-time).
  private static let sendTimeBits = 24
  private static let sendTimeFraction: Int64 = 1 << 18
  private static let timestampBits = 32
  /// The rate of video (RFC 3551, section 5).
  private static let videoRate = 90_000

  private let bits: Int
  private let ticksPerSecond: Int64
  private var last: Int64?

  init(_ clock: ReceiverEstimator.SendClock) {
    switch clock {
    case .absoluteSendTime: (bits, ticksPerSecond) = (Self.sendTimeBits, Self.sendTimeFraction)
    case .timestamps(let rate):
      let known = rate > 0 && rate <= Int(Int32.max)
      (bits, ticksPerSecond) = (Self.timestampBits, Int64(known ? rate : Self.videoRate))
    }
  }

  /// The same clock, before its first stamp.
  var restarted: SendClockReader {
    var reader = self
    reader.last = nil
    return reader
  }

  mutating func time(of stamp: UInt32) -> Int64 {
    let ticks = unwrap(stamp)
    let (seconds, rest) = ticks.quotientAndRemainder(dividingBy: ticksPerSecond)
    let whole = seconds.multipliedReportingOverflow(by: CongestionUnit.nanosecondsPerSecond)
    let part = rest * CongestionUnit.nanosecondsPerSecond / ticksPerSecond
    return whole.overflow ? 0 : whole.partialValue &+ part
  }

  private mutating func unwrap(_ stamp: UInt32) -> Int64 {
    let unused = UInt32(32 - bits)
    guard let before = last else {
      last = Int64((stamp << unused) >> unused)
      return last ?? 0
    }
    // The difference is shifted to the top of 32 bits so that its sign follows the wrap.
    let step = Int32(bitPattern: (stamp &- UInt32(truncatingIfNeeded: before)) << unused) >> Int32(unused)
    let ticks = before &+ Int64(step)
    last = ticks
    return ticks
  }
}
