/// The `id` under which a command is to be answered, as it stands in its JSON. The rules are those of `DialogControl`.
enum CommandID: Equatable {
  /// The command is not to be answered.
  case none
  /// A string, with its quotes; the digits of an integer, with its sign.
  case text(Range<Int>), number(Range<Int>)
  /// Neither, or a string that is empty or too long.
  case invalid
}

extension EventPeek {
  /// The `id` of a command.
  func commandID() -> CommandID {
    guard let range = value(of: "id"), !has(range, "null") else { return .none }
    guard bytes[range.lowerBound] == UInt8(ascii: "\"") else {
      return integerDigits(range).map { .number($0) } ?? .invalid
    }
    guard range.count > 2, bytes[range.upperBound - 1] == UInt8(ascii: "\""),
      let count = unescapedCount(range.lowerBound + 1..<range.upperBound - 1),
      count <= DialogControl.mostIDBytes
    else { return .invalid }
    return .text(range)
  }

  /// The digits before the point of a number that is an integer: `7`, `-7`, `7.0`. Nil when it is not one, or does not
  /// fit into 64 bits. An exponent is not understood here, unlike in `DialogControl`.
  private func integerDigits(_ range: Range<Int>) -> Range<Int>? {
    let start = bytes[range.lowerBound] == UInt8(ascii: "-") ? range.lowerBound + 1 : range.lowerBound
    let end = digitsEnd(start..<range.upperBound)
    guard end > start, fits(start..<end), bytes[start] != UInt8(ascii: "0") || end == start + 1 else {
      return nil
    }
    guard end < range.upperBound else { return range }
    guard bytes[end] == UInt8(ascii: "."), end + 1 < range.upperBound else { return nil }
    for index in end + 1..<range.upperBound where bytes[index] != UInt8(ascii: "0") { return nil }
    return range.lowerBound..<end
  }

  /// True when the digits are a number of at most 63 bits.
  private func fits(_ digits: Range<Int>) -> Bool {
    var value = 0
    for index in digits {
      let (tens, isTooLarge) = value.multipliedReportingOverflow(by: 10)
      let (next, isTooLargeAgain) = tens.addingReportingOverflow(Int(bytes[index] - UInt8(ascii: "0")))
      if isTooLarge || isTooLargeAgain { return false }
      value = next
    }
    return true
  }

  private func digitsEnd(_ range: Range<Int>) -> Int {
    var index = range.lowerBound
    while index < range.upperBound, bytes[index] &- UInt8(ascii: "0") < 10 { index += 1 }
    return index
  }

  /// The bytes of a string once its escapes are replaced; nil when it is not valid JSON, which must not get into an event.
  private func unescapedCount(_ range: Range<Int>) -> Int? {
    do { _ = try UTF8Span(validating: bytes.extracting(range)) } catch { return nil }
    var count = 0
    var index = range.lowerBound
    while index < range.upperBound {
      guard bytes[index] == UInt8(ascii: "\\") else {
        guard bytes[index] >= 0x20, bytes[index] != UInt8(ascii: "\"") else { return nil }
        count += 1
        index += 1
        continue
      }
      guard let escape = escape(index..<range.upperBound) else { return nil }
      count += escape.bytes
      index += escape.length
    }
    return count
  }

  /// The escape at the beginning of a range: its length, and the bytes of UTF-8 it stands for.
  private func escape(_ range: Range<Int>) -> (length: Int, bytes: Int)? {
    guard range.count > 1 else { return nil }
    switch bytes[range.lowerBound + 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return (2, 1)
    case UInt8(ascii: "u"):
      guard let unit = codeUnit(range) else { return nil }
      switch unit {
      case 0..<0x80: return (6, 1)
      case 0x80..<0x800: return (6, 2)
      case 0xD800..<0xDC00:
        // The first half of a surrogate pair.
        guard range.count >= 12, let second = codeUnit(range.lowerBound + 6..<range.upperBound),
          (0xDC00..<0xE000).contains(second)
        else { return nil }
        return (12, 4)
      case 0xDC00..<0xE000: return nil
      default: return (6, 3)
      }
    default: return nil
    }
  }

  /// The code unit of an escape such as `\u20ac` at the beginning of a range.
  private func codeUnit(_ range: Range<Int>) -> Int? {
    guard range.count >= 6, bytes[range.lowerBound] == UInt8(ascii: "\\"),
      bytes[range.lowerBound + 1] == UInt8(ascii: "u")
    else { return nil }
    var result = 0
    for index in range.lowerBound + 2..<range.lowerBound + 6 {
      let digit: UInt8
      switch bytes[index] {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = bytes[index] - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = bytes[index] - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = bytes[index] - UInt8(ascii: "A") + 10
      default: return nil
      }
      result = result << 4 | Int(digit)
    }
    return result
  }
}
