import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

/// Posts an event for every packet, with a text of `bytes` bytes followed by a number.
struct LongWinded: Node {
  static let contract = NodeContract(
    "test.long", "posts long events", inputs: [PortContract("in", .any, text: "numbers")],
    parameters: [
      ParameterContract("length", .integer(0...10_000), default: 0, text: "bytes of the text"),
      ParameterContract("room", .integer(0...10_000), default: 0, text: "bytes of an event; 0: as usual"),
    ],
    events: [EventContract("said", text: "text; value: the number")]
  ) { resolution in
    let room = resolution.parameters.integer("room")
    guard room > 0 else { return }
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: room)
  }
  let text: [UInt8]
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    text = Array(repeating: UInt8(ascii: "a"), count: setup.parameters.integer("length"))
  }
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    let value = Int(packet.samples(of: Int32.self)[0])
    ports.post(0) {
      $0.field("text", utf8: text.span)
      $0.field("value", value)
    }
    return .done
  }
}

@Suite("Events from nodes to the program", .timeLimit(.minutes(30)))
struct EventTests {
  /// - Parameter pacing: the source's pacing in the plan, however fast it is.
  private func announcing(
    _ count: Int, clock: Clock.Kind, pacing: Pacing = .waits, on engine: Engine? = nil
  ) throws -> GraphRun {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": .integer(count)])
    builder.link(source, builder.add("sink", "test.announce"))
    // On a busy machine calls miss their budgets, and reports of that would be further events.
    for index in builder.plan.nodes.indices {
      builder.plan.nodes[index].budget = 1_000_000_000
      builder.plan.nodes[index].pacing = pacing
    }
    return try (engine ?? Engine(catalogue: testCatalogue, clock: clock, workers: 1)).prepare(builder.plan)
  }

  /// How many events of the node arrived, and how many the listener reports lost.
  private func tally(_ events: [GraphEvent]) throws -> (seen: Int, lost: Int) {
    let lost = try events.filter { $0.name == "eventsLost" }.map { event in
      let root = try JSONDocument.scan(SourceFile(name: "event", text: event.json)).root
      return Int(try #require(root["count"]?.integer))
    }
    return (events.count { $0.name == "seen" }, lost.reduce(0, +))
  }

  @Test(
    "of a run that follows the clock, a listener that reads too late gets a report of every event it missed",
    arguments: [Pacing.paced, .live])
  func realtime(pacing: Pacing) async throws {
    let run = try announcing(50_000, clock: .realtime, pacing: pacing)
    let listener = run.events
    run.start()
    let report = await run.wait()
    var events: [GraphEvent] = []
    for await event in listener { events.append(event) }
    let (seen, lost) = try tally(events)
    // The run's own first event may be among the lost ones.
    let ownLost = events.contains { $0.name == "started" } ? 0 : 1
    #expect(lost > 0 && seen + lost == 50_000 + ownLost)
    #expect(report.lostEvents == lost)
    #expect(events.last?.name == "stopped")
  }

  @Test(
    "where all sources can wait, on either clock, a slow listener loses nothing",
    arguments: Clock.Kind.allCases)
  func slowListener(clock: Clock.Kind) async throws {
    let run = try announcing(30_000, clock: clock)
    // Other tests may keep every thread busy for long while this one waits.
    let listener = run.listen(patience: Nanoseconds.max)
    run.start()
    // As far as it gets without a reader.
    while run.report().nodes[1].packetsIn < EventQueue.limit - EventQueue.reserve { pauseBriefly() }
    var (inOrder, count, ahead) = (0, 0, 0)
    for await event in listener where event.name == "seen" {
      if event.json.hasSuffix("\"value\":\(count)}") { inOrder += 1 }
      count += 1
      // Much slower than the graph, which would get further ahead than all queues can hold.
      if count % 8 == 0 { pauseBriefly() }
      if count % 64 == 0 { ahead = max(ahead, Int(run.report().nodes[1].packetsIn) - count) }
    }
    #expect(count == 30_000 && inOrder == 30_000)
    // The capacity of the listener, the outbox and a turn.
    #expect(ahead < EventQueue.limit + 1_024)
    #expect(await run.wait().lostEvents == 0)
  }

  @Test("a run that waits for its listener on the real clock does not block another on its worker")
  func sharedWorker() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let waiting = try announcing(-1, clock: .realtime, on: engine)
    let listener = waiting.listen(patience: Nanoseconds.max)
    waiting.start()
    // As far as it gets without a reader.
    while waiting.report().nodes[1].packetsIn < EventQueue.limit { pauseBriefly() }
    let live = try engine.prepare(
      PlanBuilder.chain(source: ["count": 100, "interval": 1], passes: 1, probe: "beside-waiting"))
    live.start()
    let report = try #require(live.waitUntilStopped(timeout: .seconds(120)), "it is held up")
    #expect(report.failure == nil && Probe.named("beside-waiting").values.count == 100)
    // The capacity of the listener, the outbox and a turn.
    #expect(waiting.report().nodes[1].packetsIn < EventQueue.limit + 1_024)
    #expect(waiting.report().lostEvents == 0)
    waiting.stop()
    _ = try #require(waiting.waitUntilStopped(timeout: .seconds(120)))
    withExtendedLifetime(listener) {}
  }

