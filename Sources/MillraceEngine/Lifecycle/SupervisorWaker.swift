internal import MillraceCore
internal import Synchronization

/// How a run's workers tell the supervisor that there is something to look at, so that it never has to ask a run that is quiet.
///
/// Rung after an event was put into an outbox, or a budget was missed. Read-modify-writes on both sides, as for a strand: whoever rings
/// has written first, and the supervisor stills the bell before it looks. No lock, no system call: the supervisor comes by itself.
@safe
final class SupervisorWaker: RemoteWake, @unchecked Sendable {
  /// Whose bell it is. Set when the run is made.
  var run: Unmanaged<GraphRun>?
  private let isPending = Atomic<Bool>(false)
  private let wokenRuns: WokenRuns
  /// The bell that rang before this one; only while it is in `rung`.
  fileprivate var following: Unmanaged<SupervisorWaker>?

  init(_ wokenRuns: WokenRuns) {
    self.wokenRuns = wokenRuns
    unsafe run = nil
    unsafe following = nil
  }

  /// There is something to look at. Any thread that keeps the run from ending: a worker with one of its strands, or the supervisor.
  func wake() {
    if !isPending.exchange(true, ordering: .acquiringAndReleasing) { wokenRuns.push(self) }
  }

  override func wake(_ index: Int) { wake() }

  /// From here on it can be rung again. Only the supervisor, before it looks.
  fileprivate func reset() { _ = isPending.exchange(false, ordering: .acquiringAndReleasing) }
}

/// The bells that ring: a lock-free stack that the supervisor empties in one step.
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

  /// Takes the runs that have rung, and stills their bells. Only the supervisor, which keeps a run until no worker has it any more.
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
