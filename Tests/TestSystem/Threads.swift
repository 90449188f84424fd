import Dispatch
import Foundation
import Synchronization

/// Runs the bodies on threads of their own, all let go at the same moment, and returns when all are done.
///
/// Real threads behind a spinning barrier: only then do they overlap, and only then does the thread sanitizer see a race.
/// One group at a time in the whole run: groups side by side would only take the processors from each other.
public func runTogether(_ bodies: [@Sendable () -> Void]) {
  turn.lock()
  defer { turn.unlock() }
  let ready = Arrivals()
  let group = DispatchGroup()
  for body in bodies {
    group.enter()
    let thread = Thread {
      ready.count.add(1, ordering: .acquiringAndReleasing)
      spin { ready.count.load(ordering: .acquiring) == bodies.count }
      body()
      group.leave()
    }
    thread.start()
  }
  group.wait()
}

private let turn = NSLock()

/// Waits for a condition without sleeping; gives the processor away when it takes long, for machines with few of them.
public func spin(until condition: () -> Bool) {
  var turns = 0
  while !condition() {
    turns += 1
    if turns % 256 == 0 { sched_yield() }
  }
}

private final class Arrivals: Sendable {
  let count = Atomic<Int>(0)
}

/// A sum that any thread adds to.
public final class Tally: Sendable {
  private let value = Atomic<Int>(0)
  /// A sum of nothing yet.
  public init() {}
  /// What was added so far.
  public var count: Int { value.load(ordering: .acquiring) }
  /// Adds; any thread.
  public func add(_ amount: Int = 1) { value.add(amount, ordering: .relaxed) }
}
