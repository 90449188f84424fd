internal import MillraceCore
internal import MillraceDialog
internal import MillraceRTC

/// The quality of the network of one session, by NetEase's index: loss in per cent / 20 · 0.5 + round trip / 1200 ms · 0.25 + mean
/// deviation of the round trip / 150 ms · 0.25. At most 0.2625 is excellent, 0.55 good, 1 poor. Source: the vendor's header of network
/// detection.
///
/// Computed in integers, so that values on a boundary stay in their grade.
struct CallQuality {
  /// Millionths of the index at the ends of the grades.
  private static let excellent = 262_500, good = 550_000, poor = 1_000_000
  /// Loss is counted in parts of a million.
  private static let million = 1_000_000

  /// How long a report of the peer says something about the network: reports come every 5 s on average, and at most half as much later
  /// (RFC 3550 sections 6.2 and 6.3.1).
  private static let fresh: Nanoseconds = .milliseconds(7_500)

  private var deviation = 0
  private var roundTrip: Int?
  /// When a report of the peer has changed something.
  private var reportedAt: Nanoseconds?

  /// Notes what was counted, and reports on the time since the last counts. Nil: nothing has come in that time, and the peer has reported
  /// nothing lately.
  mutating func note(
    _ now: RTCStatistics, since last: RTCStatistics?, peer: String?, at time: Nanoseconds
  ) -> (quality: DialogNetQuality, thousandths: Int)? {
    if Self.reports(now) != Self.reports(last ?? RTCStatistics()) { reportedAt = time }
    let microseconds = (now.roundTrip ?? now.sound.roundTrip).map { Int($0 / 1_000) }
    if let microseconds {
      // As TCP smooths it: RFC 6298 section 2.3.
      if let roundTrip { deviation += (abs(microseconds - roundTrip) - deviation) / 4 }
      roundTrip = microseconds
    }
    let hasReport = reportedAt.map { time - $0 <= Self.fresh } ?? false
    guard hasReport || Self.received(now) > Self.received(last) else { return nil }
    let remote = max(now.sound.remoteLoss, now.video.remoteLoss)
    let loss = max(Self.loss(now, since: last), Int((remote * Double(Self.million)).rounded()))
    let index = Self.index(loss: loss, roundTrip: roundTrip ?? 0, deviation: deviation)
    var quality = DialogNetQuality(
      index: Double(index / 1_000) / 1_000, grade: Self.grade(index), peer: peer)
    quality.lossPercent = Double(loss / 100) / 100
    quality.roundTripMilliseconds = roundTrip.map { Double($0) / 1_000 }
    quality.deviationMilliseconds = roundTrip.map { _ in Double(deviation) / 1_000 }
    quality.jitterMilliseconds = Double(now.sound.jitter / 1_000) / 1_000
    return (quality, index / 1_000)
  }

  /// What the peer's reports say.
  private static func reports(_ counts: RTCStatistics) -> [Double] {
    let times = [counts.roundTrip, counts.sound.roundTrip, counts.video.roundTrip].map { Double($0 ?? -1) }
    return times + [counts.sound.remoteLoss, counts.video.remoteLoss]
  }

  private static func received(_ counts: RTCStatistics?) -> UInt64 {
    counts.map { $0.sound.receivedPackets + $0.video.receivedPackets } ?? 0
  }

  /// The part of the peer's packets that has not come since, in parts of a million.
  private static func loss(_ now: RTCStatistics, since last: RTCStatistics?) -> Int {
    let lost = now.sound.lost + now.video.lost - (last.map { $0.sound.lost + $0.video.lost } ?? 0)
    let received = Int64(clamping: Self.received(now)) - Int64(clamping: Self.received(last))
    guard lost > 0, received >= 0 else { return 0 }
    return Int(lost * Int64(million) / (lost + received))
  }

  /// The index in millionths.
  /// - Parameters:
  ///   - loss: in parts of a million.
  ///   - roundTrip: in microseconds, as is `deviation`.
  static func index(loss: Int, roundTrip: Int, deviation: Int) -> Int {
    // Per cent / 20 / 2 is loss / 400,000; ms / 1200 / 4 is µs / 4,800,000; ms / 150 / 4 is µs / 600,000. Times a million, over 24.
    let bound = 3_600 * million
    return (60 * loss + 5 * min(max(0, roundTrip), bound) + 40 * min(max(0, deviation), bound)) / 24
  }

  static func grade(_ index: Int) -> NetGrade {
    switch index {
    case ...excellent: .excellent
    case ...good: .good
    case ...poor: .poor
    default: .veryPoor
    }
  }
}
