internal import MillraceCore

/// Aligns reference samples to microphone samples.
///
/// The first alignment is by time. It then stays fixed, so that the canceller's filter sees no jitter, until the times are off by
/// more than a block. A live reference is read slightly ahead, as far as it is known: otherwise a reported time that is some
/// milliseconds late would place the echo before its cause, where nothing can cancel it.
///
/// Files are aligned the same way in every run. What is known of them when the first block is cancelled depends on scheduling, so it
/// does not count; and two files that count positions from the same start are aligned by position, because their times differ only by
/// when each was opened.
struct ReferenceAlignment {
  /// Most milliseconds read ahead, and milliseconds of reference kept in reserve against packet jitter.
  private static let maximumLead: Int64 = 40
  private static let reserve: Int64 = 20
  /// Largest distance between the starts of two files, in milliseconds, for alignment by position; and the same for unpaced files on
  /// the real clock, where a busy machine opens them far apart.
  private static let sameBeginning: Int64 = 50
  private static let sameUnpacedBeginning: Int64 = 2_000

  /// True if the microphone is live and cannot wait.
  private let isLive: Bool
  private let sameBeginning: Int64
  /// Reference index of near position 0, and its difference from the timestamps; nil: not aligned yet.
  private var offset: Int64?
  private var shift: Int64 = 0
  /// True once timestamps were given up: audio is aligned by arrival.
  private var isByArrival = false
  private var coveredEnd: Int64 = 0

  init(_ pacing: Pacing, isVirtual: Bool) {
    isLive = pacing == .live
    sameBeginning = pacing == .waits && !isVirtual ? Self.sameUnpacedBeginning : Self.sameBeginning
  }

  /// Discards the alignment: another stream begins.
  mutating func restart() {
    offset = nil
    shift = 0
    isByArrival = false
    coveredEnd = 0
  }

  /// Index of the reference sample for a block at a position and time; nil before the reference began.
  mutating func number(
    position: Int64, time: Nanoseconds, block: Int, rate: Int, _ reference: borrowing ReferenceBuffer
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

  /// The index `number` would return, without changing the alignment.
  func expected(position: Int64, time: Nanoseconds, _ reference: borrowing ReferenceBuffer) -> Int64? {
    offset.map { position &+ $0 } ?? reference.number(at: time)
  }

  private func begin(_ number: Int64, position: Int64, rate: Int, _ reference: borrowing ReferenceBuffer)
    -> Int64
  {
    guard !isLive else { return number }
    let counted = reference.number(ofPosition: position)
    return abs(counted &- number) <= sameBeginning * Int64(rate) / 1_000 ? counted : number
  }

  /// Samples to read ahead: for a live stream as many as are known, otherwise as many as its first packet was early.
  private func lead(at number: Int64, block: Int, rate: Int, _ reference: borrowing ReferenceBuffer) -> Int64
  {
    let known =
      isLive
      ? reference.end &- number
      : Int64(Double(reference.announced) * Double(rate) / 1e9)
    let ahead = known &- Int64(block) &- Self.reserve * Int64(rate) / 1_000
    return max(0, min(ahead, Self.maximumLead * Int64(rate) / 1_000))
  }

  /// Records that the reference of a block was available.
  mutating func noteCovered(_ reference: borrowing ReferenceBuffer) { coveredEnd = reference.end }

  /// Called when no reference has matched for long: true if audio has arrived nevertheless, which is then aligned by arrival.
  mutating func fallsBack(position: Int64, block: Int, rate: Int, _ reference: borrowing ReferenceBuffer)
    -> Bool
  {
    guard reference.end &- coveredEnd > Int64(rate / 10) else { return false }
    isByArrival = true
    offset = reference.end &- Int64(block) &- Self.reserve * Int64(rate) / 1_000 &- position
    coveredEnd = reference.end
    return true
  }
}
