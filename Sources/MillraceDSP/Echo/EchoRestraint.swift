/// How far the suppressor has to doubt itself while the filter has not learnt the path yet.
///
/// What the filter does not know is not all echo: where somebody speaks from the first second on, the filter learns for seconds, and a
/// suppressor that took its doubt at its word would take the voice meanwhile. A far end alone is learnt at once. So an error that stays
/// loud once the filter has had the time to learn is mostly a voice.
///
/// - In: energies of error and microphone, smoothed, block by block while the far end is heard. Out: ``share``, 0 to 1.
/// - Over for good as soon as the filter has once taken nearly everything: from then on its doubt is worth something.
struct EchoRestraint {
  /// How far the suppressor has to hold back: 0, not at all, to 1.
  private(set) var share: Float = 0

  private var isOver = false
  /// Blocks with far end since the delay is known.
  private var aligned = 0

  // What follows was chosen on measured and simulated rooms with a voice from the first second on, and with a far end alone.

  /// An error of this share of the microphone shows a filter that has learnt; and seconds of far end after which it counts as one.
  private static let learnedShare: Float = 0.05
  private static let longest: Float = 6
  /// What a filter needs to learn a far end alone: blocks behind its delay, and seconds of far end when none is found.
  private static let neededBlocks = 5
  private static let neededSeconds: Float = 0.35
  /// Errors, as shares of the microphone, between which restraint grows, in the first second of far end and after the second one: a far
  /// end alone in a live room leaves a third in its first second, and a tenth later.
  private static let early: (low: Float, high: Float) = (0.25, 0.6)
  private static let late: (low: Float, high: Float) = (0.15, 0.5)
  /// Step a block towards the new value.
  private static let step: Float = 0.3

  /// Takes a block in which the far end is heard; `learned` is the seconds of far end that the filter has had.
  mutating func follow(error: Float, near: Float, isAligned: Bool, learned: Float) {
    guard !isOver else { return }
    if error < Self.learnedShare * near || learned > Self.longest {
      isOver = true
      share = 0
      return
    }
    if isAligned { aligned += 1 }
    guard isAligned ? aligned > Self.neededBlocks : learned > Self.neededSeconds else { return }
    let age = max(0, min(1, learned - 1))
    let low = Self.early.low + age * (Self.late.low - Self.early.low)
    let high = Self.early.high + age * (Self.late.high - Self.early.high)
    let wanted = (error / max(near, 1e-12) - low) / (high - low)
    share += Self.step * (max(0, min(1, wanted)) - share)
  }
}
