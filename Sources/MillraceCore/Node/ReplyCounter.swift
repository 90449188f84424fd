internal import Synchronization

/// The number of the current reply, shared by a run and the channels to its program. Any thread; no lock.
package final class ReplyCounter: Sendable {
  private let number = Atomic<UInt32>(1)

  /// The first reply has number 1; 0 means none.
  package init() {}

  /// The current reply.
  package var current: UInt32 { number.load(ordering: .acquiring) }

  /// Starts a new reply; all earlier ones become stale.
  package func advance() { number.add(1, ordering: .acquiringAndReleasing) }
}
