/// A JSON text that strictly conforms to RFC 8259, as a tree in which every value knows its place in the source.
///
/// ```swift
/// let document = try JSONDocument.scan(SourceFile(name: "graph.json", text: #"{ "millrace": 1 }"#))
/// document.root["millrace"]?.integer  // 1
/// ```
public struct JSONDocument: Sendable {
  /// The source it was read from.
  public let source: SourceFile
  /// The value it contains.
  public let root: JSONNode

  /// The maximum nesting of arrays and objects. A graph needs 6; the limit keeps recursion over a tree safe on any thread's stack.
  public static let depthLimit = 64

  /// Parses a source strictly.
  ///
  /// Stricter than the grammar of RFC 8259: also refuses a byte order mark, invalid UTF-8, unpaired surrogates, duplicate keys, more
  /// than `depthLimit` levels, numbers beyond the range of a double, and sources over `SourceFile.sizeLimit`. Keys are duplicates
  /// when they are equal as Swift strings, so the composed and the decomposed form of a letter are the same key.
  ///
  /// - Complexity: linear in the size of the source.
  /// - Throws: the first `Problem`, with its place. After a syntax error the rest of the source is not read.
  public static func scan(_ source: SourceFile) throws(Problem) -> JSONDocument {
    var scanner = JSONScanner(source)
    return JSONDocument(source: source, root: try scanner.document())
  }

  /// Reads and parses a file. Blocks the calling thread until the file has been read.
  /// - Throws: the first `Problem`; a file that cannot be read is one without a source.
  public static func read(path: String, named name: String? = nil) throws(Problem) -> JSONDocument {
    let source: SourceFile
    do throws(FileProblem) {
      source = try SourceFile.read(path: path, named: name)
    } catch {
      throw Problem(error)
    }
    return try scan(source)
  }

  /// The path of the innermost value or member that contains an offset.
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

  /// An error about some bytes of this document. Looks up their JSON path.
  public func error(at range: Range<Int>, _ text: String, hint: String? = nil) -> Problem {
    Problem(text, severity: .error, in: source, range: range, path: path(to: range.lowerBound), hint: hint)
  }

  /// An error about a value of this document.
  public func error(at node: JSONNode, _ text: String, hint: String? = nil) -> Problem {
    error(at: node.range, text, hint: hint)
  }

  /// A warning about some bytes of this document. Looks up their JSON path.
  public func warning(at range: Range<Int>, _ text: String, hint: String? = nil) -> Problem {
    Problem(text, severity: .warning, in: source, range: range, path: path(to: range.lowerBound), hint: hint)
  }

  /// A warning about a value of this document.
  public func warning(at node: JSONNode, _ text: String, hint: String? = nil) -> Problem {
    warning(at: node.range, text, hint: hint)
  }

  /// The index of the last element that starts at or before an offset; the elements are sorted by their start.
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
