/// Finds members of a JSON object in its bytes without allocating, for nodes that inspect events on a worker.
///
/// It looks at the outermost object only and assumes valid JSON: on other bytes the result is arbitrary, but it never reads out of
/// bounds. Names with escapes are not found. Every lookup takes linear time.
struct EventPeek: ~Escapable {
  let bytes: Span<UInt8>

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) { self.bytes = bytes }

  /// True when a member is exactly this string.
  func has(_ name: StaticString, _ text: StaticString) -> Bool {
    guard let range = value(of: name), range.count == text.utf8CodeUnitCount + 2 else { return false }
    return matches(range.lowerBound + 1, text) && bytes[range.lowerBound] == UInt8(ascii: "\"")
  }

  /// True when the value of a member is exactly these bytes; a string includes its quotes.
  func equals(_ name: StaticString, _ wanted: Span<UInt8>) -> Bool {
    guard let range = value(of: name), range.count == wanted.count else { return false }
    for index in 0..<wanted.count {
      guard bytes[range.lowerBound + index] == wanted[index] else { return false }
    }
    return true
  }

  /// The first case whose text equals the member.
  func word<Word: CaseIterable>(_ name: StaticString, _ text: (Word) -> StaticString) -> Word? {
    Word.allCases.first { has(name, text($0)) }
  }

  /// True when a member is `true`.
  func isTrue(_ name: StaticString) -> Bool {
    guard let range = value(of: name) else { return false }
    return range.count == 4 && matches(range.lowerBound, "true")
  }

  /// True when the bytes of a value are exactly these.
  func has(_ range: Range<Int>, _ text: StaticString) -> Bool {
    range.count == text.utf8CodeUnitCount && matches(range.lowerBound, text)
  }

  /// The reply an event concerns.
  func round() -> TurnRound {
    guard let range = value(of: "round"), range.count >= 2, bytes[range.lowerBound] == UInt8(ascii: "\"")
    else {
      return .unknown
    }
    return TurnRound(bytes.extracting(range.lowerBound + 1..<range.upperBound - 1))
  }

  /// True when the member exists.
  func contains(_ name: StaticString) -> Bool { value(of: name) != nil }

  /// The integer part of a number, or nil when the member is not a number or too large.
  func integer(_ name: StaticString) -> Int? {
    guard let range = value(of: name) else { return nil }
    var index = range.lowerBound
    let isNegative = bytes[index] == UInt8(ascii: "-")
    if isNegative { index += 1 }
    var result = 0
    let start = index
    while index < range.upperBound, case let digit = bytes[index] &- UInt8(ascii: "0"), digit < 10 {
      guard result < 100_000_000_000_000_000 else { return nil }
      result = result * 10 + Int(digit)
      index += 1
    }
    return index > start ? (isNegative ? -result : result) : nil
  }

  private func matches(_ start: Int, _ text: StaticString) -> Bool {
    guard start + text.utf8CodeUnitCount <= bytes.count else { return false }
    for index in 0..<text.utf8CodeUnitCount {
      let byte = unsafe text.utf8Start[index]
      guard bytes[start + index] == byte else { return false }
    }
    return true
  }

  /// The bytes of the value of a member of the outermost object; a string includes its quotes.
  func value(of name: StaticString) -> Range<Int>? {
    var index = 0
    var depth = 0
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: "\""):
        let end = textEnd(index)
        var next = skipSpace(end)
        if depth == 1, next < bytes.count, bytes[next] == UInt8(ascii: ":"),
          end - index == name.utf8CodeUnitCount + 2, matches(index + 1, name)
        {
          next = skipSpace(next + 1)
          return next < bytes.count ? next..<valueEnd(next) : nil
        }
        index = end
        continue
      default: break
      }
      index += 1
    }
    return nil
  }

  /// The index after a string that begins with a quote.
  private func textEnd(_ start: Int) -> Int {
    var index = start + 1
    while index < bytes.count && bytes[index] != UInt8(ascii: "\"") {
      index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    return min(index + 1, bytes.count)
  }

  private func valueEnd(_ start: Int) -> Int {
    if bytes[start] == UInt8(ascii: "\"") { return textEnd(start) }
    var index = start
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"), 0x20, 0x0A, 0x0D, 0x09:
        return max(index, start + 1)
      default: index += 1
      }
    }
    return index
  }

  private func skipSpace(_ start: Int) -> Int {
    var index = start
    while index < bytes.count, case let byte = bytes[index],
      byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    {
      index += 1
    }
    return index
  }
}
