import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("A run that drains at a time of its graph", .timeLimit(.minutes(30)))
struct DrainTests {
  /// An endless source, one packet every 20 ms.
  private func endless(_ probe: String, interval: Int = 20) -> GraphPlan {
    PlanBuilder.chain(
      source: ["count": -1, "interval": .integer(interval)], passes: 2, probe: probe, policy: .dropOldest)
  }

  @Test(
    "gives exactly what was due before that time on the virtual clock",
    arguments: [(0, 0), (1, 1), (20, 1), (21, 2), (1_000, 50), (1_010, 51), (60_000, 3_000)])
  func virtual(milliseconds: Int64, count: Int) throws {
    let probe = "drain-\(milliseconds)"
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let run = try engine.prepare(endless(probe))
    run.drain(at: .milliseconds(milliseconds))
    run.start()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(Probe.named(probe).times == (0..<Int64(count)).map { $0 * 20_000_000 })
    #expect(Probe.named(probe).finished == 1)
    #expect(report.duration == .milliseconds(milliseconds))
    #expect(report.links.allSatisfy { $0.pushed == count })
  }

  @Test("runs of one engine each drain at their own time, whatever order they were started in")
  func several() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let times: [Int64] = [900, 100, 500, 500, 300]
    let runs = try times.enumerated().map { number, time in
      let run = try engine.prepare(endless("drain-several-\(number)"))
      run.drain(at: .milliseconds(time))
      return run
    }
    for run in runs { run.start() }
    for (number, run) in runs.enumerated() {
      _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
      #expect(Probe.named("drain-several-\(number)").values.count == Int(times[number] / 20))
    }
  }

  @Test("announces it at that time")
  func announced() async throws {
    let run = try Engine(catalogue: testCatalogue, clock: .virtual, workers: 1).prepare(
      endless("drain-event"))
    run.drain(at: .milliseconds(70))
    let listener = run.events
    run.start()
    var events: [GraphEvent] = []
    for await event in listener { events.append(event) }
    #expect(events.map(\.name) == ["started", "draining", "stopped"])
    #expect(events.map(\.time) == [0, 70_000_000, 70_000_000])
  }

  @Test("the time can be changed, and one in the past drains at once")
  func moved() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try engine.prepare(endless("drain-moved", interval: 1))
    run.drain(at: .milliseconds(3_600_000))
    run.start()
    while Probe.named("drain-moved").values.count < 20 { pauseBriefly() }
    run.drain(at: .milliseconds(1))
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.failure == nil)
    #expect(Probe.named("drain-moved").finished == 1)
  }

  @Test("on the real clock nothing due later is emitted, and both lanes drain")
  func realtime() throws {
    let plan = PlanBuilder.chain(
      source: ["count": -1, "interval": 5], passes: 1, probe: "drain-real", sinkLane: .bulk)
    let run = try Engine(catalogue: testCatalogue, workers: 1).prepare(plan)
    run.drain(at: .milliseconds(100))
    run.start()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    let values = Probe.named("drain-real").values
    // A worker that gets no processor time emits fewer.
    #expect(values == (0..<Int32(values.count)).map { $0 } && values.count <= 20)
    #expect(report.duration >= .milliseconds(100) && report.leakedBlocks == 0)
  }

  @Test("a run that is stopped before its drain time leaves nothing on its worker")
  func stoppedBefore() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let run = try engine.prepare(endless("drain-stopped"))
    run.drain(at: .milliseconds(3_600_000))
    run.stop()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    let next = try engine.prepare(endless("drain-next"))
    next.drain(at: .milliseconds(40))
    next.start()
    let report = try #require(next.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.duration == .milliseconds(40))
  }
}
