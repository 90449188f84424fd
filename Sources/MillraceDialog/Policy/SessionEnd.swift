public import MillraceCore
internal import Synchronization

/// How what a service node does came to its end: told once by whoever keeps the connection, on a thread of its own, and carried out by
/// the node.
@safe
public final class SessionEnd: Sendable {
  /// What the node fails with, and in which words.
  public struct Failure: Sendable, Hashable {
    /// What it throws.
    public var fault: NodeFault
    /// What it says to that.
    public var text: String

    /// A failure of this fault.
    public init(_ fault: NodeFault, _ text: String) {
      self.fault = fault
      self.text = text
    }
  }

  private let waker: Waker
  private let isOver = Atomic<Bool>(false)
  private let failure = Locked<Failure?>(nil)

  /// - Parameter waker: of the node, which is called when the end is told.
  public init(waker: Waker) { self.waker = waker }

  /// There will be nothing any more, and why; nil: it was meant to end. Any thread, once, behind everything else that is handed to the
  /// node.
  public func tell(_ failure: Failure?) {
    self.failure.withLock { $0 = failure }
    isOver.store(true, ordering: .releasing)
    waker.wake()
  }

  /// True once it has been told: whatever went before it is seen by who sees this.
  public var isTold: Bool { isOver.load(ordering: .acquiring) }

  /// What the node answers once it has handed on everything. Throws what it failed with.
  public func conclude() throws(NodeFault) -> Outcome {
    if let failure = failure.withLock({ $0 }) { throw failure.fault }
    return .ended
  }

  /// The words for a fault, when it is the one that was told. Control side.
  public func explain(_ fault: NodeFault) -> String? {
    failure.withLock { $0.flatMap { $0.fault == fault ? $0.text : nil } }
  }
}
