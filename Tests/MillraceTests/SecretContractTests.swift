import Foundation
import Millrace
import Testing

/// Credentials given to standard nodes literally, not through the environment, are protected by the contracts.
@Suite("Secrets by contract", .timeLimit(.minutes(30)))
struct SecretContractTests {
  private static let marker = "sk-MARKER-4711/abc+def=="
  /// How it may be written.
  private static let spellings = [
    marker, "sk-MARKER-4711%2Fabc%2Bdef%3D%3D", #"sk-MARKER-4711\/abc+def=="#,
    Data(marker.utf8).base64EncodedString(),
  ]
  /// What must be seen nowhere: any of it, and its parts.
  private static let traces = spellings + ["MARKER-4711", "4711/abc"]

  /// Words of names and descriptions that speak of credentials, or of where they are carried.
  private static let words = [
    "key", "token", "secret", "password", "credential", "auth", "header", "proxy", "environment", "url",
    "address",
    "variables", "json", "signature", "cookie",
  ]

  /// Parameters that speak of them and hold none, and why.
  private static let harmless: [String: String] = [
    "bailian.dialog workspaceHeader": "true or false",
    "bailian.dialog renew": "a time",
    "bailian.dialog replaceWords": "words that recognition puts in others' places",
    "bailian.dialog ip": "where the user is, no credential",
    "video.read maxPixels": "a number of pixels, as a header declares it",
    "rtmp.pull maxPixels": "a number of pixels, as a header declares it",
    "dialog.picture maxPixels": "a number of pixels, as a header declares it",
    "net.websocket plain": "true or false",
    "net.websocket halfOpenPerAddress": "a number of connections",
    "net.websocket key": "a path; what is in the file is read by the TLS library alone",
    "net.websocket host": "an address of this machine to wait at",
    "net.websocket hosts": "names of the server that anybody may know",
    "bailian.dialog roots": "public certificates",
    "ivh.avatar roots": "public certificates",
    "ivh.avatar asset": "names an avatar, and is of no use without the account's signature",
    "ivh.avatar voice": "names a voice, and is of no use without the account's signature",
    "net.websocket roots": "public certificates",
    "tuya.agent roots": "public certificates",
    "tuya.agent renew": "a time",
    "tuya.agent tokenLife": "a time",
    "rtmp.push keyInterval": "pictures between two whole ones",
    "video.record keyInterval": "pictures between two whole ones",
    "rtc.whip key": "a path; what is in the file is read by the TLS library alone",
    "rtc.whep key": "a path; what is in the file is read by the TLS library alone",
    "rtc.room key": "a path; what is in the file is read by the TLS library alone",
    "rtc.rtp local": "an address of this machine to wait at",
    "rtc.rtp symmetric": "true or false",
    "rtc.rtp feedback": "true or false",
    "rtc.rtp sdpFile": "a path; with a key in it only the owner may read the file",
    "video.encode keyInterval": "a time between two whole pictures",
    "video.encode bitrate": "a rate; it mentions key frames",
  ]

  /// The same for parameters that several nodes of calls share.
  private static let harmlessInCalls: [String: String] = [
    "servers": "addresses of STUN and TURN servers, whose password is `turnSecret`",
    "policy": "relay or all",
    "interfaces": "addresses of this machine",
    "lite": "true or false",
    "roots": "public certificates",
    "plain": "true or false",
    "host": "an address of this machine to wait at",
    "hosts": "names of the server that anybody may know",
  ]

  private static func isHarmless(_ contract: NodeContract, _ parameter: ParameterContract) -> Bool {
    harmless["\(contract.type) \(parameter.name)"] != nil
      || contract.type.hasPrefix("rtc.") && harmlessInCalls[parameter.name] != nil
  }

  private static var contracts: [NodeContract] {
    Catalogue.standard.entries.values.map(\.contract).sorted { $0.type < $1.type }
  }

  @Test("every parameter that speaks of credentials is secret by its contract")
  func words() {
    var found = 0
    for contract in Self.contracts {
      for parameter in contract.parameters {
        let name = "\(contract.type) \(parameter.name)"
        let text = "\(parameter.name) \(parameter.text)".lowercased()
        let speaks =
          text.split { !$0.isLetter }.contains { word in Self.words.contains { word.hasPrefix($0) } }
          || Self.words.prefix(5).contains { parameter.name.lowercased().contains($0) }
        guard speaks, !Self.isHarmless(contract, parameter) else { continue }
        found += 1
        #expect(parameter.isSecret, "\(name): \(parameter.text)")
      }
    }
    #expect(found >= 10)
  }

