internal import MillraceCore

/// One thing that is wrong with what a user wrote: where, what, and how to mend it.
///
/// Problems are values made on the control side, gathered in `Problems`, and shown as one line (`description`), with the
/// source line under it (`excerpt`), or as JSON for tools (`Problems.json`).
///
/// Texts start in lower case, quote names with `Problem.quoted(_:)`, give numbers with their unit, and never hold a credential.
public struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
  /// How much a problem weighs.
  public enum Severity: String, Sendable, Hashable, Comparable {
    /// The graph is refused.
    case error
    /// The graph runs, probably not as meant.
    case warning

    /// Errors stand before warnings.
    public static func < (left: Severity, right: Severity) -> Bool { left == .error && right == .warning }
  }

  /// How much the problem weighs.
  public let severity: Severity
  /// The source it is in; nil for what is in no file, such as a graph built in code or a file that could not be opened.
  public let source: SourceFile?
  /// The bytes of the source it is about; empty at the end of a file.
  public let range: Range<Int>
  /// The JSON value it is about; empty when the whole document is meant.
  public let path: JSONPath
  /// What is wrong.
  public let text: String
  /// How to mend it, as an instruction.
  public let hint: String?
  /// What its source line must not show, and parts of its source that may hold some.
  private(set) var secrets: Secrets?
  private(set) var hidden: [Range<Int>] = []

  /// A problem in a source or, without one, about a path alone.
  public init(
    _ text: String, severity: Severity = .error, in source: SourceFile? = nil, range: Range<Int> = 0..<0,
    path: JSONPath = JSONPath(), hint: String? = nil
  ) {
    self.severity = severity
    self.source = source
    self.range = range
    self.path = path
    self.text = text
    self.hint = hint
  }

  /// The problem of a file that could not be read at all; it is in no source, its text names the file.
  public init(_ problem: FileProblem) {
    self.init(problem.text, hint: problem.hint)
  }

  /// The same without secrets, in its words and in what is shown of its source.
  /// - Parameter hidden: where secrets were written in its source.
  func without(_ secrets: Secrets, hiding hidden: [Range<Int>]) -> Problem {
    var problem = Problem(
      secrets.redacting(text), severity: severity, in: source, range: range, path: path,
      hint: hint.map { secrets.redacting($0) })
    problem.secrets = secrets
    problem.hidden = hidden
    return problem
  }

  /// Line and column of its first byte; nil without a source.
  public var position: SourceFile.Position? { source?.position(of: range.lowerBound) }

  /// One line: `graph.json:12:7: error: TEXT; HINT`. Without a source the JSON path stands for the place.
  ///
  /// Control characters are shown as escapes, so that nothing in a file can steer the terminal.
  public var description: String {
    var line = ""
    if let source, let position {
      line += "\(source.name):\(position): "
    } else if !path.isEmpty {
      line += "\(path): "
    }
    line += "\(severity.rawValue): \(text)"
    if let hint { line += "; \(hint)" }
    return Self.printable(line)
  }

  /// Two problems are the same when they say the same about the same place of sources with the same name.
  public static func == (left: Problem, right: Problem) -> Bool {
    left.severity == right.severity && left.source?.name == right.source?.name && left.range == right.range
      && left.path == right.path && left.text == right.text && left.hint == right.hint
  }

  /// Feeds what `==` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(source?.name)
    hasher.combine(range)
    hasher.combine(text)
  }
}

extension Problem {
  /// The longest name shown whole, in characters; anything longer is somebody's file content and would bury the message.
  static let longestName = 80

  /// A name in double quotes as problems show it: control characters escaped as in JSON, very long names shortened.
  public static func quoted(_ name: String) -> String {
    let scalars = name.unicodeScalars
    guard scalars.count > longestName else { return "\"\(printable(name))\"" }
    var start = String.UnicodeScalarView()
    start.append(contentsOf: scalars.prefix(longestName - 1))
    return "\"\(printable(String(start)))…\""
  }

  /// A text without control characters (general category Cc, the directional overrides and the line separators), each
  /// replaced by its JSON escape.
  package static func printable(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isUnprintable) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where isUnprintable(scalar): result += "\\u" + fourDigits(scalar)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// The scalars that would move the cursor, change its direction or start a terminal command.
  static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029, 0x202A...0x202E, 0x2066...0x2069: true
    default: false
    }
  }

  /// At least four upper-case hexadecimal digits.
  static func fourDigits(_ scalar: Unicode.Scalar) -> String {
    let digits = String(scalar.value, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}
