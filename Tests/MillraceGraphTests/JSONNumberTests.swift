import MillraceGraph
import Testing

@Suite("JSON numbers")
struct JSONNumberTests {
  private func number(_ text: String) throws -> JSONNumber {
    try #require(try JSONDocument.scan(SourceFile(name: "a", text: text)).root.number)
  }

  @Test(
    "whole numbers are exact, however they are written",
    arguments: [
      ("0", 0), ("-0", 0), ("0.000", 0), ("0e99", 0), ("0e99999999999999999999999", 0), ("7", 7), ("-7", -7),
      ("16000", 16000), ("1e3", 1000), ("1E+3", 1000), ("1.0", 1), ("1.50e1", 15), ("100e-2", 1),
      ("12.3400e2", 1234),
      ("0.001e3", 1), ("9007199254740993", 9_007_199_254_740_993),
      ("9223372036854775807", Int64.max), ("-9223372036854775808", Int64.min),
      ("9223372036854775807.0", Int64.max), ("92233720368547758070e-1", Int64.max),
      ("-9.223372036854775808e18", Int64.min), ("1000000000000000000", 1_000_000_000_000_000_000),
      ("10000000000000000000000000e-25", 1),
    ] as [(String, Int64)])
  func integers(_ text: String, _ value: Int64) throws {
    #expect(try number(text).integer == value)
  }

  @Test(
    "what is no whole number of 64 bits is no integer, and is never rounded to one",
    arguments: [
      "0.5", "1e-1", "1.0000000000000000000000001", "9223372036854775808", "-9223372036854775809", "1e19",
      "1e300",
      "18446744073709551615", "18446744073709551616", "99999999999999999999", "9223372036854775807.5",
      "1e-400",
      "1e-99999999999999999999999", "123456789012345678901234567890e-12",
    ])
  func notIntegers(_ text: String) throws {
    #expect(try number(text).integer == nil)
  }

  @Test(
    "doubles are rounded correctly",
    arguments: [
      ("0.1", 0.1), ("1e3", 1000), ("-0.0", -0.0), ("9007199254740993", 9_007_199_254_740_992),
      ("1.7976931348623157e308", Double.greatestFiniteMagnitude), ("5e-324", .leastNonzeroMagnitude),
      ("1e-400", 0),
      ("2.2250738585072011e-308", .leastNormalMagnitude.nextDown),
      // Half way between two doubles, and a hair above: to even, then up.
      ("1.00000000000000011102230246251565404", 1),
      ("1.00000000000000011102230246251565405", 1.0000000000000002),
    ] as [(String, Double)])
  func doubles(_ text: String, _ value: Double) throws {
    let double = try number(text).double
    #expect(double.bitPattern == value.bitPattern)
  }

  @Test("the text is kept as written", arguments: ["1.50", "-0", "1E+3", "9007199254740993.000"])
  func literal(_ text: String) throws {
    #expect(try number(text).literal == text)
    #expect(try number(text).description == text)
  }

  @Test("the largest double is read and the next number up is refused")
  func limit() throws {
    let digits = "179769313486231570" + String(repeating: "0", count: 291)
    #expect(try number(digits).double == .greatestFiniteMagnitude)
    #expect(refusal(of: "2" + digits.dropFirst())?.text.hasSuffix("is too large") == true)
    #expect(try number(digits + ".0").double.isFinite)
  }

  @Test("random integers of 64 bits survive as integers")
  func randomIntegers() throws {
    var generator = SplitMix(state: 1)
    for _ in 0..<1_000 {
      let value = Int64(truncatingIfNeeded: generator.next()) >> Int64(generator.next() % 64)
      #expect(try number(String(value)).integer == value)
    }
  }
}

/// A small generator with a seed (Steele, Lea, Flood 2014), so that a failing test can be repeated.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
