internal import MillraceCore

/// One error or warning about what a user wrote: where, what, and how to fix it.
///
/// Collected in `Problems`, and shown as one line (`description`), with the source line under it (`excerpt`), or as JSON for tools
/// (`Problems.json`). Programs and tests compare the `code`; texts may change.
///
/// A text starts in lower case, quotes names with `Problem.quoted(_:)`, gives numbers with their unit, and contains no secret.
public struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
  /// Whether a problem refuses the graph.
  public enum Severity: String, Sendable, Hashable, Comparable {
    /// The graph is refused.
    case error
    /// The graph runs, but probably not as intended.
    case warning

    /// Errors sort before warnings.
    public static func < (left: Severity, right: Severity) -> Bool { left == .error && right == .warning }
  }

  /// Whether the problem refuses the graph.
  public let severity: Severity
  /// What kind of problem it is.
  public let code: Code
  /// The source it is in; nil for a graph built in Swift, and for a file that could not be read.
  public let source: SourceFile?
  /// The bytes of the source it is about; empty at the end of a file.
  public let range: Range<Int>
  /// The JSON value it is about; empty for the whole document.
  public let path: JSONPath
  /// What is wrong.
  public let text: String
  /// How to fix it, as an instruction.
  public let hint: String?
  /// What its excerpt must not show, and the ranges of its source that may contain it.
  private(set) var secrets: Secrets?
  private(set) var hiddenRanges: [Range<Int>] = []

  /// A problem in a source or, without one, at a path.
  public init(
    _ text: String, code: Code = .other, severity: Severity = .error, in source: SourceFile? = nil,
    range: Range<Int> = 0..<0, path: JSONPath = JSONPath(), hint: String? = nil
  ) {
    self.code = code
    self.severity = severity
    self.source = source
    self.range = range
    self.path = path
    self.text = text
    self.hint = hint
  }

  /// The problem of a file that could not be read. It has no source; its text names the file.
  public init(_ problem: FileProblem) {
    self.init(problem.text, code: .unreadableFile, hint: problem.hint)
  }

  /// The same problem without secrets in its text and its excerpt.
  /// - Parameter hiddenRanges: where secrets are written in its source.
  func redacting(_ secrets: Secrets, hiding hiddenRanges: [Range<Int>]) -> Problem {
    var problem = withTexts { secrets.redacting($0) }
    problem.secrets = secrets
    problem.hiddenRanges = hiddenRanges
    return problem
  }

  /// The same problem with other names in its text and its hint.
  func replacing(_ names: [String: String]) -> Problem {
    withTexts { text in names.reduce(text) { $0.replacing($1.key, with: $1.value) } }
  }

  private func withTexts(_ change: (String) -> String) -> Problem {
    var problem = Problem(
      change(text), code: code, severity: severity, in: source, range: range, path: path,
      hint: hint.map(change))
    problem.secrets = secrets
    problem.hiddenRanges = hiddenRanges
    return problem
  }

  /// The line and column of its first byte; nil without a source.
  public var position: SourceFile.Position? { source?.position(of: range.lowerBound) }

  /// One line: `graph.json:12:7: error: TEXT; HINT`. Without a source it starts with the JSON path.
  ///
  /// Control characters are escaped, so that a file cannot control the terminal.
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

  /// Problems are equal when they have the same text and hint at the same place of sources with the same name.
  public static func == (left: Problem, right: Problem) -> Bool {
    left.severity == right.severity && left.source?.name == right.source?.name && left.range == right.range
      && left.path == right.path && left.text == right.text && left.hint == right.hint
  }

  /// Hashes a part of what `==` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(source?.name)
    hasher.combine(range)
    hasher.combine(text)
  }
}

extension Problem {
  /// The maximum length of a quoted name in characters; a longer one would bury the message.
  static let maxNameLength = 80

  /// A name in double quotes as problems show it: control characters escaped as in JSON, names over 80 characters shortened.
  public static func quoted(_ name: String) -> String {
    let scalars = name.unicodeScalars
    guard scalars.count > maxNameLength else { return "\"\(printable(name))\"" }
    var start = String.UnicodeScalarView()
    start.append(contentsOf: scalars.prefix(maxNameLength - 1))
    return "\"\(printable(String(start)))…\""
  }

  /// A text with its control characters (general category Cc, the directional overrides and the line separators) replaced by JSON
  /// escapes.
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

  /// Whether a scalar moves the cursor, changes the direction of text or starts a terminal command.
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
