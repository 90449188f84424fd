/// Why a running graph was not changed, and the cure. The graph is unchanged.
public struct EditProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of problem it is; tests and programs compare these.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// A link is not written as `from -> to`.
    case badLink
    /// No node, part or run has that name.
    case unknownNode
    /// The node has no such port, or several.
    case unknownPort
    /// The name of a part is empty, invalid or taken.
    case badName
    /// The output has no format: it carries nothing.
    case nothingCarried
    /// The node was created with that input unlinked.
    case unlinkedInput
    /// The formats of the two ends differ, or the packets are larger than the reader was created for.
    case otherFormat
    /// The input is linked already.
    case alreadyLinked
    /// There is no such link to remove.
    case notLinked
    /// The links would close a cycle in which each node waits for the other.
    case cycle
    /// A link cannot block behind a source that cannot wait, or its capacity is out of range.
    case badTerms
    /// The graph of a part fails the checks, or one of its nodes could not be created.
    case badGraph
    /// The memory limit does not allow it, or the system refused the memory.
    case memory
    /// The run has not been started.
    case notStarted
    /// The run, part or node has ended, or is about to.
    case ended
    /// The two runs belong to different engines.
    case otherEngine
    /// On a virtual clock: the two runs have different clocks.
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
