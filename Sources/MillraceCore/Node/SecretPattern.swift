/// One spelling of a secret, and how to find it in a text: verbatim, and with the escapes of JSON and URLs.
///
/// A value type; any thread. Searching uses no heap.
struct SecretPattern: Sendable {
  let bytes: [UInt8]
  /// True when it matches only without an adjacent letter or digit: a short text or word is part of many others.
  let standsAlone: Bool
  let isNumber: Bool
  /// Fewest bytes of a fragment that reveal too much when a text was cut inside the secret; nil: fragments are not searched.
  let minFragment: Int?
  /// True for Base64, which may continue behind the match: the secret is a part of the encoded text.
  let isBase64: Bool
  var isShort: Bool { bytes.count < Secrets.minBytes }

  /// A fragment of this many bytes does not occur by chance.
  private static let usualFragment = 8
  /// The minimum for a short secret: fewer bytes occur by chance.
  private static let shortFragment = 6
  /// A fragment of letters only may be an ordinary word up to this length.
  private static let longestWord = 12
  /// Fewest characters of Base64 that are searched for.
  private static let minBase64 = 8

  /// The pattern of a verbatim secret.
  init(_ text: String) {
    bytes = Array(text.utf8)
    standsAlone = bytes.count < Secrets.minBytes || Secrets.isWord(text)
    isNumber = Double(text) != nil
    let least = min(Self.usualFragment, max(Self.shortFragment, bytes.count * 2 / 3))
    minFragment = bytes.count > least ? least : nil
    isBase64 = false
  }

  private init(base64 bytes: [UInt8]) {
    self.bytes = bytes
    standsAlone = false
    isNumber = false
    minFragment = nil
    isBase64 = true
  }

  /// The patterns of a secret: verbatim, and in Base64 (RFC 4648, both alphabets) at each of the three possible offsets.
  static func all(of text: String) -> [SecretPattern] {
    var result = [SecretPattern(text)]
    var seen: Set<[UInt8]> = []
    for lead in 0..<3 {
      for alphabet in [Self.alphabet, Self.urlAlphabet] {
        let core = encoded(Array(text.utf8), after: lead, alphabet)
        if core.count >= minBase64 && seen.insert(core).inserted {
          result.append(SecretPattern(base64: core))
        }
      }
    }
    return result
  }

  private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
  private static let alphabet = letters + Array("+/".utf8)
  private static let urlAlphabet = letters + Array("-_".utf8)

  /// The Base64 characters that depend only on these bytes when `lead` other bytes precede them.
  private static func encoded(_ bytes: [UInt8], after lead: Int, _ alphabet: [UInt8]) -> [UInt8] {
    let bits = 8 * (lead + bytes.count)
    let first = (8 * lead + 5) / 6
    guard bits / 6 > first else { return [] }
    return (first..<bits / 6).map { character in
      var value = 0
      for bit in 6 * character..<6 * character + 6 {
        let byte = bytes[bit / 8 - lead]
        value = value << 1 | Int(byte >> UInt8(7 - bit % 8) & 1)
      }
      return alphabet[value]
    }
  }

  // MARK: Matching

  /// The context at the current place of a text.
  struct Place {
    /// Inside a JSON string.
    var isQuoted = false
    /// In JSON, outside a string.
    var isBare = false
    /// The end of the previous secret; text adjacent to it counts as standing alone.
    var lastEnd = -1
  }

  /// Length in bytes of the match at `start`; nil when there is none.
  func length(at start: Int, _ text: Span<UInt8>, _ place: Place) -> Int? {
    // Outside strings a short number is more likely a count or a level than the secret.
    if place.isBare && isShort { return nil }
    let first = text[start]
    if first == bytes[0] || first == UInt8(ascii: "\\") || first == UInt8(ascii: "%")
      || (first == UInt8(ascii: "+") && bytes[0] == UInt8(ascii: " "))
    {
      if let end = match(from: 0, at: start, text, place) {
        guard (standsAlone || (place.isBare && isNumber)) && !isAlone(start..<end, text, place) else {
          return (isBase64 ? endOfBase64(end, text) : end) - start
        }
      }
    }
    return fragment(at: start, text, place)
  }

