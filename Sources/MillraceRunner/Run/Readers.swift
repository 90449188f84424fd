internal import Dispatch
internal import MillraceCore

/// Tasks that read what runs tell, and the wait for the last of them.
///
/// A run may have stopped while its last events and sound are still to be read.
final class Readers: Sendable {
  private let group = DispatchGroup()

  /// How long the tasks may need for what is left. On a machine that is busy with other things a task may stand still for seconds.
  static let patience: Nanoseconds = .milliseconds(10_000)

  /// Runs a task that reads until there is nothing more.
  func start(_ read: @escaping @Sendable () async -> Void) {
    group.enter()
    Task.detached { [group] in
      await read()
      group.leave()
    }
  }

  /// True when all tasks have ended.
  var areDone: Bool { group.wait(timeout: .now()) == .success }

  /// Waits until all tasks have ended, for `patience` at most; false when one still reads. Not from a task.
  func wait() -> Bool { group.wait(timeout: .now() + .nanoseconds(Int(Self.patience))) == .success }
}
