import MetricsTestKit
import MillraceCore
import MillraceEngine
import MillraceGraph
import Testing

@testable import MillraceServer

@Suite("Engine metrics", .timeLimit(.minutes(10)))
struct EngineMetricsTests {
  private func value(_ families: [MetricFamily], _ name: String, _ labels: [String: String]) -> Int? {
    let samples = families.first { $0.name == name }?.samples ?? []
    let sample = samples.first { sample in
      Dictionary(uniqueKeysWithValues: sample.labels.map { ($0.name, $0.value) }) == labels
    }
    if case .count(let count)? = sample?.value { return count }
    return nil
  }

  @Test("runs of one graph are added up, and stay in the counters when they have stopped")
  func together() async throws {
    let engine = Engine(catalogue: serverCatalogue, clock: .virtual)
    let metrics = EngineMetrics(engine)
    for _ in 0..<3 {
      let run = try engine.prepare(try talkPlan(count: 10))
      metrics.add(run)
      run.start()
      _ = await run.wait()
    }
    let present = try engine.prepare(try talkPlan(count: 5))
    metrics.add(present)
    for _ in 0..<2 {
      let families = metrics.families()
      let bot = ["graph": "talk", "node": "bot"]
      #expect(value(families, "millrace_node_packets_taken_total", bot) == 30)
      #expect(value(families, "millrace_runs_created_total", ["graph": "talk"]) == 4)
      #expect(value(families, "millrace_runs", ["graph": "talk", "phase": "prepared"]) == 1)
      #expect(value(families, "millrace_runs", ["graph": "talk", "phase": "running"]) == 0)
      let link = ["graph": "talk", "link": "mic -> bot"]
      #expect(value(families, "millrace_link_packets_pushed_total", link) == 30)
    }
    present.stop()
  }

  @Test("a run that has stopped is released by the next call of families")
  func released() async throws {
    let engine = Engine(catalogue: serverCatalogue, clock: .virtual)
    let metrics = EngineMetrics(engine)
    weak var weakRun: GraphRun?
    do {
      let run = try engine.prepare(try talkPlan(count: 1))
      weakRun = run
      metrics.add(run)
      run.start()
      _ = await run.wait()
    }
    _ = metrics.families()
    try await until { weakRun == nil }
  }

  @Test("short runs are released without a call of families")
  func swept() async throws {
    let engine = Engine(catalogue: serverCatalogue, clock: .virtual)
    let metrics = EngineMetrics(engine)
    weak var first: GraphRun?
    for number in 0..<200 {
      let run = try engine.prepare(try talkPlan(count: 1))
      if number == 0 { first = run }
      metrics.add(run)
      run.start()
      _ = await run.wait()
    }
    try await until { first == nil }
  }

  @Test("a failed run is counted as failed, and its drops by reason")
  func failed() async throws {
    let engine = Engine(catalogue: serverCatalogue, clock: .virtual)
    let metrics = EngineMetrics(engine)
    let run = try engine.prepare(try talkPlan(failAt: 3))
    metrics.add(run, as: "calls")
    run.start()
    _ = await run.wait()
    let families = metrics.families()
    #expect(value(families, "millrace_runs_failed_total", ["graph": "calls"]) == 1)
    let drops = families.first { $0.name == "millrace_link_packets_dropped_total" }
    let reasons = drops?.samples.compactMap { sample in sample.labels.first { $0.name == "reason" }?.value }
    #expect(Set(reasons ?? []) == ["oldest", "newest", "stale", "shed", "ended"] && reasons?.count == 5)
  }

  @Test("names are in base units and counters end in _total")
  func names() async throws {
    let engine = Engine(catalogue: serverCatalogue, clock: .virtual, memoryLimit: 1 << 30)
    let metrics = EngineMetrics(engine)
    let run = try engine.prepare(try talkPlan(count: 20))
    metrics.add(run)
    run.start()
    _ = await run.wait()
    let families = metrics.families()
    #expect(Set(families.map(\.name)).count == families.count)
    for family in families {
      #expect(family.name.hasPrefix("millrace_"))
      #expect(family.name.hasSuffix("_total") == (family.kind == .counter), "\(family.name)")
      #expect(!family.help.isEmpty)
    }
  }

  @Test("counters are published through swift-metrics as increments since the last time")
  func published() async throws {
    let engine = Engine(catalogue: serverCatalogue, clock: .virtual)
    let metrics = EngineMetrics(engine)
    let backend = TestMetrics()
    let publisher = MetricsPublisher(metrics, factory: backend)
    for _ in 0..<2 {
      let run = try engine.prepare(try talkPlan(count: 10))
      metrics.add(run)
      run.start()
      _ = await run.wait()
      publisher.publish()
      publisher.publish()
    }
    let labels = [("graph", "talk"), ("node", "bot")]
    let taken = try backend.expectCounter("millrace_node_packets_taken_total", labels)
    #expect(taken.values.filter { $0 != 0 } == [10, 10])
    let gauge = try backend.expectGauge(
      "millrace_link_capacity_packets", [("graph", "talk"), ("link", "mic -> bot")])
    #expect((gauge.lastValue ?? 0) > 0)
  }

  @Test("a gauge without a current value is removed from the backend")
  func removedGauges() throws {
    let backend = TestMetrics()
    let values = Locked([1.0, 2.0])
    let publisher = MetricsPublisher(factory: backend) {
      let samples = values.withLock {
        $0.enumerated().map { index, value in
          MetricFamily.Sample([.init("node", "\(index)")], .number(value))
        }
      }
      return [MetricFamily("age_seconds", "Age.", .gauge, samples)]
    }
    publisher.publish()
    values.withLock { $0 = [3] }
    publisher.publish()
    #expect(try backend.expectGauge("age_seconds", [("node", "0")]).lastValue == 3)
    #expect(throws: (any Error).self) { try backend.expectGauge("age_seconds", [("node", "1")]) }
  }
}
