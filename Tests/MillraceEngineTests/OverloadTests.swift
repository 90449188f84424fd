import CMillraceSys
import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

/// Is busy for `work` microseconds with every packet.
struct BurningNode: Node {
  static let contract = NodeContract(
    "test.burn", "burns time", inputs: [PortContract("in", .any, text: "numbers")],
    parameters: [
      probeParameter,
      ParameterContract(
        "work", .integer(0...10_000_000), unit: "us", default: 0, live: true, text: "a packet"),
    ])
  let probe: Probe
  var work: Nanoseconds

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    probe = Probe.named(setup.parameters.string("probe"))
    work = Nanoseconds(setup.parameters.integer("work")) * 1_000
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    _ = consume packet
    probe.state.withLock { $0.made += 1 }
    let end = millrace_monotonic_ns() + work
    while millrace_monotonic_ns() < end { millrace_pause() }
    return .done
  }

  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(_, let value) = message else { return }
    let number = Int(value.asNumber)
    work = Nanoseconds(number) * 1_000
    probe.state.withLock { $0.texts.append("\(number)") }
  }
}

@Suite("The overload ladder")
struct OverloadLadderTests {
  private func changes(_ loads: [Double], _ thresholds: [Int] = [60, 80]) -> [OverloadLadder.Change?] {
    var ladder = OverloadLadder(thresholds)
    return loads.map { ladder.update($0) }
  }

  @Test("a step is taken after half a second above it, the next after as long again")
  func rises() {
    #expect(changes([90, 90, 90, 90, 90]) == [nil, .rise(0), nil, .rise(1), nil])
    #expect(changes([70, 70, 70, 70]) == [nil, .rise(0), nil, nil])
  }

  @Test("a single peak changes nothing, nor does a load at the threshold")
  func peaks() {
    #expect(changes([90, 10, 90, 10, 60, 60, 60]).allSatisfy { $0 == nil })
  }

  @Test("a step is undone after two seconds well below it, the last taken first")
  func falls() {
    var ladder = OverloadLadder([60, 80])
    for _ in 0..<4 { _ = ladder.update(99) }
    #expect(ladder.level == 2)
    // 70 is not below 80 by the margin, 69 is.
    for _ in 0..<20 { #expect(ladder.update(70) == nil) }
    for _ in 0..<7 { #expect(ladder.update(69) == nil) }
    #expect(ladder.update(69) == .fall(1))
    for _ in 0..<7 { #expect(ladder.update(0) == nil) }
    #expect(ladder.update(0) == .fall(0))
    #expect(ladder.update(0) == nil && ladder.level == 0)
  }
}

@Suite("Overload", .serialized, .timeLimit(.minutes(30)))
struct OverloadTests {
  /// Voice that takes 10 % of a worker, video that takes 60 %.
  private func plan(_ probe: String, _ steps: [OverloadStep]) -> (GraphPlan, voice: Int, pictures: Int) {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": -1, "interval": 5])
    let voice = builder.add("voice", "test.burn", ["probe": .string(probe + "-voice"), "work": 500])
    let pictures = builder.add("pictures", "test.burn", ["probe": .string(probe), "work": 3_000])
    builder.link(source, voice, limit: 400)
    builder.link(source, pictures, limit: 2, policy: .latest)
    builder.plan.overload = steps
    return (builder.plan, voice, pictures)
  }

  @Test("video is shed for voice while the load is high, counted and reported, and comes back")
  func sheds() async throws {
    let (plan, _, pictures) = plan("sheds", [OverloadStep(above: 40, shed: [2])])
    let run = try Engine(catalogue: testCatalogue, workers: 1).prepare(plan)
    let events = run.events
    run.start()
    var told: [String] = []
    for await event in events where event.name.hasPrefix("overload") {
      told.append(event.name)
      if told.count == 1 {
        #expect(event.json.contains(#""step":1,"of":1"#))
        #expect(event.json.contains(#""does":"shed pictures""#))
      }
      if told.count == 2 {
        // Video has come back, or will when the next step is undone too.
        let seen = Probe.named("sheds").state.withLock { $0.made }
        while Probe.named("sheds").state.withLock({ $0.made }) <= seen { pauseBriefly() }
      }
      if told.count == 3 { run.stop() }
    }
    #expect(Array(told.prefix(3)) == ["overload", "overloadEased", "overload"])
    let report = run.report()
    #expect(report.links[1].droppedShed > 0)
    #expect(report.links[0].dropped == 0)
    #expect(report.links[1].pushed >= report.links[1].popped)
    #expect(report.nodes[pictures].packetsIn < report.nodes[1].packetsIn)
    #expect(report.leakedBlocks == 0)
  }

  @Test("a parameter is lowered, and returns to the program's choice")
  func sets() async throws {
    let step = OverloadStep(above: 40, settings: [.init(node: 2, parameter: "work", value: 10)])
    let run = try Engine(catalogue: testCatalogue, workers: 1).prepare(plan("sets", [step]).0)
    let events = run.events
    try run.set("pictures", "work", to: 3_500)
    run.start()
    var count = 0
    for await event in events where event.name.hasPrefix("overload") {
      count += 1
      if count == 2 { run.drain() }
    }
    #expect(Array(Probe.named("sets").texts.prefix(3)) == ["3500", "10", "3500"])
  }

  @Test("new sessions are refused with the reason during overload, and accepted again afterwards")
  func refuses() async throws {
    let (plan, _, _) = plan("refuses", [OverloadStep(above: 40, refuses: true)])
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try engine.prepare(plan)
    let events = run.events
    run.start()
    for await event in events where event.name == "overload" { break }
    let other = PlanBuilder.chain(source: ["count": 1], passes: 0, probe: "refused")
    var problem: StartProblem?
    do { _ = try engine.start(other) } catch { problem = error }
    let text = try #require(problem?.description)
    #expect(text.hasPrefix("no capacity for another session: worker millrace-v1 is "))
    #expect(
      text.hasSuffix(
        " % busy, and \"test\" refuses new sessions above 40 %; end a session, or start it on another machine"
      ))
    run.stop()
    _ = await run.wait()
    let late = try engine.start(other)
    _ = await late.wait()
    #expect(Probe.named("refused").values == [0])
  }

  @Test(
    "a graph without steps, or on a virtual clock, is left alone",
    arguments: [(.realtime, true), (.realtime, false), (.virtual, true)] as [(Clock.Kind, Bool)])
  func none(clock: Clock.Kind, hasSteps: Bool) throws {
    let name = "none \(clock) \(hasSteps)"
    let run = try Engine(catalogue: testCatalogue, clock: clock, workers: 1)
      .start(plan(name, hasSteps ? [OverloadStep(above: 1, shed: [1, 2])] : []).0)
    while Probe.named(name).state.withLock({ $0.made }) == 0 { pauseBriefly() }
    #expect(run.watchesLoad == (clock == .realtime && hasSteps))
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.failure == nil)
    #expect(report.links.allSatisfy { $0.droppedShed == 0 } || clock == .realtime && hasSteps)
    #expect(!run.watchesLoad)
  }
}
