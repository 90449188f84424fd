import MillraceGraph
import Testing

/// Every way a file can break RFC 8259, with the exact words for it.
@Suite("JSON refusals")
struct JSONRefusalTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let input: [UInt8]
    let refusal: String
    let line: Int

    init(_ input: String, _ refusal: String, line: Int = #line) {
      self.init(Array(input.utf8), refusal, line: line)
    }

    init(_ input: [UInt8], _ refusal: String, line: Int = #line) {
      self.input = input
      self.refusal = refusal
      self.line = line
    }

    var testDescription: String { "line \(line): \(refusal)" }
  }

  static let structure: [Case] = [
    Case("", "1:1: error: the file is empty; write a JSON value, at least {}"),
    Case(" \n\t", "1:1: error: the file contains only white space; write a JSON value, at least {}"),
    Case(
      "{\n  \"a\": 1,\n  \"id\": \"mic\"  \"type\": 2\n}",
      #"3:16: error: expected ',' or '}' after the value of "id", found '"'"#),
    Case("[1 2]", "1:4: error: expected ',' or ']' after item 1 of the array, found '2'"),
    Case(#"{"links": ["a" "b"]}"#, #"1:16: error: expected ',' or ']' after item 1 of "links", found '"'"#),
    Case("[[1, 2}]", "1:7: error: expected ',' or ']' after item 2 of the array, found '}'"),
    Case(#"{"a": [1]]"#, #"1:10: error: expected ',' or '}' after the value of "a", found ']'"#),
    Case(#"{"a" 1}"#, #"1:6: error: expected ':' after the key "a", found '1'"#),
    Case(#"{"a"= 1}"#, #"1:5: error: expected ':' after the key "a", found '='"#),
    Case(#"{"a": , "b": 1}"#, #"1:7: error: expected a value for "a", found ','"#),
    Case(#"{"a":}"#, #"1:6: error: expected a value for "a", found '}'"#),
    Case("[,1]", "1:2: error: expected item 1 of the array, found ','"),
    Case("[1,,2]", "1:4: error: expected item 2 of the array, found ','"),
    Case("{,}", "1:2: error: expected a key in double quotes, found ','"),
    Case("{1: 2}", "1:2: error: expected a key in double quotes, found '1'"),
    Case("{\"a\": 1,\n}", "1:8: error: trailing comma before '}'; remove it"),
    Case("[1, 2,\n ]", "1:6: error: trailing comma before ']'; remove it"),
    Case(
      "{\n\"a\": [", "2:7: error: the file ends inside the array that starts on line 2; close it with ']'"),
    Case(
      "\n{\"a\": 1\n", "3:1: error: the file ends inside the object that starts on line 2; close it with '}'"),
    Case(
      "{\"a\": 1,", "1:9: error: the file ends inside the object that starts on line 1; close it with '}'"),
    Case("{\"a\"", "1:5: error: the file ends inside the object that starts on line 1; close it with '}'"),
    Case("{\"a\":", "1:6: error: the file ends inside the object that starts on line 1; close it with '}'"),
    Case("{", "1:2: error: the file ends inside the object that starts on line 1; close it with '}'"),
    Case(
      "{} {}",
      "1:4: error: expected the end of the file after the JSON value, found '{'; a file contains one value"),
    Case(
      "{}}",
      "1:3: error: expected the end of the file after the JSON value, found '}'; remove it, or add the matching '{'"
    ),
    Case(
      "1 x",
      "1:3: error: expected the end of the file after the JSON value, found 'x'; a file contains one value"),
    Case("}", "1:1: error: expected a value, found '}'"),
    Case(
      "{\n  \"nodes\": {},\n  \"nodes\": {}\n}",
      #"3:3: error: duplicate key "nodes", first on line 2; remove one of them"#),
    Case(
      #"{"a": {"b": 1, "\u0062": 2}}"#,
      #"1:16: error: duplicate key "b", first on line 1; remove one of them"#),
    Case(
      "{\"e\u{301}\": 1, \"\u{E9}\": 2}",
      "1:11: error: duplicate key \"\u{E9}\", first on line 1; remove one of them"),
    Case(
      "{" + (0..<40).map { "\"k\($0)\": 0,\n" }.joined() + "\"k7\": 0}",
      #"41:1: error: duplicate key "k7", first on line 8; remove one of them"#),
  ]

  static let words: [Case] = [
    Case(
      #"{"type": opus}"#,
      #"1:10: error: expected a value for "type", found an unquoted word; put strings in double quotes"#),
    Case(
      "[tru]",
      "1:2: error: expected item 1 of the array, found an unquoted word; put strings in double quotes"),
    Case(
      "[truest]",
      "1:2: error: expected item 1 of the array, found an unquoted word; put strings in double quotes"),
    Case("True", "1:1: error: expected a value, found True; write true"),
    Case("FALSE", "1:1: error: expected a value, found FALSE; write false"),
    Case("nil", "1:1: error: expected a value, found nil; write null"),
    Case("undefined", "1:1: error: expected a value, found undefined; write null"),
    Case(
      "audio.read", "1:1: error: expected a value, found an unquoted word; put strings in double quotes"),
    Case("{type: 1}", #"1:2: error: the key type is not quoted; write "type""#),
    Case("{\"a\": 1, b-c: 1}", #"1:10: error: the key b-c is not quoted; write "b-c""#),
    Case("{'a': 1}", "1:2: error: expected a key in double quotes, found '''; use double quotes"),
    Case("['a']", "1:2: error: expected item 1 of the array, found '''; use double quotes"),
    Case(
      "[“a”]", "1:2: error: expected item 1 of the array, found '“'; use straight double quotes"),
    Case(
      "[1，2]", "1:3: error: the number 1 is followed by '，'; use ASCII punctuation: , : { } [ ]"),
    Case(
      "[\"a\"，2]",
      "1:5: error: expected ',' or ']' after item 1 of the array, found '，'; use ASCII punctuation: , : { } [ ]"
    ),
    Case("[你好]", "1:2: error: expected item 1 of the array, found '你'; put strings in double quotes"),
    Case(
      "[\u{A0}1]", "1:2: error: expected item 1 of the array, found the invisible character U+00A0; remove it"
    ),
    Case(
      "[1\u{200B}]",
      "1:3: error: the number 1 is followed by the invisible character U+200B; remove it"),
    Case(
      "[\u{0}]", "1:2: error: expected item 1 of the array, found the control character U+0000; remove it"),
    Case("// hello\n{}", "1:1: error: JSON does not allow comments; remove the comment"),
    Case("{} // hello", "1:4: error: JSON does not allow comments; remove the comment"),
    Case("{ /* a */ }", "1:3: error: JSON does not allow comments; remove the comment"),
    Case("[1, # one\n2]", "1:5: error: JSON does not allow comments; remove the comment"),
    Case("[1 // one\n]", "1:4: error: JSON does not allow comments; remove the comment"),
    Case("[/]", "1:2: error: expected item 1 of the array, found '/'"),
  ]

  static let numbers: [Case] = [
    Case("NaN", "1:1: error: NaN is not a JSON number; use a finite number or null"),
    Case("[nan]", "1:2: error: nan is not a JSON number; use a finite number or null"),
    Case("Infinity", "1:1: error: Infinity is not a JSON number; use a finite number or null"),
    Case("-Infinity", "1:1: error: -Infinity is not a JSON number; use a finite number or null"),
    Case("+inf", "1:1: error: +inf is not a JSON number; use a finite number or null"),
    Case("01", "1:1: error: a number must not start with 0; write 1"),
    Case("-007.5", "1:1: error: a number must not start with 0; write -7.5"),
    Case("00", "1:1: error: a number must not start with 0; write 0"),
    Case("+1", "1:1: error: a number must not start with '+'; remove the '+'"),
    Case(".5", "1:1: error: missing digit before the decimal point; write 0.5 instead of .5"),
    Case("-.5", "1:1: error: missing digit before the decimal point; write -0.5 instead of -.5"),
    Case("[1.]", "1:4: error: expected a digit after the decimal point, found ']'; write 1 or 1.0"),
    Case(
      "-1.",
      "1:4: error: expected a digit after the decimal point, found the end of the file; write -1 or -1.0"),
    Case("1.e3", "1:3: error: expected a digit after the decimal point, found 'e'; write 1 or 1.0"),
    Case("-", "1:2: error: expected a digit after '-', found the end of the file"),
    Case("[- 1]", "1:3: error: expected a digit after '-', found a space"),
    Case("-x", "1:2: error: expected a digit after '-', found 'x'"),
    Case("1e", "1:3: error: expected a digit in the exponent, found the end of the file; write it like 1e3"),
    Case(
      "[1E+\n]", "1:5: error: expected a digit in the exponent, found the end of the line; write it like 1e3"),
    Case(
      "48k",
      "1:3: error: the number 48 is followed by 'k'; write a plain decimal number, or put strings in double quotes"
    ),
    Case(
      "0x10",
      "1:2: error: the number 0 is followed by 'x'; write a plain decimal number, or put strings in double quotes"
    ),
    Case(
      "1_000",
      "1:2: error: the number 1 is followed by '_'; write a plain decimal number, or put strings in double quotes"
    ),
    Case(
      "1.2.3",
      "1:4: error: the number 1.2 is followed by '.'; write a plain decimal number, or put strings in double quotes"
    ),
    Case("[1,1e999]", "1:4: error: the number 1e999 is too large; the maximum is about 1.8e308"),
    Case("-1.8e308", "1:1: error: the number -1.8e308 is too large; the maximum is about 1.8e308"),
    Case(
      String(repeating: "9", count: 310),
      "1:1: error: the number \(String(repeating: "9", count: 79))… is too large; the maximum is about 1.8e308"
    ),
    Case(
      "1e99999999999999999999999",
      "1:1: error: the number 1e99999999999999999999999 is too large; the maximum is about 1.8e308"),
  ]

  static let strings: [Case] = [
    Case(
      "\"abc",
      "1:1: error: unterminated string; add the closing '\"'"),
    Case(
      "\"abc\\",
      "1:1: error: unterminated string; add the closing '\"'"),
    Case(
      "\"\\u12",
      "1:1: error: unterminated string; add the closing '\"'"),
    Case(
      "\"\\n",
      "1:1: error: unterminated string; add the closing '\"'"),
    Case(
      "{\n \"a\": \"abc\n}",
      #"2:7: error: unterminated string: it must end on its line; add the closing '"', or write a line break as \n"#
    ),
    Case(
      "\"abc\r\n\"",
      #"1:1: error: unterminated string: it must end on its line; add the closing '"', or write a line break as \n"#
    ),
    Case("[\"a\tb\"]", #"1:4: error: unescaped tab in a string; write \t"#),
    Case(
      "\"\u{1}\"", #"1:2: error: unescaped control character U+0001 in a string; write \u0001"#),
    Case(
      "\"\\n\u{1F}\"", #"1:4: error: unescaped control character U+001F in a string; write \u001F"#
    ),
    Case(
      #""C:\windows""#,
      #"1:4: error: invalid escape \w; write a backslash as \\; the escapes are \" \\ \/ \b \f \n \r \t \uXXXX"#
    ),
    Case(
      #""\é""#,
      #"1:2: error: invalid escape \é; write a backslash as \\; the escapes are \" \\ \/ \b \f \n \r \t \uXXXX"#
    ),
    Case(
      "\"\\\n\"",
      #"1:2: error: invalid escape \\n; write a backslash as \\; the escapes are \" \\ \/ \b \f \n \r \t \uXXXX"#
    ),
    Case(
      #""\u12G4""#, #"1:2: error: expected four hexadecimal digits after \u, found 'G'; write é as \u00e9"#),
    Case(#""\u12""#, #"1:2: error: expected four hexadecimal digits after \u, found '"'; write é as \u00e9"#),
    Case(
      #""\ud83d""#,
      #"1:2: error: unpaired surrogate \ud83d; write both surrogates, such as \ud83d\ude00, or the character itself"#
    ),
    Case(
      #""\ud83d\n""#,
      #"1:2: error: unpaired surrogate \ud83d; write both surrogates, such as \ud83d\ude00, or the character itself"#
    ),
    Case(
      #""x\uDE00\uD83D""#,
      #"1:3: error: unpaired surrogate \uDE00; write both surrogates, such as \ud83d\ude00, or the character itself"#
    ),
    Case(
      #""\ud83d\u0041""#,
      #"1:2: error: unpaired surrogate \ud83d; write both surrogates, such as \ud83d\ude00, or the character itself"#
    ),
    Case(
      #""\ud83d\ud83d""#,
      #"1:2: error: unpaired surrogate \ud83d; write both surrogates, such as \ud83d\ude00, or the character itself"#
    ),
  ]

  static let encoding: [Case] = [
    Case(
      [0xEF, 0xBB, 0xBF] + Array("{}".utf8),
      "1:1: error: the file starts with a byte order mark; save it as UTF-8 without a BOM"),
    Case(
      [0xFF, 0xFE, 0x7B, 0x00], "1:1: error: the file is encoded in UTF-16; save it as UTF-8 without a BOM"),
    Case(
      [0xFE, 0xFF, 0x00, 0x7B], "1:1: error: the file is encoded in UTF-16; save it as UTF-8 without a BOM"),
    Case(
      [0x22, 0x80, 0x22],
      "1:2: error: the file is not valid UTF-8: byte 0x80 is a continuation byte without a lead byte; save it as UTF-8"
    ),
    Case(
      [0x22, 0xC0, 0xAF, 0x22],
      "1:2: error: the file is not valid UTF-8: byte 0xC0 begins an overlong encoding; save it as UTF-8"
    ),
    Case(
      [0x22, 0xE0, 0x80, 0xAF, 0x22],
      "1:2: error: the file is not valid UTF-8: byte 0xE0 begins an overlong encoding; save it as UTF-8"
    ),
    Case(
      [0x22, 0xED, 0xA0, 0x80, 0x22],
      "1:2: error: the file is not valid UTF-8: byte 0xED begins an encoded surrogate; save it as UTF-8"
    ),
    Case(
      [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22],
      "1:2: error: the file is not valid UTF-8: byte 0xF4 does not begin a character; save it as UTF-8"),
    Case(
      [0x22, 0xFF, 0x22],
      "1:2: error: the file is not valid UTF-8: byte 0xFF does not begin a character; save it as UTF-8"),
    Case(
      [0x22, 0xC3, 0xA9, 0xC3, 0x22],
      "1:3: error: the file is not valid UTF-8: byte 0xC3 begins a truncated sequence; save it as UTF-8"
    ),
    Case(
      [0x22, 0x0A, 0xF0, 0x9F, 0x98],
      "2:1: error: the file is not valid UTF-8: byte 0xF0 begins a truncated sequence; save it as UTF-8"
    ),
  ]

  @Test("a mistake in the structure is refused with these words", arguments: structure)
  func refusesStructure(_ example: Case) { expectRefusal(example) }

  @Test("a bare word, wrong quotes or a comment is refused with these words", arguments: words)
  func refusesWords(_ example: Case) { expectRefusal(example) }

  @Test("a number outside the grammar is refused with these words", arguments: numbers)
  func refusesNumbers(_ example: Case) { expectRefusal(example) }

  @Test("a string outside the grammar is refused with these words", arguments: strings)
  func refusesStrings(_ example: Case) { expectRefusal(example) }

  @Test("bytes that are not UTF-8 are refused with these words", arguments: encoding)
  func refusesEncoding(_ example: Case) { expectRefusal(example) }

  /// A line by itself, as of commands or of events.
  static let lines: [(input: String, refusal: String)] = [
    ("", "1:1: error: the line is empty; write a JSON value, at least {}"),
    (#"{"a": [1"#, "1:9: error: the line ends inside the array that starts at column 7; close it with ']'"),
    (
      #"{"a": 1, "a": 2}"#,
      #"1:10: error: duplicate key "a", first at column 2; remove one of them"#
    ),
    (
      "1 x",
      "1:3: error: expected the end of the line after the JSON value, found 'x'; a line contains one value"
    ),
    ("[", "1:2: error: the line ends inside the array that starts at column 1; close it with ']'"),
    ("-", "1:2: error: expected a digit after '-', found the end of the line"),
    (
      #"{"command": "sto"#,
      "1:13: error: unterminated string; add the closing '\"'"
    ),
    ("\u{FEFF}{}", "1:1: error: the line starts with a byte order mark; send UTF-8 without a BOM"),
  ]

  @Test("of one line of many the line is spoken of, with columns, and not a file", arguments: lines)
  func refusesLines(_ example: (input: String, refusal: String)) {
    let line = SourceFile(name: "line", bytes: Array(example.input.utf8), extent: .line)
    let problem = #expect(throws: Problem.self) { _ = try JSONDocument.scan(line) }
    #expect(problem?.description == "line:\(example.refusal)")
  }

  @Test("a line that is not UTF-8 is reported to its sender")
  func refusesLineEncoding() {
    let line = SourceFile(name: "line", bytes: [0x22, 0xFF, 0x22], extent: .line)
    let problem = #expect(throws: Problem.self) { _ = try JSONDocument.scan(line) }
    #expect(
      problem?.description
        == "line:1:2: error: the line is not valid UTF-8: byte 0xFF does not begin a character; send UTF-8")
  }

  private func expectRefusal(_ example: Case) {
    #expect(refusal(of: example.input)?.description == "graph.json:\(example.refusal)")
  }

  @Test("64 levels are read and 65 are refused at the bracket that is too many")
  func depth() {
    func nested(_ levels: Int) -> [UInt8] {
      Array((String(repeating: "[", count: levels) + String(repeating: "]", count: levels)).utf8)
    }
    #expect(refusal(of: nested(64)) == nil)
    #expect(
      refusal(of: nested(65))?.description
        == "graph.json:1:65: error: arrays and objects are nested more than 64 levels deep; use fewer levels")
    let objects = String(repeating: #"{"a":"#, count: 65)
    #expect(
      refusal(of: Array(objects.utf8))?.text == "arrays and objects are nested more than 64 levels deep")
  }

  @Test("a million open brackets are refused without using up the stack")
  func bracketsWithoutEnd() {
    let problem = refusal(of: [UInt8](repeating: UInt8(ascii: "["), count: 1_000_000))
    #expect(problem?.position == SourceFile.Position(line: 1, column: 65))
  }

  @Test("a refusal names the path of the value that was being read")
  func paths() {
    #expect(refusal(of: #"{"nodes": {"enc": {"bitrate": 01}}}"#)?.path.description == "nodes.enc.bitrate")
    #expect(refusal(of: #"{"links": ["a", {"from" 1}]}"#)?.path.description == "links[1].from")
    #expect(refusal(of: #"{"links": ["a", "b" 1]}"#)?.path.description == "links[1]")
    #expect(refusal(of: #"{"a": {"b": 1, "b": 2}}"#)?.path.description == "a.b")
    #expect(refusal(of: #"{"a": 1, b: 2}"#)?.path.description == "")
  }

  @Test("a text over the size limit is refused unread")
  func tooLarge() {
    let bytes = [UInt8](repeating: 0x20, count: SourceFile.sizeLimit + 1)
    #expect(
      refusal(of: bytes)?.description
        == "graph.json:1:1: error: the file is larger than 64 MiB; check that it is the right file")
  }
}

/// The problem of scanning a text, nil when it is accepted.
func refusal(of text: String) -> Problem? { refusal(of: Array(text.utf8)) }

/// The problem of scanning some bytes, nil when they are accepted.
func refusal(of bytes: [UInt8]) -> Problem? {
  do throws(Problem) {
    _ = try JSONDocument.scan(SourceFile(name: "graph.json", bytes: bytes))
    return nil
  } catch {
    return error
  }
}
