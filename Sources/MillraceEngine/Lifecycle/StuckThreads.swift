internal import CMillraceSys
internal import MillraceCore
internal import MillraceGraph

/// Threads that are stuck in nodes of a stopped run: each of their workers gets a new thread. On the supervisor's thread.
struct StuckThreads {
  /// How often a refused thread is requested again.
  private static let retryInterval: Nanoseconds = 250_000_000

  /// Strands whose worker got no new thread.
  private var waiting: [Strand] = []
  /// When the next attempt is due.
  private(set) var retryAt: Nanoseconds?

  /// Gives a new thread to each worker that a node of the run blocks. Returns the names of those nodes, and the `errno` if the
  /// system refused a thread.
  mutating func replace(of run: GraphRun) -> (stuck: [String], refusal: Int32?) {
    var stuck: [String] = []
    var refusal: Int32?
    for strand in run.strands where strand.holdsRun {
      guard let name = strand.nodeInCall(of: run) else { continue }
      switch strand.replaceThread() {
      case .kept: continue
      case .done: break
      case .refused(let code):
        refusal = code
        waiting.append(strand)
        retryAt = millrace_monotonic_ns() + Self.retryInterval
      }
      stuck.append(name)
    }
    return (stuck, refusal)
  }

  /// Requests refused threads again, until the system grants them or the nodes have returned.
  mutating func retry(_ now: Nanoseconds) {
    guard let due = retryAt, due <= now else { return }
    waiting.removeAll { strand in
      guard strand.isInCall else { return true }
      if case .refused = strand.replaceThread() { return false }
      return true
    }
    retryAt = waiting.isEmpty ? nil : now + Self.retryInterval
  }

  static func refusalText(_ refusal: Int32) -> String {
    "the system refused a new thread for its worker: \(SystemError.text(refusal)); graphs on that worker are blocked until the node "
      + "returns or a thread is available; end other programs of this user, or raise the limits (ulimit -u, -v)"
  }
}
