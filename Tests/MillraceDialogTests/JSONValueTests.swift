import MillraceDialog
import Testing

@Suite("JSON of services") struct JSONValueTests {
  @Test(
    "what was read is written as it was, numbers digit for digit and members in their order",
    arguments: [
      #"{"b":1,"a":[true,false,null,-0.50,1e+9,12345678901234567890]}"#, #""""#, "[]", "{}", "[[[]]]",
      #"{"text":"a\"b\\c\nd\u0001 grüß 😀"}"#, "0", #"{"a":1,"a":2}"#,
    ])
  func roundTrip(text: String) throws {
    #expect(try JSONValue(parsing: text).text == text)
  }

  @Test("escapes become their characters, pairs of surrogates one")
  func escapes() throws {
    #expect(try JSONValue(parsing: #""\/\b\f\u00e4\ud83d\ude00\t""#).string == "/\u{8}\u{C}ä😀\t")
  }

  @Test(
    "what is no JSON is refused at its first wrong byte",
    arguments: [
      ("", 0, "it ends where a value is due"), ("  x", 2, "no value begins like this"),
      ("{\"a\":1,}", 7, "a member has no name"), ("[1 2]", 3, "an array does not go on like this"),
      ("{\"a\" 1}", 5, "a member has no value"), ("01", 1, "something follows the value"),
      ("1.", 2, "a number lacks a digit"), ("-", 1, "a number lacks a digit"),
      ("tru", 3, "no value begins like this"),
      ("\"a", 2, "a text does not end"), ("\"a\\", 3, "a text does not end"),
      ("\"\u{1}\"", 1, "a control character stands in a text"),
      (#""ab\x""#, 3, "no escape is written like this"),
      (#""\u12g4""#, 1, "an escape lacks digits"), (#""\ud800""#, 1, "half a surrogate pair"),
      (#""\ude00""#, 1, "half a surrogate pair"), ("1 1", 2, "something follows the value"),
    ])
  func refusals(text: String, offset: Int, words: String) {
    #expect(throws: JSONProblem.self) { try JSONValue(parsing: text) }
    do throws(JSONProblem) { _ = try JSONValue(parsing: text) } catch {
      #expect(error.offset == offset && error.text == words, "\(text): \(error)")
      #expect(error.description == "no JSON at byte \(offset): \(words)")
    }
  }

  @Test("text that is not UTF-8 is refused, and nesting beyond 64")
  func bounds() {
    #expect(throws: JSONProblem.self) { try JSONValue(parsing: [0x22, 0xFF, 0x22]) }
    let deep = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
    #expect(throws: Never.self) { try JSONValue(parsing: deep) }
    #expect(throws: JSONProblem.self) { try JSONValue(parsing: "[" + deep + "]") }
    #expect(throws: JSONProblem.self) { try JSONValue(parsing: String(repeating: "[", count: 1_000_000)) }
  }

  @Test("of doubled members the last counts; whole numbers are found in any form")
  func looking() throws {
    let value = try JSONValue(parsing: #"{"a":1,"a":3.0,"big":1e99,"half":0.5,"far":1e999}"#)
    #expect(value["a"]?.integer == 3)
    #expect(value["big"]?.integer == nil && value["half"]?.integer == nil && value["far"]?.integer == nil)
    #expect(value["half"]?.double == 0.5 && value["none"] == nil && JSONValue.null["a"] == nil)
  }

  @Test(
    "a number is whole by its digits, not by the nearest double",
    arguments: [
      ("3777777777777777.7777", nil), ("9007199254740993.0", 9_007_199_254_740_993), ("-0.0", 0),
      ("1e3", 1_000),
      ("1.5e1", 15), ("15e-1", nil), ("37777777777777777777e-4", nil), ("1e999", nil),
    ] as [(String, Int?)])
  func whole(digits: String, expected: Int?) throws {
    #expect(try JSONValue(parsing: digits).integer == expected)
  }

  @Test("a number beyond every double is none, and its digits stay", arguments: ["1e999", "-1E+400"])
  func beyondDouble(digits: String) throws {
    let value = try JSONValue(parsing: #"{"event":"latency","name":"n","ms":\#(digits)}"#)
    #expect(value["ms"]?.double == nil && value["ms"]?.text == digits)
    #expect { try DialogEvent(json: value) } throws: { "\($0)".contains("it needs a number \"ms\"") }
  }

  @Test("broken bytes of every kind are read or refused, never more")
  func garbage() {
    var dice = Dice(seed: 11)
    let seed = Array(#"{"event":"state","a":[1,-2.5e3,"\u00e4\ud83d\ude00",{"x":null}],"t":true}"#.utf8)
    for _ in 0..<20_000 {
      var bytes = seed
      for _ in 0..<dice.below(6) + 1 { bytes[dice.below(bytes.count)] = UInt8(dice.below(256)) }
      if dice.below(3) == 0 { bytes.removeLast(dice.below(bytes.count)) }
      guard let value = try? JSONValue(parsing: bytes) else { continue }
      // What was accepted can be written and read again to the same.
      #expect((try? JSONValue(parsing: value.bytes)) == value)
    }
  }
}
