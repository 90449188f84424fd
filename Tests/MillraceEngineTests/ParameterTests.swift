import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

/// Two live numbers and a live string; records what reaches it, with the graph time.
private struct Knobs: Node {
  enum Mode: String, ParameterChoice { case slow, fast }
  static let level = Parameter<Double>(
    "level", -60...60, unit: "dB", default: 0, live: true, text: "noted when set")
  static let width = Parameter<Double>("width", 0...10, default: 1, live: true, text: "noted when set")
  static let mode = Parameter("mode", default: Mode.slow, live: true, text: "noted when set")
  static let size = Parameter<Int>("size", 1...9, default: 4, text: "fixed")
  static let key = Parameter<String>("key", default: "", secret: .whole, text: "never shown")
  static let note = Parameter<String>("note", text: "may be left out").optional
  static let changed = EventContract("changed", text: "a parameter was set; `to`: its value")
  static let contract = NodeContract(
    "test.knobs", "notes", inputs: [PortContract("in", .any, text: "numbers")],
    parameters: [probeParameter, level, width, mode, size, key, note], events: [changed])

  var level: LiveParameter<Double>
  var width: LiveParameter<Double>
  var mode: LiveParameter<Mode>
  let changed: EventPort
  let probe: Probe

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    level = setup.live(Self.level)
    width = setup.live(Self.width)
    mode = setup.live(Self.mode)
    changed = setup.event(Self.changed)
    probe = Probe.named(setup.parameters.string("probe"))
    let start = "level from \(level.value)"
    probe.state.withLock { $0.texts.append(start) }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    if packet.samples(of: Int32.self)[0] == -7 { throw NodeFault(.custom) }
    return .done
  }

  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    let time = ports.now / 1_000_000
    if level.update(from: message) {
      let value = level.value
      probe.state.withLock { $0.texts.append("\(time) level \(value)") }
      ports.post(changed) { $0.field("to", value) }
    }
    if width.update(from: message) {
      let value = width.value
      probe.state.withLock { $0.texts.append("\(time) width \(value)") }
    }
    if mode.update(from: message) {
      let value = mode.value
      probe.state.withLock { $0.texts.append("\(time) mode \(value)") }
    }
  }
}

/// Declares a parameter of another type's name differently.
private enum Stranger {
  static let level = Parameter<Double>("level", 0...1, default: 0, live: true, text: "of another node")
}

@Suite("Parameters of a running graph", .timeLimit(.minutes(30)))
struct ParameterTests {
  private static let catalogue: Catalogue = {
    var catalogue = testCatalogue
    catalogue.add(Knobs.self)
    return catalogue
  }()

  /// Numbers every 20 ms into the knobs, for 400 ms.
  private func prepare(
    _ probe: String, _ values: [String: ParameterValue] = [:], clock: Clock.Kind = .virtual, count: Int = 20,
    secrets: Set<String> = []
  ) throws -> GraphRun {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": .integer(count), "interval": 20])
    var parameters = ParameterValues()
    for parameter in Knobs.contract.parameters { parameters[parameter.name] = parameter.defaultValue }
    for (name, value) in values { parameters[name] = value }
    parameters["probe"] = .string(probe)
    builder.plan.nodes.append(
      GraphPlan.Node(
        name: "knobs", contract: Knobs.contract, parameters: parameters, secrets: secrets,
        inputs: [.init(name: "in", shape: testShape, isLinked: false)], drivingInputs: [true],
        heldPackets: [0],
        outputs: [
          .init(
            name: "events",
            shape: OutputShape(.event, packetDuration: nil, packetBytes: EventWriter.eventBytes),
            isLinked: false)
        ], lane: .voice, budget: 1_000_000))
    builder.link(source, builder.plan.nodes.count - 1, policy: .dropOldest)
    return try Engine(catalogue: Self.catalogue, clock: clock, workers: 1).prepare(builder.plan)
  }

  /// Runs to the end; returns what the knobs recorded.
  private func notes(of run: GraphRun, _ probe: String) throws -> [String] {
    run.start()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    return Array(Probe.named(probe).texts.dropFirst())
  }

  private func code(_ body: () throws(ControlProblem) -> Void) -> ControlProblem.Code? {
    do throws(ControlProblem) { try body() } catch { return error.code }
    return nil
  }

  // MARK: Reading and setting

  @Test("a value read is the graph's, then the one set last, and a number whatever it was written as")
  func get() throws {
    let run = try prepare("knobs-get", ["level": 3])
    #expect(try run.get("knobs", "level") == .number(3))
    #expect(try run.get("knobs", "mode") == "slow")
    #expect(try run.get("knobs", "note") == nil)
    try run.set("knobs", "level", to: -6)
    #expect(try run.get("knobs", "level") == .number(-6))
    #expect(try run.get("knobs", "width") == .number(1))
    #expect(code { () throws(ControlProblem) in _ = try run.get("knob", "level") } == .unknownNode)
    #expect(code { () throws(ControlProblem) in _ = try run.get("knobs", "loudness") } == .unknownParameter)
  }

