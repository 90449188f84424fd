import Dispatch
import Foundation
import Synchronization

/// Passes one value that cannot be copied into a closure that runs once.
final class Box<Value: ~Copyable>: @unchecked Sendable {
  private var value: Value?
  init(_ value: consuming Value) { self.value = consume value }
  func take() -> Value { value.take()! }
}

/// Runs the bodies on threads of their own, all let go at the same moment, and returns when all are done.
///
/// Real threads behind a spinning barrier: only then do they overlap, and only then does the thread sanitizer see a race.
/// One group at a time in the whole run: groups side by side would only take the processors from each other.
func runTogether(_ bodies: [@Sendable () -> Void]) {
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
func spin(until condition: () -> Bool) {
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
final class Tally: Sendable {
  private let value = Atomic<Int>(0)
  var count: Int { value.load(ordering: .acquiring) }
  func add(_ amount: Int = 1) { value.add(amount, ordering: .relaxed) }
}

/// Counts how many `Tracked` values live.
final class LiveCount: Sendable {
  let value = Atomic<Int>(0)
  var current: Int { value.load(ordering: .relaxed) }
}

/// A value that cannot be copied and is counted while it lives.
struct Tracked: ~Copyable {
  let number: Int
  private let live: LiveCount

  init(_ number: Int, _ live: LiveCount) {
    self.number = number
    self.live = live
    live.value.add(1, ordering: .relaxed)
  }

  deinit { live.value.subtract(1, ordering: .relaxed) }
}
