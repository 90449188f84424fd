/// A JSON file that obeys RFC 8259 to the letter, as a tree whose every value knows its place.
///
/// ```swift
/// let document = try JSONDocument.scan(SourceFile(name: "graph.json", text: #"{ "millrace": 1 }"#))
/// document.root["millrace"]?.integer  // 1
/// ```
public struct JSONDocument: Sendable {
  /// The file.
  public let source: SourceFile
  /// The value it holds.
  public let root: JSONNode

  /// The deepest nesting of arrays and objects that is accepted. A graph needs 6; the limit keeps recursion over a tree safe
  /// on any thread's stack.
  public static let depthLimit = 64

  /// Reads a source strictly.
  ///
  /// Beyond the grammar of RFC 8259 these are refused, each with its place and words for a beginner: a byte order mark, anything
  /// that is not UTF-8, halves of surrogate pairs, a key that appears twice in an object, more than `depthLimit` levels,
  /// numbers beyond the range of a double, and sources over `SourceFile.sizeLimit`. Keys are the same when Swift's strings
  /// are equal, which holds for the composed and the decomposed form of a letter too.
  ///
  /// - Complexity: linear in the size of the source.
  /// - Throws: the first `Problem`; after a mistake in the grammar the rest of a file cannot be trusted.
  public static func scan(_ source: SourceFile) throws(Problem) -> JSONDocument {
    var scanner = JSONScanner(source)
    return JSONDocument(source: source, root: try scanner.document())
  }

  /// Reads a file strictly; a file that cannot be opened is a `Problem` too.
  public static func read(path: String, named name: String? = nil) throws(Problem) -> JSONDocument {
    let source: SourceFile
    do throws(FileProblem) {
      source = try SourceFile.read(path: path, named: name)
    } catch {
      throw Problem(error)
    }
    return try scan(source)
  }

  /// The path of the innermost value or member whose bytes hold an offset.
  ///
  /// - Complexity: the depth of the value times the logarithm of the members on each level.
  public func path(to offset: Int) -> JSONPath {
    var path = JSONPath()
    var node = root
    while true {
      switch node.value {
      case .array(let items):
        guard let index = Self.last(of: items, startingBy: offset, start: \.range.lowerBound),
          offset < items[index].range.upperBound
        else { return path }
        path.steps.append(.index(index))
        node = items[index]
      case .object(let object):
        let members = object.members
        guard let index = Self.last(of: members, startingBy: offset, start: \.keyRange.lowerBound),
          offset < members[index].range.upperBound
        else { return path }
        path.steps.append(.key(members[index].key))
        node = members[index].value
      default:
        return path
      }
    }
  }

  /// An error about some bytes of this document; its JSON path is found from their place.
  public func error(at range: Range<Int>, _ text: String, hint: String? = nil) -> Problem {
    Problem(text, severity: .error, in: source, range: range, path: path(to: range.lowerBound), hint: hint)
  }

  /// An error about a value of this document.
  public func error(at node: JSONNode, _ text: String, hint: String? = nil) -> Problem {
    error(at: node.range, text, hint: hint)
  }

  /// A warning about some bytes of this document; its JSON path is found from their place.
  public func warning(at range: Range<Int>, _ text: String, hint: String? = nil) -> Problem {
    Problem(text, severity: .warning, in: source, range: range, path: path(to: range.lowerBound), hint: hint)
  }

  /// A warning about a value of this document.
  public func warning(at node: JSONNode, _ text: String, hint: String? = nil) -> Problem {
    warning(at: node.range, text, hint: hint)
  }

  /// The index of the last element that starts at or before an offset, in elements ordered by their start.
  private static func last<Element>(
    of elements: [Element], startingBy offset: Int, start: (Element) -> Int
  ) -> Int? {
    var low = 0
    var high = elements.count
    while low < high {
      let middle = (low + high) / 2
      if start(elements[middle]) <= offset { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? nil : low - 1
  }
}
