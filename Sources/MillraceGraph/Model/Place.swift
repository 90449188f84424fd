/// Where a name or a value of a graph is written: some bytes of a file, or a path in a graph built in Swift.
///
/// Names and values keep their places until the graph runs, so that problems found later can refer to them.
public struct Place: Sendable {
  private enum Kind: Sendable {
    case file(Origin, start: UInt32, end: UInt32)
    case description(JSONPath)
  }
  private let kind: Kind

  /// A document. A class, since there are thousands of places.
  final class Origin: Sendable {
    let document: JSONDocument
    init(_ document: JSONDocument) { self.document = document }
  }

  /// Bytes of a file.
  init(_ origin: Origin, _ range: Range<Int>) {
    kind = .file(origin, start: UInt32(range.lowerBound), end: UInt32(range.upperBound))
  }

  /// A path in a graph built in Swift.
  init(_ path: JSONPath) { kind = .description(path) }

  /// An error at this place.
  public func error(_ code: Problem.Code, _ text: String, hint: String? = nil) -> Problem {
    problem(.error, code, text, hint)
  }

  /// A warning at this place.
  public func warning(_ code: Problem.Code, _ text: String, hint: String? = nil) -> Problem {
    problem(.warning, code, text, hint)
  }

  private func problem(
    _ severity: Problem.Severity, _ code: Problem.Code, _ text: String, _ hint: String?
  ) -> Problem {
    switch kind {
    case .file(let origin, let start, let end):
      let range = Int(start)..<Int(end)
      let document = origin.document
      return Problem(
        text, code: code, severity: severity, in: document.source, range: range,
        path: document.path(to: range.lowerBound), hint: hint)
    case .description(let path):
      return Problem(text, code: code, severity: severity, path: path, hint: hint)
    }
  }

  /// Its bytes in a source; nil when it is not in that source.
  func range(in source: SourceFile) -> Range<Int>? {
    guard case .file(let origin, let start, let end) = kind, origin.document.source === source else {
      return nil
    }
    return Int(start)..<Int(end)
  }

  /// A part of this place, for text inside a string. The whole place in a graph built in Swift, and for a string with escapes, whose
  /// bytes in the file differ from those of the text.
  func part(of text: String, _ range: Range<Int>) -> Place {
    guard case .file(let origin, let start, let end) = kind, Int(end - start) == text.utf8.count + 2 else {
      return self
    }
    let first = Int(start) + 1
    return Place(origin, first + range.lowerBound..<first + range.upperBound)
  }
}

/// A value and where it is written.
struct Located<Value: Sendable>: Sendable {
  var value: Value
  var place: Place

  init(_ value: Value, _ place: Place) {
    self.value = value
    self.place = place
  }
}
