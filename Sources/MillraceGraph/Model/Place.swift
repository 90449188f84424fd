/// Where a name or a value of a graph was written: some bytes of a file, or a path in a graph that was built in Swift.
///
/// Everything a graph says keeps its place until the graph runs, so that whatever is found wrong later can be pointed at.
public struct Place: Sendable {
  private enum Kind: Sendable {
    case file(Origin, start: UInt32, end: UInt32)
    case description(JSONPath)
  }
  private let kind: Kind

  /// A document behind a reference: places are made by the thousand and stay small.
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

  /// An error about this place.
  public func error(_ text: String, hint: String? = nil) -> Problem {
    problem(.error, text, hint)
  }

  /// A warning about this place.
  public func warning(_ text: String, hint: String? = nil) -> Problem {
    problem(.warning, text, hint)
  }

  private func problem(_ severity: Problem.Severity, _ text: String, _ hint: String?) -> Problem {
    switch kind {
    case .file(let origin, let start, let end):
      let range = Int(start)..<Int(end)
      let document = origin.document
      return Problem(
        text, severity: severity, in: document.source, range: range,
        path: document.path(to: range.lowerBound),
        hint: hint)
    case .description(let path):
      return Problem(text, severity: severity, path: path, hint: hint)
    }
  }

  /// Its bytes when it is in a source; nil: it is elsewhere.
  func range(in source: SourceFile) -> Range<Int>? {
    guard case .file(let origin, let start, let end) = kind, origin.document.source === source else {
      return nil
    }
    return Int(start)..<Int(end)
  }

  /// A part of this place, for text inside a string. The whole place where parts have no bytes of their own: in a graph
  /// built in Swift, and in a string with escapes, whose bytes are not its characters.
  func part(of text: String, _ range: Range<Int>) -> Place {
    guard case .file(let origin, let start, let end) = kind, Int(end - start) == text.utf8.count + 2 else {
      return self
    }
    let first = Int(start) + 1
    return Place(origin, first + range.lowerBound..<first + range.upperBound)
  }
}

/// A value together with the place it was written at.
struct Located<Value: Sendable>: Sendable {
  var value: Value
  var place: Place

  init(_ value: Value, _ place: Place) {
    self.value = value
    self.place = place
  }
}
