internal import Synchronization

/// The bytes of a text file together with the name the user knows it by.
///
/// A source turns byte offsets into lines and columns, so that everything found in a file can be pointed at. It comes from the
/// disk (`SourceFile.read(path:)`) or from memory, where the name is whatever problems shall call it. The bytes need not
/// be valid UTF-8: a position can be asked for in any file.
///
/// A source never changes after it was made and may be shared between threads.
public final class SourceFile: Sendable {
  /// The largest source that is read or scanned, in bytes (64 MiB): far above any graph, far below what would exhaust memory.
  public static let sizeLimit = 64 << 20

  /// The name shown in front of every problem of this source, normally the path as the user wrote it.
  public let name: String
  /// The path the source was read from; nil for a source made in memory. Included files are looked for beside it.
  public let path: String?
  /// The raw bytes.
  public let bytes: [UInt8]
  /// What problems call the whole of it.
  public let extent: Extent

  /// How much of what its user wrote a source is: problems say "the end of the line" of a command that is one line.
  public enum Extent: String, Sendable {
    /// All of it; its own places are told by their lines.
    case file
    /// One line of many, each a text of its own; places in it are told by their columns.
    case line
  }

  /// Made on the first question about a position.
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

  /// A place in a source as people count it: both numbers start at 1.
  public struct Position: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The line; lines end at LF, CR LF or a CR alone.
    public let line: Int
    /// The column in characters (Unicode scalars), so that `é` and `界` count as one.
    public let column: Int

    /// A position from its two numbers, both counted from 1.
    public init(line: Int, column: Int) {
      self.line = line
      self.column = column
    }

    /// `line:column`.
    public var description: String { "\(line):\(column)" }

    /// Whether one position stands before another.
    public static func < (left: Position, right: Position) -> Bool {
      (left.line, left.column) < (right.line, right.column)
    }
  }

  /// The line and column of a byte offset. Offsets outside the source answer with its nearest end.
  ///
  /// - Complexity: the first call walks the source once; later calls search the line table.
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

  /// The byte range of the line that holds an offset, without the characters that end it.
  public func lineRange(around offset: Int) -> Range<Int> {
    let positions = positions
    let line = positions.line(containing: min(max(offset, 0), bytes.count))
    let start = positions.lineStarts[line]
    var end = line + 1 < positions.lineStarts.count ? positions.lineStarts[line + 1] : bytes.count
    while end > start, bytes[end - 1] == 0x0A || bytes[end - 1] == 0x0D { end -= 1 }
    return start..<end
  }

  /// The text of a byte range; bytes that are not UTF-8 appear as U+FFFD.
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

/// Where the lines of a text start, and how many characters stand before some of its bytes: a file whose thousands
/// of problems lie in one line is not walked from the start of the line for each of them.
private struct PositionTable {
  /// Offset of the first byte of each line.
  private(set) var lineStarts = [0]
  /// Characters before every `stride`-th byte.
  private var characterMarks: [Int] = []

  /// Bytes between two marks: the most a question walks.
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

  /// Characters that begin before an offset.
  func characters(before offset: Int, in bytes: [UInt8]) -> Int {
    let mark = offset / Self.stride
    return characterMarks[mark]
      + bytes[mark * Self.stride..<offset].count { !SourceFile.continuesCharacter($0) }
  }
}
