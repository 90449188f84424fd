internal import Synchronization

/// The thread that resumes tasks of the program when a channel has a packet, or room, for them.
///
/// A worker never resumes a task: that takes a lock and may wake a thread of Swift's pool. It pushes the channel onto a lock-free stack,
/// and wakes this thread if it sleeps. The thread starts with the first channel a program opens, and ends with its engine.
@safe
package final class Courier: @unchecked Sendable {
  private let head = unsafe Atomic<Unmanaged<AppChannel>?>(nil)
  /// 1: the thread sleeps, or is about to.
  private let sleep = WaitWord()
  private let isStopping = Atomic<Bool>(false)
  private let hasThread = Locked(false)

  /// Starts no thread yet.
  package init() {}

  /// Starts the thread unless it runs already. 0, or the `errno` of the system's refusal. Any thread.
  package func start() -> Int32 {
    hasThread.withLock { hasThread in
      guard !hasThread else { return 0 }
      let refusal = OwnThread.start("millrace-courier") { [self] in run() }
      hasThread = refusal == 0
      return refusal
    }
  }

  /// Ends the thread. No run of the engine is left, so no task waits.
  package func stop() {
    isStopping.store(true, ordering: .sequentiallyConsistent)
    wakeThread()
  }

  /// Has a channel delivered to. Any thread; no lock, no allocation; a system call only when the thread sleeps.
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
    // Something was there before: its writer has woken the thread.
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
      // A thread that pushes after this sees the flag; what was pushed before is seen here.
      if unsafe head.load(ordering: .sequentiallyConsistent) == nil {
        if isStopping.load(ordering: .sequentiallyConsistent) { return }
        sleep.wait(while: 1)
      }
      sleep.store(0)
    }
  }

  /// Serves the channels in the order they were pushed.
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
      // From here on it can be pushed again; what happened before is seen below.
      channel.leftQueue()
      channel.deliver()
    }
  }
}
