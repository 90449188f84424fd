import MillraceCore
import MillraceGraph
import Testing

/// Nodes that listen on ports of this machine.
@Suite("Ports of this machine in a graph")
struct PortTakenTwiceTests {
  private static func contract(_ type: String, _ parameters: [ParameterContract]) -> NodeContract {
    NodeContract(
      type, "listens", outputs: [PortContract("out", .pcm(), text: "sound")], parameters: parameters,
      drive: .itself,
      resolve: { $0.outputs["out"] = .pcm(rate: 48_000, channels: 1, sample: .s16, frames: 960) })
  }

  private static let address = ParameterContract(
    "host", .string, default: "127.0.0.1", text: "where it listens")

  /// Shares its port.
  private static let page = contract(
    "own.page",
    [
      ParameterContract("listen", .integer(0...65_535), text: "its port").opening(
        ListeningSocket(
          host: "host",
          sharing: ListeningSocket.Sharing(group: "pages", path: "path", rules: ["key", "names"]))),
      address, ParameterContract("path", .string, default: "/", text: "its place"),
      ParameterContract("key", .string, text: "its key"),
      ParameterContract("names", .list(of: .string, count: 0...8), default: .list([]), text: "its names"),
    ])

  /// Shares its port with nobody, and may have another address.
  private static let door = contract(
    "own.door",
    [
      ParameterContract("listen", .integer(0...65_535), text: "its port").opening(
        ListeningSocket(host: "host")), address,
    ])

  /// Shares its port with nobody, and always listens on 127.0.0.1.
  private static let bell = contract(
    "own.bell",
    [
      ParameterContract("port", .integer(0...65_535), default: 0, text: "its port").opening(
        ListeningSocket(host: nil))
    ])

  private static let contracts = TestCatalogue.contracts.merging(
    [page, door, bell].map { ($0.type, $0) }
  ) { _, own in own }

  /// The problems of a graph of nodes that play to nobody: `one`, `two`, and so on.
  private func words(_ nodes: String...) -> String {
    let names = ["one", "two", "three", "four"]
    let texts = zip(names, nodes).map { name, node in
      "\"\(name)\": { \"type\": \"own.\(node) }, \"\(name)-bin\": { \"type\": \"flow.null\" }"
    }
    let links = zip(names, nodes).map { name, _ in "\"\(name) -> \(name)-bin\"" }
    let text = """
      { "millrace": 1,
      "nodes": { \(texts.joined(separator: ",\n")) },
      "links": [ \(links.joined(separator: ", ")) ] }
      """
    let settings = GraphSettings(environment: .values([:]))
    do throws(Problems) {
      let source = SourceFile(name: "graph.json", text: text)
      return Problems(try Graph.load(source, settings: settings, contracts: Self.contracts).warnings)
        .description
    } catch {
      return error.description
    }
  }

  @Test("two nodes on one port are refused, with both names, the port and the cure")
  func same() {
    let words = words(#"door", "listen": 8080"#, #"door", "listen": 8080"#)
    #expect(
      words == """
        graph.json:3:40: error: "one" and "two" both listen on port 8080 of "127.0.0.1"; \
        set another "listen" in one of them
        1 error
        """)
  }

