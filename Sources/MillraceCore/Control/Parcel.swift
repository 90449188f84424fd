internal import Synchronization

/// A value that may not be copied, on its way to the thread that will own it.
package final class Parcel<Content: ~Copyable & Sendable>: Sendable {
  private let content: Mutex<Content?>

  package init(_ content: consuming Content) { self.content = Mutex(consume content) }

  /// Takes the value out; nil when it has been taken.
  package func take() -> Content? { content.withLock { $0.take() } }
}
