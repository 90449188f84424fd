internal import MillraceCore

/// The one thread of a device that has no server's: begun once, told to end, waited for.
final class DeviceThread: Sendable {
  /// Longest wait for its end, nanoseconds.
  private static let patience: Nanoseconds = 3_000_000_000

  private let order = Answer<Bool>()
  private let ended = Answer<Bool>()

  /// True once it is to end.
  var isOver: Bool { order.isGiven }

  /// Runs a body on the thread, before ordinary threads where the system allows it. The body looks at `isOver`.
  func start(_ name: String, _ body: @escaping @Sendable () -> Void) throws(NodeProblem) {
    let refusal = OwnThread.start(name) { [self] in
      SoundThread.hurry()
      body()
      ended.give(true)
    }
    guard refusal == 0 else {
      throw NodeProblem("the system has no thread left", cure: "raise the limit of processes (ulimit -u)")
    }
  }

  /// Lets time pass on the thread itself, until it is to end.
  func pause(_ time: Nanoseconds) { _ = order.wait(time) }

  /// Says that it is to end.
  func askToEnd() { order.give(true) }

  /// Says that it is to end, and waits for that. A thread that a driver does not let go of is left behind after three seconds.
  func stop() {
    askToEnd()
    _ = ended.wait(Self.patience)
  }
}
