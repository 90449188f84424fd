/// A position in a source that moves from left to right, and what can be read there.
///
/// Reads what every part of the grammar needs: white space, digits, literal names, runs of plain characters. Strings and numbers
/// are extensions that move the position by these calls alone.
struct JSONCursor {
  /// The source, for messages and positions.
  let source: SourceFile
  private let bytes: [UInt8]
  /// The next byte to read.
  private(set) var offset = 0

  init(_ source: SourceFile) {
    self.source = source
    bytes = source.bytes
  }

  /// Whether every byte has been read.
  var isAtEnd: Bool { offset == bytes.count }

  /// The next byte; nil at the end.
  var byte: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  /// A byte beyond the next one; nil behind the end.
  func byte(ahead distance: Int) -> UInt8? {
    offset + distance < bytes.count ? bytes[offset + distance] : nil
  }

  /// Some bytes that have been read.
  func slice(_ range: Range<Int>) -> ArraySlice<UInt8> { bytes[range] }

  /// Some bytes as text.
  func text(_ range: Range<Int>) -> String { source.text(in: range) }

  // MARK: Moving

  /// Moves over bytes that are there.
  mutating func advance(by count: Int = 1) {
    offset += count
  }

  /// Moves over the next byte if it is this one.
  mutating func skip(_ expected: UInt8) -> Bool {
    guard offset < bytes.count, bytes[offset] == expected else { return false }
    offset += 1
    return true
  }

  /// Moves over white space (RFC 8259 section 2): space, tab, line feed, carriage return.
  mutating func skipSpace() {
    while offset < bytes.count {
      switch bytes[offset] {
      case 0x20, 0x09, 0x0A, 0x0D: offset += 1
      default: return
      }
    }
  }

  /// Moves over a literal name, unless it is only the beginning of a longer word.
  mutating func skip(name: String) -> Bool {
    let end = offset + name.utf8.count
    guard end <= bytes.count, end == bytes.count || !Self.continuesWord(bytes[end]),
      bytes[offset..<end].elementsEqual(name.utf8)
    else { return false }
    offset = end
    return true
  }

  /// Moves over digits and returns their number.
  mutating func skipDigits() -> Int {
    let start = offset
    while offset < bytes.count, Self.isDigit(bytes[offset]) { offset += 1 }
    return offset - start
  }

  /// Moves to the next quote, backslash or control character.
  mutating func skipPlainCharacters() {
    var index = offset
    while index < bytes.count {
      let byte = bytes[index]
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20 { break }
      index += 1
    }
    offset = index
  }

  // MARK: Looking ahead

  /// The scalar at an offset of the source, which is valid UTF-8; nil at its end.
  func scalar(at index: Int) -> Unicode.Scalar? {
    guard index < bytes.count else { return nil }
    return text(index..<min(index + 4, bytes.count)).unicodeScalars.first
  }

  /// The unquoted word at an offset: letters, digits, `_`, `$`, `.`, and `-` after the first; nil when none starts there.
  func word(at start: Int) -> (text: String, range: Range<Int>)? {
    var end = start
    while end < bytes.count,
      Self.continuesWord(bytes[end]) || (end > start && bytes[end] == UInt8(ascii: "-"))
    {
      end += 1
    }
    guard end > start, bytes[start] < 0x80 else { return nil }
    return (Self.shortened(text(start..<end)), start..<end)
  }

  /// The end of the digits and points that follow an offset.
  func endOfDigits(from start: Int) -> Int {
    var end = start
    while end < bytes.count, Self.isDigit(bytes[end]) || bytes[end] == UInt8(ascii: ".") { end += 1 }
    return end
  }

  /// Whether a byte is a digit.
  static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }

  /// Whether a byte makes an unquoted word or a number longer.
  static func continuesWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), UInt8(ascii: "."):
      true
    default: byte >= 0x80
    }
  }

  /// A word or number, shortened to the length messages show.
  static func shortened(_ text: String) -> String {
    text.count > Problem.maxNameLength ? "\(text.prefix(Problem.maxNameLength - 1))…" : text
  }
}
