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

  /// Offset of the first byte of each line, made on the first question about a position.
  private let lineStarts = Mutex<[Int]?>(nil)

  /// A source made in memory from bytes.
  public init(name: String, bytes: [UInt8], path: String? = nil) {
    self.name = name
    self.path = path
    self.bytes = bytes
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
  /// - Complexity: the first call walks the source once; later calls search the line table and walk one line.
  public func position(of offset: Int) -> Position {
    let offset = min(max(offset, 0), bytes.count)
    let line = line(containing: offset)
    let column = bytes[starts[line]..<offset].count { !Self.continuesCharacter($0) } + 1
    return Position(line: line + 1, column: column)
  }

  /// The number of lines; an empty source has one.
  public var lineCount: Int { starts.count }

  /// The byte range of the line that holds an offset, without the characters that end it.
  public func lineRange(around offset: Int) -> Range<Int> {
    let line = line(containing: min(max(offset, 0), bytes.count))
    let start = starts[line]
    var end = line + 1 < starts.count ? starts[line + 1] : bytes.count
    while end > start, bytes[end - 1] == 0x0A || bytes[end - 1] == 0x0D { end -= 1 }
    return start..<end
  }

  /// The text of a byte range; bytes that are not UTF-8 appear as U+FFFD.
  public func text(in range: Range<Int>) -> String {
    String(decoding: bytes[range.clamped(to: 0..<bytes.count)], as: UTF8.self)
  }

  /// Whether a byte is the second, third or fourth of a UTF-8 sequence (RFC 3629: `10xxxxxx`).
  static func continuesCharacter(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }

  private var starts: [Int] {
    lineStarts.withLock { table in
      if let table { return table }
      let made = Self.lineTable(of: bytes)
      table = made
      return made
    }
  }

  /// The index of the last line that starts at or before an offset.
  private func line(containing offset: Int) -> Int {
    let starts = starts
    var low = 0
    var high = starts.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if starts[middle] <= offset { low = middle } else { high = middle }
    }
    return low
  }

  private static func lineTable(of bytes: [UInt8]) -> [Int] {
    var starts = [0]
    for index in bytes.indices {
      let endsLine =
        bytes[index] == 0x0A
        || (bytes[index] == 0x0D && (index + 1 == bytes.count || bytes[index + 1] != 0x0A))
      if endsLine { starts.append(index + 1) }
    }
    return starts
  }
}
