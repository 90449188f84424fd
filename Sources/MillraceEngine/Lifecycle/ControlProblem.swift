/// Why a request to a running graph was refused: a code to act on, and a message.
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
    /// Only number parameters can be ramped.
    case notNumber
    /// The handle belongs to a different node type.
    case foreignHandle
    /// A message is too long, or too many are in flight.
    case messageRefused
    /// The node has not read its earlier messages yet; try again later.
    case mailboxFull
    /// The node has ended.
    case nodeEnded
    /// The run has stopped.
    case runStopped
    /// No node of the graph plays replies, so none can be ducked.
    case noPlayback
    /// The node is not an end of the graph that the program asked for.
    case notAppEnd
    /// The graph has no link of this name.
    case unknownLink
    /// The system refused to start a thread.
    case noThread
    /// Something else; see the text.
    case other
  }

  /// What was refused, why, and the cure if there is one.
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
