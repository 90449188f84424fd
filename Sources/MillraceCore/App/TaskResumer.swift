internal import Synchronization

/// The thread that resumes tasks of the program when a channel has a packet or room for them.
///
/// A worker never resumes a task, because that takes a lock and may wake a thread of Swift's cooperative pool. Instead it pushes the
/// channel onto a lock-free stack and wakes this thread if it sleeps. The thread starts when a program opens its first channel and ends
/// with its engine.
@safe
package final class TaskResumer: @unchecked Sendable {
  private let head = unsafe Atomic<Unmanaged<AppChannel>?>(nil)
  /// 1 while the thread sleeps or is about to.
  private let sleep = Futex()
  private let isStopping = Atomic<Bool>(false)
  private let hasThread = Locked(false)

  /// Creates a resumer without a thread.
  package init() {}

  /// Starts the thread unless it runs already. Returns 0, or the `errno` when the system could not create it. Any thread.
  package func start() -> Int32 {
    hasThread.withLock { hasThread in
      guard !hasThread else { return 0 }
      let status = DetachedThread.start("millrace-resumer") { [self] in run() }
      hasThread = status == 0
      return status
    }
  }

  /// Ends the thread. The engine has no run left, so no task waits.
  package func stop() {
    isStopping.store(true, ordering: .sequentiallyConsistent)
    wakeThread()
  }

  /// Queues a channel whose tasks are to be resumed. Any thread; no lock, no allocation; a system call only when the thread sleeps.
  func push(_ channel: AppChannel) {
    let entry = unsafe Unmanaged.passRetained(channel)
    var first = unsafe head.load(ordering: .relaxed)
    while true {
      unsafe channel.following = unsafe first
      let (exchanged, seen) = unsafe head.weakCompareExchange(
        expected: first, desired: entry, successOrdering: .sequentiallyConsistent, failureOrdering: .relaxed)
      if exchanged { break }
      unsafe first = unsafe seen
    }
    // If the stack was not empty, the thread has been woken already.
    if unsafe first == nil { wakeThread() }
  }

  private func wakeThread() {
    if sleep.load() == 1 && sleep.exchange(0) == 1 { sleep.wake() }
  }

  // MARK: The thread

  private func run() {
    while true {
      deliver()
      sleep.store(1)
      // A push after this store sees the flag; an earlier push is seen here.
      if unsafe head.load(ordering: .sequentiallyConsistent) == nil {
        if isStopping.load(ordering: .sequentiallyConsistent) { return }
        sleep.wait(while: 1)
      }
      sleep.store(0)
    }
  }

  /// Serves the channels in the order in which they were pushed.
  private func deliver() {
    var newestFirst = unsafe head.exchange(nil, ordering: .acquiringAndReleasing)
    var oldestFirst: Unmanaged<AppChannel>?
    while let entry = unsafe newestFirst {
      unsafe newestFirst = unsafe entry._withUnsafeGuaranteedRef { unsafe $0.following }
      unsafe entry._withUnsafeGuaranteedRef { unsafe $0.following = unsafe oldestFirst }
      unsafe oldestFirst = unsafe entry
    }
    while let entry = unsafe oldestFirst {
      let channel = unsafe entry.takeRetainedValue()
      unsafe oldestFirst = unsafe channel.following
      // The channel can be pushed again from here on; `deliver` sees everything before.
      channel.didLeaveQueue()
      channel.deliver()
    }
  }
}
