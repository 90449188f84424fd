/// How much the suppressor holds back while the filter has not converged.
///
/// The filter's uncertainty is not all echo. If the near-end talker speaks from the first second on, the filter takes seconds to
/// converge, and a suppressor that trusted its uncertainty would remove the talker meanwhile. A far end alone is learnt at once. So
/// an error that stays loud after the filter has had time to converge is mostly speech.
///
/// - In: smoothed energies of error and microphone, block by block while the far end is audible. Out: ``share``, 0 to 1.
/// - Ends for good once the filter has removed nearly everything: its uncertainty is reliable from then on.
struct EchoRestraint {
  /// How much the suppressor holds back: 0, not at all, to 1.
  private(set) var share: Float = 0

  private var isOver = false
  /// Blocks with far end since the delay is known.
  private var aligned = 0

  // The constants below were chosen on measured and simulated rooms, with speech from the first second on and with far end alone.

  /// An error below this fraction of the microphone shows a converged filter; the time limit, in seconds of far end, after which it
  /// counts as one.
  private static let learnedShare: Float = 0.05
  private static let longest: Float = 6
  /// What a filter needs to learn a far end alone: blocks after its delay is known, or seconds of far end if none is found.
  private static let neededBlocks = 5
  private static let neededSeconds: Float = 0.35
  /// Range of the error, as a fraction of the microphone, over which restraint grows, in the first second of far end and after the
  /// second one: a far end alone in a reverberant room leaves a third in its first second, and a tenth later.
  private static let early: (low: Float, high: Float) = (0.25, 0.6)
  private static let late: (low: Float, high: Float) = (0.15, 0.5)
  /// Step per block towards the new value.
  private static let step: Float = 0.3

  /// Takes a block in which the far end is audible; `learned` is the seconds of far end the filter has had.
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
