internal import NIOCore
internal import Synchronization

/// A call that is due on an event loop, and does not run once it was cancelled there.
///
/// SwiftNIO takes everything that is due off its queue before it runs the first of it: a call that is cancelled by another of the same moment
/// would run all the same.
struct LoopTimer: Sendable {
  private final class Flag: Sendable {
    let isCancelled = Atomic<Bool>(false)
  }

  private let flag: Flag
  private let task: Scheduled<Void>

  /// Schedules a call.
  /// - Parameters:
  ///   - loop: where it runs.
  ///   - time: how long from now.
  ///   - body: the call.
  init(on loop: any EventLoop, in time: TimeAmount, _ body: @escaping @Sendable () -> Void) {
    let flag = Flag()
    self.flag = flag
    task = loop.scheduleTask(in: time) {
      if !flag.isCancelled.load(ordering: .relaxed) { body() }
    }
  }

  /// Cancels the call. On the loop it certainly does not run any more; from another thread it may have begun.
  func cancel() {
    flag.isCancelled.store(true, ordering: .relaxed)
    task.cancel()
  }
}