  /// The end of a match that starts with the secret's byte `byte` and is complete or cut at its end.
  private func match(from byte: Int, at start: Int, _ text: Span<UInt8>, _ place: Place) -> Int? {
    if !place.isQuoted, let end = match(from: byte, at: start, text, place, isEscaped: false) { return end }
    return place.isBare ? nil : match(from: byte, at: start, text, place, isEscaped: true)
  }

  private func match(
    from byte: Int, at start: Int, _ text: Span<UInt8>, _ place: Place, isEscaped: Bool
  ) -> Int? {
    var index = start
    var next = byte
    while next < bytes.count {
      guard let length = step(&next, at: index, text, isEscaped: isEscaped) else {
        return next > byte && isCut(index, text) && reveals(byte..<next) ? index : nil
      }
      index += length
    }
    return index
  }

  /// Length in bytes of the text that continues the secret; nil when it does not continue.
  private func step(_ next: inout Int, at index: Int, _ text: Span<UInt8>, isEscaped: Bool) -> Int? {
    guard index < text.count else { return nil }
    if isEscaped && text[index] == UInt8(ascii: "\\") {
      var after = next
      guard let escape = Escape(at: index, text, wanted: bytes[next]), matches(escape.scalar, &after) else {
        return nil
      }
      next = after
      return escape.end - index
    }
    let length = text[index] == bytes[next] ? 1 : urlEscape(of: bytes[next], at: index, text)
    if length != nil { next += 1 }
    return length
  }

  /// Matches a character with the next bytes of the secret.
  private func matches(_ scalar: Unicode.Scalar, _ next: inout Int) -> Bool {
    for byte in scalar.utf8 {
      guard next < bytes.count, bytes[next] == byte else { return false }
      next += 1
    }
    return true
  }

  /// Length of a byte encoded as in URLs and forms, `%2F` or `+`; nil when it is not here.
  private func urlEscape(of byte: UInt8, at index: Int, _ text: Span<UInt8>) -> Int? {
    if text[index] == UInt8(ascii: "+") && byte == UInt8(ascii: " ") { return 1 }
    guard text[index] == UInt8(ascii: "%"), index + 2 < text.count,
      let high = Escape.digit(text[index + 1]), let low = Escape.digit(text[index + 2])
    else { return nil }
    return UInt8(high << 4 | low) == byte ? 3 : nil
  }

  // MARK: Truncated texts

  /// The length of the end of a secret, when the text was cut before it.
  private func fragment(at start: Int, _ text: Span<UInt8>, _ place: Place) -> Int? {
    guard let least = minFragment, isBegun(start, text) else { return nil }
    for byte in 1...bytes.count - least where bytes[byte] == text[start] && reveals(byte..<bytes.count) {
      if let end = match(from: byte, at: start, text, place), end - start >= least { return end - start }
    }
    return nil
  }

  /// True when a part of the secret reveals too much of it.
  private func reveals(_ part: Range<Int>) -> Bool {
    guard let least = minFragment, part.count >= least else { return false }
    return part.count >= Self.longestWord || !bytes[part].allSatisfy(Secrets.isLetter)
  }

  /// True when the text may have been cut before this index.
  private func isBegun(_ index: Int, _ text: Span<UInt8>) -> Bool {
    guard index > 0 else { return true }
    switch text[index - 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\n"): return true
    case UInt8(ascii: "."): return index >= 3 && text[index - 2] == 46 && text[index - 3] == 46
    case 0xA6: return index >= 3 && text[index - 2] == 0x80 && text[index - 3] == 0xE2
    default: return false
    }
  }

  /// True when the text may have been cut at this index: it ends, or an ellipsis follows.
  private func isCut(_ index: Int, _ text: Span<UInt8>) -> Bool {
    guard index < text.count else { return true }
    switch text[index] {
    case UInt8(ascii: "\""), UInt8(ascii: "\n"): return true
    case UInt8(ascii: "."): return index + 2 < text.count && text[index + 1] == 46 && text[index + 2] == 46
    case 0xE2: return index + 2 < text.count && text[index + 1] == 0x80 && text[index + 2] == 0xA6
    default: return false
    }
  }

  // MARK: Context

