import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("Budgets", .timeLimit(.minutes(30)))
struct BudgetTests {
  /// Runs a plan to its end; returns its reports of missed budgets.
  private func missed(_ plan: GraphPlan, _ clock: Clock.Kind) async throws -> (RunReport, [JSONNode]) {
    let run = try Engine(catalogue: testCatalogue, clock: clock, workers: 1).prepare(plan)
    let events = run.events
    run.start()
    var missed: [JSONNode] = []
    for await event in events where event.name == "budgetMissed" {
      missed.append(try JSONDocument.scan(SourceFile(name: "event", text: event.json)).root)
      #expect(missed.last?["node"]?.string == event.node)
    }
    return (run.report(), missed)
  }

  @Test("packets that are too old on arrival are counted and reported, with the last one's age")
  func ages() async throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 10, "interval": 20])
    let middle = builder.add("ageing", "test.ageing")
    let sink = builder.add("sink", "test.collect", ["probe": "budget"])
    builder.link(source, middle)
    builder.link(middle, sink)
    builder.plan.nodes[sink].maxAge = .milliseconds(45)
    let (report, missed) = try await missed(builder.plan, .virtual)
    #expect(report.nodes[sink].overAge == 5, "those of 50 to 90 ms")
    #expect(missed.compactMap { $0["count"]?.integer }.reduce(0, +) == 5)
    #expect(missed.last?["node"]?.string == "sink")
    #expect(missed.last?["of"]?.string == "age")
    #expect(missed.last?["value"]?.double == 90)
    #expect(missed.last?["budget"]?.double == 45)
  }

  @Test(
    "a node that is always slow is reported at most once a second and at the end, with every miss counted")
  func calls() async throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 200, "interval": 1])
    let pass = builder.add("pass0", "test.pass", ["probe": "slow"])
    // A node that posts events makes the supervisor run a hundred times a second.
    let sink = builder.add("sink", "test.announce")
    builder.link(source, pass)
    builder.link(pass, sink)
    // Every call takes some time.
    builder.plan.nodes[pass].budget = 0
    let (report, missed) = try await missed(builder.plan, .realtime)
    #expect(report.nodes[1].overBudget == report.nodes[1].activations)
    let ofPass = missed.filter { $0["node"]?.string == "pass0" }
    #expect(ofPass.compactMap { $0["count"]?.integer }.reduce(0, +) == Int64(report.nodes[1].overBudget))
    #expect(ofPass.count >= 1 && ofPass.count <= 2 + Int(report.duration / 1_000_000_000))
    #expect(ofPass.allSatisfy { $0["of"]?.string == "call" && $0["value"]?.double ?? 0 > 0 })
  }

  @Test("a report describes the run in one line")
  func line() async throws {
    let run = try Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
      .start(PlanBuilder.chain(source: ["count": 21, "interval": 100], passes: 1, probe: "line"))
    var report = await run.wait()
    for node in report.nodes.indices { report.nodes[node].worst = node == 1 ? 412_500 : 0 }
    #expect(
      report.description == "test: stopped after 2 s, 21 packets delivered, worst call 412.5 us (pass0)")
    report.links[0].droppedOldest = 3
    report.failure = RunFailure(node: "sink", fault: nil, text: "it broke")
    #expect(
      report.description
        == "test: stopped after 2 s, 21 packets delivered, 3 dropped, worst call 412.5 us (pass0), failed: node \"sink\": it broke"
    )
  }

  @Test("on a virtual clock long calls are counted and not reported")
  func virtualCalls() async throws {
    var plan = PlanBuilder.chain(source: ["count": 20, "interval": 1], passes: 1, probe: "slow")
    plan.nodes[1].budget = 0
    let (report, missed) = try await missed(plan, .virtual)
    #expect(report.nodes[1].overBudget == report.nodes[1].activations)
    #expect(missed.isEmpty)
  }
}
