public import MillraceCore
internal import Synchronization

/// How the session of a service node ended: reported once by its connection, on another thread, and applied by the node.
@safe
public final class SessionEnd: Sendable {
  /// The failure of a node.
  public struct Failure: Sendable, Hashable {
    /// The fault it throws.
    public var fault: NodeFault
    /// The message for the fault.
    public var text: String

    /// Creates a failure.
    public init(_ fault: NodeFault, _ text: String) {
      self.fault = fault
      self.text = text
    }
  }

  private let waker: Waker
  private let isOver = Atomic<Bool>(false)
  private let failure = Locked<Failure?>(nil)

  /// - Parameter waker: of the node; called when the end is reported.
  public init(waker: Waker) { self.waker = waker }

  /// Reports the end; nil: it was intended. Any thread, once, after everything else that is handed to the node.
  public func report(_ failure: Failure?) {
    self.failure.withLock { $0 = failure }
    isOver.store(true, ordering: .releasing)
    waker.wake()
  }

  /// True once the end was reported. Everything handed to the node before is then visible to the caller.
  public var isReported: Bool { isOver.load(ordering: .acquiring) }

  /// What the node returns once it has delivered everything; throws the failure, if there is one.
  public func conclude() throws(NodeFault) -> Outcome {
    if let failure = failure.withLock({ $0 }) { throw failure.fault }
    return .ended
  }

  /// The message for a fault, if it is the reported one. Control side.
  public func explain(_ fault: NodeFault) -> String? {
    failure.withLock { $0.flatMap { $0.fault == fault ? $0.text : nil } }
  }
}
