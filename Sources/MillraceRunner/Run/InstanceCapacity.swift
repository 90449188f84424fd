internal import MillraceEngine

/// Estimates from the first instances of a graph whether all will fit into this process, so that an impossible number is rejected early.
struct InstanceCapacity {
  /// Instances over which open files are averaged. The first is not counted, because it opens the files that all share.
  private static let counted = 8

  private let limits: ProcessLimits
  private let count: Int
  private var filesAfterFirst: Int?

  init(_ limits: ProcessLimits, count: Int) {
    self.limits = limits
    self.count = count
  }

  /// Call after creating each instance; `number` counts from 1. Prints an error and throws when the remaining instances cannot all be
  /// created. Estimates are never too high, so nothing that would fit is rejected.
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
