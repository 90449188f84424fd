/// Decides how many of a graph's overload steps are in force: a state machine fed with load samples.
///
/// It moves one step at a time: up when the load is above the next threshold for `risesAfter` samples in a row, down when it is
/// `margin` points below the last one for `fallsAfter`. Fast enough for voice, slow enough not to oscillate.
struct OverloadLadder: Sendable {
  /// Samples in a row above a threshold before its step is taken: half a second.
  static let risesAfter = 2
  /// Samples in a row below a threshold before its step is undone: two seconds.
  static let fallsAfter = 8
  /// Percentage points below its threshold at which a step is no longer needed.
  static let margin = 10.0

  enum Change: Equatable {
    /// Take the step with this index.
    case rise(Int)
    /// Undo the step with this index.
    case fall(Int)
  }

  private let thresholds: [Int]
  /// Steps in force.
  private(set) var level = 0
  private var samplesAbove = 0
  private var samplesBelow = 0

  /// A ladder of ascending thresholds in percent.
  init(_ thresholds: [Int]) { self.thresholds = thresholds }

  /// Takes a load sample in percent; returns the change to make, if any.
  mutating func update(_ load: Double) -> Change? {
    samplesAbove = level < thresholds.count && load > Double(thresholds[level]) ? samplesAbove + 1 : 0
    samplesBelow = level > 0 && load < Double(thresholds[level - 1]) - Self.margin ? samplesBelow + 1 : 0
    if samplesAbove >= Self.risesAfter {
      samplesAbove = 0
      level += 1
      return .rise(level - 1)
    }
    if samplesBelow >= Self.fallsAfter {
      samplesBelow = 0
      level -= 1
      return .fall(level)
    }
    return nil
  }
}
