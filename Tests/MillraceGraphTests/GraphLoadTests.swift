import MillraceCore
import MillraceGraph
import Testing

@Suite("Loading graphs")
struct GraphLoadTests {
  private static let uplink = """
    {
      "millrace": 1,
      "name": "uplink",
      "nodes": {
        "out": { "type": "ogg.write", "path": "uplink.opus" },
        "enc": { "type": "opus.encode", "bitrate": 16000, "frame": 40 },
        "to16k": { "type": "audio.resample", "rate": 16000 },
        "mic": { "type": "audio.read", "path": "speech.wav", "pace": true }
      },
      "links": [ "mic -> to16k -> enc -> out" ]
    }
    """

  @Test("nodes stand upstream before downstream, whatever the file's order")
  func order() throws {
    let plan = try GraphBench.plan(Self.uplink)
    #expect(plan.nodes.map(\.name) == ["mic", "to16k", "enc", "out"])
    #expect(plan.linkNames == ["mic -> to16k", "to16k -> enc", "enc -> out"])
    #expect(plan.name == "uplink")
    #expect(plan.clock == .realtime)
    #expect(plan.warnings.isEmpty)
  }

  @Test("a graph without a name is called as its file, whose control characters steer no terminal")
  func nameOfFile() throws {
    let text = Self.uplink.replacing(#""name": "uplink","#, with: "")
    let source = SourceFile(name: "calls/up\u{1B}[31m\nlink.json", text: text)
    let plan = try Graph.load(source, settings: GraphSettings(), contracts: TestCatalogue.contracts)
    #expect(plan.name == #"up\u001B[31m\nlink"#)
  }

  @Test("unrelated nodes keep the order of the file")
  func fileOrder() throws {
    let names = (0..<20).map { "n\($0)" }
    var graph = GraphDescription("row")
    for name in names {
      graph.add(name, "audio.tone")
      graph.add("\(name)-bin", "flow.null")
      graph.link("\(name) -> \(name)-bin")
    }
    #expect(try GraphBench.plan(graph).nodes.map(\.name) == names.flatMap { [$0, "\($0)-bin"] })
  }

  @Test("parameters are given or defaulted, as the types of their contract")
  func parameters() throws {
    let plan = try GraphBench.plan(Self.uplink)
    let enc = try #require(plan.node("enc")?.parameters)
    #expect(enc.integer("bitrate") == 16_000)
    #expect(enc.number("frame") == 40)
    #expect(enc.integer("complexity") == 5)
    #expect(enc.string("application") == "voip")
    #expect(!enc.bool("dtx"))
  }

  @Test("formats flow from the source to the sink")
  func formats() throws {
    let plan = try GraphBench.plan(Self.uplink)
    #expect(
      plan.links.map(\.shape.format.description) == [
        "s16 48000 Hz 1 ch", "s16 16000 Hz 1 ch", "opus 16000 Hz 1 ch",
      ])
    #expect(
      plan.formats.map(\.description) == ["s16 48000 Hz 1 ch", "s16 16000 Hz 1 ch", "opus 16000 Hz 1 ch"])
    #expect(plan.links[2].shape.packetDuration == .milliseconds(40))
    #expect(plan.node("to16k")?.latency == .milliseconds(2))
    #expect(plan.node("enc")?.inputs.first?.shape?.format == .pcm(rate: 16_000, channels: 1, sample: .s16))
    #expect(plan.node("out")?.outputs.isEmpty == true)
  }

  @Test("lane, budget, age and error policy come from the node, else from the graph, else from the contract")
  func reservedKeys() throws {
    let plan = try GraphBench.plan(
      """
      { "millrace": 1, "onError": "isolate", "clock": "virtual",
        "nodes": {
          "tone": { "type": "audio.tone", "onError": "restart", "budget": 70, "comment": ["a", "b"] },
          "gain": { "type": "audio.gain", "lane": "bulk", "budget": "1.5ms", "maxAge": "60ms" },
          "bin": { "type": "flow.null" } },
        "links": [ "tone -> gain -> bin" ] }
      """)
    #expect(plan.nodes.map(\.onError) == [.restart, .isolate, .isolate])
    #expect(plan.nodes.map(\.lane) == [.voice, .bulk, .voice])
    #expect(plan.nodes.map(\.budget) == [70, 1_500, 20])
    #expect(plan.nodes.map(\.maxAge) == [nil, .milliseconds(60), nil])
    #expect(plan.clock == .virtual)
    #expect(plan.name == "graph")
  }

  @Test("a source ends with a node of its own file, which the plan, the explanation and the drawings tell")
  func endsWith() throws {
    let plan = try GraphBench.plan(
      """
      { "millrace": 1, "parameters": { "served": { "default": "tone" } },
        "nodes": {
          "lamp": { "type": "audio.tone", "endsWith": "${served}" }, "dark": { "type": "flow.null" },
          "tone": { "type": "audio.tone" }, "bin": { "type": "flow.null" } },
        "links": [ "lamp -> dark", "tone -> bin" ] }
      """)
    let place = try #require(plan.nodes.firstIndex { $0.name == "tone" })
    #expect(plan.nodes.map { $0.endsWith } == plan.nodes.map { $0.name == "lamp" ? place : nil })
    let explanation = PlanExplanation(plan)
    #expect(explanation.text().contains("ends with"))
    #expect(explanation.json().contains(#""endsWith": "tone""#))
    let drawing = GraphDrawing(plan)
    #expect(drawing.dot().contains("endsWith: tone") && drawing.mermaid().contains("endsWith: tone"))
    #expect(drawing.svg().contains("endsWith"))
    let other = PlanExplanation(try GraphBench.plan(Self.uplink))
    #expect(!other.text().contains("ends with") && !other.json().contains("endsWith"))
  }

  @Test("what an included graph's source ends with is a node of that graph")
  func endsWithIncluded() throws {
    var inner = GraphDescription("inner")
    inner.add("lamp", "audio.tone", endsWith: "tone")
    inner.add("tone", "audio.tone")
    for name in ["lamp", "tone"] {
      inner.add("\(name)-bin", "flow.null")
      inner.link("\(name) -> \(name)-bin")
    }
    var graph = GraphDescription("outer")
    graph.include("left", inner)
    graph.add("tone", "audio.tone")
    graph.add("outer", "audio.tone", endsWith: "left.tone")
    for name in ["tone", "outer"] {
      graph.add("\(name)-bin", "flow.null")
      graph.link("\(name) -> \(name)-bin")
    }
    let plan = try GraphBench.plan(graph)
    let inside = plan.nodes.firstIndex { $0.name == "left.tone" }
    #expect(plan.node("left.lamp")?.endsWith == inside && plan.node("outer")?.endsWith == inside)
    var wrong = graph
    wrong.add("late", "audio.tone", endsWith: "left")
    wrong.add("late-bin", "flow.null")
    wrong.link("late -> late-bin")
    let problems = #expect(throws: Problems.self) { try GraphBench.plan(wrong) }
    #expect(
      problems?.description.contains(
        #""endsWith" must name a node, "left" is an included graph; name one of its nodes, as in "left.node""#
      )
        == true)
  }

  @Test("settings choose another clock than the file")
  func clockOverride() throws {
    #expect(try GraphBench.plan(Self.uplink, clock: .virtual).clock == .virtual)
  }

  @Test("repeated ports reach up to the highest linked, and at least as far as the contract says")
  func repeatedPorts() throws {
    let plan = try GraphBench.plan(
      """
      { "millrace": 1,
        "nodes": {
          "a": { "type": "audio.tone" }, "tee": { "type": "flow.tee" },
          "mix": { "type": "audio.mix" }, "bin": { "type": "flow.null" } },
        "links": [ "a -> tee", "tee.out1 -> mix.in3", "tee.out1 -> mix.in1", "mix -> bin" ] }
      """)
    let mix = try #require(plan.node("mix"))
    #expect(mix.inputs.map(\.name) == ["in1", "in2", "in3"])
    #expect(mix.inputs.map(\.isLinked) == [true, false, true])
    #expect(mix.drivingInputs == [true, true, true])
    #expect(plan.node("tee")?.outputs.map(\.name) == ["out1", "out2"])
    #expect(plan.linkNames == ["a -> tee", "tee.out1 -> mix.in3", "tee.out1 -> mix.in1", "mix -> bin"])
  }

  @Test("a bare node name means its port in or out, and the events port only when there is no other")
  func barePorts() throws {
    let plan = try GraphBench.plan(
      """
      { "millrace": 1,
        "nodes": {
          "a": { "type": "audio.tone" }, "meter": { "type": "audio.level" }, "bin": { "type": "flow.null" },
          "log": { "type": "event.log", "path": "e.jsonl" } },
        "links": [ "a -> meter -> bin", "meter.events -> log.in1" ] }
      """)
    #expect(plan.linkNames == ["a -> meter", "meter -> bin", "meter.events -> log.in1"])
    #expect(plan.link("meter.events -> log.in1")?.shape.format == .event)
  }

  @Test("a port between two arrows is the input, the output, or both, whichever the node has")
  func portsBetweenArrows() throws {
    let plan = try GraphBench.plan(
      """
      { "millrace": 1,
        "nodes": {
          "mic": { "type": "audio.read", "path": "a16k.wav" }, "aec": { "type": "audio.echoCancel" },
          "mix": { "type": "audio.mix" }, "meter": { "type": "audio.level" }, "say": { "type": "text.print" } },
        "links": [ "mic -> aec.near -> mix.in2 -> meter.events -> say" ] }
      """)
    #expect(plan.linkNames == ["mic -> aec.near", "aec -> mix.in2", "mix -> meter", "meter.events -> say"])
  }

  @Test("a cycle through an asynchronous path is legal, and its formats are found")
  func duplexCycle() throws {
    let plan = try GraphBench.plan(
      """
      { "millrace": 1,
        "nodes": {
          "mic": { "type": "audio.capture" },
          "near": { "type": "audio.resample", "rate": 16000 },
          "aec": { "type": "audio.echoCancel" },
          "bot": { "type": "process.pipe", "command": ["bot"] },
          "play": { "type": "audio.play" } },
        "links": [ "mic -> near -> aec.near", "aec -> bot -> play", "play.reference -> aec.reference" ] }
      """)
    #expect(plan.nodes.map(\.name) == ["mic", "near", "aec", "bot", "play"])
    let reference = try #require(plan.link("play.reference -> aec.reference"))
    #expect(reference.shape.format == .pcm(rate: 16_000, channels: 1, sample: .s16))
    #expect(plan.node("aec")?.drivingInputs == [true, false])
    #expect(plan.node("bot")?.pacing == .live)
  }

  @Test(
    "a value from the environment is secret by itself and in what it became part of, unless a default stood in for it"
  )
  func partsOfSecrets() throws {
    let plan = try GraphBench.plan(
      """
      { "millrace": 1,
        "parameters": { "folder": { "default": "${env:FOLDER:-public}" } },
        "nodes": {
          "a": { "type": "audio.tone" },
          "out": { "type": "audio.write", "path": "/${folder}/${env:CALLER}.wav" } },
        "links": [ "a -> out" ] }
      """, environment: ["CALLER": "anna"])
    #expect(plan.secretTexts == ["anna", "/public/anna.wav"])
    #expect(plan.secrets.redacting("anna called: /public/anna.wav") == "••• called: •••")
  }

  @Test("what a node objects to when it is made points at its parameter, and its secrets can be taken out")
  func laterProblems() throws {
    let plan = try GraphBench.plan(
      """
      { "millrace": 1,
        "nodes": {
          "a": { "type": "audio.tone" },
          "out": { "type": "audio.write",
                   "path": "${env:TARGET}" } },
        "links": [ "a -> out" ] }
      """, environment: ["TARGET": "/hidden/place.wav"])
    let out = try #require(plan.node("out"))
    #expect(out.secrets == ["path"])
    let objection = NodeProblem(
      "cannot write \"/hidden/place.wav\"", parameter: "path", cure: "free \"/hidden/place.wav\"")
    let problem = out.problem(plan.secrets.redacting(objection))
    #expect(problem.description == "graph.json:5:22: error: cannot write \"•••\"; free \"•••\"")
    #expect(plan.secrets.redacting("/hidden/place.wav/hidden/place.wav?") == "••••••?")
    let other = out.problem(NodeProblem("no memory"))
    #expect(other.description == "graph.json:4:5: error: no memory")
  }

  @Test("a file that cannot be opened is one problem")
  func missingFile() {
    let problems = #expect(throws: Problems.self) {
      try Graph.load(path: "/nonexistent/graph.json", catalogue: Catalogue())
    }
    #expect(problems?.sorted.count == 1)
    #expect(problems?.description.hasPrefix("error: cannot open \"/nonexistent/graph.json\"") == true)
  }

  @Test("a thousand nodes in one chain are put in order and resolved")
  func thousandNodes() throws {
    let plan = try GraphBench.plan(ManyNodes.chain(1_000))
    #expect(plan.nodes.count == 1_000)
    #expect(plan.links.count == 999)
    #expect(plan.links[998].shape.format == .pcm(rate: 48_000, channels: 1, sample: .s16))
  }

  @Test("every rule is a sentence")
  func rules() {
    #expect(Graph.rules.count >= 25)
    #expect(Graph.rules.allSatisfy { $0.hasSuffix(".") })
    #expect(Set(Graph.rules).count == Graph.rules.count)
  }
}

enum ManyNodes {
  /// A file with one chain of nodes, the last ones first.
  static func chain(_ count: Int) -> String {
    var nodes: [String] = []
    for index in (0..<count).reversed() {
      let type =
        switch index {
        case 0: "\"audio.tone\", \"pace\": false"
        case count - 1: "\"flow.null\""
        default: "\"audio.gain\", \"gain\": -3.5, \"ramp\": 10"
        }
      nodes.append("    \"n\(index)\": { \"type\": \(type) }")
    }
    let links = (1..<count).map { "    \"n\($0 - 1) -> n\($0)\"" }
    return """
      { "millrace": 1,
        "nodes": {
      \(nodes.joined(separator: ",\n"))
        },
        "links": [
      \(links.joined(separator: ",\n"))
        ] }
      """
  }
}
