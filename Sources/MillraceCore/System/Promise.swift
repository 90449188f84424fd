internal import CMillraceSys

/// A value that one thread fulfills once and another thread waits for.
package final class Promise<Value: Sendable>: Sendable {
  /// 1 after `fulfill`.
  private let state = Futex()
  private let value = Locked<Value?>(nil)

  package init() {}

  /// Sets the value and wakes the waiting thread. Later calls have no effect.
  package func fulfill(_ result: Value) {
    value.withLock { if $0 == nil { $0 = result } }
    state.store(1)
    state.wake()
  }

  /// True after `fulfill`.
  package var isFulfilled: Bool { state.load() != 0 }

  /// Waits for the value at most `time` nanoseconds; nil when it did not arrive in time.
  package func wait(_ time: Nanoseconds) -> Value? {
    let end = millrace_monotonic_ns() + time
    while !isFulfilled {
      let left = end - millrace_monotonic_ns()
      guard left > 0 else { return nil }
      state.wait(while: 0, for: left)
    }
    return value.withLock { $0 }
  }

  /// Runs asynchronous work and blocks the calling thread until it returns: for a command whose thread has nothing else to do.
  /// Never call it on a thread of Swift's cooperative pool: the pool would lose a thread.
  package static func runBlocking(_ work: @escaping @Sendable () async -> Value) -> Value {
    let promise = Promise()
    Task.detached { promise.fulfill(await work()) }
    while true {
      if let value = promise.value.withLock({ $0 }) { return value }
      promise.state.wait(while: 0)
    }
  }
}
