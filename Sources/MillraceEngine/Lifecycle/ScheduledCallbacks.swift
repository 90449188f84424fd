internal import MillraceCore
internal import Synchronization

/// Callbacks to run at given graph times of one run, in order of time; callbacks for the same time run in the order they were scheduled.
///
/// Any thread may schedule; one thread runs them: the run's worker on a virtual clock, the supervisor on the real one.
final class ScheduledCallbacks: Sendable {
  private struct Entry: Sendable {
    var time: Nanoseconds
    var body: @Sendable () -> Void
  }
  private struct State {
    var entries: [Entry] = []
    var isCancelled = false
  }
  private let state = Locked(State())
  private let earliest = Atomic<Int64>(Nanoseconds.max)

  /// The earliest time; `Nanoseconds.max` when nothing is scheduled. One load.
  var next: Nanoseconds { Nanoseconds(earliest.load(ordering: .acquiring)) }

  func schedule(at time: Nanoseconds, _ body: @escaping @Sendable () -> Void) {
    state.withLock { state in
      guard !state.isCancelled else { return }
      let place = state.entries.firstIndex { $0.time > time } ?? state.entries.endIndex
      state.entries.insert(Entry(time: time, body: body), at: place)
      earliest.store(state.entries[0].time, ordering: .releasing)
    }
  }

  /// Runs every callback that is due, including those scheduled by one of them.
  func runDue(at now: Nanoseconds) {
    while next <= now, let entry = takeFirst(dueBy: now) { entry.body() }
  }

  private func takeFirst(dueBy now: Nanoseconds) -> Entry? {
    state.withLock { state in
      guard let first = state.entries.first, first.time <= now else { return nil }
      state.entries.removeFirst()
      earliest.store(state.entries.first?.time ?? Nanoseconds.max, ordering: .releasing)
      return first
    }
  }

  /// Discards all callbacks and refuses new ones.
  func cancel() {
    // Freed outside the lock: a body may hold the last reference to anything.
    _ = state.withLock { state in
      earliest.store(Nanoseconds.max, ordering: .releasing)
      defer { state.entries = [] }
      state.isCancelled = true
      return state.entries
    }
  }
}

extension GraphRun {
  /// Calls `body` once when graph time reaches `time`; immediately if it already has.
  ///
  /// On a virtual clock this is exact: everything before `time` is done, nothing due at `time` has begun, and time does not
  /// advance until `body` returns. So `run.at(.milliseconds(1_500)) { try? run.set("gain", "gain", to: -6) }` gives the same bytes
  /// in every run when called before `start`. On the real clock it is late by the time the system takes to wake a thread.
  ///
  /// If the run ends before `time`, `body` is never called. It runs on an engine thread, which does nothing else meanwhile: it
  /// must not wait for the run. It is retained until the run has stopped.
  public func at(_ time: Duration, _ body: @escaping @Sendable () -> Void) {
    schedule(at: time.nanoseconds, body)
  }

  /// The same in nanoseconds of graph time.
  func schedule(at time: Nanoseconds, _ body: @escaping @Sendable () -> Void) {
    callbacks.schedule(at: time, body)
    switch engine.clock {
    case .virtual: for strand in strands { strand.request(Strand.Request.callbacks) }
    case .realtime: engine.supervisor.post(.callbackScheduled(self))
    }
  }

  /// Runs the callbacks that are due on the real clock.
  func runDueCallbacks() {
    engine.supervisor.threadOwner.assertIsCurrent()
    callbacks.runDue(at: graphTime)
  }

  /// Real-clock time of the next callback; nil when there is none, before the run has begun, and on a virtual clock.
  var nextCallbackTime: Nanoseconds? {
    let (next, start) = (callbacks.next, epoch.load(ordering: .acquiring))
    guard next != Nanoseconds.max && start != Nanoseconds.max && engine.clock == .realtime else { return nil }
    let (time, overflow) = next.addingReportingOverflow(start)
    return overflow ? nil : time
  }
}
