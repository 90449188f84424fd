import MillraceGraph
import Testing

@Suite("JSON scanner")
struct JSONScannerTests {
  private func scan(_ text: String) throws -> JSONDocument {
    try JSONDocument.scan(SourceFile(name: "graph.json", text: text))
  }

  @Test("each kind of value is read")
  func kinds() throws {
    let root = try scan(
      #"{"n": null, "t": true, "f": false, "i": -12, "d": 0.5, "s": "é", "a": [1], "o": {}}"#
    ).root
    #expect(root["n"]?.isNull == true)
    #expect(root["t"]?.bool == true)
    #expect(root["f"]?.bool == false)
    #expect(root["i"]?.integer == -12)
    #expect(root["d"]?.double == 0.5)
    #expect(root["s"]?.string == "é")
    #expect(root["a"]?.array?.count == 1)
    #expect(root["o"]?.object?.members.isEmpty == true)
    #expect(root["missing"] == nil)
    #expect(root.object.map { Array($0.keys) } == ["n", "t", "f", "i", "d", "s", "a", "o"])
  }

  @Test("asking a value for what it is not answers nil")
  func otherKinds() throws {
    let root = try scan("[1]").root
    #expect(root.string == nil)
    #expect(root.bool == nil)
    #expect(root.number == nil)
    #expect(root.integer == nil)
    #expect(root.double == nil)
    #expect(root.object == nil)
    #expect(root["a"] == nil)
    #expect(!root.isNull)
    #expect(root.array?[0].array == nil)
  }

  @Test("a value describes its kind")
  func words() throws {
    let items = try #require(try scan(#"[null, true, false, 1, "a", [], {}]"#).root.array)
    #expect(items.map(\.kind) == ["null", "true", "false", "a number", "a string", "an array", "an object"])
  }

  @Test("any value may be the document", arguments: ["null", "true", "1", "\"a\"", " [] ", "\r\n\t{} "])
  func anyRoot(_ text: String) throws {
    _ = try scan(text)
  }

  @Test("ranges cover a value with its quotes and brackets, and a key with its quotes")
  func ranges() throws {
    let text = #" { "é": [ 12, true ] , "b" : "x\n" } "#
    let document = try scan(text)
    let object = try #require(document.root.object)
    func slice(_ range: Range<Int>) -> String { document.source.text(in: range) }
    #expect(slice(document.root.range) == #"{ "é": [ 12, true ] , "b" : "x\n" }"#)
    #expect(slice(object.members[0].keyRange) == #""é""#)
    #expect(slice(object.members[0].value.range) == "[ 12, true ]")
    #expect(object.members[0].value.array.map { $0.map { slice($0.range) } } == ["12", "true"])
    #expect(slice(object.members[1].range) == #""b" : "x\n""#)
  }

  @Test("escapes are resolved, surrogate pairs among them")
  func escapes() throws {
    #expect(try scan(#""\"\\\/\b\f\n\r\t""#).root.string == "\"\\/\u{8}\u{C}\n\r\t")
    #expect(try scan(#""\u00e9\u754C\uD83D\ude00x""#).root.string == "é界😀x")
    #expect(try scan(#""a\u0000b""#).root.string == "a\0b")
    #expect(try scan(#""\uD800\uDC00\uDBFF\uDFFF""#).root.string == "\u{10000}\u{10FFFF}")
    #expect(try scan(#""\uD7FF\uE000\uFFFF""#).root.string == "\u{D7FF}\u{E000}\u{FFFF}")
    #expect(try scan("\"\u{7F}\u{2028}\u{FEFF}\"").root.string == "\u{7F}\u{2028}\u{FEFF}")
  }

  @Test("members are found in small and in large objects", arguments: [1, 8, 9, 10, 500])
  func lookup(_ count: Int) throws {
    let text = "{" + (0..<count).map { #""key\#($0)": \#($0)"# }.joined(separator: ",") + "}"
    let object = try #require(try scan(text).root.object)
    for index in 0..<count { #expect(object["key\(index)"]?.value.integer == Int64(index)) }
    #expect(object["key\(count)"] == nil)
  }

  @Test("a repeated key is refused wherever it stands", arguments: [2, 8, 9, 10, 100])
  func duplicates(_ count: Int) {
    for repeated in [0, count / 2, count - 1] {
      let keys = (0..<count).map { "k\($0)" } + ["k\(repeated)"]
      let text = "{" + keys.map { #""\#($0)": 0"# }.joined(separator: ",") + "}"
      #expect(
        refusal(of: text)?.text == #"duplicate key "k\#(repeated)", first on line 1"#)
    }
  }

  @Test("the path to an offset is that of the innermost value or key there")
  func pathToOffset() throws {
    let text = #"{"a": {"b c": [10, {"d": 1}]}, "e": 2}"#
    let document = try scan(text)
    func path(to needle: String) throws -> String {
      let all = Array(text.utf8)
      let wanted = Array(needle.utf8)
      let offset = try #require(all.indices.first { all[$0...].starts(with: wanted) })
      return document.path(to: offset).description
    }
    #expect(try path(to: "{\"a\"") == "")
    #expect(try path(to: "\"a\"") == "a")
    #expect(try path(to: "\"b c\"") == #"a["b c"]"#)
    #expect(try path(to: "10") == #"a["b c"][0]"#)
    #expect(try path(to: ", {") == #"a["b c"]"#)
    #expect(try path(to: "1}") == #"a["b c"][1].d"#)
    #expect(try path(to: "2}") == "e")
    #expect(document.path(to: text.utf8.count + 5).description == "")
  }

  @Test("an error or warning about a value has its place and path")
  func problems() throws {
    let document = try scan("{\n  \"enc\": { \"rate\": 7 }\n}")
    let rate = try #require(document.root["enc"]?["rate"])
    let error = document.error(at: rate, "the rate is odd", hint: "write 8000")
    #expect(error.description == "graph.json:2:20: error: the rate is odd; write 8000")
    #expect(error.path.description == "enc.rate")
    #expect(document.warning(at: rate, "hm").description == "graph.json:2:20: warning: hm")
    let key = try #require(document.root["enc"]?.object?["rate"]?.keyRange)
    #expect(document.error(at: key, "no").position?.description == "2:12")
  }

  @Test("every prefix of a document is refused, with a place inside it")
  func prefixes() throws {
    let text = #"{"a": [1.5e3, true, "x\u00e9\n"], "b": {"c": null, "d": -0}}"#
    let bytes = Array(text.utf8)
    #expect(refusal(of: bytes) == nil)
    for count in bytes.indices {
      let problem = try #require(refusal(of: Array(bytes[..<count])))
      #expect(problem.range.upperBound <= count)
      #expect(!problem.text.isEmpty)
    }
  }
}