  @Test(
    "other ports, other addresses, any free port and no port at all are in nobody's way",
    arguments: [
      (#"door", "listen": 8080"#, #"door", "listen": 8081"#),
      (#"door", "listen": 0"#, #"door", "listen": 0"#),
      (#"door", "listen": 8080"#, #"door", "listen": 8080, "host": "127.0.0.2""#),
      (#"door", "listen": 8080, "host": "::1""#, #"door", "listen": 8080, "host": "0.0.0.0""#),
      (#"door", "listen": 8080, "host": "localhost""#, #"door", "listen": 8080, "host": "0.0.0.0""#),
      (#"door""#, #"door""#), (#"bell""#, #"bell""#), (#"door", "listen": 80"#, #"bell", "port": 8080"#),
    ])
  func apart(one: String, two: String) { #expect(words(one, two) == "") }

  @Test("nodes of families that do not share are refused, whatever the parameter is called")
  func families() {
    let words = words(
      #"page", "listen": 8080, "path": "/a""#, #"door", "listen": 8080"#, #"bell", "port": 8080"#)
    #expect(
      words.contains(#""one" and "two" both listen on port 8080 of "127.0.0.1"; set another "listen" in"#))
    #expect(words.contains(#""one" and "three" both listen on port 8080"#), "\(words)")
    #expect(words.contains(#"set another "listen" or "port" in one of them"#), "\(words)")
    #expect(words.hasSuffix("2 errors"), "\(words)")
  }

  @Test("nodes that share a port are refused where they have one path, and only there")
  func paths() {
    let apart = words(
      #"page", "listen": 8080"#, #"page", "listen": 8080, "path": "/a""#,
      #"page", "listen": 8080, "path": "/A""#, #"page", "listen": 8081"#)
    #expect(apart == "")
    let same = words(
      #"page", "listen": 8080, "path": "/a""#, #"page", "listen": 8080, "path": "/b""#,
      #"page", "listen": 8080, "path": "/b""#)
    let text = #""two" and "three" both serve the path "/b" on port 8080 of "127.0.0.1"; "#
    #expect(
      same.contains(text + #"set another "path" in one of them, or another "listen" in one of them"#),
      "\(same)")
    #expect(same.hasSuffix("1 error"), "\(same)")
  }

  @Test("nodes that share a port are refused where their rules differ, with the parameters")
  func rules() {
    let words = words(
      #"page", "listen": 8080, "path": "/a", "key": "k""#,
      #"page", "listen": 8080, "path": "/b", "names": ["n"]"#)
    let text =
      #""one" and "two" share port 8080 of "127.0.0.1", and have different values of "key" and "names"; "#
    #expect(words.contains(text + #"give both the same, or set another "listen" in one of them"#), "\(words)")
    let same = #", "key": "k", "names": ["n"]"#
    #expect(
      self.words(
        #"page", "listen": 8080, "path": "/a""# + same, #"page", "listen": 8080, "path": "/b""# + same) == "")
  }

  @Test(
    "an address that stands for all of this machine includes the others",
    arguments: [
      ("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "0.0.0.0"), ("::", "127.0.0.1"), ("127.0.0.1", "::"),
      ("::", "0.0.0.0"), ("0.0.0.0", "::"), ("::1", "::"), ("localhost", "::"), ("::", "LOCALHOST"),
    ])
  func overlap(one: String, two: String) {
    let doors = words(
      "door\", \"listen\": 8080, \"host\": \"\(one)\"", "door\", \"listen\": 8080, \"host\": \"\(two)\"")
    let place =
      "both listen on port 8080, at \"\(one)\" and \"\(two.lowercased())\", which overlap; set another"
    #expect(doors.contains(place), "\(doors)")
    let pages = words(
      "page\", \"listen\": 8080, \"host\": \"\(one)\"",
      "page\", \"listen\": 8080, \"path\": \"/b\", \"host\": \"\(two)\"")
    #expect(pages.contains(#"set the same "host" in both, or another "listen" in one of them"#), "\(pages)")
  }

  @Test("case does not make another address, and one problem is reported for each node")
  func names() {
    let words = words(
      #"door", "listen": 8080, "host": "localhost""#, #"door", "listen": 8080, "host": "LocalHost""#,
      #"door", "listen": 8080, "host": "localhost""#)
    #expect(words.contains(#""one" and "two" both listen"#), "\(words)")
    #expect(words.contains(#""one" and "three" both listen"#) && words.hasSuffix("2 errors"), "\(words)")
  }

  @Test("a port that is wrong itself is reported as that only")
  func wrong() {
    let words = words(#"door", "listen": 80800"#, #"door", "listen": 80800"#)
    #expect(!words.contains("both listen") && words.hasSuffix("2 errors"), "\(words)")
  }

  @Test("nodes of included graphs are on the same machine")
  func included() {
    var inner = GraphDescription("inner")
    inner.add("one", "own.door", ["listen": 8_080])
    inner.add("bin", "flow.null")
    inner.link("one -> bin")
    var outer = GraphDescription("outer")
    outer.include("left", inner)
    outer.include("right", inner)
    let settings = GraphSettings(environment: .values([:]))
    var words = ""
    do throws(Problems) {
      _ = try Graph.load(outer, settings: settings, contracts: Self.contracts)
    } catch {
      words = error.description
    }
    #expect(words.contains(#""left.one" and "right.one" both listen on port 8080"#), "\(words)")
  }
}
