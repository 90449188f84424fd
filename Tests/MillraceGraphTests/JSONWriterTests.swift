import MillraceGraph
import Testing

@Suite("JSON writer")
struct JSONWriterTests {
  private func written(pretty: Bool = false, _ body: (inout JSONWriter) -> Void) -> String {
    var json = JSONWriter(pretty: pretty)
    body(&json)
    return json.text
  }

  private func sample(_ json: inout JSONWriter) {
    json.object { json in
      json.member("name", "uplink")
      json.array("rates") { json in
        json.value(16_000)
        json.value(0.5)
      }
      json.object("none") { _ in }
      json.array("empty") { _ in }
      json.member("live", true)
      json.key("nothing")
      json.null()
    }
  }

  @Test("compact output has no white space and keeps the order")
  func compact() {
    #expect(
      written(sample)
        == #"{"name":"uplink","rates":[16000,0.5],"none":{},"empty":[],"live":true,"nothing":null}"#)
  }

  @Test("pretty output has one member or item a line")
  func pretty() {
    #expect(
      written(pretty: true, sample) == """
        {
          "name": "uplink",
          "rates": [
            16000,
            0.5
          ],
          "none": {},
          "empty": [],
          "live": true,
          "nothing": null
        }
        """)
  }

  @Test("what JSON demands is escaped, the rest is left alone")
  func escapes() {
    #expect(
      written { $0.value("\"\\/\u{8}\t\n\u{C}\r\u{0}\u{1F}\u{7F}é界😀\u{2028}") }
        == #""\"\\/\b\t\n\f\r\u0000\u001F"# + "\u{7F}é界😀\u{2028}\"")
    #expect(written { json in json.object { $0.member("a\"b", 1) } } == #"{"a\"b":1}"#)
  }

  @Test(
    "doubles are the shortest text that reads back the same",
    arguments: [
      0.1, -0.0, 1e300, .leastNonzeroMagnitude, 1.0 / 3, 1e16, 123_456_789.125, .greatestFiniteMagnitude,
    ])
  func doubles(_ value: Double) throws {
    let text = written { $0.value(value) }
    let read = try JSONDocument.scan(SourceFile(name: "a", text: text)).root.double
    #expect(read?.bitPattern == value.bitPattern)
  }

  @Test("a Float is written with its own digits, not those of a Double")
  func floats() {
    #expect(written { $0.value(Float(0.1)) } == "0.1")
  }

  @Test("an infinity or NaN becomes null")
  func notFinite() {
    #expect(
      written { json in
        json.array {
          $0.value(Double.infinity)
          $0.value(-Double.infinity)
          $0.value(Float.nan)
        }
      } == "[null,null,null]")
  }

  @Test("the widest integers are written whole")
  func integers() {
    #expect(
      written { json in
        json.array {
          $0.value(Int64.min)
          $0.value(UInt64.max)
          $0.value(UInt8(7))
        }
      } == "[-9223372036854775808,18446744073709551615,7]")
  }

  @Test("a value without a key inside an object is a mistake of the program")
  func valueWithoutKey() async {
    await #expect(processExitsWith: .failure) {
      var json = JSONWriter()
      json.object { $0.value(1) }
    }
  }

  @Test("a second value at the top is a mistake of the program")
  func secondValue() async {
    await #expect(processExitsWith: .failure) {
      var json = JSONWriter()
      json.value(1)
      json.value(2)
    }
  }

  @Test("a key without a value is a mistake of the program")
  func keyWithoutValue() async {
    await #expect(processExitsWith: .failure) {
      var json = JSONWriter()
      json.object { $0.key("a") }
    }
  }

  @Test("what a document holds is written with the text of its numbers")
  func document() throws {
    let text = #"{"a":[1.50,-0,1E+3,"é\n",null,true,false,{}],"b":[]}"#
    let root = try JSONDocument.scan(SourceFile(name: "a", text: text)).root
    #expect(written { $0.value(root) } == text)
  }

  @Test("random trees read back as they were, compact and pretty", arguments: 0..<50)
  func randomTrees(_ seed: UInt64) throws {
    var generator = SplitMix(state: seed)
    let tree = RandomTree.make(depth: 5, &generator)
    for pretty in [false, true] {
      let text = written(pretty: pretty) { tree.write(to: &$0) }
      let root = try JSONDocument.scan(SourceFile(name: "a", text: text)).root
      #expect(tree.matches(root))
      let again = written(pretty: !pretty) { $0.value(root) }
      #expect(try JSONDocument.scan(SourceFile(name: "a", text: again)).root.hasSameContent(as: root))
    }
  }

  @Test(
    "trees that differ in one value do not have the same content",
    arguments: [
      "[1]", "[1.0]", "[\"1\"]", "[1,1]", "[true]", "[false]", "[null]", "{}", "[]", "[{}]", #"{"a":1}"#,
      #"{"b":1}"#,
      #"{"a":2}"#, "\"e\u{301}\"", "\"\u{E9}\"", #"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#,
    ])
  func different(_ text: String) throws {
    let root = try JSONDocument.scan(SourceFile(name: "a", text: text)).root
    for other in ["[1]", #"{"a":1}"#, "\"\u{E9}\"", #"{"a":1,"b":2}"#] {
      let otherRoot = try JSONDocument.scan(SourceFile(name: "a", text: other)).root
      #expect(root.hasSameContent(as: otherRoot) == (Array(text.utf8) == Array(other.utf8)))
    }
  }
}

