/// Why a request to a running graph was refused: a code to act on, and a text for people.
public struct ControlProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of refusal it is.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// The graph has no node of this name.
    case unknownNode
    /// The node has no parameter of this name.
    case unknownParameter
    /// The parameter cannot be set while the graph runs.
    case notLive
    /// The parameter does not take this value.
    case wrongValue
    /// Only parameters that are numbers can be ramped.
    case notNumber
    /// The handle was declared by another node type than the node's.
    case foreignHandle
    /// A message is too long, or too many are on their way.
    case messageRefused
    /// The node has not read its earlier messages yet; the request may be repeated.
    case mailboxFull
    /// The node has ended.
    case nodeEnded
    /// The run has stopped.
    case runStopped
    /// Something else; see the text.
    case other
  }

  /// What was refused, why, and where possible what to do.
  public let text: String
  /// What kind of refusal it is.
  public let code: Code

  /// A refusal with its text.
  public init(_ text: String, _ code: Code = .other) {
    self.text = text
    self.code = code
  }

  public var description: String { text }
}
