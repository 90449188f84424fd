/// Reads the words of a line, which spaces separate. Works on bytes: the characters of Swift join CR and LF, and are slow.
struct SDPWords {
  private static let space = UInt8(ascii: " ")
  private var rest: Substring.UTF8View

  init(_ text: Substring) { rest = text.utf8 }

  /// The next word; nil: there is none.
  mutating func next() -> Substring? {
    rest = rest.drop { $0 == Self.space }
    guard !rest.isEmpty else { return nil }
    let word = rest.prefix { $0 != Self.space }
    rest = rest[word.endIndex...]
    return Substring(word)
  }

  /// The next word as a number; nil: there is none, or it is too large.
  mutating func number(_ most: UInt64 = .max) -> UInt64? {
    next().flatMap { $0.decimal(most) }
  }

  /// What is left, without spaces around it.
  var remainder: Substring { Substring(rest).trimmed }

  /// All words that are left.
  mutating func all() -> [String] {
    var words: [String] = []
    while let word = next() { words.append(String(word)) }
    return words
  }
}

extension Substring {
  /// The text without spaces around it.
  var trimmed: Substring {
    var view = utf8.drop { $0 == UInt8(ascii: " ") }
    while view.last == UInt8(ascii: " ") { view = view.dropLast() }
    return Substring(view)
  }

  /// The parts before and after the first separator; the second is nil where there is none.
  func halves(at separator: Unicode.Scalar) -> (Substring, Substring?) {
    guard let byte = UInt8(exactly: separator.value), let index = utf8.firstIndex(of: byte) else {
      return (self, nil)
    }
    return (self[..<index], Substring(utf8[utf8.index(after: index)...]))
  }

  /// The parts between the separators, empty ones included.
  func parts(at separator: Unicode.Scalar) -> [Substring] {
    guard let byte = UInt8(exactly: separator.value) else { return [self] }
    return utf8.split(separator: byte, omittingEmptySubsequences: false).map { Substring($0) }
  }

  /// The number that these digits are; nil: there is something else among them, or it is larger than `most`.
  func decimal(_ most: UInt64 = .max) -> UInt64? {
    guard !utf8.isEmpty else { return nil }
    var value: UInt64 = 0
    for byte in utf8 {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      let (product, isTooLarge) = value.multipliedReportingOverflow(by: 10)
      let (sum, isTooLargeToo) = product.addingReportingOverflow(UInt64(byte - UInt8(ascii: "0")))
      guard !isTooLarge, !isTooLargeToo, sum <= most else { return nil }
      value = sum
    }
    return value
  }

  /// The port that these digits are.
  var port: UInt16? { decimal(65_535).map { UInt16($0) } }

  /// The payload type that these digits are: 0 to 127. Source: RFC 3550 section 5.1.
  var payloadType: UInt8? { decimal(127).map { UInt8($0) } }
}

extension StringProtocol {
  /// True where the texts differ at most in the case of Latin letters.
  func isEqualIgnoringCase(_ other: some StringProtocol) -> Bool {
    func lower(_ byte: UInt8) -> UInt8 {
      (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
    return utf8.elementsEqual(other.utf8) { lower($0) == lower($1) }
  }
}

/// Digits of hexadecimal numbers.
enum SDPHex {
  private static let digits = Array("0123456789ABCDEF".utf8)

  /// The value of a digit.
  static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// The byte that two digits are.
  static func byte(_ text: Substring) -> UInt8? {
    let digits = Array(text.utf8)
    guard digits.count == 2, let high = value(digits[0]), let low = value(digits[1]) else { return nil }
    return high << 4 | low
  }

  /// The two digits of a byte, in capitals.
  static func text(_ byte: UInt8) -> String {
    String(decoding: [digits[Int(byte >> 4)], digits[Int(byte & 15)]], as: UTF8.self)
  }
}
