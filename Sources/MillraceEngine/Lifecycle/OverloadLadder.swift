/// Decides how many of a graph's steps against overload are in force: a state machine fed with measured loads.
///
/// One step at a time, up when the load stays above the next step for `risesAfter` looks in a row, down when it stays `margin`
/// points below the last one for `fallsAfter`: quickly enough for a voice, slowly enough not to swing.
struct OverloadLadder: Sendable {
  /// Looks in a row above a step before it is taken: half a second.
  static let risesAfter = 2
  /// Looks in a row below a step before it is taken back: two seconds.
  static let fallsAfter = 8
  /// Percent below its threshold at which a step counts as no longer needed.
  static let margin = 10.0

  enum Change: Equatable {
    /// The step of this index comes into force.
    case rise(Int)
    /// It is taken back.
    case fall(Int)
  }

  private let thresholds: [Int]
  /// Steps in force.
  private(set) var level = 0
  private var samplesAbove = 0
  private var samplesBelow = 0

  /// A ladder of rising thresholds in percent.
  init(_ thresholds: [Int]) { self.thresholds = thresholds }

  /// Takes a load in percent; answers what is to be done about it.
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