  /// A value of a secret parameter with the marker in it.
  private static func value(_ parameter: ParameterContract) -> ParameterValue {
    let escaped = "sk-MARKER-4711%2Fabc%2Bdef%3D%3D"
    let text =
      switch parameter.secrecy {
      case .none, .whole: marker
      case .address:
        parameter.text.contains("rtmp")
          ? "rtmp://host.example/app/\(marker)" : "wss://host.example/way?plain=yes&token=\(escaped)"
      case .assigned: "NAME=\(marker)"
      case .credentials:
        if case .list = parameter.kind { "token=\(marker)" } else { #"{"plain":"yes","token":"\#(marker)"}"# }
      }
    if case .list = parameter.kind { return .list([.string(text)]) }
    return .string(text)
  }

  private static let secrets: [(NodeContract, ParameterContract)] = contracts.flatMap { contract in
    contract.parameters.filter(\.isSecret).map { (contract, $0) }
  }

  @Test("a graph that stands still shows nothing of a credential: drawn in every form, explained, spoken of")
  func still() {
    #expect(Self.secrets.count >= 10)
    for (contract, parameter) in Self.secrets {
      var values = ParameterValues()
      for parameter in contract.parameters { values[parameter.name] = parameter.defaultValue }
      values[parameter.name] = Self.value(parameter)
      let node = GraphPlan.Node(
        name: "one", contract: contract, parameters: values, inputs: [], drivingInputs: [], heldPackets: [],
        outputs: [], lane: contract.lane, budget: contract.budget)
      let plan = GraphPlan(name: "still", nodes: [node], links: [], formats: [])
      let (drawing, explanation) = (GraphDrawing(plan), PlanExplanation(plan))
      let told = [
        drawing.svg(), drawing.dot(), drawing.mermaid(), explanation.text(), explanation.json(),
        plan.secrets.redacting("refused: \(Self.spellings.joined(separator: " "))"),
        plan.secrets.redacting(json: #"{"echo":"\#(Self.spellings.joined(separator: " "))"}"#),
      ]
      let name = "\(contract.type) \(parameter.name)"
      #expect(drawing.mermaid().contains(parameter.name), "\(name) is drawn")
      for text in told {
        for trace in Self.traces { #expect(!text.contains(trace), "\(name): \(trace)") }
      }
    }
  }

  @Test("of an address host and path are drawn, and of assignments names")
  func shown() throws {
    func drawn(_ type: String, _ parameter: String, _ value: ParameterValue) throws -> String {
      let contract = try #require(Self.contracts.first { $0.type == type })
      var values = ParameterValues()
      values[parameter] = value
      let node = GraphPlan.Node(
        name: "one", contract: contract, parameters: values, inputs: [], drivingInputs: [],
        heldPackets: [], outputs: [], lane: contract.lane, budget: contract.budget)
      return GraphDrawing(GraphPlan(name: "still", nodes: [node], links: [], formats: [])).mermaid()
    }
    #expect(
      try drawn("rtmp.push", "url", "rtmp://h.example/app/key-1234").contains("rtmp://h.example/app/•••"))
    #expect(
      try drawn("net.websocket", "url", "wss://u:p@h.ex/w?a=b").contains("wss://•••@h.ex/w?a=•••"))
    #expect(try drawn("net.websocket", "headers", ["X-Key: abc"]).contains("X-Key: •••"))
    #expect(try drawn("process.pipe", "environment", ["DEBUG=1", "KEY=abc"]).contains("DEBUG=•••, KEY=•••"))
    #expect(try drawn("bailian.dialog", "proxy", "none").contains("none"))
  }

  @Test(
    "a wrong type, a wrong word and a file that is no JSON do not repeat a credential, with or without the line"
  )
  func wrong() {
    for (contract, parameter) in Self.secrets {
      let marker = Self.marker
      let list = if case .list = parameter.kind { true } else { false }
      // Of a JSON object only what is named so is a credential.
      let token = "{\"token\":\"\(marker)\"}"
      let quoted = "{\\\"token\\\":\\\"\(marker)\\\"}"
      let values =
        parameter.secrecy == .credentials
        ? [
          token, "[\(token)]", "[[\(token)]]", "\"\(quoted)\\q\"", "\"\(quoted)\" 5", "\"\(quoted)",
          "{\"token\":sk-MARKER-4711}",
        ]
        : [
          list ? "\"\(marker)\"" : "[\"\(marker)\"]", "{\"a\":\"\(marker)\"}", "[[\"\(marker)\"]]",
          "[\(token)]",
          "sk-MARKER-4711", "'\(marker)'", "\"\(marker)", "\"\(marker)\\q\"", "\"\(marker)\" 5",
          "\"\(marker)\" \"b\"", "4711MARKER-4711", "-\(marker)", "[\"\(marker)\" \"b\"]", "[sk-MARKER-4711]",
        ]
      for value in values {
        for line in [" ", "\n"] {
          let text = """
            { "millrace": 1, "nodes": { "a": { "type": "\(contract.type)", "\(parameter.name)":\(line)\(value) },
            "b": { "type": "flow.null" } }, "links": ["a -> b"] }
            """
          Self.expectSilence(text, "\(contract.type) \(parameter.name): \(value)")
        }
      }
    }
  }

  @Test("neither does a parameter of the graph, an included one, or a type that there is not")
  func around() {
    for (parameter, use) in [("key", "${key}"), ("entry", "Bearer ${entry}"), ("word", "${word}")] {
      for type in ["integer", "bool", "number"] {
        let text = """
          { "millrace": 1, "parameters": { "\(parameter)": { "type": "\(type)", "default": "\(Self.marker)" } },
          "nodes": { "a": { "type": "bailian.dialog", "key": "\(use)" } }, "links": [] }
          """
        Self.expectSilence(text, text)
        Self.expectSilence(
          text.replacing("\"\(Self.marker)\"", with: "1"), text, set: [parameter: Self.marker])
      }
    }
    Self.expectSilence(
      #"{ "millrace": 1, "nodes": { "a": { "type": "bailian.dialgo", "key": "\#(Self.marker)" } }, "links": [] }"#,
      "an unknown type")
    Self.expectSilence(
      #"{ "millrace": 1, "nodes": { "a": { "type": "graph", "path": "no.json", "set": { "key": "\#(Self.marker)" } } }, "links": [] }"#,
      "an included graph")
  }

  private static func expectSilence(_ text: String, _ name: String, set: [String: String] = [:]) {
    do throws(Problems) {
      _ = try Graph.load(
        text: text, name: "graph.json", settings: GraphSettings(set: set, environment: .values([:])),
        catalogue: .standard)
      Issue.record("\(name) was taken")
    } catch {
      for told in [error.description, error.rendered(excerpts: true), error.json()] {
        for trace in traces { #expect(!told.contains(trace), "\(name): \(told)") }
      }
    }
  }

  @Test("a key with a line break in it is named, and not shown")
  func lineBreak() {
    for (node, words) in [
      (
        #""type": "bailian.dialog", "workspace": "w", "app": "a", "user": "u", "key": "sk-MARKER-4711\n""#,
        #""key" contains a line break or another control character; remove it; key files often end with a line break"#
      ),
      (
        #""type": "net.websocket", "url": "ws://127.0.0.1:1/", "headers": ["X: sk-MARKER-4711\r\nY: z"]"#,
        "a header contains a line break or another control character; remove it; key files often end with a line break"
      ),
    ] {
      do throws(Problems) {
        _ = try Graph.load(
          text:
            #"{ "millrace": 1, "nodes": { "a": { \#(node) }, "b": { "type": "text.print" } }, "links": ["a.text -> b"] }"#,
          name: "graph.json", settings: GraphSettings(environment: .values([:])), catalogue: .standard)
        Issue.record("it was taken")
      } catch {
        #expect(error.description.contains(words) && !error.description.contains("MARKER"), "\(error)")
        let place = error.sorted.first?.path.description ?? ""
        #expect(place.contains("key") || place.contains("headers"), "\(place)")
      }
    }
  }

  @Test(
    "a run tells nothing of a credential that a program echoes: reports, trace, drawing, taps, lines, failure"
  )
  func running() throws {
    let scratch = Scratch()
    let script =
      #"echo "it is $TOKEN"; printf %s "$TOKEN" | base64; echo "{\"token\":\"$TOKEN\"}"; echo "cut $${TOKEN%abc*}"; until grep -q ^cut printed; do sleep 0.05; done; echo "no: $TOKEN" >&2; exit 3"#
    let escaped = script.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    _ = try scratch.write(
      """
      { "millrace": 1, "name": "echo", "parameters": { "secret": {} }, "nodes": {
        "program": { "type": "process.pipe", "mode": "lines", "command": ["bash", "-c", "\(escaped)"],
                     "environment": ["TOKEN=${secret}"] },
        "say": { "type": "text.print" } }, "links": ["program -> say"] }
      """.utf8, to: "echo.json")
    _ = try scratch.write(
      """
      { "command": "tap", "link": "program -> say", "file": "said.jsonl" }
      { "command": "set", "node": "program", "parameter": "environment", "value": ["TOKEN=\(Self.marker)"] }
      """.utf8, to: "commands.jsonl")
    var told = ""
    // The program continues when its output has been printed.
    let printing = #"rm -f printed; { "$@"; echo $? >status; } | tee printed; exit $(cat status)"#
    for report in ["report.json", "report.html"] {
      let result = try RunnerProcess.run(
        "run", "echo.json", "--set", "secret=\(Self.marker)", "--report", report, "--trace", "trace.json",
        "--control", "commands.jsonl", "--control-answers", "answers.jsonl", in: scratch, shell: printing)
      #expect(result.status == 3, "\(result.errors)")
      #expect(result.output.contains("it is •••"), "\(result.output)")
      told += result.output + result.errors
      for file in [report, "trace.json", "said.jsonl", "answers.jsonl"] {
        told += String(decoding: try scratch.bytes(file), as: UTF8.self)
      }
    }
    for format in ["svg", "dot", "mermaid"] {
      told += try RunnerProcess.run(
        "draw", "echo.json", "--format", format, "--set", "secret=\(Self.marker)", in: scratch
      ).output
    }
    #expect(told.contains("TOKEN=•••"))
    for trace in Self.traces { #expect(!told.contains(trace), "\(trace) in \(told)") }
  }
}
