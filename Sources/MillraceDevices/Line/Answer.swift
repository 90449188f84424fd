internal import CMillraceSys
internal import MillraceCore

/// One answer that one thread gives and another one waits for, bounded in time.
final class Answer<Value: Sendable>: Sendable {
  /// 1 once it was given.
  private let given = WaitWord()
  private let value = Locked<Value?>(nil)

  /// Gives the answer. The first one counts.
  func give(_ answer: Value) {
    value.withLock { if $0 == nil { $0 = answer } }
    given.store(1)
    given.wake()
  }

  /// True once it was given.
  var isGiven: Bool { given.load() != 0 }

  /// Waits; nil when the time is up.
  func wait(_ time: Nanoseconds) -> Value? {
    let end = millrace_monotonic_ns() + time
    while given.load() == 0 {
      let left = end - millrace_monotonic_ns()
      guard left > 0 else { return nil }
      given.wait(while: 0, for: left)
    }
    return value.withLock { $0 }
  }
}
