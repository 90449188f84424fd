internal import MillraceCore
internal import Synchronization

/// Wakes the supervisor for one run, so that it never has to poll quiet runs.
///
/// Called after an event was put into an outbox or a budget was missed. Both sides use read-modify-writes, as for a strand: the
/// caller writes before it wakes, and the supervisor resets the waker before it reads. No lock and no system call: the supervisor
/// checks periodically.
@safe
final class SupervisorWaker: RemoteWake, @unchecked Sendable {
  /// The run it belongs to. Set when the run is created.
  var run: Unmanaged<GraphRun>?
  private let isPending = Atomic<Bool>(false)
  private let wokenRuns: WokenRuns
  /// The next waker in `wokenRuns`; valid only while this one is in it.
  fileprivate var following: Unmanaged<SupervisorWaker>?

  init(_ wokenRuns: WokenRuns) {
    self.wokenRuns = wokenRuns
    unsafe run = nil
    unsafe following = nil
  }

  /// Wakes the supervisor for the run. Any thread that keeps the run alive: a worker with one of its strands, or the supervisor.
  func wake() {
    if !isPending.exchange(true, ordering: .acquiringAndReleasing) { wokenRuns.push(self) }
  }

  override func wake(_ index: Int) { wake() }

  /// From here on a wake counts again. The supervisor calls it before it reads.
  fileprivate func reset() { _ = isPending.exchange(false, ordering: .acquiringAndReleasing) }
}

/// The runs that woke the supervisor: a lock-free stack of wakers that the supervisor empties in one step.
@safe
final class WokenRuns: @unchecked Sendable {
  private let head = unsafe Atomic<Unmanaged<SupervisorWaker>?>(nil)

  fileprivate func push(_ waker: SupervisorWaker) {
    let entry = unsafe Unmanaged.passUnretained(waker)
    var first = unsafe head.load(ordering: .relaxed)
    while true {
      unsafe waker.following = unsafe first
      let (exchanged, seen) = unsafe head.weakCompareExchange(
        expected: first, desired: entry, successOrdering: .releasing, failureOrdering: .relaxed)
      if exchanged { return }
      unsafe first = unsafe seen
    }
  }

  /// Takes all woken runs and resets their wakers. Only the supervisor, which keeps a run until no worker has it any more.
  func take() -> [GraphRun] {
    guard unsafe head.load(ordering: .relaxed) != nil else { return [] }
    var runs: [GraphRun] = []
    var next = unsafe head.exchange(nil, ordering: .acquiring)
    while let entry = unsafe next {
      let waker = unsafe entry.takeUnretainedValue()
      unsafe next = unsafe waker.following
      waker.reset()
      if let run = unsafe waker.run { runs.append(unsafe run.takeUnretainedValue()) }
    }
    return runs
  }
}
