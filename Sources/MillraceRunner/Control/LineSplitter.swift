/// Splits a stream of bytes into lines, in bounded memory.
struct LineSplitter {
  /// One line, without the line break.
  enum Line: Equatable {
    case whole([UInt8])
    /// Longer than `longest`; its bytes have been discarded.
    case tooLong
  }

  /// Longest line in bytes: a message to a node may have 256 KiB, and JSON escapes can make it six times as long.
  static let longest = 6 * 262_144 + 1_024

  private var bytes: [UInt8] = []
  private var isTooLong = false

  /// Adds bytes and returns the lines that they complete.
  mutating func add(_ more: some Sequence<UInt8>) -> [Line] {
    var lines: [Line] = []
    for byte in more {
      if byte == 0x0A {
        lines.append(finishLine())
      } else if bytes.count < Self.longest {
        bytes.append(byte)
      } else {
        isTooLong = true
      }
    }
    return lines
  }

  /// Ends the stream. Returns the last line if it had no line break, otherwise nil.
  mutating func end() -> Line? { bytes.isEmpty ? nil : finishLine() }

  private mutating func finishLine() -> Line {
    defer {
      bytes.removeAll(keepingCapacity: bytes.count <= 4_096)
      isTooLong = false
    }
    return isTooLong ? .tooLong : .whole(bytes)
  }
}
