internal import MillraceCore
internal import MillraceFiles
internal import MillraceGraph

/// Locks the graph files of a command while this object exists, so that neither the command nor a graph can overwrite them.
final class InputFileLocks {
  /// Boxes a noncopyable lock for the dictionary.
  private final class Box {
    private let lock: FileLock
    init(_ path: String) throws(NodeProblem) { lock = try FileLock(path, for: .reading) }
  }

  private var locks: [String: Box] = [:]

  init(_ plans: [GraphPlan]) throws {
    for plan in plans { try add(plan) }
  }

  /// Locks the files of a graph that are not locked yet. A file that is being written is rejected, because it may have been read
  /// incompletely.
  func add(_ plan: GraphPlan) throws {
    do throws(NodeProblem) {
      for file in plan.files where locks[file] == nil { locks[file] = try Box(file) }
    } catch {
      GraphOptions.report(Problems([Problem(error.text, hint: error.cure)]))
      throw ExitStatus.refused
    }
  }
}
