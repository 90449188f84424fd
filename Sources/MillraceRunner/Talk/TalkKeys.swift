/// A key from a terminal in noncanonical mode.
enum TalkKey: Equatable {
  case character(Character)
  case enter, tab, backspace
  /// Escape or Ctrl-U: erases the typed text.
  case erase
  /// Ctrl-D.
  case end
}

/// Decodes bytes from a terminal into keys. Ignores arrow keys, function keys and invalid UTF-8.
struct TalkKeyReader {
  private enum State {
    case plain
    /// After ESC.
    case escape
    /// In a control sequence (ECMA-48, 5.4), which ends with a byte of at least 0x40.
    case sequence
  }

  private var state = State.plain
  /// The bytes of an incomplete character.
  private var partial: [UInt8] = []

  /// Decodes the bytes of one read. Terminals send a sequence in one piece, so ESC at the end is the Escape key.
  mutating func add(_ bytes: some Sequence<UInt8>) -> [TalkKey] {
    var keys: [TalkKey] = []
    for byte in bytes { if let key = decode(byte) { keys.append(key) } }
    if state == .escape {
      state = .plain
      keys.append(.erase)
    }
    return keys
  }

  private mutating func decode(_ byte: UInt8) -> TalkKey? {
    switch state {
    case .escape:
      state = byte == UInt8(ascii: "[") || byte == UInt8(ascii: "O") ? .sequence : .plain
      return nil
    case .sequence:
      if (0x40...0x7E).contains(byte) { state = .plain }
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
      state = .escape
      return nil
    default: return nil
    }
  }

  private mutating func text(_ byte: UInt8) -> TalkKey? {
    // A lead byte discards an incomplete character.
    if byte & 0xC0 != 0x80 { partial = [] }
    partial.append(byte)
    let wanted = partial[0] < 0x80 ? 1 : partial[0] < 0xE0 ? 2 : partial[0] < 0xF0 ? 3 : 4
    guard partial.count >= wanted else { return nil }
    defer { partial = [] }
    return String(validating: partial, as: UTF8.self)?.first.map { .character($0) }
  }
}
