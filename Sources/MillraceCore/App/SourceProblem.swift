/// Why a source took nothing, or not all, of what a program sent.
public struct SourceProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong; what a program compares.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// The source carries another format.
    case wrongFormat
    /// It is more than one packet of the source holds (`maxBytes`).
    case tooLarge
    /// `finish()` was called before.
    case finished
    /// The graph drains: its sources have ended.
    case ended
    /// The run has stopped.
    case stopped
    /// The sending task was cancelled while it waited. What was queued before stays queued.
    case cancelled
  }

  /// What is wrong.
  public let code: Code
  /// What is wrong, where, and what to do.
  public let text: String

  /// A problem as text.
  public init(_ code: Code, _ text: String) {
    self.code = code
    self.text = text
  }

  public var description: String { text }
}

extension SourceProblem {
  static func of(_ code: Code, _ node: String) -> SourceProblem {
    let text =
      switch code {
      case .finished: "source \"\(node)\" was finished; send before finish()"
      case .ended: "source \"\(node)\" has ended: the graph drains; start another run to send more"
      case .stopped: "source \"\(node)\" takes nothing more: the run has stopped"
      case .cancelled: "the task was cancelled while it waited for room in source \"\(node)\""
      case .wrongFormat: "source \"\(node)\" carries another format"
      case .tooLarge: "it is more than a packet of source \"\(node)\" holds"
      }
    return SourceProblem(code, text)
  }
}

/// What became of packets that a program sent without waiting.
public struct SendResult: Sendable, Hashable {
  /// Whole packets that are queued for the graph. A shorter remainder of PCM waits for the next send.
  public var queued = 0
  /// Whole packets that had no room, and are gone.
  public var dropped = 0

  /// Nothing was sent.
  public init() {}
}
