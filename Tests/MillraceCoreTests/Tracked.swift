import Synchronization

/// Passes one value that cannot be copied into a closure that runs once.
final class Box<Value: ~Copyable>: @unchecked Sendable {
  private var value: Value?
  init(_ value: consuming Value) { self.value = consume value }
  func take() -> Value { value.take()! }
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
