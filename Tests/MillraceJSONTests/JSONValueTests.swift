import MillraceJSON
import TestSystem
import Testing

@Suite("JSON of messages") struct JSONValueTests {
  @Test(
    "a value is written as it was read, numbers digit for digit and members in order",
    arguments: [
      #"{"b":1,"a":[true,false,null,-0.50,1e+9,12345678901234567890]}"#, #""""#, "[]", "{}", "[[[]]]",
      #"{"text":"a\"b\\c\nd\u0001 grüß 😀"}"#, "0", #"{"a":1,"a":2}"#,
    ])
  func roundTrip(text: String) throws {
    #expect(try JSONValue(parsing: text).text == text)
  }

  @Test("escapes become their characters, surrogate pairs one")
  func escapes() throws {
    #expect(try JSONValue(parsing: #""\/\b\f\u00e4\ud83d\ude00\t""#).string == "/\u{8}\u{C}ä😀\t")
  }

  @Test(
    "invalid JSON is rejected at the first wrong byte",
    arguments: [
      ("", 0, "unexpected end, expected a value"), ("  x", 2, "unexpected character, expected a value"),
      ("{\"a\":1,}", 7, "expected a member name"), ("[1 2]", 3, "expected \",\" or \"]\" in an array"),
      ("{\"a\" 1}", 5, "expected \":\" after a member name"), ("01", 1, "unexpected content after the value"),
      ("1.", 2, "expected a digit in a number"), ("-", 1, "expected a digit in a number"),
      ("tru", 3, "unexpected character, expected a value"),
      ("\"a", 2, "unterminated string"), ("\"a\\", 3, "unterminated string"),
      ("\"\u{1}\"", 1, "unescaped control character in a string"),
      (#""ab\x""#, 3, "invalid escape"),
      (#""\u12g4""#, 1, "invalid \\u escape"), (#""\ud800""#, 1, "unpaired surrogate"),
      (#""\ude00""#, 1, "unpaired surrogate"), ("1 1", 2, "unexpected content after the value"),
    ])
  func refusals(text: String, offset: Int, message: String) {
    #expect(throws: JSONProblem.self) { try JSONValue(parsing: text) }
    do throws(JSONProblem) { _ = try JSONValue(parsing: text) } catch {
      #expect(error.offset == offset && error.text == message, "\(text): \(error)")
      #expect(error.description == "invalid JSON at byte \(offset): \(message)")
    }
  }

  @Test("invalid UTF-8 is rejected, and nesting beyond 64 levels")
  func bounds() {
    #expect(throws: JSONProblem.self) { try JSONValue(parsing: [0x22, 0xFF, 0x22]) }
    let deep = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
    #expect(throws: Never.self) { try JSONValue(parsing: deep) }
    #expect(throws: JSONProblem.self) { try JSONValue(parsing: "[" + deep + "]") }
    #expect(throws: JSONProblem.self) { try JSONValue(parsing: String(repeating: "[", count: 1_000_000)) }
  }

  @Test("the last of duplicate members counts; integers are found in any notation")
  func looking() throws {
    let value = try JSONValue(parsing: #"{"a":1,"a":3.0,"big":1e99,"half":0.5,"far":1e999}"#)
    #expect(value["a"]?.integer == 3)
    #expect(value["big"]?.integer == nil && value["half"]?.integer == nil && value["far"]?.integer == nil)
    #expect(value["half"]?.double == 0.5 && value["none"] == nil && JSONValue.null["a"] == nil)
  }

  @Test(
    "whether a number is an integer depends on its digits, not on the nearest double",
    arguments: [
      ("3777777777777777.7777", nil), ("9007199254740993.0", 9_007_199_254_740_993), ("-0.0", 0),
      ("1e3", 1_000),
      ("1.5e1", 15), ("15e-1", nil), ("37777777777777777777e-4", nil), ("1e999", nil),
    ] as [(String, Int?)])
  func whole(digits: String, expected: Int?) throws {
    #expect(try JSONValue(parsing: digits).integer == expected)
  }

  @Test("a number out of range of a double is nil, and keeps its digits", arguments: ["1e999", "-1E+400"])
  func beyondDouble(digits: String) throws {
    let value = try JSONValue(parsing: #"{"event":"latency","name":"n","ms":\#(digits)}"#)
    #expect(value["ms"]?.double == nil && value["ms"]?.text == digits)
  }

  @Test("corrupted bytes of every kind are read or rejected")
  func garbage() {
    var dice = Dice(seed: 11)
    let seed = Array(#"{"event":"state","a":[1,-2.5e3,"\u00e4\ud83d\ude00",{"x":null}],"t":true}"#.utf8)
    for _ in 0..<20_000 {
      var bytes = seed
      for _ in 0..<dice.below(6) + 1 { bytes[dice.below(bytes.count)] = UInt8(dice.below(256)) }
      if dice.below(3) == 0 { bytes.removeLast(dice.below(bytes.count)) }
      guard let value = try? JSONValue(parsing: bytes) else { continue }
      // What was accepted is written and read again unchanged.
      #expect((try? JSONValue(parsing: value.bytes)) == value)
    }
  }
}
