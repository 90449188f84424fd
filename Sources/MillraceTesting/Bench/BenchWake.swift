internal import Dispatch
internal import MillraceCore
internal import Synchronization

/// Receives wake-ups that come from threads of the node under test.
final class BenchWake: RemoteWake, @unchecked Sendable {
  private let isPending = Atomic<Bool>(false)
  private let bell = DispatchSemaphore(value: 0)

  override func wake(_ index: Int) {
    if !isPending.exchange(true, ordering: .acquiringAndReleasing) { bell.signal() }
  }

  /// True once after wake-ups.
  func take() -> Bool { isPending.exchange(false, ordering: .acquiringAndReleasing) }

  /// Waits for the next wake-up, at most so long; false when none came. May return early.
  @discardableResult
  func wait(_ time: Nanoseconds) -> Bool {
    bell.wait(timeout: .now() + .nanoseconds(Int(time))) == .success
  }
}
