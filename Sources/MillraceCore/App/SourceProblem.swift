/// Why a source did not accept everything that a program sent.
public struct SourceProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// The code of a problem, for programs to compare.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// The source has another format.
    case wrongFormat
    /// The data exceeds the largest packet of the source (`maxBytes`).
    case tooLarge
    /// `finish()` has been called.
    case finished
    /// The graph drains: its sources have ended.
    case ended
    /// The run has stopped.
    case stopped
    /// The sending task was cancelled while it waited. What it had queued remains queued.
    case cancelled
  }

  /// The code of the problem.
  public let code: Code
  /// What is wrong and what to do.
  public let text: String

  /// Creates a problem from a code and its message.
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
      case .finished: "source \"\(node)\" is finished; send before calling finish()"
      case .ended: "source \"\(node)\" has ended because the graph drains; start another run to send more"
      case .stopped: "source \"\(node)\" has ended because the run has stopped"
      case .cancelled: "the task was cancelled while waiting for room in source \"\(node)\""
      case .wrongFormat: "source \"\(node)\" has another format"
      case .tooLarge: "the data exceeds the largest packet of source \"\(node)\""
      }
    return SourceProblem(code, text)
  }
}

/// The result of a send without waiting.
public struct SendResult: Sendable, Hashable {
  /// Packets queued for the graph. An incomplete packet of PCM waits for the next send.
  public var queued = 0
  /// Packets dropped because there was no room.
  public var dropped = 0

  /// Creates a result without packets.
  public init() {}
}
