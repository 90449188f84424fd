internal import Synchronization

/// Counts the bytes that wait to be sent on one connection, and says when a sender has to wait and when it may continue. Any thread.
final class SendBacklog: Sendable {
  enum Verdict {
    /// Counted; the sender may hand the bytes over.
    case accepted
    /// Too much waits; `sent` tells when that has changed.
    case refused
    /// Too much waited, and all of it has been sent meanwhile: `sent` will not tell, so the caller has to.
    case refusedButDrained
  }

  private let limit: Int
  private let queued = Atomic<Int>(0)
  private let wasRefused = Atomic<Bool>(false)

  /// - Parameter limit: bytes that may wait. More are accepted only when nothing waits.
  init(limit: Int) { self.limit = limit }

  /// Bytes that wait.
  var bytes: Int { queued.load(ordering: .relaxed) }

  func add(_ count: Int) -> Verdict {
    let before = queued.load(ordering: .relaxed)
    guard before == 0 || before + count <= limit else {
      wasRefused.store(true, ordering: .sequentiallyConsistent)
      return queued.load(ordering: .sequentiallyConsistent) == 0 ? .refusedButDrained : .refused
    }
    queued.add(count, ordering: .relaxed)
    return .accepted
  }

  /// Bytes were sent or discarded. Returns true when a sender was refused and may continue: half of the limit is free.
  func sent(_ count: Int) -> Bool {
    let left = queued.subtract(count, ordering: .sequentiallyConsistent).newValue
    return left <= limit / 2 && wasRefused.exchange(false, ordering: .sequentiallyConsistent)
  }
}
