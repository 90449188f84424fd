import MillraceCore
import MillraceGraph
import Testing

/// Rules that the standard nodes cannot break, shown with contracts made for the purpose.
@Suite("Rules with contracts of their own")
struct OwnContractTests {
  private static func words(_ contracts: [NodeContract], _ nodes: String, _ links: String) -> String {
    let text = "{ \"millrace\": 1,\n\"nodes\": { \(nodes) },\n\"links\": [ \(links) ] }"
    let known = TestCatalogue.contracts.merging(contracts.map { ($0.type, $0) }) { _, own in own }
    let source = SourceFile(name: "graph.json", text: text)
    do throws(Problems) {
      let plan = try Graph.load(source, settings: GraphSettings(environment: .values([:])), contracts: known)
      return Problems(plan.warnings).description
    } catch {
      return error.description
    }
  }

  private static let source = NodeContract(
    "own.source", "a source", outputs: [PortContract("out", .pcm(), text: "sound")], drive: .itself,
    resolve: { _ in })

  @Test("a parameter that is secret by its contract is secret in every graph, and its page says so")
  func secret() throws {
    let door = NodeContract(
      "own.door", "opens", outputs: [PortContract("out", .pcm(), text: "sound")],
      parameters: [ParameterContract("key", .string, required: true, secret: .whole, text: "what opens it")],
      drive: .itself,
      resolve: { resolution in
        resolution.outputs["out"] = .pcm(rate: 48_000, channels: 1, sample: .s16, frames: 960)
        if resolution.parameters.string("key").hasPrefix("wrong") {
          resolution.refuse("key", "\"\(resolution.parameters.string("key"))\" opens nothing")
        }
      })
    let nodes = { (key: String) in
      "\"a\": { \"type\": \"own.door\", \"key\": \"\(key)\" }, \"c\": { \"type\": \"flow.null\" }"
    }
    let words = Self.words([door], nodes("wrong-hunter2"), "\"a -> c\"")
    #expect(words.contains("\"•••\" opens nothing") && !words.contains("hunter2"), "\(words)")
    let text = "{ \"millrace\": 1, \"nodes\": { \(nodes("hunter2")) }, \"links\": [\"a -> c\"] }"
    let plan = try Graph.load(
      SourceFile(name: "graph.json", text: text), settings: GraphSettings(environment: .values([:])),
      contracts: TestCatalogue.contracts.merging([door.type: door]) { _, own in own })
    #expect(plan.secretTexts == ["hunter2"])
    let drawing = GraphDrawing(plan)
    #expect([drawing.dot(), drawing.mermaid(), drawing.svg()].allSatisfy { !$0.contains("hunter2") })
    #expect(drawing.mermaid().contains("(secret)"))
    #expect(NodePage(door).markdown().contains("what opens it (secret: never shown)"))
  }

  @Test("an output whose contract decides nothing is reported, its consequences are not")
  func undecided() {
    let words = Self.words(
      [Self.source],
      "\"a\": { \"type\": \"own.source\" }, \"b\": { \"type\": \"audio.gain\" }, \"c\": { \"type\": \"flow.null\" }",
      "\"a -> b -> c\"")
    #expect(
      words == """
        graph.json:2:12: error: the format of "a.out" is unknown; set a parameter of own.source, or link an input, that determines it
        1 error
        """)
  }

  @Test("packets that no block can hold are refused before anything starts", arguments: [false, true])
  func size(fits: Bool) {
    let giant = NodeContract(
      "own.giant", "makes giants", outputs: [PortContract("out", .kind(.jpeg), text: "pictures")],
      drive: .itself,
      resolve: {
        $0.outputs["out"] = OutputShape(.jpeg, packetDuration: nil, packetBytes: (1 << 28) + (fits ? 0 : 1))
      })
    let words = Self.words(
      [giant], "\"a\": { \"type\": \"own.giant\" }, \"c\": { \"type\": \"flow.null\" }", "\"a -> c\"")
    let refusal = """
      graph.json:2:12: error: packets of "a.out" (jpeg) have 268435457 bytes, the maximum is 268435456; \
      use smaller pictures or shorter packets
      1 error
      """
    #expect(words == (fits ? "" : refusal))
  }

  @Test("a node that only has accompanying inputs linked never runs")
  func neverRuns() {
    let follower = NodeContract(
      "own.follower", "follows",
      inputs: [
        PortContract("main", .any, text: "what drives", required: false),
        PortContract("side", .any, text: "what accompanies", required: false, drives: false),
      ], resolve: { _ in })
    let words = Self.words(
      [follower], "\"a\": { \"type\": \"audio.tone\" }, \"b\": { \"type\": \"own.follower\" }",
      "\"a -> b.side\"")
    #expect(
      words == """
        graph.json:2:43: error: node "b" never runs: none of its driving inputs is linked; link "b.main"
        1 error
        """)
  }

  @Test("a node that needs no link and runs by itself is only warned about")
  func alone() {
    let clock = NodeContract(
      "own.clock", "ticks", events: [EventContract("tick", text: "time passed")], drive: .itself,
      resolve: { _ in })
    let words = Self.words([clock], "\"a\": { \"type\": \"own.clock\" }", "")
    #expect(
      words == """
        graph.json:2:12: warning: node "a" has no links; add one, or remove the node
        1 warning
        """)
  }

  @Test("a contract that never settles in a cycle ends all the same")
  func unsettled() {
    let restless = NodeContract(
      "own.restless", "wants one more", inputs: [PortContract("in", .pcm(), text: "sound", required: false)],
      outputs: [PortContract("out", .pcm(), text: "sound")],
      asynchronousPaths: [AsynchronousPath(from: "in", to: "out")],
      resolve: { resolution in
        let rate = (resolution.input?.format.rate ?? 8_000) + 1
        resolution.outputs["out"] = .pcm(rate: rate, channels: 1, sample: .s16, frames: 160)
      })
    let words = Self.words(
      [restless], "\"a\": { \"type\": \"own.restless\" }, \"b\": { \"type\": \"audio.gain\" }",
      "\"a -> b -> a\"")
    #expect(
      words == """
        graph.json:2:12: error: the formats of the cycle through "a" do not converge: its output changes with every pass; remove it from the cycle
        1 error
        """)
  }

  @Test("two secrets of which one is part of the other are both hidden")
  func overlappingSecrets() {
    let talker = NodeContract(
      "own.talker", "talks", outputs: [PortContract("out", .pcm(), text: "sound")],
      parameters: [
        ParameterContract("key", .string, text: "key"),
        ParameterContract("long", .string, text: "longer key"),
        ParameterContract("pin", .integer(0...9_999), text: "number"),
      ], drive: .itself,
      resolve: { resolution in
        let values = resolution.parameters
        resolution.refuse(
          "key",
          "\(values.string("long")) and \(values.string("key")) and \(values.integer("pin")) are refused",
          cure: "do not use \(values.string("key"))")
      })
    var graph = GraphDescription("main")
    graph.add(
      "a", "own.talker", ["key": "hunter", "long": "hunter2", "pin": 1234], secrets: ["key", "long", "pin"])
    graph.add("b", "flow.null")
    graph.link("a -> b")
    let known = TestCatalogue.contracts.merging([talker.type: talker]) { _, own in own }
    let problems = #expect(throws: Problems.self) {
      try Graph.load(graph, settings: GraphSettings(environment: .values([:])), contracts: known)
    }
    #expect(problems?.sorted.map(\.text) == ["••• and ••• and ••• are refused"])
    #expect(problems?.sorted.map(\.hint) == ["do not use •••"])
  }
}
