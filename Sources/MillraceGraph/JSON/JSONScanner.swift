internal import MillraceCore

/// Turns the bytes of a source into a tree in one pass from left to right, and stops at the first mistake.
///
/// Knows the nesting: values, arrays, objects, and the path of what is being read. Strings and numbers are read by the cursor. The
/// recursion is as deep as the document, which `JSONDocument.depthLimit` bounds.
struct JSONScanner {
  private var cursor: JSONCursor
  /// The arrays and objects that are open, outermost first.
  private var levels: [Level] = []

  /// An array or object that is being read.
  private struct Level {
    /// Offset of its bracket or brace.
    let start: Int
    let isObject: Bool
    /// The key whose value is being read; nil while a key is.
    var key: String?
    /// The index of the item that is being read.
    var index = 0
  }

  /// Objects with more members get a table of their keys; in smaller ones, comparing the keys is faster than hashing.
  private static let fewMembers = 8

  init(_ source: SourceFile) {
    cursor = JSONCursor(source)
    levels.reserveCapacity(JSONDocument.depthLimit)
  }

  /// Reads the whole document.
  mutating func document() throws(Problem) -> JSONNode {
    do throws(JSONSyntaxError) {
      try cursor.checkEncoding()
      cursor.skipSpace()
      if cursor.isAtEnd { throw JSONSyntaxError(.empty, 0..<0) }
      let root = try value()
      cursor.skipSpace()
      if !cursor.isAtEnd { throw trailingContent() }
      return root
    } catch {
      throw error.problem(in: cursor.source, path: path, hidesNumbers: isInsideSecret)
    }
  }

  // MARK: Values

  private mutating func value() throws(JSONSyntaxError) -> JSONNode {
    guard let byte = cursor.byte else { throw unexpected(expectedValue) }
    let start = cursor.offset
    switch byte {
    case UInt8(ascii: "{"): return try object()
    case UInt8(ascii: "["): return try array()
    case UInt8(ascii: "\""):
      let text = try cursor.readString()
      return JSONNode(.string(text), start..<cursor.offset)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try cursor.readNumber()
    case UInt8(ascii: "t") where cursor.skip(name: "true"):
      return JSONNode(.bool(true), start..<cursor.offset)
    case UInt8(ascii: "f") where cursor.skip(name: "false"):
      return JSONNode(.bool(false), start..<cursor.offset)
    case UInt8(ascii: "n") where cursor.skip(name: "null"): return JSONNode(.null, start..<cursor.offset)
    default: throw notAValue()
    }
  }

  private mutating func array() throws(JSONSyntaxError) -> JSONNode {
    let start = cursor.offset
    try open(isObject: false)
    var items: [JSONNode] = []
    if !cursor.skip(UInt8(ascii: "]")) {
      repeat {
        levels[levels.count - 1].index = items.count
        items.append(try value())
      } while try hasNext(before: UInt8(ascii: "]"))
    }
    levels.removeLast()
    return JSONNode(.array(items), start..<cursor.offset)
  }

  private mutating func object() throws(JSONSyntaxError) -> JSONNode {
    let start = cursor.offset
    try open(isObject: true)
    var members: [JSONMember] = []
    var indices: [String: Int] = [:]
    if !cursor.skip(UInt8(ascii: "}")) {
      repeat {
        members.append(try member(of: members, &indices))
      } while try hasNext(before: UInt8(ascii: "}"))
    }
    levels.removeLast()
    return JSONNode(.object(JSONObject(members: members, indices: indices)), start..<cursor.offset)
  }

  private mutating func member(
    of members: [JSONMember], _ indices: inout [String: Int]
  ) throws(JSONSyntaxError) -> JSONMember {
    levels[levels.count - 1].key = nil
    guard cursor.byte == UInt8(ascii: "\"") else { throw notAKey() }
    let start = cursor.offset
    let key = try cursor.readString()
    let range = start..<cursor.offset
    levels[levels.count - 1].key = key
    if let first = index(of: key, in: members, &indices) {
      throw JSONSyntaxError(.duplicateKey(key, first: members[first].keyRange.lowerBound), range)
    }
    cursor.skipSpace()
    guard cursor.skip(UInt8(ascii: ":")) else { throw unexpected("':' after the key \(Problem.quoted(key))") }
    cursor.skipSpace()
    return JSONMember(key: key, keyRange: range, value: try value())
  }

