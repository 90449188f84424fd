internal import MillraceCore
internal import Synchronization

/// What a program wants done at given graph times of one run, in order of time and, for the same time, of asking.
///
/// Any thread may add; one thread keeps them: the run's worker on a virtual clock, the supervisor on the real one.
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

  /// The earliest time; the largest number when nothing is left. One load.
  var next: Nanoseconds { Nanoseconds(earliest.load(ordering: .acquiring)) }

  func schedule(at time: Nanoseconds, _ body: @escaping @Sendable () -> Void) {
    state.withLock { state in
      guard !state.isCancelled else { return }
      let place = state.entries.firstIndex { $0.time > time } ?? state.entries.endIndex
      state.entries.insert(Entry(time: time, body: body), at: place)
      earliest.store(state.entries[0].time, ordering: .releasing)
    }
  }

  /// Does everything whose time has come, also what is added on the way.
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

  /// Forgets what is left and takes nothing more.
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
  /// Calls `body` once when graph time reaches `time`, and at once when it has.
  ///
  /// On a virtual clock that is exact: everything before `time` is done, nothing that is due at `time` has begun, and time
  /// stands still until `body` returns. So `run.at(.milliseconds(1_500)) { try? run.set("gain", "gain", to: -6) }` gives the
  /// same bytes in every run, if it is said before the start. On the real clock it is late by what the system takes to wake a
  /// thread.
  ///
  /// A run that ends before `time` never calls it. `body` is called on a thread of the engine, which does nothing else meanwhile:
  /// it must not wait for the run. It is kept until the run has stopped.
  public func at(_ time: Duration, _ body: @escaping @Sendable () -> Void) {
    schedule(at: time.nanoseconds, body)
  }

  /// The same for a time inside the graph.
  func schedule(at time: Nanoseconds, _ body: @escaping @Sendable () -> Void) {
    callbacks.schedule(at: time, body)
    switch engine.clock {
    case .virtual: for strand in strands { strand.request(Strand.Request.callbacks) }
    case .realtime: engine.supervisor.post(.callbackScheduled(self))
    }
  }

  /// Keeps what is due on the real clock. Only the supervisor.
  func runDueCallbacks() { callbacks.runDue(at: graphTime) }

  /// Time on the real clock of the next appointment; nil when there is none, when the run has not begun, and on a virtual clock.
  var nextCallbackTime: Nanoseconds? {
    let (next, start) = (callbacks.next, epoch.load(ordering: .acquiring))
    guard next != Nanoseconds.max && start != Nanoseconds.max && engine.clock == .realtime else { return nil }
    let (time, overflow) = next.addingReportingOverflow(start)
    return overflow ? nil : time
  }
}
