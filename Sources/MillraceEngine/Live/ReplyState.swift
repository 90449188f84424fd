internal import MillraceCore
internal import Synchronization

/// The replies of a run and of its parts: one number, one state of ducking, and every strand that has to be notified of both.
final class ReplyState: Sendable {
  /// The reply that is valid; packets of older ones are dropped.
  let counter = ReplyCounter()
  /// Whether playback is to make room for a voice.
  let isDucked = Atomic<Bool>(false)
  /// False as long as one run has the state for itself: then no lock is taken.
  private let isShared = Atomic<Bool>(false)
  private let strands = Locked<[Int: [Strand]]>([:])

  /// From now on the strands of a run are notified whichever run of the family interrupts.
  func join(_ run: GraphRun) {
    strands.withLock { $0[run.id] = run.strands }
    isShared.store(true, ordering: .releasing)
  }

  /// The run's strands are retired.
  func leave(_ run: GraphRun) { strands.withLock { $0[run.id] = nil } }

  /// Leaves a request with the strands of a run and of all others of its family. Any thread. With parts a lock is taken that is held for
  /// as long as a few read-modify-writes take.
  func request(_ request: UInt32, of run: GraphRun) {
    for strand in run.strands { strand.request(request) }
    guard isShared.load(ordering: .acquiring) else { return }
    strands.withLock { strands in
      for (id, others) in strands where id != run.id { for strand in others { strand.request(request) } }
    }
  }
}
