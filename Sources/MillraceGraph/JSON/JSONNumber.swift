/// A JSON number as it is written, without rounding: 9007199254740993 keeps its last digit, which a `Double` would lose.
public struct JSONNumber: Sendable, Hashable, CustomStringConvertible {
  /// The text as written, valid by the grammar of RFC 8259.
  public let literal: String

  /// A number whose text the scanner has checked.
  init(checked literal: String) {
    self.literal = literal
  }

  /// The value if it is an integer of 64 bits, in any notation: `16000`, `16e3`, `16000.0`. Otherwise nil; it is never rounded.
  public var integer: Int64? { Decimal(literal).integer }

  /// The nearest double (ties to even). Always finite: the scanner refuses numbers beyond the range of a double.
  public var double: Double { Double(literal) ?? .nan }

  /// The text as written.
  public var description: String { literal }
}

extension JSONNumber {
  /// A number as sign, integer significand without trailing zeros, and power of ten.
  ///
  /// The significand is nil when it does not fit in 64 bits. Such a number is no integer of 64 bits: its significand does not end in
  /// a zero, so no power of ten brings it back into range.
  private struct Decimal {
    var isNegative = false
    var significand: UInt64? = 0
    var power = 0

    /// Larger exponents are clamped to this, so that they cannot overflow. No significand in a source of 64 MiB makes up for it.
    static let largestPower = 1_000_000_000

    init(_ literal: String) {
      var digits = Substring(literal).utf8
      if digits.first == UInt8(ascii: "-") {
        isNegative = true
        digits.removeFirst()
      }
      var zeros = 0
      var isFraction = false
      while let byte = digits.popFirst() {
        switch byte {
        case UInt8(ascii: "."): isFraction = true
        case UInt8(ascii: "e"), UInt8(ascii: "E"):
          power += Self.exponent(digits)
          digits = Substring().utf8
        default:
          if isFraction { power -= 1 }
          append(Int(byte - UInt8(ascii: "0")), after: &zeros)
        }
      }
      power += zeros
    }

    /// Appends a digit. Zeros are only counted until another digit follows.
    private mutating func append(_ digit: Int, after zeros: inout Int) {
      if digit == 0 {
        if significand != 0 { zeros += 1 }
        return
      }
      for _ in 0...zeros where significand != nil { significand = Self.product(significand, 10) }
      significand = significand.flatMap { value in
        let (sum, overflow) = value.addingReportingOverflow(UInt64(digit))
        return overflow ? nil : sum
      }
      zeros = 0
    }

    var integer: Int64? {
      guard significand != 0 else { return 0 }
      guard power >= 0 else { return nil }
      var magnitude = significand
      for _ in 0..<power {
        magnitude = Self.product(magnitude, 10)
        if magnitude == nil { return nil }
      }
      guard let magnitude else { return nil }
      return isNegative ? Int64(exactly: -Int128(magnitude)) : Int64(exactly: magnitude)
    }

    private static func exponent(_ text: Substring.UTF8View) -> Int {
      var value = 0
      for byte in text where byte >= UInt8(ascii: "0") {
        value = min(value * 10 + Int(byte - UInt8(ascii: "0")), largestPower)
      }
      return text.first == UInt8(ascii: "-") ? -value : value
    }

    private static func product(_ value: UInt64?, _ factor: UInt64) -> UInt64? {
      guard let value else { return nil }
      let (product, overflow) = value.multipliedReportingOverflow(by: factor)
      return overflow ? nil : product
    }
  }
}
