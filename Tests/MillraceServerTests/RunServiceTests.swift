import Logging
import MillraceEngine
import MillraceGraph
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

@testable import MillraceServer

@Suite("Runs as services", .timeLimit(.minutes(10)))
struct RunServiceTests {
  private let engine = Engine(catalogue: serverCatalogue)

  private func isTalking(_ run: GraphRun) -> Bool {
    run.report().nodes.contains { $0.name == "bot" && $0.packetsIn > 0 }
  }

  @Test("when a graph ends, its service ends")
  func ends() async throws {
    let run = try engine.prepare(try talkPlan(count: 3))
    try await RunService(run).run()
    #expect(run.phase == .stopped)
  }

  @Test("a graceful shutdown drains the graph")
  func drains() async throws {
    let run = try engine.prepare(try talkPlan())
    try await testGracefulShutdown { trigger in
      let service = Task { try await RunService(run).run() }
      try await until { isTalking(run) }
      trigger.triggerGracefulShutdown()
      try await service.value
    }
    let report = run.report()
    #expect(report.phase == .stopped && report.failure == nil)
    // All emitted packets arrived, so the run was not stopped.
    #expect(report.nodes[0].packetsOut == report.nodes[1].packetsIn)
    #expect(report.links[0].discarded == 0)
  }

  @Test("a run that does not end while draining is stopped")
  func bounded() async throws {
    let run = try engine.prepare(try talkPlan(lingers: true))
    try await testGracefulShutdown { trigger in
      let service = Task { try await RunService(run, drainTime: .milliseconds(50)).run() }
      try await until { isTalking(run) }
      trigger.triggerGracefulShutdown()
      try await service.value
    }
    #expect(run.phase == .stopped)
  }

  @Test("cancellation stops the graph and throws CancellationError")
  func cancelled() async throws {
    let run = try engine.prepare(try talkPlan(lingers: true))
    let service = Task { try await RunService(run).run() }
    try await until { isTalking(run) }
    service.cancel()
    await #expect(throws: CancellationError.self) { try await service.value }
    #expect(run.phase == .stopped)
  }

  @Test("a run that fails throws its failure")
  func fails() async throws {
    let run = try engine.prepare(try talkPlan(failAt: 3))
    await #expect { try await RunService(run).run() } throws: { ($0 as? RunFailure)?.node == "bot" }
  }

  @Test("a group runs a graph and ends with its failure")
  func group() async throws {
    let run = try engine.prepare(try talkPlan(failAt: 3))
    let group = ServiceGroup(services: [RunService(run)], logger: Logger(label: "test"))
    await #expect { try await group.run() } throws: { ($0 as? RunFailure)?.node == "bot" }
  }

  @Test("an engine's service drains its runs at shutdown, and rejects new ones")
  func engineService() async throws {
    let service = EngineService(engine)
    var runs: [GraphRun] = []
    try await testGracefulShutdown { trigger in
      let serving = Task { try await service.run() }
      for _ in 0..<3 { runs.append(try service.start(try talkPlan())) }
      for run in runs { try await until { isTalking(run) } }
      #expect(service.runCount == 3)
      trigger.triggerGracefulShutdown()
      try await serving.value
    }
    #expect(runs.allSatisfy { $0.phase == .stopped && $0.report().failure == nil })
    #expect(throws: StartProblem.self) { _ = try service.start(try talkPlan()) }
    try await until { service.runCount == 0 }
  }

  @Test("a run that ends on its own is removed from its engine's service")
  func leaves() async throws {
    let service = EngineService(engine)
    _ = try service.start(try talkPlan(count: 1))
    try await until { service.runCount == 0 }
  }

  @Test("cancelling an engine's service stops its runs immediately")
  func engineCancelled() async throws {
    let service = EngineService(engine)
    let run = try service.start(try talkPlan(lingers: true))
    let serving = Task { try await service.run() }
    serving.cancel()
    await #expect(throws: CancellationError.self) { try await serving.value }
    #expect(run.phase == .stopped)
  }
}
