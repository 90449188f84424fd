internal import MillraceCore

/// All problems found in one pass, so that a user can fix them together.
///
/// An error itself, for functions that may fail for several reasons at once. Sources are distinguished by their names.
public struct Problems: Error, Sendable, CustomStringConvertible {
  private var found: [Problem] = []

  /// No problems yet.
  public init() {}

  /// A collection of some problems.
  public init(_ problems: some Sequence<Problem>) {
    found = Array(problems)
  }

  /// Adds one problem.
  public mutating func append(_ problem: Problem) {
    found.append(problem)
  }

  /// Adds all problems of another collection.
  public mutating func append(contentsOf problems: Problems) {
    found.append(contentsOf: problems.found)
  }

  /// The maximum number of problems reported for one graph; of the rest, only the count is.
  static let maxReported = 1_000
  /// The maximum number of problems shown with an excerpt; the rest take one line each.
  static let maxExcerpts = 100

  /// The same problems without secrets in texts and excerpts, at most `maxReported` of them, errors first.
  /// - Parameter places: where secrets are written.
  func redacting(_ secrets: Secrets, writtenAt places: [Place]) -> Problems {
    var all = sorted
    if all.count > Self.maxReported {
      all = all.filter { $0.severity == .error } + all.filter { $0.severity == .warning }
    }
    var hiddenRanges: [String: [Range<Int>]] = [:]
    var reported: [Problem] = []
    for problem in all.prefix(Self.maxReported) {
      // All problems of a source share one array.
      if let source = problem.source, hiddenRanges[source.name] == nil {
        hiddenRanges[source.name] = places.compactMap { $0.range(in: source) }
      }
      let hidden = problem.source.flatMap { hiddenRanges[$0.name] } ?? []
      reported.append(problem.redacting(secrets, hiding: hidden))
    }
    let rest = all.dropFirst(Self.maxReported)
    if let first = rest.first {
      reported.append(
        Problem(
          "\(rest.count) more problems are not shown", code: .moreProblems, severity: first.severity,
          in: first.source, range: first.range, hint: "fix these first"))
    }
    return Problems(reported)
  }

  /// The same problems with other names in their texts.
  func replacing(_ names: [String: String]) -> Problems { Problems(found.map { $0.replacing(names) }) }

  /// Whether there is no problem, not even a warning.
  public var isEmpty: Bool { found.isEmpty }

  /// Whether one of the problems is an error.
  public var hasErrors: Bool { found.contains { $0.severity == .error } }

  /// The problems without duplicates, sorted by the name of the source and the place in it; those without a source come first.
  ///
  /// There are duplicates when a file is included twice.
  public var sorted: [Problem] {
    var seen: Set<Problem> = []
    return found.filter { seen.insert($0).inserted }.sorted(by: Self.precedes)
  }

  /// One line for each problem, then a line with their number (`2 errors, 1 warning`). Empty when there are none.
  public var description: String { rendered() }

  /// The problems as text, ending in a line with their number, without a final line break. Empty when there are none.
  ///
  /// - Parameter excerpts: whether to show the first 100 problems with their source line and a caret under the place.
  public func rendered(excerpts: Bool = false) -> String {
    let problems = sorted
    if problems.isEmpty { return "" }
    let lines = problems.enumerated().map { index, problem in
      excerpts && index < Self.maxExcerpts ? problem.excerpt : problem.description
    }
    return (lines + [Self.countLine(of: problems)]).joined(separator: "\n")
  }

  /// The problems as a JSON document for editors and other tools.
  ///
  /// An object with `problems` (in the order of `sorted`), `errors` and `warnings` (their numbers). Each problem has `severity`,
  /// `code` and `text`, and where known `hint`, `path`, `file`, `line`, `column`, `endLine` and `endColumn` (one past the last
  /// character).
  public func json(pretty: Bool = false) -> String {
    let problems = sorted
    var json = JSONWriter(pretty: pretty)
    json.object { json in
      json.array("problems") { json in
        for problem in problems { problem.write(to: &json) }
      }
      json.member("errors", problems.count { $0.severity == .error })
      json.member("warnings", problems.count { $0.severity == .warning })
    }
    return json.text
  }

  private static func countLine(of problems: [Problem]) -> String {
    func counted(_ count: Int, _ noun: String) -> String? {
      count == 0 ? nil : "\(count) \(noun)\(count == 1 ? "" : "s")"
    }
    let errors = counted(problems.count { $0.severity == .error }, "error")
    let warnings = counted(problems.count { $0.severity == .warning }, "warning")
    return [errors, warnings].compactMap(\.self).joined(separator: ", ")
  }

  private static func precedes(_ left: Problem, _ right: Problem) -> Bool {
    let leftName = left.source?.name ?? ""
    let rightName = right.source?.name ?? ""
    if leftName != rightName { return leftName < rightName }
    if left.range.lowerBound != right.range.lowerBound {
      return left.range.lowerBound < right.range.lowerBound
    }
    if left.severity != right.severity { return left.severity < right.severity }
    return left.text < right.text
  }
}

extension Problem {
  /// Writes the problem as one object.
  fileprivate func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("severity", severity.rawValue)
      json.member("code", code.rawValue)
      json.member("text", text)
      if let hint { json.member("hint", hint) }
      if !path.isEmpty { json.member("path", path.description) }
      guard let source else { return }
      let start = source.position(of: range.lowerBound)
      let end = source.position(of: range.upperBound)
      json.member("file", source.name)
      json.member("line", start.line)
      json.member("column", start.column)
      json.member("endLine", end.line)
      json.member("endColumn", end.column)
    }
  }
}