  /// The end of the Base64 behind a match: the last character and the padding belong to the secret, too.
  private func endOfBase64(_ end: Int, _ text: Span<UInt8>) -> Int {
    var end = end
    let limit = end + 4
    while end < min(limit, text.count), Self.alphabet.contains(text[end]) || text[end] == UInt8(ascii: "=") {
      end += 1
    }
    return end
  }

  /// True when no letter, digit, underscore or decimal point is adjacent to a part of a text.
  private func isAlone(_ part: Range<Int>, _ text: Span<UInt8>, _ place: Place) -> Bool {
    func belongs(_ byte: UInt8) -> Bool {
      Secrets.isLetter(byte) || Self.isDigit(byte) || byte == UInt8(ascii: "_") || byte >= 0x80
    }
    /// A decimal point, not the end of a sentence.
    func continues(_ point: Int, _ next: Int) -> Bool {
      text[point] == UInt8(ascii: ".") && next >= 0 && next < text.count && Self.isDigit(text[next])
    }
    if part.lowerBound > 0 && part.lowerBound != place.lastEnd {
      let before = part.lowerBound - 1
      if belongs(text[before]) || continues(before, before - 1) { return false }
    }
    guard part.upperBound < text.count else { return true }
    return !belongs(text[part.upperBound]) && !continues(part.upperBound, part.upperBound + 1)
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}

/// An escape in a JSON string, which may be nested in other JSON strings.
private struct Escape {
  let scalar: Unicode.Scalar
  let end: Int

  /// Most backslashes that are read, enough for JSON strings nested four deep: a text of backslashes must not be scanned to its end
  /// from each of them.
  private static let maxBackslashes = 15

  /// - Parameter wanted: the byte searched for, because backslashes before a letter may also be literal.
  init?(at start: Int, _ text: Span<UInt8>, wanted: UInt8) {
    let index = Self.endOfBackslashes(from: start, text)
    let depth = index - start
    if wanted == UInt8(ascii: "\\") && depth >= 2 {
      (scalar, end) = ("\\", start + 2)
      return
    }
    guard index < text.count else { return nil }
    switch text[index] {
    case UInt8(ascii: "/"): (scalar, end) = ("/", index + 1)
    // After an even number of backslashes it ends the string.
    case UInt8(ascii: "\"") where depth % 2 == 1: (scalar, end) = ("\"", index + 1)
    case UInt8(ascii: "b"): (scalar, end) = ("\u{08}", index + 1)
    case UInt8(ascii: "f"): (scalar, end) = ("\u{0C}", index + 1)
    case UInt8(ascii: "n"): (scalar, end) = ("\n", index + 1)
    case UInt8(ascii: "r"): (scalar, end) = ("\r", index + 1)
    case UInt8(ascii: "t"): (scalar, end) = ("\t", index + 1)
    case UInt8(ascii: "u"):
      guard let unit = Self.unit(index + 1, text) else { return nil }
      if let found = Unicode.Scalar(unit) {
        (scalar, end) = (found, index + 5)
        return
      }
      // The low surrogate, after as many backslashes.
      let second = Self.endOfBackslashes(from: index + 5, text)
      guard second > index + 5, second < text.count, text[second] == UInt8(ascii: "u"),
        let low = Self.unit(second + 1, text), (0xDC00...0xDFFF).contains(low), unit < 0xDC00,
        let found = Unicode.Scalar(0x10000 + ((UInt32(unit) - 0xD800) << 10) + UInt32(low) - 0xDC00)
      else { return nil }
      (scalar, end) = (found, second + 5)
    default: return nil
    }
  }

  private static func endOfBackslashes(from start: Int, _ text: Span<UInt8>) -> Int {
    let limit = min(start + maxBackslashes, text.count)
    var index = start
    while index < limit && text[index] == UInt8(ascii: "\\") { index += 1 }
    return index
  }

  private static func unit(_ start: Int, _ text: Span<UInt8>) -> UInt16? {
    guard start + 4 <= text.count else { return nil }
    var value: UInt16 = 0
    for index in start..<start + 4 {
      guard let digit = digit(text[index]) else { return nil }
      value = value << 4 | UInt16(digit)
    }
    return value
  }

  /// The value of a hexadecimal digit; nil for other characters.
  static func digit(_ byte: UInt8) -> Int? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte) - 48
    case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte) - 87
    case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte) - 55
    default: nil
    }
  }
}
