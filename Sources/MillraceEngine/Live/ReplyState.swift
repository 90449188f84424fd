internal import MillraceCore
internal import Synchronization

/// The reply state of a run and its parts: one generation, one ducking state, and every strand that is notified of both.
final class ReplyState: Sendable {
  /// The current reply; packets of older ones are stale.
  let counter = ReplyCounter()
  /// Whether playback is ducked.
  let isDucked = Atomic<Bool>(false)
  /// False while only one run uses the state: then no lock is taken.
  private let isShared = Atomic<Bool>(false)
  private let strands = Locked<[Int: [Strand]]>([:])

  /// Adds the strands of a run: they are notified whichever run of the family interrupts.
  func join(_ run: GraphRun) {
    strands.withLock { $0[run.id] = run.strands }
    isShared.store(true, ordering: .releasing)
  }

  /// Removes a run whose strands are retired.
  func leave(_ run: GraphRun) { strands.withLock { $0[run.id] = nil } }

  /// Posts a request to the strands of a run and of its family. Any thread. With parts it takes a lock, held for a few read-modify-writes.
  func request(_ request: UInt32, of run: GraphRun) {
    for strand in run.strands { strand.request(request) }
    guard isShared.load(ordering: .acquiring) else { return }
    strands.withLock { strands in
      for (id, others) in strands where id != run.id { for strand in others { strand.request(request) } }
    }
  }
}
