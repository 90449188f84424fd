public import Synchronization

/// A statistic with one writer and any number of readers: adding is a plain load and store, never a locked instruction.
public struct Counter: ~Copyable, Sendable {
  @usableFromInline let value = Atomic<Int>(0)

  /// Begins at 0.
  @inlinable public init() {}

  /// The count now. Any thread.
  @inlinable public var current: Int { value.load(ordering: .relaxed) }

  /// Adds to the count. Only the writer.
  @inlinable public borrowing func add(_ amount: Int = 1) {
    value.store(value.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
  }

  /// Sets the value. Only the writer.
  @inlinable public borrowing func set(_ amount: Int) {
    value.store(amount, ordering: .relaxed)
  }

  /// Raises the value to at least `amount`. Only the writer.
  @inlinable public borrowing func raise(to amount: Int) {
    if amount > value.load(ordering: .relaxed) { value.store(amount, ordering: .relaxed) }
  }
}
