internal import MillraceCore

/// Which reference sample lies beside which microphone sample.
///
/// By their times at first; then it stays, so that the canceller's filter sees no jitter, until the times are off by more than a
/// block. The reference is looked at a little ahead, as far as it is known: a reported time that is some milliseconds late would
/// otherwise put the echo before its cause, where nothing can cancel it.
struct ReferenceLayout {
  /// Most milliseconds ahead, and milliseconds of reference left in hand against jitter of its packets.
  private static let mostLead: Int64 = 40
  private static let inHand: Int64 = 20

  /// Reference number of near position 0, and how much ahead that is; nil: not laid out yet.
  private var offset: Int64?
  private var lead: Int64 = 0
  /// True once times were given up: sound is laid out as it arrives.
  private var isByArrival = false
  private var coveredEnd: Int64 = 0

  /// Number of the sample for the block that begins at a position and time; nil before the reference began.
  mutating func number(
    position: Int64, time: Nanoseconds, block: Int, rate: Int, _ reference: borrowing ReferenceTrack
  ) -> Int64? {
    if isByArrival { return offset.map { position &+ $0 } }
    guard let number = reference.number(at: time) else { return nil }
    let away = offset.map { abs(number &- position &+ lead &- $0) } ?? .max
    if away > Int64(block) {
      let ahead = reference.end &- number &- Int64(block) &- Self.inHand * Int64(rate) / 1_000
      lead = max(0, min(ahead, Self.mostLead * Int64(rate) / 1_000))
      offset = number &- position &+ lead
    }
    return offset.map { position &+ $0 }
  }

  /// Notes that the reference of a block was there.
  mutating func noteCovered(_ reference: borrowing ReferenceTrack) { coveredEnd = reference.end }

  /// Called when no reference has fitted for long: true when sound has come all the same, which is then laid out by arrival.
  mutating func fallsBack(position: Int64, block: Int, rate: Int, _ reference: borrowing ReferenceTrack)
    -> Bool
  {
    guard reference.end &- coveredEnd > Int64(rate / 10) else { return false }
    isByArrival = true
    offset = reference.end &- Int64(block) &- Self.inHand * Int64(rate) / 1_000 &- position
    coveredEnd = reference.end
    return true
  }
}
