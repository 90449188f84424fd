import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("The end of an engine", .timeLimit(.minutes(30))) struct EngineEndTests {
  /// Runs a graph to its end; returns a weak reference to the engine.
  private func run(clock: Clock.Kind, events: Bool, trace: Bool) async throws -> () -> Engine? {
    let engine = Engine(catalogue: testCatalogue, clock: clock, workers: 1)
    let plan = PlanBuilder.chain(source: ["count": 10], passes: 1, probe: "end")
    var reader = trace ? engine.makeTraceReader(holdsClock: true) : nil
    let run = try engine.prepare(plan)
    let told = events ? run.events : nil
    let posted = Task { if let told { for await _ in told {} } }
    run.start()
    while run.waitUntilStopped(timeout: .milliseconds(2)) == nil { _ = reader?.read() }
    await posted.value
    return { [weak engine] in engine }
  }

  @Test(
    "comes with the last reference to it and its runs", arguments: [Clock.Kind.realtime, .virtual],
    [0, 1, 2, 3])
  func gone(clock: Clock.Kind, kind: Int) async throws {
    let engine = try await run(clock: clock, events: kind & 1 != 0, trace: kind & 2 != 0)
    let deadline = ContinuousClock.now + .seconds(60)
    while engine() != nil && ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(1)) }
    #expect(engine() == nil)
  }
}
