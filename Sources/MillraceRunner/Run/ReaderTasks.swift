internal import Dispatch
internal import MillraceCore

/// The tasks that read events and taps of runs. They can be awaited, because a run may have stopped before its last events and sound have
/// been read.
final class ReaderTasks: Sendable {
  private let group = DispatchGroup()

  /// Time limit for reading what remains after the runs have stopped. On a busy machine a task may not run for seconds.
  static let patience: Nanoseconds = .milliseconds(10_000)

  /// Starts a task that reads to the end of its input.
  func start(_ read: @escaping @Sendable () async -> Void) {
    group.enter()
    Task.detached { [group] in
      await read()
      group.leave()
    }
  }

  /// True when all tasks have ended.
  var areDone: Bool { group.wait(timeout: .now()) == .success }

  /// Waits until all tasks have ended, for `patience` at most. Returns false when one is still reading. Do not call it from a task.
  func wait() -> Bool { group.wait(timeout: .now() + .nanoseconds(Int(Self.patience))) == .success }
}