  /// The index of the member that has a key already. Enters the key into the table when the object is large enough to have one: the
  /// caller appends its member next.
  private func index(of key: String, in members: [JSONMember], _ indices: inout [String: Int]) -> Int? {
    if members.count < Self.fewMembers { return members.firstIndex { $0.key == key } }
    if indices.isEmpty {
      for (index, member) in members.enumerated() { indices[member.key] = index }
    }
    if let first = indices[key] { return first }
    indices[key] = members.count
    return nil
  }

  // MARK: Brackets and commas

  /// Enters an array or object: skips its bracket and the space after it.
  private mutating func open(isObject: Bool) throws(JSONSyntaxError) {
    if levels.count == JSONDocument.depthLimit { throw JSONSyntaxError(.tooDeep, cursor.foundRange) }
    levels.append(Level(start: cursor.offset, isObject: isObject))
    cursor.advance()
    cursor.skipSpace()
  }

  /// After a value: whether another one follows. Skips the comma, or the bracket that ends the array or object.
  private mutating func hasNext(before bracket: UInt8) throws(JSONSyntaxError) -> Bool {
    cursor.skipSpace()
    if cursor.skip(bracket) { return false }
    let comma = cursor.offset
    guard cursor.skip(UInt8(ascii: ",")) else { throw unexpected(expectedAfterValue) }
    cursor.skipSpace()
    if cursor.byte == bracket {
      throw JSONSyntaxError(.trailingComma(before: Character(Unicode.Scalar(bracket))), comma..<comma + 1)
    }
    return true
  }

  // MARK: Errors

  /// The path of the value that is being read.
  private var path: JSONPath {
    var path = JSONPath()
    for level in levels {
      if !level.isObject {
        path.steps.append(.index(level.index))
      } else if let key = level.key {
        path.steps.append(.key(key))
      }
    }
    return path
  }

  /// Whether the value that is being read belongs to a key that suggests a secret.
  private var isInsideSecret: Bool {
    levels.contains { $0.isObject && $0.key.map { ParameterContract.Secrecy.guessed($0) != .none } == true }
  }

  /// What must be at a position where a value belongs.
  private var expectedValue: String {
    guard let level = levels.last else { return "a value" }
    guard level.isObject else { return "item \(level.index + 1) of \(arrayName)" }
    return "a value for \(Problem.quoted(level.key ?? ""))"
  }

  /// What must follow a value.
  private var expectedAfterValue: String {
    guard let level = levels.last else { return "the end of the \(cursor.source.extent.rawValue)" }
    guard level.isObject else { return "',' or ']' after item \(level.index + 1) of \(arrayName)" }
    return "',' or '}' after the value of \(Problem.quoted(level.key ?? ""))"
  }

  /// The innermost array, by its key when it has one.
  private var arrayName: String {
    levels.dropLast().last?.key.map(Problem.quoted) ?? "the array"
  }

  /// The error for anything other than what is expected at the position.
  private func unexpected(_ expected: String) -> JSONSyntaxError {
    if let comment = cursor.comment() { return comment }
    if cursor.isAtEnd, let level = levels.last {
      return JSONSyntaxError(.unclosed(isObject: level.isObject, start: level.start), cursor.foundRange)
    }
    return JSONSyntaxError(
      .unexpected(expected: expected, found: cursor.found, hint: cursor.hintForFound), cursor.foundRange)
  }

  private func trailingContent() -> JSONSyntaxError {
    if let comment = cursor.comment() { return comment }
    return JSONSyntaxError(.trailingContent(found: cursor.found), cursor.foundRange)
  }

  private func notAKey() -> JSONSyntaxError {
    if let byte = cursor.byte, !JSONCursor.isDigit(byte), let word = cursor.word(at: cursor.offset) {
      return JSONSyntaxError(.unquotedKey(word.text), word.range)
    }
    return unexpected("a key in double quotes")
  }

  private func notAValue() -> JSONSyntaxError {
    if let error = cursor.invalidNumberStart() { return error }
    guard let word = cursor.word(at: cursor.offset) else { return unexpected(expectedValue) }
    return cursor.notFinite(from: cursor.offset, wordAt: cursor.offset)
      ?? JSONSyntaxError(.unquotedValue(expected: expectedValue, word: word.text), word.range)
  }
}
