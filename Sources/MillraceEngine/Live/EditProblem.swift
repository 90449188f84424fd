/// Why a running graph was not changed: what was asked for, what is wrong with it, and the cure. Nothing has changed then.
public struct EditProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of problem it is; tests and programs compare these.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// A link is not written as `from -> to`.
    case badLink
    /// No node, part or run has that name.
    case unknownNode
    /// The node has no such port, or several.
    case unknownPort
    /// The name of a part is taken, or none.
    case badName
    /// The output carries nothing.
    case nothingCarried
    /// The node was made with that input unlinked.
    case unlinkedInput
    /// The formats of the two ends differ, or the packets are larger than the reader was made for.
    case otherFormat
    /// The input is linked already.
    case alreadyLinked
    /// There is no such link.
    case notLinked
    /// The links would close a cycle in which each node waits for the other.
    case cycle
    /// A link cannot block behind a source that cannot wait, or its capacity is out of range.
    case badTerms
    /// The graph of a part does not pass the checks, or one of its nodes could not be made.
    case badGraph
    /// The memory limit does not allow it.
    case memory
    /// The run has not been started.
    case notStarted
    /// The run, part or node has ended, or is about to.
    case ended
    /// The two runs belong to different engines.
    case otherEngine
    /// On a virtual clock: the two runs keep different times.
    case otherClock
  }

  /// What kind of problem it is.
  public let code: Code
  /// What is wrong.
  public let text: String
  /// What to do.
  public let cure: String?

  /// A problem as text.
  public init(_ code: Code, _ text: String, cure: String? = nil) {
    self.code = code
    self.text = text
    self.cure = cure
  }

  public var description: String { text + (cure.map { "; \($0)" } ?? "") }
}
