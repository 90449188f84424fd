import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

/// Puts its token into every message: when it refuses to start, and when it fails, which it does at its first packet.
struct LooseTongue: Node {
  static let contract = NodeContract(
    "test.loose", "leaks its token", inputs: [PortContract("in", .any, text: "anything")],
    parameters: [
      probeParameter,
      ParameterContract("token", .string, text: "what nobody may know"),
      ParameterContract("makings", .integer(0...100), default: 100, text: "how often it can be made"),
    ], events: [EventContract("told", text: "its token, once")])
  let token: String

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    token = setup.parameters.string("token")
    let made = Probe.named(setup.parameters.string("probe")).state.withLock { state in
      state.made += 1
      return state.made
    }
    guard made <= setup.parameters.integer("makings") else {
      throw NodeProblem(
        "\(token) was refused", parameter: "token", cure: "ask for another one than \(token)")
    }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard ports.next() != nil else { return .done }
    ports.post(0) { $0.field("token", utf8: Array(token.utf8).span) }
    throw NodeFault(.custom)
  }

  borrowing func explain(_ fault: NodeFault) -> String? { "the service refused \(token)" }
}

/// Learns an address at its first packet, as from a service, and then puts it into every message.
struct LateLearner: Node {
  static let address = "rtmp://live.example.org/app/room-4711?sign=open-sesame"
  static let contract = NodeContract(
    "test.learner", "learns an address and leaks it", inputs: [PortContract("in", .any, text: "anything")],
    events: [EventContract("told", text: "the address, once")])
  private let secrets: Secrets

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { secrets = setup.secrets }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard ports.next() != nil else { return .done }
    secrets.learn(Self.address, as: .address)
    ports.post(0) { $0.field("url", utf8: Array(Self.address.utf8).span) }
    throw NodeFault(.custom)
  }

  borrowing func explain(_ fault: NodeFault) -> String? { "\(Self.address) is gone" }
}

@Suite("Secrets in the messages of nodes", .timeLimit(.minutes(30)))
struct SecretTests {
  private static let token = "sk-4711-open-sesame"

  private func plan(_ probe: String, _ onError: ErrorPolicy, makings: Int = 100) -> GraphPlan {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 100])
    let loose = builder.add(
      "loose", "test.loose",
      ["token": .string(Self.token), "makings": .integer(makings), "probe": .string(probe)],
      onError: onError, secrets: ["token"])
    builder.link(source, loose)
    return builder.plan
  }

  /// Runs a plan to its end; returns all its messages.
  private func run(_ plan: GraphPlan) async throws -> (events: [GraphEvent], report: RunReport) {
    let run = try Engine(catalogue: testCatalogue, workers: 1).prepare(plan)
    let listener = run.events
    run.start()
    var events: [GraphEvent] = []
    for await event in listener { events.append(event) }
    return (events, await run.wait())
  }

  @Test(
    "a failing node's secret is in no event and not in the report, whatever is done with the node",
    arguments: ErrorPolicy.allCases)
  func failure(onError: ErrorPolicy) async throws {
    let (events, report) = try await run(plan("secret-\(onError)", onError))
    let told = try #require(events.first { $0.name == "told" })
    #expect(told.json.hasSuffix(#""node":"loose","event":"told","token":"•••"}"#))
    let failed = try #require(events.first { $0.name == "nodeFailed" })
    #expect(
      failed.json.hasSuffix(
        #""node":"loose","event":"nodeFailed","reason":"custom","text":"the service refused •••"}"#))
    #expect(events.allSatisfy { !$0.json.contains(Self.token) })
    #expect(!String(describing: report).contains(Self.token))
    if onError == .stop { #expect(report.failure?.text == "the service refused •••") }
  }

  @Test("a node that cannot be recreated does not leak its secret either")
  func refusedRestart() async throws {
    let (events, report) = try await run(plan("secret-again", .restart, makings: 1))
    #expect(
      report.failure?.text
        == "••• was refused; ask for another one than ••• (failed 6 times in 10 s, not restarted again)")
    let told = events.filter { $0.name == "nodeFailed" }
    #expect(told.last?.json.hasSuffix(#""text":"••• was refused; ask for another one than •••"}"#) == true)
    #expect(events.allSatisfy { !$0.json.contains(Self.token) })
  }

  @Test("a node that refuses to start names its parameter, and not its secret")
  func refusedStart() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let plan = plan("secret-start", .stop, makings: 0)
    let problem = try #require(throws: StartProblem.self) { try engine.prepare(plan) }
    #expect(problem.description == "node \"loose\": ••• was refused; ask for another one than •••")
    #expect(problem.parameter == "token")
  }

  // MARK: Learnt while running

  private static let shownAddress = "rtmp://live.example.org/app/•••"

  @Test("what a node learns while it runs is in no event, explanation or report of the run")
  func learnt() async throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 100])
    builder.link(source, builder.add("learner", "test.learner", onError: .isolate))
    let (events, report) = try await run(builder.plan)
    let told = try #require(events.first { $0.name == "told" })
    #expect(told.json.hasSuffix(#""url":"\#(Self.shownAddress)"}"#), "\(told.json)")
    let failed = try #require(events.first { $0.name == "nodeFailed" })
    #expect(failed.json.hasSuffix(#""text":"\#(Self.shownAddress) is gone"}"#), "\(failed.json)")
    for shown in events.map(\.json) + [String(describing: report)] {
      #expect(!shown.contains("room-4711") && !shown.contains("open-sesame"), "\(shown)")
    }
  }

  @Test("a run and its parts share their secrets: those they start with, and what any of them learns")
  func parts() async throws {
    var graph = GraphDescription("shared")
    graph.add("source", "test.count", ["count": -1, "interval": 20])
    graph.add("end", "test.sequence", ["probe": "run-secret-4711"], secrets: ["probe"])
    graph.link("source -> end")
    let engine = Engine(catalogue: liveCatalogue, workers: 1)
    let run = try engine.start(try Graph.load(graph, catalogue: liveCatalogue))
    let listener = run.events
    var loose = GraphDescription("loose")
    loose.add(
      "loose", "test.loose", ["token": "part-secret-4712", "probe": "secret-parts"], secrets: ["token"])
    let first = try run.add(loose, named: "first") { $0.link("source -> first") }
    _ = await first.run.wait()
    let second = try run.add("second", "test.learner") { $0.link("source -> second") }
    _ = await second.run.wait()
    let third = try run.add("third", "test.sequence", ["probe": "x"]) { $0.link("source -> third") }
    for secrets in [run.secrets, first.run.secrets, second.run.secrets, third.run.secrets] {
      #expect(
        secrets.redacting("run-secret-4711 part-secret-4712 \(LateLearner.address)")
          == "••• ••• \(Self.shownAddress)")
    }
    run.stop()
    var told: [String] = []
    for await event in listener {
      if event.name == "told" { told.append(event.json) }
      #expect(!event.json.contains("secret-47") && !event.json.contains("room-4711"), "\(event.json)")
    }
    #expect(told.count == 2)
  }
}
