internal import MillraceCore

/// The thread of a device that has no server thread: started once, asked to stop, joined.
final class DeviceThread: Sendable {
  /// Longest wait for the thread to end, in nanoseconds.
  private static let timeout: Nanoseconds = 3_000_000_000

  private let order = Promise<Bool>()
  private let ended = Promise<Bool>()

  /// True once the thread has been asked to stop.
  var isOver: Bool { order.isFulfilled }

  /// Runs `body` on the thread, with real-time priority where the system allows it. `body` must return once `isOver` is true.
  func start(_ name: String, _ body: @escaping @Sendable () -> Void) throws(NodeProblem) {
    let refusal = DetachedThread.start(name) { [self] in
      AudioThread.raisePriority()
      body()
      ended.fulfill(true)
    }
    guard refusal == 0 else {
      throw NodeProblem(
        "the system cannot create another thread", cure: "raise the limit of processes (ulimit -u)")
    }
  }

  /// Sleeps on the thread itself, until the time has passed or the thread is asked to stop.
  func pause(_ time: Nanoseconds) { _ = order.wait(time) }

  /// Asks the thread to stop.
  func askToEnd() { order.fulfill(true) }

  /// Asks the thread to stop and waits for it. A thread that is stuck in a driver is abandoned after three seconds.
  func stop() {
    askToEnd()
    _ = ended.wait(Self.timeout)
  }
}
