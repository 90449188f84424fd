internal import MillraceCore

/// Which reference sample lies beside which microphone sample.
///
/// By their times at first; then it stays, so that the canceller's filter sees no jitter, until the times are off by more than a
/// block. A live reference is looked at a little ahead, as far as it is known: a reported time that is some milliseconds late would
/// otherwise put the echo before its cause, where nothing can cancel it.
///
/// Files are laid out the same way every time. What is known of them when the first block is cancelled depends on who ran first, so
/// it does not count; and two that count their positions from the same beginning are laid position on position, because
/// their times differ only by when each was opened.
struct ReferenceLayout {
  /// Most milliseconds ahead, and milliseconds of reference left in hand against jitter of its packets.
  private static let mostLead: Int64 = 40
  private static let inHand: Int64 = 20
  /// Milliseconds that the beginnings of two files are apart at most where positions are believed rather than times.
  private static let sameBeginning: Int64 = 50

  /// Whether the microphone's sound comes when it is recorded, and cannot wait.
  private let isLive: Bool
  /// Reference number of near position 0, and how far that is from what the times said; nil: not laid out yet.
  private var offset: Int64?
  private var shift: Int64 = 0
  /// True once times were given up: sound is laid out as it arrives.
  private var isByArrival = false
  private var coveredEnd: Int64 = 0

  init(isLive: Bool) { self.isLive = isLive }

  /// Forgets where sound was laid: another stream begins.
  mutating func startOver() { self = ReferenceLayout(isLive: isLive) }

  /// Number of the sample for the block that begins at a position and time; nil before the reference began.
  mutating func number(
    position: Int64, time: Nanoseconds, block: Int, rate: Int, _ reference: borrowing ReferenceTrack
  ) -> Int64? {
    if isByArrival { return offset.map { position &+ $0 } }
    guard let number = reference.number(at: time) else { return nil }
    let away = offset.map { abs(number &- position &+ shift &- $0) } ?? .max
    if away > Int64(block) {
      let start = begin(number, position: position, rate: rate, reference)
      let lead = lead(at: start, block: block, rate: rate, reference)
      offset = start &- position &+ lead
      shift = start &+ lead &- number
    }
    return offset.map { position &+ $0 }
  }

  /// The number `number` would lay out, without laying anything out.
  func expected(position: Int64, time: Nanoseconds, _ reference: borrowing ReferenceTrack) -> Int64? {
    offset.map { position &+ $0 } ?? reference.number(at: time)
  }

  private func begin(_ number: Int64, position: Int64, rate: Int, _ reference: borrowing ReferenceTrack)
    -> Int64
  {
    guard !isLive else { return number }
    let counted = reference.number(ofPosition: position)
    return abs(counted &- number) <= Self.sameBeginning * Int64(rate) / 1_000 ? counted : number
  }

  /// Samples to look ahead: of live sound as many as are known, of the rest as many as its first packet was early.
  private func lead(at number: Int64, block: Int, rate: Int, _ reference: borrowing ReferenceTrack) -> Int64 {
    let known =
      isLive
      ? reference.end &- number
      : Int64(Double(reference.announced) * Double(rate) / 1e9)
    let ahead = known &- Int64(block) &- Self.inHand * Int64(rate) / 1_000
    return max(0, min(ahead, Self.mostLead * Int64(rate) / 1_000))
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
