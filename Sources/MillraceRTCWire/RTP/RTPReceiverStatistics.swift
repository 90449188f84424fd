/// What the receiver of one RTP source counts, and the report blocks that it sends (RFC 3550, appendices A.1, A.3 and A.8).
///
/// Give it every packet of the source that is authentic. When it says `restarted`, the sequence numbers are those of another
/// start of the source: reset the `SequenceUnwrapper`, the `ReceptionWindow` and the jitter buffer. No heap request.
public struct RTPReceiverStatistics: Sendable {
  /// Packets in sequence before a source counts as valid (RFC 3550, appendix A.1, MIN_SEQUENTIAL).
  public static let probationPackets = 2
  /// The largest step forward that is not a restart (RFC 3550, appendix A.1, MAX_DROPOUT).
  public static let largestDropout: UInt16 = 3_000
  /// The largest step back that is not a restart. RFC 3550 suggests 100; this is what `ReceptionWindow` takes as reordered.
  public static let largestMisorder: UInt16 = 512
  /// A timestamp that jumps by more than this, in seconds, is another clock and not jitter.
  private static let largestJump: Int64 = 5
  /// Far above any clock of RTP, so that times in its units fit 64 bits.
  private static let largestClockRate = 1_000_000_000

  /// What a packet is to the source.
  public enum Verdict: Sendable, Equatable {
    /// It belongs to the source.
    case valid
    /// The source has not shown enough packets in sequence yet. Where signalling names the source, play the packet all the same.
    case probation
    /// The sequence number jumped; unless the next packet follows it, the packet is stray. It does not count.
    case stray
    /// The second packet after a jump: the source restarted, and its counts as well.
    case restarted
  }

  /// The synchronization source.
  public let ssrc: UInt32
  /// Packets that counted, with duplicates, since the source became valid or restarted.
  public private(set) var packets: UInt64 = 0
  /// Payload bytes of these packets.
  public private(set) var bytes: UInt64 = 0
  /// Packets that counted since the last report block.
  public private(set) var packetsSinceReport: UInt64 = 0
  /// How often the source restarted.
  public private(set) var restarts = 0

  private let clockRate: Int64
  private var check: SequenceCheck
  private var expectedBefore: Int64 = 0
  private var receivedBefore: Int64 = 0
  private var transit: UInt32?
  /// The jitter, 16 times as large (RFC 3550, appendix A.8).
  private var scaledJitter: Int64 = 0
  private var senderReport: (middle: UInt32, time: Int64)?

  /// Creates statistics of a source whose timestamps count in `clockRate` Hz.
  ///
  /// With a probation of 0 the first packet counts at once, for a source that signalling names.
  public init(ssrc: UInt32, clockRate: Int, probation: Int = Self.probationPackets) {
    self.ssrc = ssrc
    self.clockRate = Int64(max(1, min(clockRate, Self.largestClockRate)))
    check = SequenceCheck(probation: probation)
  }

  /// Notes a packet that arrived at `now`.
  public mutating func note(_ header: RTPHeader, at now: Int64) -> Verdict {
    let verdict = check.note(header.sequence)
    if verdict == .restarted { restart() }
    if verdict == .valid || verdict == .restarted {
      packets += 1
      packetsSinceReport += 1
      bytes += UInt64(header.payload.count)
      noteTransit(header.timestamp, at: now)
    }
    return verdict
  }

  /// Notes a sender report of the source that arrived at `now`.
  public mutating func noteSenderReport(_ time: NTPTime, at now: Int64) {
    senderReport = (time.middle, now)
  }

  // MARK: Counts

  /// The highest sequence number, with the number of wraps above its 16 bits; 0 before the source is valid.
  public var extendedHighest: UInt32 { UInt32(truncatingIfNeeded: check.highest ?? 0) }

  /// Packets that should have come, by their sequence numbers.
  public var expected: Int64 { check.expected }

  /// Packets that did not come; negative: more came twice than were lost.
  public var lost: Int64 { expected - Int64(packets) }

  /// The variation of the packets' transit time, in timestamp units (RFC 3550, section 6.4.1).
  public var jitter: UInt32 { UInt32(clamping: scaledJitter >> 4) }

  /// The jitter in nanoseconds.
  public var jitterNanoseconds: Int64 { Int64(jitter) * 1_000_000_000 / clockRate }

  /// The block about this source for a report that is sent at `now`; the next one begins a new interval.
  ///
  /// Nil: the source is not valid. RFC 3550, section 6.4 has no block of a source without packets since the last report, see
  /// `packetsSinceReport`.
  public mutating func reportBlock(at now: Int64) -> RTCPReportBlock? {
    guard check.highest != nil else { return nil }
    let block = RTCPReportBlock(
      ssrc: ssrc, fractionLost: fractionLost, lost: Int32(max(-0x80_0000, min(0x7F_FFFF, lost))),
      highest: extendedHighest, jitter: jitter, lastReport: senderReport?.middle ?? 0,
      delay: senderReport.map { NTPTime.short(nanoseconds: now &- $0.time) } ?? 0)
    expectedBefore = expected
    receivedBefore = Int64(packets)
    packetsSinceReport = 0
    return block
  }

  /// Lost packets since the last block in 1/256 of the expected ones (RFC 3550, appendix A.3).
  private var fractionLost: UInt8 {
    let expected = expected - expectedBefore
    let lost = expected - (Int64(packets) - receivedBefore)
    guard expected > 0, lost > 0 else { return 0 }
    return UInt8(clamping: lost * 256 / expected)
  }

  /// Forgets what was counted of the source before its restart.
  private mutating func restart() {
    (packets, bytes, packetsSinceReport) = (0, 0, 0)
    (expectedBefore, receivedBefore) = (0, 0)
    (transit, scaledJitter) = (nil, 0)
    restarts += 1
  }

  /// Updates the jitter by the difference of two transit times (RFC 3550, appendix A.8).
  private mutating func noteTransit(_ timestamp: UInt32, at now: Int64) {
    let (seconds, rest) = now.quotientAndRemainder(dividingBy: 1_000_000_000)
    let arrival = seconds &* clockRate &+ rest * clockRate / 1_000_000_000
    let transit = UInt32(truncatingIfNeeded: arrival) &- timestamp
    defer { self.transit = transit }
    guard let before = self.transit else { return }
    let difference = Int64(Int32(bitPattern: transit &- before).magnitude)
    guard difference < Self.largestJump * clockRate else { return }
    scaledJitter += difference - ((scaledJitter + 8) >> 4)
  }
}
