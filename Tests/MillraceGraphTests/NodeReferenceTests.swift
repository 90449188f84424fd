import MillraceCore
import MillraceGraph
import Testing

/// Nodes that name others in a parameter, and values that are words of messages.
@Suite("Names and words in parameters")
struct NodeReferenceTests {
  private static let host = NodeContract(
    "own.host", "has channels", outputs: [PortContract("out", .pcm(), text: "sound")], drive: .itself,
    resolve: { $0.outputs["out"] = .pcm(rate: 48_000, channels: 1, sample: .s16, frames: 960) })

  private static let channel = NodeContract(
    "own.channel", "a channel", outputs: [PortContract("out", .pcm(), text: "sound")],
    parameters: [
      ParameterContract("of", .string, required: true, text: "whose channel it is")
        .naming(NodeReference(to: ["own.host", "own.station"], distinct: "label")),
      ParameterContract("label", .string, text: "its name"),
    ], drive: .itself,
    resolve: { $0.outputs["out"] = .pcm(rate: 48_000, channels: 1, sample: .s16, frames: 960) })

  /// Has a channel of its own.
  private static let station = NodeContract(
    "own.station", "has channels", outputs: [PortContract("out", .pcm(), text: "sound")],
    parameters: [ParameterContract("own", .string, default: "data", text: "the name of its own")],
    drive: .itself,
    resolve: { resolution in
      resolution.reservedNames[resolution.parameters.string("own")] = "for its own sound"
      resolution.outputs["out"] = .pcm(rate: 48_000, channels: 1, sample: .s16, frames: 960)
    })

  private static let door = NodeContract(
    "own.door", "opens", outputs: [PortContract("out", .pcm(), text: "sound")],
    parameters: [
      ParameterContract("knock", .string, required: true, secret: .whole, text: "what opens it"),
      ParameterContract("room", .string, text: "where it is"),
    ], drive: .itself,
    resolve: { resolution in
      let knock = resolution.parameters.string("knock")
      resolution.refuse("knock", "\"\(knock)\" opens nothing for the user, and \"room\" is not set")
    })

  private static let contracts = TestCatalogue.contracts.merging(
    [host, station, channel, door].map { ($0.type, $0) }
  ) { _, own in own }

  /// The problems of the nodes of a graph, each of which plays to nobody.
  private func words(_ nodes: [(String, String)]) -> String {
    let texts = nodes.map {
      "\"\($0.0)\": { \($0.1) }, \"\($0.0)-bin\": { \"type\": \"flow.null\" }"
    }
    let links = nodes.map { "\"\($0.0) -> \($0.0)-bin\"" }
    let text = """
      { "millrace": 1,
      "nodes": { \(texts.joined(separator: ",\n")) },
      "links": [ \(links.joined(separator: ", ")) ] }
      """
    return words(SourceFile(name: "graph.json", text: text))
  }

  private func words(_ source: SourceFile) -> String {
    let settings = GraphSettings(environment: .values([:]))
    do throws(Problems) {
      let plan = try Graph.load(source, settings: settings, contracts: Self.contracts)
      return Problems(plan.warnings).description
    } catch {
      return error.description
    }
  }

  private func words(_ graph: GraphDescription) -> String {
    do throws(Problems) {
      let settings = GraphSettings(environment: .values([:]))
      return Problems(try Graph.load(graph, settings: settings, contracts: Self.contracts).warnings)
        .description
    } catch {
      return error.description
    }
  }

