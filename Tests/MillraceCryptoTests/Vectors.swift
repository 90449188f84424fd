import MillraceCrypto
import Testing

/// The bytes of hexadecimal digits as they stand in an RFC; spaces and line ends do not count. Apart from `Hex`, which is tested here.
func bytes(_ digits: String) -> [UInt8] {
  let digits = digits.filter { !$0.isWhitespace }
  precondition(digits.count.isMultiple(of: 2), "an odd number of digits")
  return stride(from: 0, to: digits.count, by: 2).map { offset in
    let start = digits.index(digits.startIndex, offsetBy: offset)
    guard let byte = UInt8(digits[start..<digits.index(start, offsetBy: 2)], radix: 16) else {
      preconditionFailure("no hexadecimal digit")
    }
    return byte
  }
}

func key(_ digits: String) -> SecretKey { SecretKey(bytes(digits).span) }

/// What kind of error a body throws; nil when it returns.
func refusal(_ body: () throws(CryptoError) -> Void) -> CryptoError.Kind? {
  do { try body() } catch { return error.kind }
  return nil
}

/// `ConstantTime.areEqual` for `#expect`, whose arguments cannot be spans.
func areEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool {
  ConstantTime.areEqual(first.span, second.span)
}

extension [UInt8] {
  /// The same bytes with one bit changed.
  func flipping(bit: Int) -> [UInt8] {
    var copy = self
    copy[bit / 8] ^= 1 << (bit % 8)
    return copy
  }
}
