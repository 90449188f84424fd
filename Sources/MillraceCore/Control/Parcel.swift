internal import Synchronization

/// Carries a non-copyable value to the thread that will own it.
package final class Parcel<Content: ~Copyable & Sendable>: Sendable {
  private let content: Mutex<Content?>

  package init(_ content: consuming Content) { self.content = Mutex(consume content) }

  /// Removes the value; nil when it has already been taken.
  package func take() -> Content? { content.withLock { $0.take() } }
}