  @Test("a parameter that names no node is refused at its value, with the names that would do")
  func unknown() {
    let words = words([
      ("call", #""type": "own.host""#), ("next", #""type": "own.host""#),
      ("one", #""type": "own.channel", "of": "cull""#),
    ])
    #expect(
      words == """
        graph.json:4:39: error: "of": there is no node "cull"; set it to "call" or "next"
        1 error
        """)
  }

  @Test("a node of another type is refused, and where none would do the message lists the types")
  func type() {
    let words = words([
      ("tone", #""type": "audio.tone""#), ("one", #""type": "own.channel", "of": "tone""#),
    ])
    #expect(
      words.contains(
        #"error: "of": "tone" is of type audio.tone; it must be own.host or own.station; add a node of type own.host or own.station"#
      ),
      "\(words)")
  }

  @Test("what two nodes have at one node must differ, also where one has its own name for it")
  func distinct() {
    let host = ("call", #""type": "own.host""#)
    let other = ("next", #""type": "own.host""#)
    func channel(_ name: String, of: String, _ more: String = "") -> (String, String) {
      (name, "\"type\": \"own.channel\", \"of\": \"\(of)\"\(more)")
    }
    let same = #", "label": "same""#
    let twice = words([host, channel("one", of: "call", same), channel("two", of: "call", same)])
    #expect(
      twice.contains(
        #"error: "one" and "two" have the label "same" at "call"; set another "label" in one of them"#),
      "\(twice)")
    let named = words([host, channel("one", of: "call"), channel("two", of: "call", #", "label": "one""#)])
    #expect(named.contains(#"have the label "one" at "call""#), "\(named)")
    let apart = [
      host, other, channel("one", of: "call", same), channel("two", of: "next", same),
      channel("three", of: "call"),
    ]
    #expect(words(apart) == "")
  }

  @Test("a name that the named node uses itself is refused, also where it is the name of the reader")
  func reserved() {
    func channel(_ name: String, _ more: String) -> (String, String) {
      (name, "\"type\": \"own.channel\", \"of\": \"call\"\(more)")
    }
    let usual = ("call", #""type": "own.station""#)
    let other = ("call", #""type": "own.station", "own": "more""#)
    let label = words([usual, channel("one", #", "label": "data""#)])
    #expect(
      label.contains(
        #"error: "one" has the label "data", which "call" uses for its own sound; set another "label" in "one""#
      ),
      "\(label)")
    let name = words([other, channel("more", "")])
    #expect(name.contains(#""more" has the label "more", which "call" uses"#), "\(name)")
    #expect(words([other, channel("one", #", "label": "data""#)]) == "")
  }

  @Test("in an included graph a name means its own node first, then one around it")
  func included() {
    func graph(_ name: String) -> GraphDescription {
      var inner = GraphDescription("inner")
      inner.add("call", "own.host")
      inner.add("one", "own.channel", ["of": .string(name)])
      for name in ["call", "one"] {
        inner.add("\(name)-bin", "flow.null")
        inner.link("\(name) -> \(name)-bin")
      }
      var outer = GraphDescription("outer")
      outer.include("left", inner)
      for name in ["call", "far"] {
        outer.add(name, "own.host")
        outer.add("\(name)-bin", "flow.null")
        outer.link("\(name) -> \(name)-bin")
      }
      return outer
    }
    #expect(words(graph("call")) == "")
    #expect(words(graph("far")) == "")
    let unknown = words(graph("cull"))
    // One "call": that around the included graph has the same name as its own.
    #expect(
      [#""call" or "far""#, #""far" or "call""#].contains {
        unknown.contains(#"there is no node "cull"; set it to "# + $0 + "\n")
      }, "\(unknown)")
  }

  @Test("an integer where a string belongs is shown with quotes, unless it is secret")
  func quotes() {
    let plain = words([("a", #""type": "own.door", "knock": "x", "room": 1234"#)])
    #expect(
      plain.contains(#""room" of own.door must be a string, found 1234; write "1234""#), "\(plain)")
    let secret = words([("a", #""type": "own.door", "knock": 4711"#)])
    #expect(secret.contains("must be a string") && !secret.contains("4711"), "\(secret)")
  }

  @Test("a secret that is the name of a parameter leaves messages whole")
  func plainWords() {
    let words = words([("a", #""type": "own.door", "knock": "room""#)])
    #expect(words.contains(#"opens nothing for the user, and "room" is not set"#), "\(words)")
    let other = self.words([("a", #""type": "own.door", "knock": "hunter-4711""#)])
    #expect(other.contains(#""•••" opens nothing for the user"#) && !other.contains("4711"), "\(other)")
  }
}
