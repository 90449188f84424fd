/// What the sender of one RTP stream counts, and what report blocks say about it (RFC 3550, section 6.4).
///
/// The round trip is measured on the monotonic clock: a report block names the sender report it answers, and that report's time
/// is remembered. So a wall clock that is set does not matter, and a block that answers no report of ours measures nothing.
/// No heap request.
public struct RTPSenderStatistics: Sendable {
  /// Sender reports whose time is remembered.
  private static let remembered = 16

  /// The synchronization source.
  public let ssrc: UInt32
  /// Packets sent.
  public private(set) var packets: UInt64 = 0
  /// Payload bytes sent, without headers and padding.
  public private(set) var octets: UInt64 = 0
  /// Packets sent since the last sender report. Without any for two reports a receiver report is due (RFC 3550, section 6.4).
  public private(set) var packetsSinceReport: UInt64 = 0
  /// The last round trip in nanoseconds; nil: no report block answered a sender report.
  public private(set) var roundTrip: Int64?
  /// The smoothed round trip in nanoseconds: each measurement counts an eighth (RFC 6298, section 2).
  public private(set) var smoothedRoundTrip: Int64?
  /// The last report block of the receiver.
  public private(set) var remote: RTCPReportBlock?

  private let clockRate: Int64
  private var newest: (timestamp: UInt32, time: Int64)?
  private var reports = InlineArray<16, SentReport>(repeating: SentReport())
  private var reportCount = 0

  private struct SentReport {
    var middle: UInt32 = 0
    var time: Int64 = 0
  }

  /// Creates statistics of a stream whose timestamps count in `clockRate` Hz.
  public init(ssrc: UInt32, clockRate: Int) {
    self.ssrc = ssrc
    self.clockRate = Int64(max(1, min(clockRate, 1_000_000_000)))
  }

  /// The part of the packets that the receiver lost lately, 0 to 1.
  public var remoteLoss: Double { Double(remote?.fractionLost ?? 0) / 256 }

  /// Packets that the receiver lost in all.
  public var remoteLost: Int { Int(remote?.lost ?? 0) }

  /// The receiver's jitter in nanoseconds.
  public var remoteJitter: Int64 { Int64(remote?.jitter ?? 0) * 1_000_000_000 / clockRate }

  /// Notes a packet whose payload was sampled at `now`. Retransmissions of their own source have their own statistics.
  public mutating func note(timestamp: UInt32, payloadBytes: Int, at now: Int64) {
    packets += 1
    packetsSinceReport += 1
    octets += UInt64(max(0, payloadBytes))
    newest = (timestamp, now)
  }

  /// What a sender report says that leaves at `now`, which is `time` on the wall clock; nil: no packet was sent.
  ///
  /// Its timestamp is that of the last packet, moved by the time since (RFC 3550, section 6.4.1).
  public mutating func senderReport(_ time: NTPTime, at now: Int64) -> RTCPSenderInfo? {
    guard let newest else { return nil }
    reports[reportCount % Self.remembered] = SentReport(middle: time.middle, time: now)
    reportCount += 1
    packetsSinceReport = 0
    let (seconds, rest) = (now &- newest.time).quotientAndRemainder(dividingBy: 1_000_000_000)
    let passed = seconds &* clockRate &+ rest * clockRate / 1_000_000_000
    return RTCPSenderInfo(
      ssrc: ssrc, time: time, timestamp: newest.timestamp &+ UInt32(truncatingIfNeeded: passed),
      packets: UInt32(truncatingIfNeeded: packets), octets: UInt32(truncatingIfNeeded: octets))
  }

  /// Notes a report block that arrived at `now`. One about another source is ignored.
  public mutating func note(_ block: RTCPReportBlock, at now: Int64) {
    guard block.ssrc == ssrc else { return }
    remote = block
    guard block.lastReport != 0, let sent = sentReport(block.lastReport) else { return }
    let trip = now &- sent &- NTPTime.nanoseconds(short: block.delay)
    // The delay is rounded to 15 µs and measured by another clock: on a fast link the rest may be negative.
    guard trip > -Self.tolerance else { return }
    let measured = max(0, trip)
    roundTrip = measured
    smoothedRoundTrip = smoothedRoundTrip.map { $0 + (measured - $0) / 8 } ?? measured
  }

  /// How far a round trip may come out below zero and count as zero: the clocks' drift over the delay.
  private static let tolerance: Int64 = 10_000_000

  /// When the sender report with these middle bits left.
  private func sentReport(_ middle: UInt32) -> Int64? {
    for index in 0..<min(reportCount, Self.remembered) where reports[index].middle == middle {
      return reports[index].time
    }
    return nil
  }
}