/// A JSON value made by chance.
indirect enum RandomTree {
  case null
  case bool(Bool)
  case integer(Int64)
  case double(Double)
  case string(String)
  case array([RandomTree])
  case object([(String, RandomTree)])

  static func make(depth: Int, _ generator: inout SplitMix) -> RandomTree {
    switch generator.next() % (depth == 0 ? 5 : 9) {
    case 0: return .null
    case 1: return .bool(generator.next() & 1 == 0)
    case 2: return .integer(Int64(bitPattern: generator.next()) >> Int64(generator.next() % 64))
    case 3:
      let value = Double(bitPattern: generator.next())
      return .double(value.isFinite ? value : 0)
    case 4: return .string(string(&generator))
    case 5, 6: return .array((0..<generator.next() % 12).map { _ in make(depth: depth - 1, &generator) })
    default:
      return .object(
        (0..<generator.next() % 12).map { ("\($0)" + string(&generator), make(depth: depth - 1, &generator)) }
      )
    }
  }

  /// Up to 12 characters of all lengths in UTF-8, many of them in need of an escape.
  private static func string(_ generator: inout SplitMix) -> String {
    var text = String.UnicodeScalarView()
    for _ in 0..<generator.next() % 13 {
      let limits: [UInt32] = [0x20, 0x80, 0x800, 0x10000, 0x110000]
      let limit = limits[Int(generator.next() % 5)]
      text.append(Unicode.Scalar(UInt32(generator.next() % UInt64(limit))) ?? "\"")
    }
    return String(text)
  }

  func write(to json: inout JSONWriter) {
    switch self {
    case .null: json.null()
    case .bool(let value): json.value(value)
    case .integer(let value): json.value(value)
    case .double(let value): json.value(value)
    case .string(let value): json.value(value)
    case .array(let items): json.array { json in for item in items { item.write(to: &json) } }
    case .object(let members):
      json.object { json in
        for (key, value) in members {
          json.key(key)
          value.write(to: &json)
        }
      }
    }
  }

  func matches(_ node: JSONNode) -> Bool {
    switch self {
    case .null: return node.isNull
    case .bool(let value): return node.bool == value
    case .integer(let value): return node.integer == value
    case .double(let value): return node.double?.bitPattern == value.bitPattern
    case .string(let value): return node.string.map { $0.utf8.elementsEqual(value.utf8) } ?? false
    case .array(let items):
      guard let nodes = node.array, nodes.count == items.count else { return false }
      return zip(items, nodes).allSatisfy { $0.matches($1) }
    case .object(let members):
      guard let nodes = node.object?.members, nodes.count == members.count else { return false }
      return zip(members, nodes).allSatisfy { $0.0.utf8.elementsEqual($1.key.utf8) && $0.1.matches($1.value) }
    }
  }
}
