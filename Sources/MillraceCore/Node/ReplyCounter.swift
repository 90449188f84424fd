internal import Synchronization

/// The number of the reply that is valid now, shared by a run and the channels to its program. Any thread; no lock.
package final class ReplyCounter: Sendable {
  private let number = Atomic<UInt32>(1)

  /// The first reply has number 1; 0 stands for none.
  package init() {}

  /// The reply that is valid now.
  package var current: UInt32 { number.load(ordering: .acquiring) }

  /// Makes every reply up to now stale.
  package func advance() { number.add(1, ordering: .acquiringAndReleasing) }
}
