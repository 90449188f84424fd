internal import Glibc
internal import MillraceCore
internal import Synchronization

/// The decisions about a run and its parts that the supervisor has not made yet: failures, lost messages, stops.
///
/// They keep runs on a virtual clock reproducible although the supervisor is a second thread: the clock does not advance while
/// one is pending. On the real clock nothing is counted.
final class PendingDecisions: Sendable {
  private let isVirtual: Bool
  private let count = Atomic<Int>(0)

  init(isVirtual: Bool) { self.isVirtual = isVirtual }

  /// A decision is about to be requested. Call it before posting the message to the supervisor.
  func begin() { if isVirtual { count.add(1, ordering: .relaxed) } }

  /// The supervisor has decided, and has posted every request that follows from it.
  func end() { if isVirtual { count.subtract(1, ordering: .releasing) } }

  /// Waits until none is pending. That takes a few microseconds, or as long as creating a node, so the calling worker only yields.
  func waitUntilNone() { while count.load(ordering: .acquiring) > 0 { sched_yield() } }
}
