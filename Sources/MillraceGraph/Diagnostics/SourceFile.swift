internal import Synchronization

/// The bytes of a text and the name that problems call it by.
///
/// Converts byte offsets to lines and columns. Read from a file (`SourceFile.read(path:)`) or made in memory. The bytes need not
/// be valid UTF-8. Immutable; may be shared between threads.
public final class SourceFile: Sendable {
  /// The largest source that is read or parsed, in bytes (64 MiB): far above any graph, far below what exhausts memory.
  public static let sizeLimit = 64 << 20

  /// The name that precedes every problem of this source, usually the path as the user wrote it.
  public let name: String
  /// The path the source was read from; nil for a source made in memory. Relative paths in it start at its directory.
  public let path: String?
  /// The raw bytes.
  public let bytes: [UInt8]
  /// What problems call the source as a whole.
  public let extent: Extent

  /// What a source is to its author: a command is a line, and problems say "the end of the line".
  public enum Extent: String, Sendable {
    /// A file; problems refer to other places in it by their line.
    case file
    /// One line of several that are independent texts; problems refer to other places in it by their column.
    case line
  }

  /// Made when a position is first asked for.
  private let table = Mutex<PositionTable?>(nil)

  /// A source made in memory from bytes.
  public init(name: String, bytes: [UInt8], path: String? = nil, extent: Extent = .file) {
    self.name = name
    self.path = path
    self.bytes = bytes
    self.extent = extent
  }

  /// A source made in memory from a string.
  public convenience init(name: String, text: String) {
    self.init(name: name, bytes: Array(text.utf8))
  }

  /// A place in a source; line and column start at 1.
  public struct Position: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The line; lines end at LF, CR LF or a lone CR.
    public let line: Int
    /// The column in Unicode scalars, so that `é` and `界` count as one.
    public let column: Int

    /// A position by its line and column, both counted from 1.
    public init(line: Int, column: Int) {
      self.line = line
      self.column = column
    }

    /// `line:column`.
    public var description: String { "\(line):\(column)" }

    /// Whether one position is before another.
    public static func < (left: Position, right: Position) -> Bool {
      (left.line, left.column) < (right.line, right.column)
    }
  }

  /// The line and column of a byte offset; an offset outside the source is clamped to it.
  ///
  /// - Complexity: linear in the size of the source for the first call, then logarithmic.
  public func position(of offset: Int) -> Position {
    let offset = min(max(offset, 0), bytes.count)
    let positions = positions
    let line = positions.line(containing: offset)
    let column =
      positions.characters(before: offset, in: bytes)
      - positions.characters(before: positions.lineStarts[line], in: bytes)
    return Position(line: line + 1, column: column + 1)
  }

  /// The number of lines; an empty source has one.
  public var lineCount: Int { positions.lineStarts.count }

  /// The byte range of the line that contains an offset, without its line ending.
  public func lineRange(around offset: Int) -> Range<Int> {
    let positions = positions
    let line = positions.line(containing: min(max(offset, 0), bytes.count))
    let start = positions.lineStarts[line]
    var end = line + 1 < positions.lineStarts.count ? positions.lineStarts[line + 1] : bytes.count
    while end > start, bytes[end - 1] == 0x0A || bytes[end - 1] == 0x0D { end -= 1 }
    return start..<end
  }

  /// The text of a byte range; invalid UTF-8 becomes U+FFFD.
  public func text(in range: Range<Int>) -> String {
    String(decoding: bytes[range.clamped(to: 0..<bytes.count)], as: UTF8.self)
  }

  /// Whether a byte is the second, third or fourth of a UTF-8 sequence (RFC 3629: `10xxxxxx`).
  static func continuesCharacter(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }

  private var positions: PositionTable {
    table.withLock { table in
      if let table { return table }
      let made = PositionTable(bytes)
      table = made
      return made
    }
  }
}

/// Where the lines of a text start, and how many characters precede some of its bytes: finding a column does not take a walk over
/// the whole line, of which a file with thousands of problems in one line would need thousands.
private struct PositionTable {
  /// The offset of the first byte of each line.
  private(set) var lineStarts = [0]
  /// The number of characters before every `stride`-th byte.
  private var characterMarks: [Int] = []

  /// Bytes between two marks, the most a lookup walks.
  private static let stride = 1024

  init(_ bytes: [UInt8]) {
    var characters = 0
    for index in bytes.indices {
      if index % Self.stride == 0 { characterMarks.append(characters) }
      if !SourceFile.continuesCharacter(bytes[index]) { characters += 1 }
      let endsLine =
        bytes[index] == 0x0A
        || (bytes[index] == 0x0D && (index + 1 == bytes.count || bytes[index + 1] != 0x0A))
      if endsLine { lineStarts.append(index + 1) }
    }
    characterMarks.append(characters)
  }

  /// The index of the last line that starts at or before an offset.
  func line(containing offset: Int) -> Int {
    var low = 0
    var high = lineStarts.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if lineStarts[middle] <= offset { low = middle } else { high = middle }
    }
    return low
  }

  /// The number of characters that begin before an offset.
  func characters(before offset: Int, in bytes: [UInt8]) -> Int {
    let mark = offset / Self.stride
    return characterMarks[mark]
      + bytes[mark * Self.stride..<offset].count { !SourceFile.continuesCharacter($0) }
  }
}
