/// Turns the bytes of a source into a tree in one pass from left to right, and stops at the first mistake.
///
/// This file holds values, arrays and objects; strings, numbers and the words of refusal have files of their own. The recursion is
/// as deep as the document, which `JSONDocument.depthLimit` bounds.
struct JSONScanner {
  let source: SourceFile
  let bytes: [UInt8]
  /// The next byte to look at.
  var offset = 0
  /// The arrays and objects that are open, outermost first.
  var levels: [Level] = []

  /// An array or object that is being read.
  struct Level {
    /// Offset of its bracket or brace.
    let start: Int
    let isObject: Bool
    /// The key whose value is being read; nil while a key is.
    var key: String?
    /// The index of the item that is being read.
    var index = 0
  }

  /// Objects with more members than this get a table of their keys. Below, comparing with each one is faster than hashing.
  private static let fewMembers = 8

  init(_ source: SourceFile) {
    self.source = source
    bytes = source.bytes
    levels.reserveCapacity(JSONDocument.depthLimit)
  }

  /// The whole document.
  mutating func document() throws(Problem) -> JSONNode {
    try checkEncoding()
    skipSpace()
    if offset == bytes.count { throw emptyDocument() }
    let root = try value()
    skipSpace()
    if offset < bytes.count { throw trailingContent() }
    return root
  }

  /// Skips what RFC 8259 calls white space: space, tab, line feed, carriage return.
  mutating func skipSpace() {
    while offset < bytes.count {
      switch bytes[offset] {
      case 0x20, 0x09, 0x0A, 0x0D: offset += 1
      default: return
      }
    }
  }

  private mutating func value() throws(Problem) -> JSONNode {
    guard offset < bytes.count else { throw unexpected(wantedValue) }
    switch bytes[offset] {
    case UInt8(ascii: "{"): return try object()
    case UInt8(ascii: "["): return try array()
    case UInt8(ascii: "\""):
      let start = offset
      let text = try string()
      return JSONNode(.string(text), start..<offset)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    case UInt8(ascii: "t") where skip("true"): return JSONNode(.bool(true), offset - 4..<offset)
    case UInt8(ascii: "f") where skip("false"): return JSONNode(.bool(false), offset - 5..<offset)
    case UInt8(ascii: "n") where skip("null"): return JSONNode(.null, offset - 4..<offset)
    default: throw notAValue()
    }
  }

  /// Skips a literal word when it stands here whole, with nothing that would make it a longer word.
  private mutating func skip(_ word: String) -> Bool {
    let end = offset + word.utf8.count
    guard end <= bytes.count, end == bytes.count || !Self.continuesWord(bytes[end]),
      bytes[offset..<end].elementsEqual(word.utf8)
    else { return false }
    offset = end
    return true
  }

  private mutating func array() throws(Problem) -> JSONNode {
    let start = offset
    try open(isObject: false)
    var items: [JSONNode] = []
    if !isClosed(by: UInt8(ascii: "]")) {
      repeat {
        levels[levels.count - 1].index = items.count
        items.append(try value())
      } while try isContinued(closedBy: UInt8(ascii: "]"))
    }
    levels.removeLast()
    return JSONNode(.array(items), start..<offset)
  }

  private mutating func object() throws(Problem) -> JSONNode {
    let start = offset
    try open(isObject: true)
    var members: [JSONMember] = []
    var places: [String: Int] = [:]
    if !isClosed(by: UInt8(ascii: "}")) {
      repeat {
        levels[levels.count - 1].key = nil
        guard offset < bytes.count, bytes[offset] == UInt8(ascii: "\"") else { throw notAKey() }
        let keyStart = offset
        let key = try string()
        let keyRange = keyStart..<offset
        if let first = place(of: key, in: members, &places) {
          throw duplicate(key, at: keyRange, first: members[first].keyRange)
        }
        levels[levels.count - 1].key = key
        skipSpace()
        guard offset < bytes.count, bytes[offset] == UInt8(ascii: ":") else {
          throw unexpected("':' after the key \(Problem.quoted(key))")
        }
        offset += 1
        skipSpace()
        members.append(JSONMember(key: key, keyRange: keyRange, value: try value()))
      } while try isContinued(closedBy: UInt8(ascii: "}"))
    }
    levels.removeLast()
    return JSONNode(.object(JSONObject(members: members, places: places)), start..<offset)
  }

  /// Where a key already stands in an object. Enters it into the table when the object is large enough to have one; the caller
  /// appends it right after.
  private func place(of key: String, in members: [JSONMember], _ places: inout [String: Int]) -> Int? {
    if members.count < Self.fewMembers { return members.firstIndex { $0.key == key } }
    if places.isEmpty {
      for (index, member) in members.enumerated() { places[member.key] = index }
    }
    if let first = places[key] { return first }
    places[key] = members.count
    return nil
  }

  /// Enters an array or object and skips its bracket and the space behind it.
  private mutating func open(isObject: Bool) throws(Problem) {
    if levels.count == JSONDocument.depthLimit { throw tooDeep() }
    levels.append(Level(start: offset, isObject: isObject))
    offset += 1
    skipSpace()
  }

  /// Whether the array or object ends here; skips its bracket when it does.
  private mutating func isClosed(by bracket: UInt8) -> Bool {
    guard offset < bytes.count, bytes[offset] == bracket else { return false }
    offset += 1
    return true
  }

  /// After a value: whether another follows. Skips the comma, or the bracket that ends the array or object.
  private mutating func isContinued(closedBy bracket: UInt8) throws(Problem) -> Bool {
    skipSpace()
    if isClosed(by: bracket) { return false }
    guard offset < bytes.count, bytes[offset] == UInt8(ascii: ",") else { throw unexpected(wantedAfterValue) }
    let comma = offset
    offset += 1
    skipSpace()
    if offset < bytes.count, bytes[offset] == bracket { throw trailingComma(at: comma) }
    return true
  }
}
