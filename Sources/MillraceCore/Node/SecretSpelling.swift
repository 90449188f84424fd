/// One way of writing a secret, and how it is found in a text: as it stands, and with the escapes of JSON and of addresses.
///
/// A value; any thread. Looking takes no heap.
struct SecretSpelling: Sendable {
  let bytes: [UInt8]
  /// Only where no letter or digit touches it: what is short, or a short word, is part of many others.
  let standsAlone: Bool
  let isNumber: Bool
  /// The fewest bytes of a remainder that tell too much, when a text was cut inside the secret; nil: none does.
  let leastRemainder: Int?
  /// Base64 that may go on: a secret in the midst of what was encoded with it.
  let isBase64: Bool
  var isShort: Bool { bytes.count < Secrets.leastBytes }

  /// A remainder of so many bytes does not occur by accident.
  private static let tellingRemainder = 8
  /// The least for a short secret: fewer bytes would occur by accident.
  private static let shortRemainder = 6
  /// A remainder of letters alone is a word of any language until it is this long.
  private static let longestWord = 12
  /// The fewest characters of Base64 that are looked for.
  private static let leastBase64 = 8

  /// A secret as it is.
  init(_ text: String) {
    bytes = Array(text.utf8)
    standsAlone = bytes.count < Secrets.leastBytes || Secrets.isWord(text)
    isNumber = Double(text) != nil
    let least = min(Self.tellingRemainder, max(Self.shortRemainder, bytes.count * 2 / 3))
    leastRemainder = bytes.count > least ? least : nil
    isBase64 = false
  }

  private init(base64 bytes: [UInt8]) {
    self.bytes = bytes
    standsAlone = false
    isNumber = false
    leastRemainder = nil
    isBase64 = true
  }

  /// A secret as it is and as it stands in Base64 (RFC 4648, both alphabets), at whichever byte of the encoded text it begins.
  static func all(of text: String) -> [SecretSpelling] {
    var result = [SecretSpelling(text)]
    var seen: Set<[UInt8]> = []
    for lead in 0..<3 {
      for alphabet in [Self.alphabet, Self.addressAlphabet] {
        let core = encoded(Array(text.utf8), after: lead, alphabet)
        if core.count >= leastBase64 && seen.insert(core).inserted {
          result.append(SecretSpelling(base64: core))
        }
      }
    }
    return result
  }

  private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
  private static let alphabet = letters + Array("+/".utf8)
  private static let addressAlphabet = letters + Array("-_".utf8)

  /// The characters of Base64 that these bytes alone decide when `lead` other bytes stand before them.
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

  // MARK: Looking

  /// What a text is where it is looked at.
  struct Place {
    /// Inside a string of JSON.
    var isQuoted = false
    /// In JSON, outside of its strings.
    var isBare = false
    /// Where the last secret ended; what touches it stands alone all the same.
    var lastEnd = -1
  }

  /// Bytes of the text that are this secret, from `start` on; nil: none.
  func length(at start: Int, _ text: Span<UInt8>, _ place: Place) -> Int? {
    // Outside of strings a short number is likelier to be a count or a level than the secret.
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
    return remainder(at: start, text, place)
  }

  /// The end of a secret that is whole from its byte `byte` on, or cut at its end.
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
        return next > byte && isCut(index, text) && tells(byte..<next) ? index : nil
      }
      index += length
    }
    return index
  }

  /// Bytes of the text in which the secret goes on; nil: it does not.
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
    let length = text[index] == bytes[next] ? 1 : addressEscape(of: bytes[next], at: index, text)
    if length != nil { next += 1 }
    return length
  }

  /// A character of the secret's next bytes.
  private func matches(_ scalar: Unicode.Scalar, _ next: inout Int) -> Bool {
    for byte in scalar.utf8 {
      guard next < bytes.count, bytes[next] == byte else { return false }
      next += 1
    }
    return true
  }

  /// Bytes of a byte as addresses and forms write it, `%2F` or `+`; nil: it is not here.
  private func addressEscape(of byte: UInt8, at index: Int, _ text: Span<UInt8>) -> Int? {
    if text[index] == UInt8(ascii: "+") && byte == UInt8(ascii: " ") { return 1 }
    guard text[index] == UInt8(ascii: "%"), index + 2 < text.count,
      let high = Escape.digit(text[index + 1]), let low = Escape.digit(text[index + 2])
    else { return nil }
    return UInt8(high << 4 | low) == byte ? 3 : nil
  }

  // MARK: Cut texts

  /// The end of a secret, where the text has lost its beginning.
  private func remainder(at start: Int, _ text: Span<UInt8>, _ place: Place) -> Int? {
    guard let least = leastRemainder, isBegun(start, text) else { return nil }
    for byte in 1...bytes.count - least where bytes[byte] == text[start] && tells(byte..<bytes.count) {
      if let end = match(from: byte, at: start, text, place), end - start >= least { return end - start }
    }
    return nil
  }

  /// True when a part of the secret says so much of it that it must not be seen.
  private func tells(_ part: Range<Int>) -> Bool {
    guard let least = leastRemainder, part.count >= least else { return false }
    return part.count >= Self.longestWord || !bytes[part].allSatisfy(Secrets.isLetter)
  }

  /// True when a text may have been cut before this place.
  private func isBegun(_ index: Int, _ text: Span<UInt8>) -> Bool {
    guard index > 0 else { return true }
    switch text[index - 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\n"): return true
    case UInt8(ascii: "."): return index >= 3 && text[index - 2] == 46 && text[index - 3] == 46
    case 0xA6: return index >= 3 && text[index - 2] == 0x80 && text[index - 3] == 0xE2
    default: return false
    }
  }

  /// True when a text may have been cut at this place: it ends, or dots say that it was longer.
  private func isCut(_ index: Int, _ text: Span<UInt8>) -> Bool {
    guard index < text.count else { return true }
    switch text[index] {
    case UInt8(ascii: "\""), UInt8(ascii: "\n"): return true
    case UInt8(ascii: "."): return index + 2 < text.count && text[index + 1] == 46 && text[index + 2] == 46
    case 0xE2: return index + 2 < text.count && text[index + 1] == 0x80 && text[index + 2] == 0xA6
    default: return false
    }
  }

  // MARK: What is around

  /// The end of what goes on as Base64 behind a secret: its last character and the filling are of the secret, too.
  private func endOfBase64(_ end: Int, _ text: Span<UInt8>) -> Int {
    var end = end
    let most = end + 4
    while end < min(most, text.count), Self.alphabet.contains(text[end]) || text[end] == UInt8(ascii: "=") {
      end += 1
    }
    return end
  }

  /// True when no letter, digit, sign or point touches a part of a text.
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

/// An escape of a JSON string, also of one that stands inside another.
private struct Escape {
  let scalar: Unicode.Scalar
  let end: Int

  /// Backslashes that are looked at, one string of JSON inside the other four times over: a text of backslashes must not be gone
  /// through to its end from each of them.
  private static let mostBackslashes = 15

  /// - Parameter wanted: the byte that is looked for, since backslashes before a letter may also be themselves.
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
    // Behind an even number of backslashes it ends the string.
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
      // The other half of a pair, behind as many backslashes.
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
    let most = min(start + mostBackslashes, text.count)
    var index = start
    while index < most && text[index] == UInt8(ascii: "\\") { index += 1 }
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

  /// A hexadecimal digit's value.
  static func digit(_ byte: UInt8) -> Int? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte) - 48
    case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte) - 87
    case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte) - 55
    default: nil
    }
  }
}
