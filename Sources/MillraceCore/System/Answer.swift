internal import CMillraceSys

/// One answer that one thread gives and another one waits for.
package final class Answer<Value: Sendable>: Sendable {
  /// 1 once it was given.
  private let given = WaitWord()
  private let value = Locked<Value?>(nil)

  package init() {}

  /// Gives the answer. The first one counts.
  package func give(_ answer: Value) {
    value.withLock { if $0 == nil { $0 = answer } }
    given.store(1)
    given.wake()
  }

  /// True once it was given.
  package var isGiven: Bool { given.load() != 0 }

  /// Waits; nil when the time is up.
  package func wait(_ time: Nanoseconds) -> Value? {
    let end = millrace_monotonic_ns() + time
    while !isGiven {
      let left = end - millrace_monotonic_ns()
      guard left > 0 else { return nil }
      given.wait(while: 0, for: left)
    }
    return value.withLock { $0 }
  }

  /// Runs asynchronous work and waits for what comes of it, however long that takes: for a command, whose thread has nothing else to do.
  /// Not on a thread of Swift's own pool, where the work would have one less to run on.
  package static func of(_ work: @escaping @Sendable () async -> Value) -> Value {
    let answer = Answer()
    Task.detached { answer.give(await work()) }
    while true {
      if let value = answer.value.withLock({ $0 }) { return value }
      answer.given.wait(while: 0)
    }
  }
}
