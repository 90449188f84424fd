internal import MillraceCore
internal import MillraceFiles
internal import MillraceGraph

/// The files that the graphs of a command were read from, claimed as long as this lives: what the command or a graph writes cannot take the
/// place of one.
final class ReadingClaims {
  /// A claim that can stand in a dictionary.
  private final class Held {
    private let claim: FileLock
    init(_ path: String) throws(NodeProblem) { claim = try FileLock(path, for: .reading) }
  }

  private var claims: [String: Held] = [:]

  init(_ plans: [GraphPlan]) throws {
    for plan in plans { try add(plan) }
  }

  /// Claims the files of a graph that are not claimed yet. One that is being written now is told as a refusal: what was read of it
  /// may be half of what is meant.
  func add(_ plan: GraphPlan) throws {
    do throws(NodeProblem) {
      for file in plan.files where claims[file] == nil { claims[file] = try Held(file) }
    } catch {
      GraphOptions.tell(Problems([Problem(error.text, hint: error.cure)]))
      throw ExitStatus.refused
    }
  }
}
