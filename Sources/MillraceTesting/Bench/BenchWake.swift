internal import Dispatch
internal import MillraceCore
internal import Synchronization

/// Receives wake-ups from threads of the node under test.
final class BenchWake: RemoteWake, @unchecked Sendable {
  private let isPending = Atomic<Bool>(false)
  private let semaphore = DispatchSemaphore(value: 0)

  override func wake(_ index: Int) {
    if !isPending.exchange(true, ordering: .acquiringAndReleasing) { semaphore.signal() }
  }

  /// True once after one or more wake-ups.
  func take() -> Bool { isPending.exchange(false, ordering: .acquiringAndReleasing) }

  /// Waits for the next wake-up, at most `time` nanoseconds; false when none came. May return early.
  @discardableResult
  func wait(_ time: Nanoseconds) -> Bool {
    semaphore.wait(timeout: .now() + .nanoseconds(Int(time))) == .success
  }
}
