import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("A source that ends with another node", .timeLimit(.minutes(30)))
struct EndsWithTests {
  /// A dialogue of a given number of packets, and an endless camera that ends with one of its nodes.
  private func pair(
    _ probe: String, count: Int = 20, with end: Int = 0, failAt: Int = -1, lane: Lane? = nil
  ) -> GraphPlan {
    var builder = PlanBuilder()
    let bot = builder.add("bot", "test.count", ["count": .integer(count), "interval": 5])
    let pass = builder.add("pass", "test.pass", ["failAt": .integer(failAt)], onError: .isolate)
    builder.link(bot, pass)
    builder.link(pass, builder.add("heard", "test.collect", ["probe": .string(probe + "-heard")]))
    let camera = builder.add("camera", "test.count", ["count": -1, "interval": 2], lane: lane)
    builder.plan.nodes[camera].endsWith = end
    builder.link(
      camera, builder.add("seen", "test.collect", ["probe": .string(probe)], lane: lane), policy: .dropOldest)
    return builder.plan
  }

  @Test(
    "ends when that node has ended, and what it gave before flows out: on its own lane or another",
    arguments: [Clock.Kind.realtime, .virtual], [Lane.voice, .bulk])
  func ends(clock: Clock.Kind, lane: Lane) throws {
    let probe = "ends-with-\(clock)-\(lane)"
    let report = try pair(probe, lane: lane).runToEnd(clock)
    #expect(report.failure == nil && report.leakedBlocks == 0 && report.detachedNodes.isEmpty)
    let heard = Probe.named(probe + "-heard")
    #expect(heard.values == (0..<20).map { $0 } && heard.finished == 1)
    let seen = Probe.named(probe)
    #expect(seen.finished == 1)
    let link = try #require(report.links.first { $0.name == "camera -> seen" })
    #expect(link.pushed == seen.values.count + link.dropped)
    // On a virtual clock time does not advance while the end propagates: what is due up to it is exact.
    if clock == .virtual { #expect(seen.values.count == 48) }
  }

  @Test("two runs on the virtual clock see the same")
  func deterministic() throws {
    for run in 0..<2 { _ = try pair("ends-with-same-\(run)").runToEnd(.virtual) }
    #expect(Probe.named("ends-with-same-0").times == Probe.named("ends-with-same-1").times)
  }

  @Test("ends with a node that failed and was cut off")
  func isolated() throws {
    let probe = "ends-with-isolated"
    let report = try pair(probe, count: 200, with: 1, failAt: 3).runToEnd(.virtual)
    #expect(report.failure == nil)
    #expect(Probe.named(probe).finished == 1)
    // Its node ended long before the dialogue's other end.
    #expect(Probe.named(probe).values.count < 50)
  }

  @Test("ends with a source that ends with a third node")
  func chained() throws {
    var plan = pair("ends-with-chain")
    var builder = PlanBuilder()
    builder.plan = plan
    let lamp = builder.add("lamp", "test.count", ["count": -1, "interval": 3])
    builder.plan.nodes[lamp].endsWith = plan.nodes.firstIndex { $0.name == "camera" }
    builder.link(lamp, builder.add("lit", "test.collect", ["probe": "ends-with-lit"]), policy: .dropOldest)
    plan = builder.plan
    #expect(try plan.runToEnd().failure == nil)
    #expect(Probe.named("ends-with-lit").finished == 1)
  }

  @Test("a source that has already ended is not affected, and a draining run still ends")
  func others() throws {
    var early = pair("ends-with-early")
    early.nodes[3].parameters["count"] = 2
    #expect(try early.runToEnd(.virtual).failure == nil)
    #expect(Probe.named("ends-with-early").values == [0, 1])
    let run = try Engine(catalogue: testCatalogue, clock: .virtual, workers: 1).prepare(
      pair("ends-with-drained", count: -1))
    run.drain(at: .milliseconds(40))
    run.start()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.duration == .milliseconds(40))
    #expect(Probe.named("ends-with-drained").values.count == 20)
  }
}
