internal import MillraceCore

/// All problems found in one go, so that a user mends a file once and not once per mistake.
///
/// It is an error itself, for functions that refuse something for more than one reason. Sources are told apart by name.
public struct Problems: Error, Sendable, CustomStringConvertible {
  private var found: [Problem] = []

  /// No problems yet.
  public init() {}

  /// A collection of problems that were found elsewhere.
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

  /// How many problems are told of one graph; of more only the number.
  static let mostTold = 1_000
  /// How many problems are shown with their source lines; the others in a line each.
  static let mostExcerpts = 100

  /// The same without secrets, in words and excerpts, and no more than `mostTold`: warnings give way to errors.
  /// - Parameter places: where secrets were written.
  func without(_ secrets: Secrets, writtenAt places: [Place]) -> Problems {
    var all = sorted
    if all.count > Self.mostTold {
      all = all.filter { $0.severity == .error } + all.filter { $0.severity == .warning }
    }
    var hidden: [String: [Range<Int>]] = [:]
    var told: [Problem] = []
    for problem in all.prefix(Self.mostTold) {
      // Every problem of a source shares one list.
      if let source = problem.source, hidden[source.name] == nil {
        hidden[source.name] = places.compactMap { $0.range(in: source) }
      }
      told.append(problem.without(secrets, hiding: problem.source.flatMap { hidden[$0.name] } ?? []))
    }
    let rest = all.dropFirst(Self.mostTold)
    if !rest.isEmpty {
      told.append(
        Problem(
          "\(rest.count) more are not told", severity: rest.first?.severity ?? .error,
          in: rest.first?.source, range: rest.first?.range ?? 0..<0, hint: "mend these first"))
    }
    return Problems(told)
  }

  /// Whether nothing was found, not even a warning.
  public var isEmpty: Bool { found.isEmpty }

  /// Whether something was found that refuses the graph.
  public var hasErrors: Bool { found.contains { $0.severity == .error } }

  /// Every problem once, ordered by the name of the source and the place in it; problems without a source come first.
  ///
  /// The same problem is found twice when a file is included twice; it is told once.
  public var sorted: [Problem] {
    var seen: Set<Problem> = []
    return found.filter { seen.insert($0).inserted }.sorted(by: Self.standsBefore)
  }

  /// The problems, one a line, then the count line (`2 errors, 1 warning`). Empty when there are none.
  public var description: String { rendered() }

  /// The problems as text for people, ending in the count line, without a final line break. Empty when there are none.
  ///
  /// - Parameter excerpts: whether each of the first 100 problems is followed by its source line with a caret under the place.
  public func rendered(excerpts: Bool = false) -> String {
    let problems = sorted
    if problems.isEmpty { return "" }
    let lines = problems.enumerated().map { index, problem in
      excerpts && index < Self.mostExcerpts ? problem.excerpt : problem.description
    }
    return (lines + [Self.countLine(of: problems)]).joined(separator: "\n")
  }

  /// The problems as one JSON document for editors and other tools.
  ///
  /// An object with `problems` (in the order of `sorted`), `errors` and `warnings` (their numbers). Each problem has `severity`
  /// and `text`, and where known `hint`, `path`, `file`, `line`, `column`, `endLine` and `endColumn` (one behind the last
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

  private static func standsBefore(_ left: Problem, _ right: Problem) -> Bool {
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
