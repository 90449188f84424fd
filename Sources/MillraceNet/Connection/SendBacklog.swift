internal import Synchronization

/// Counts the bytes that a connection has accepted and not yet sent, and refuses more beyond a limit. Any thread.
final class SendBacklog: Sendable {
  private let limit: Int
  private let queued = Atomic<Int>(0)
  private let wasRefused = Atomic<Bool>(false)

  init(limit: Int) { self.limit = limit }

  /// Bytes waiting.
  var bytes: Int { queued.load(ordering: .relaxed) }

  /// True when nothing waits. After a refusal: everything was sent in between, so the caller has to call `subtract` with 0, because no
  /// other call would report it.
  var isEmpty: Bool { queued.load(ordering: .sequentiallyConsistent) == 0 }

  /// Adds bytes, unless they exceed the limit. More than the limit is accepted when nothing else waits.
  func add(_ count: Int) -> Bool {
    let before = queued.load(ordering: .relaxed)
    guard before == 0 || before + count <= limit else {
      wasRefused.store(true, ordering: .sequentiallyConsistent)
      return false
    }
    queued.add(count, ordering: .relaxed)
    return true
  }

  /// Subtracts bytes that were sent or discarded. Returns true when, after a refusal, at most half of the limit waits: once for any
  /// number of refusals.
  func subtract(_ count: Int) -> Bool {
    let left = queued.subtract(count, ordering: .sequentiallyConsistent).newValue
    return left <= limit / 2 && wasRefused.exchange(false, ordering: .sequentiallyConsistent)
  }
}