  @Test("a handle reads and sets its own parameter, with its own type")
  func handle() throws {
    let run = try prepare("knobs-handle")
    let width = try run.parameter("knobs", Knobs.width)
    let mode = try run.parameter("knobs", Knobs.mode)
    #expect(try run.parameter("knobs", Knobs.size).value == 4)
    #expect(try run.parameter("knobs", Knobs.note).value == nil)
    #expect(mode.value == .slow)
    run.at(.milliseconds(40)) {
      try? width.set(2.5)
      try? mode.set(.fast)
    }
    #expect(try notes(of: run, "knobs-handle") == ["40 width 2.5", "40 mode fast"])
    #expect(width.value == 2.5 && mode.value == .fast)
    #expect(try run.parameter("knobs", Knobs.level).value == 0)
  }

  @Test("a handle of another node type, a fixed parameter and a value out of range are refused by code")
  func refusals() throws {
    let run = try prepare("knobs-refusals")
    #expect(
      code { () throws(ControlProblem) in _ = try run.parameter("knobs", Stranger.level) } == .foreignHandle)
    #expect(
      code { () throws(ControlProblem) in _ = try run.parameter("source", Knobs.level) } == .unknownParameter)
    #expect(code { () throws(ControlProblem) in try run.parameter("knobs", Knobs.size).set(5) } == .notLive)
    #expect(
      code { () throws(ControlProblem) in try run.parameter("knobs", Knobs.level).set(61) } == .wrongValue)
    #expect(
      code { () throws(ControlProblem) in try run.parameter("knobs", Knobs.level).set(.nan) } == .wrongValue)
    #expect(code { () throws(ControlProblem) in try run.parameter("knobs", Knobs.note).set(nil) } == .notLive)
    _ = try notes(of: run, "knobs-refusals")
    #expect(
      code { () throws(ControlProblem) in try run.parameter("knobs", Knobs.level).set(1) } == .runStopped)
  }

  @Test("what is shown of a value has no secret in it")
  func shown() throws {
    let run = try prepare("knobs-shown", ["key": "open-sesame-4711", "level": 7], secrets: ["level"])
    #expect(try run.get("knobs", "key") == "open-sesame-4711")
    #expect(try run.shownValue("knobs", "key") == .string(Secrets.mark))
    #expect(try run.shownValue("knobs", "level") == .string(Secrets.mark))
    #expect(try run.shownValue("knobs", "width") == .number(1))
    #expect(try run.shownValue("knobs", "note") == nil)
  }

  // MARK: Ramps

  @Test("a ramp goes in even steps of 10 ms to exactly its target, the same in every run")
  func ramp() throws {
    for round in 0..<3 {
      let probe = "knobs-ramp-\(round)"
      let run = try prepare(probe, ["level": -6])
      run.at(.milliseconds(100)) { [unowned run] in
        try? run.ramp("knobs", "level", to: 6, over: .milliseconds(40))
      }
      #expect(
        try notes(of: run, probe) == ["110 level -3.0", "120 level 0.0", "130 level 3.0", "140 level 6.0"])
      #expect(try run.get("knobs", "level") == 6.0)
    }
  }

  @Test("a ramp that is no whole number of steps ends at its own time, and one of no length at once")
  func oddRamps() throws {
    let run = try prepare("knobs-odd")
    let level = try run.parameter("knobs", Knobs.level)
    let width = try run.parameter("knobs", Knobs.width)
    run.at(.milliseconds(100)) {
      try? level.ramp(to: 25, over: .milliseconds(25))
      try? width.ramp(to: 2, over: .zero)
    }
    run.at(.milliseconds(200)) { try? width.ramp(to: 3, over: .nanoseconds(1)) }
    let all = try notes(of: run, "knobs-odd")
    #expect(all.filter { $0.contains("level") } == ["110 level 10.0", "120 level 20.0", "125 level 25.0"])
    #expect(all.filter { $0.contains("width") } == ["100 width 2.0", "200 width 3.0"])
  }

  @Test("a new ramp begins where the older one is, and a set ends it; other parameters go their own way")
  func replaced() throws {
    let run = try prepare("knobs-replaced")
    let level = try run.parameter("knobs", Knobs.level)
    let width = try run.parameter("knobs", Knobs.width)
    run.at(.milliseconds(100)) {
      try? level.ramp(to: 40, over: .milliseconds(40))
      try? width.ramp(to: 5, over: .milliseconds(40))
    }
    run.at(.milliseconds(120)) { try? level.ramp(to: 0, over: .milliseconds(20)) }
    run.at(.milliseconds(125)) { try? width.set(9) }
    let all = try notes(of: run, "knobs-replaced")
    #expect(
      all.filter { $0.contains("level") }
        == ["110 level 10.0", "130 level 5.0", "140 level 0.0"])
    #expect(all.filter { $0.contains("width") } == ["110 width 2.0", "120 width 3.0", "125 width 9.0"])
  }

  @Test(
    "only live numbers can be ramped, to a value in range, over a time that is not negative, while they live")
  func rampRefusals() throws {
    let run = try prepare("knobs-ramp-refusals")
    func refusal(_ node: String, _ name: String, _ target: Double, _ time: Duration) -> ControlProblem.Code? {
      code { () throws(ControlProblem) in try run.ramp(node, name, to: target, over: time) }
    }
    #expect(refusal("knob", "level", 1, .seconds(1)) == .unknownNode)
    #expect(refusal("knobs", "lewel", 1, .seconds(1)) == .unknownParameter)
    #expect(refusal("knobs", "size", 1, .seconds(1)) == .notLive)
    #expect(refusal("knobs", "mode", 1, .seconds(1)) == .notNumber)
    #expect(refusal("knobs", "level", 61, .seconds(1)) == .wrongValue)
    #expect(refusal("knobs", "level", .infinity, .seconds(1)) == .wrongValue)
    #expect(refusal("knobs", "level", 1, .milliseconds(-1)) == .wrongValue)
    #expect(try notes(of: run, "knobs-ramp-refusals") == [])
    #expect(refusal("knobs", "level", 1, .seconds(1)) == .runStopped)
  }

  @Test("a ramp longer than any run does no harm, and ends with the run")
  func endless() throws {
    let run = try prepare("knobs-endless")
    try run.ramp("knobs", "level", to: 60, over: Duration(secondsComponent: .max, attosecondsComponent: 0))
    let all = try notes(of: run, "knobs-endless")
    #expect(all.count > 10 && all.allSatisfy { $0.contains(" level ") })
    #expect(try #require(try run.get("knobs", "level")?.asNumber) < 1)
  }

  @Test("a step against overload ends a ramp, and goes back to the ramp's target")
  func overload() throws {
    let run = try prepare("knobs-overload")
    let key = LiveValues.Key(node: 1, parameter: "level")
    run.at(.milliseconds(100)) { [unowned run] in
      try? run.ramp("knobs", "level", to: 40, over: .milliseconds(40))
    }
    run.at(.milliseconds(115)) { [unowned run] in try? run.set(key, to: -9, isChoice: false) }
    #expect(try notes(of: run, "knobs-overload") == ["110 level 10.0", "115 level -9.0"])
    #expect(run.liveValues.withLock { $0.choice(for: key) } == .number(40))
  }

  @Test("on the real clock a ramp rises, ends exactly at its target and leaves the mailbox free")
  func realtime() throws {
    let run = try prepare("knobs-realtime", clock: .realtime, count: -1)
    run.start()
    let level = try run.parameter("knobs", Knobs.level)
    try level.ramp(to: 50, over: .milliseconds(200))
    while level.value < 50 { pauseBriefly() }
    // A stop would discard the last step while it waits in the mailbox.
    while Probe.named("knobs-realtime").texts.last?.hasSuffix("level 50.0") != true { pauseBriefly() }
    try level.set(1)
    run.stop()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    let values = Probe.named("knobs-realtime").texts.dropFirst().compactMap { $0.split(separator: " ").last }
      .compactMap { Double($0) }
    let rise = values.prefix { $0 < 50 }
    #expect(rise.sorted() == Array(rise))
    #expect(values.contains(50))
  }

  @Test("sets and ramps of one parameter from many threads end with the last one, and nothing is lost")
  func threads() async throws {
    let run = try prepare("knobs-threads", clock: .realtime, count: -1)
    run.start()
    let level = try run.parameter("knobs", Knobs.level)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask {
          for round in 0..<200 {
            if number % 2 == 0 {
              try? level.ramp(to: Double(round % 60), over: .milliseconds(15))
            } else {
              try? level.set(Double(round % 60))
            }
          }
        }
      }
    }
    // A full mailbox may refuse it for a moment.
    while (try? level.set(-42)) == nil { pauseBriefly() }
    while Probe.named("knobs-threads").texts.last?.hasSuffix("level -42.0") != true { pauseBriefly() }
    run.stop()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(level.value == -42)
    #expect(Probe.named("knobs-threads").texts.last?.hasSuffix("level -42.0") == true)
  }

  // MARK: Events

  @Test("an event of a node is found by what the node declares, with its details as values")
  func posted() async throws {
    let run = try prepare("knobs-posted")
    let events = run.events
    run.at(.milliseconds(100)) { [unowned run] in try? run.set("knobs", "level", to: 12) }
    run.start()
    var found: [GraphEvent] = []
    for await event in events where event.is(Knobs.changed, of: "knobs") { found.append(event) }
    let event = try #require(found.first)
    #expect(found.count == 1 && event.kind == .posted && event.time == .milliseconds(100))
    #expect(event["to"]?.double == 12)
    #expect(event["node"]?.string == "knobs")
    #expect(event["by"] == nil)
    #expect(event.fields?.keys.map { $0 } == ["time", "node", "event", "to"])
    #expect(!event.is(Knobs.changed, of: "source"))
  }
}
