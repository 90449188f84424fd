internal import MillraceEngine

/// Whether all instances of a graph will have room in this process, judged by the first ones: a number that cannot fit is refused
/// when a few are made, and not when the last that fits is.
struct InstanceRoom {
  /// Instances by which the files of one are counted: the first opens what all share.
  private static let counted = 8

  private let limits: ProcessLimits
  private let count: Int
  private var filesAfterFirst: Int?

  init(_ limits: ProcessLimits, count: Int) {
    self.limits = limits
    self.count = count
  }

  /// Looks at the instance with a number, from 1, which was made just now. Throws when those to come cannot all be made, in words on
  /// standard error. What an instance takes is never taken for more than it is, so that none is refused that would fit.
  mutating func check(_ run: GraphRun, number: Int) throws(ExitStatus) {
    switch number {
    case 1:
      try limits.checkMemory(forInstances: count, beyond: number, each: run.report().poolBytes)
      filesAfterFirst = count > Self.counted ? ProcessLimits.openFiles : nil
    case 1 + Self.counted:
      guard let before = filesAfterFirst, let open = ProcessLimits.openFiles else { return }
      try ProcessLimits.checkFiles(
        forInstances: count, beyond: number, each: (open - before) / Self.counted, open: open)
    default: break
    }
  }
}
