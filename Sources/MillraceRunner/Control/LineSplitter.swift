internal import MillraceEngine

/// Cuts a stream of bytes into lines, in bounded memory.
struct LineSplitter {
  /// One line, without the line break.
  enum Line: Equatable {
    case whole([UInt8])
    /// Longer than `longest`; its bytes are gone.
    case tooLong
  }

  /// Bytes of the longest line that is kept: a message to a node may have 256 KiB, which escapes can make six times as many.
  static let longest = 6 * GraphRun.longestMessage + 1_024

  private var bytes: [UInt8] = []
  private var isTooLong = false

  /// Takes bytes in; answers the lines that end in them.
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

  /// The stream is over: answers a last line that has no line break; nil when there is none.
  mutating func end() -> Line? { bytes.isEmpty ? nil : finishLine() }

  private mutating func finishLine() -> Line {
    defer {
      bytes.removeAll(keepingCapacity: bytes.count <= 4_096)
      isTooLong = false
    }
    return isTooLong ? .tooLong : .whole(bytes)
  }
}
