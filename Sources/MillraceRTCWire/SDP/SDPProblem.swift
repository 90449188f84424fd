/// Why a text is no session description. The text quotes nothing that the peer sent beyond the name of an attribute, for a description
/// contains passwords.
public struct SDPProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// The line, from 1; 0: the description as a whole.
  public var line: Int
  /// What is wrong, and the cure.
  public var text: String

  /// Creates a problem.
  public init(line: Int, _ text: String) {
    self.line = line
    self.text = text
  }

  /// For example `SDP line 3: the port is not a number from 0 to 65535`.
  public var description: String { line == 0 ? "SDP: \(text)" : "SDP line \(line): \(text)" }
}

/// Something in a description that was skipped, and did not make it useless.
public struct SDPNote: Sendable, Hashable, CustomStringConvertible {
  /// The line, from 1.
  public var line: Int
  /// What was skipped, and why.
  public var text: String

  /// For example `SDP line 40: the candidate is skipped: its port is not a number from 0 to 65535`.
  public var description: String { "SDP line \(line): \(text)" }
}

/// Limits on what is read of an untrusted description. A description of a browser with sound, a picture and data has about 8 KB, 3 media
/// and 30 candidates; that of a conference with 50 participants about 150 KB.
public enum SDPLimits {
  /// Bytes of a description.
  public static let bytes = 256 * 1024
  /// Bytes of a line without its end.
  public static let lineBytes = 8192
  /// m-lines of a description.
  public static let media = 64
  /// Candidates of a description that are kept; further ones are counted.
  public static let candidates = 1000
  /// Notes that are kept.
  static let notes = 64
  /// Synchronization sources of a medium that are kept.
  static let sources = 256
}