  @Test(
    "a listener that reads nothing does not block a run forever, and gets a report of what it missed",
    arguments: Clock.Kind.allCases)
  func idleListener(clock: Clock.Kind) async throws {
    let run = try announcing(20_000, clock: clock)
    let listener = run.listen(patience: 100_000_000)
    run.start()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.failure == nil)
    var events: [GraphEvent] = []
    for await event in listener { events.append(event) }
    let (seen, lost) = try tally(events)
    // The run's own first event is among the lost ones.
    #expect(seen >= EventQueue.limit - 2 * EventQueue.reserve && seen + lost == 20_001)
    #expect(report.lostEvents == lost)
  }

  @Test("a run that waits for a listener can be stopped", arguments: Clock.Kind.allCases)
  func stopWhileWaiting(clock: Clock.Kind) async throws {
    let run = try announcing(-1, clock: clock)
    let listener = run.events
    run.start()
    // Reads an event now and then, so that the run keeps waiting for it.
    let reader = Task {
      var count = 0
      for await _ in listener {
        count += 1
        try? await Task.sleep(nanoseconds: 20_000_000)
      }
      return count
    }
    while run.report().nodes[1].packetsIn < EventQueue.limit + 512 { pauseBriefly() }
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.failure == nil && report.leakedBlocks == 0)
    reader.cancel()
    #expect(await reader.value > 0)
  }

  @Test("a run does not wait for a released listener, and counts nothing as lost for it")
  func goneListener() async throws {
    let run = try announcing(20_000, clock: .virtual)
    do { _ = run.events }
    run.start()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.lostEvents == 0)
    #expect(run.listeners.isEmpty)
  }

  @Test("a listener added after the run has stopped receives the end")
  func lateListener() async throws {
    let run = try announcing(1, clock: .virtual)
    run.start()
    _ = await run.wait()
    for await event in run.events { Issue.record("\(event)") }
  }

  // MARK: Length

  private func said(_ name: String, _ values: [String: ParameterValue]) async throws -> (String?, RunReport) {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 1])
    builder.link(source, builder.add(name, "test.long", values))
    let run = try Engine(catalogue: testCatalogue, clock: .virtual, workers: 1).prepare(builder.plan)
    let listener = run.events
    run.start()
    var json: String?
    for await event in listener where event.name == "said" { json = event.json }
    return (json, await run.wait())
  }

  @Test("a field too long for an event is omitted, the event is marked, and later fields are kept")
  func tooLong() async throws {
    let (json, report) = try await said("node", ["length": .integer(EventWriter.eventBytes)])
    #expect(json == #"{"time":0.000000,"node":"node","event":"said","value":0,"truncated":true}"#)
    #expect(report.lostEvents == 0)
  }

  @Test("a node whose resolution declares longer events gets room for them")
  func roomy() async throws {
    let text = String(repeating: "a", count: 3_000)
    let (json, _) = try await said("node", ["length": 3_000, "room": 4_000])
    #expect(json == #"{"time":0.000000,"node":"node","event":"said","text":""# + text + #"","value":0}"#)
  }

  @Test("an event that its node's name alone fills is lost and counted")
  func nameTooLong() async throws {
    let (json, report) = try await said(String(repeating: "n", count: EventWriter.eventBytes), [:])
    #expect(json == nil)
    #expect(report.lostEvents == 1)
  }
}
