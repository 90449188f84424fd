/// A key, as a terminal without lines of its own sends it.
enum TalkKey: Equatable {
  case character(Character)
  case enter, tab, backspace
  /// Escape, Ctrl-U: what was typed is to be forgotten.
  case erase
  /// Ctrl-D.
  case end
}

/// Makes keys of bytes. Arrows and function keys are left out; bytes that are no UTF-8 are, too.
struct TalkKeyReader {
  private enum Place {
    case plain
    /// Behind ESC.
    case escape
    /// Within a control sequence (ECMA-48, 5.4), which ends with a byte from 0x40 on.
    case sequence
  }

  private var place = Place.plain
  /// Bytes of a character that is not whole yet.
  private var partial: [UInt8] = []

  /// Takes what one read gave. A terminal sends a sequence at once, so that ESC at the end is the key.
  mutating func add(_ bytes: some Sequence<UInt8>) -> [TalkKey] {
    var keys: [TalkKey] = []
    for byte in bytes { if let key = take(byte) { keys.append(key) } }
    if place == .escape {
      place = .plain
      keys.append(.erase)
    }
    return keys
  }

  private mutating func take(_ byte: UInt8) -> TalkKey? {
    switch place {
    case .escape:
      place = byte == UInt8(ascii: "[") || byte == UInt8(ascii: "O") ? .sequence : .plain
      return nil
    case .sequence:
      if (0x40...0x7E).contains(byte) { place = .plain }
      return nil
    case .plain: break
    }
    if byte < 0x20 || byte == 0x7F {
      partial = []
      return control(byte)
    }
    return text(byte)
  }

  private mutating func control(_ byte: UInt8) -> TalkKey? {
    switch byte {
    case 0x0A, 0x0D: return .enter
    case 0x09: return .tab
    case 0x08, 0x7F: return .backspace
    case 0x15: return .erase
    case 0x04: return .end
    case 0x1B:
      place = .escape
      return nil
    default: return nil
    }
  }

  private mutating func text(_ byte: UInt8) -> TalkKey? {
    // A byte that begins a character ends one that was never finished.
    if byte & 0xC0 != 0x80 { partial = [] }
    partial.append(byte)
    let wanted = partial[0] < 0x80 ? 1 : partial[0] < 0xE0 ? 2 : partial[0] < 0xF0 ? 3 : 4
    guard partial.count >= wanted else { return nil }
    defer { partial = [] }
    return String(validating: partial, as: UTF8.self)?.first.map { .character($0) }
  }
}
