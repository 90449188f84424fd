import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

/// Forwards packets, records its initial parameters and messages, and fails with every packet whose number is a multiple of `failEvery`.
struct DialNode: Node {
  static let contract = NodeContract(
    "test.dial", "passes, has a level", inputs: [PortContract("in", .any, text: "numbers")],
    outputs: [PortContract("out", .any, text: "the same")],
    parameters: [
      probeParameter,
      ParameterContract("failEvery", .integer(0...1_000), default: 0, text: "0: never"),
      ParameterContract("level", .number(-100...100), default: 0, live: true, text: "noted"),
    ])
  let failEvery: Int32
  let probe: Probe

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    failEvery = Int32(setup.parameters.integer("failEvery"))
    probe = Probe.named(setup.parameters.string("probe"))
    let level = setup.parameters.number("level")
    probe.state.withLock { $0.texts.append("made with \(level)") }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    let number = Self.number(packet)
    if failEvery > 0 && number > 0 && number % failEvery == 0 { throw NodeFault(.custom, code: number) }
    ports.emit(packet)
    return .done
  }

  private static func number(_ packet: borrowing Packet) -> Int32 { packet.samples(of: Int32.self)[0] }

  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    switch consume message {
    case .set(_, let value): probe.state.withLock { $0.texts.append("level=\(value.asNumber)") }
    case .text(let packet):
      let bytes = packet.samples(of: UInt8.self)
      let text = String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)
      if text == "fail" { throw NodeFault(.custom, code: 1) }
      probe.state.withLock { $0.texts.append(text) }
    case .duck: break
    case .resume: break
    }
  }
}

@Suite("A recreated node", .timeLimit(.minutes(30)))
struct RestartTests {
  /// Numbers every 20 ms through a dial that fails as configured.
  private func prepare(
    _ probe: String, failEvery: Int, count: Int = 10, onError: ErrorPolicy = .restart,
    overload: [OverloadStep] = []
  ) throws -> GraphRun {
    var plan = PlanBuilder.through(
      "test.dial", ["failEvery": .integer(failEvery), "probe": .string(probe)], named: "dial",
      onError: onError, source: ["count": .integer(count), "interval": 20], probe: probe)
    plan.overload = overload
    return try Engine(catalogue: testCatalogue, clock: .virtual, workers: 1).prepare(plan)
  }

  private func runToEnd(_ run: GraphRun) async -> [GraphEvent] {
    let listener = run.events
    run.start()
    var events: [GraphEvent] = []
    for await event in listener { events.append(event) }
    return events
  }

  @Test("starts with the last values set, not with the graph's")
  func liveValues() async throws {
    let run = try prepare("restart-live", failEvery: 4)
    run.at(.milliseconds(30)) { [unowned run] in try? run.set("dial", "level", to: 5) }
    run.at(.milliseconds(50)) { [unowned run] in try? run.set("dial", "level", to: 7) }
    run.at(.milliseconds(130)) { [unowned run] in try? run.set("dial", "level", to: -2) }
    _ = await runToEnd(run)
    // It fails with the packets of 80 and 160 ms.
    #expect(
      Probe.named("restart-live").texts == [
        "made with 0.0", "level=5.0", "level=7.0", "made with 7.0", "level=-2.0", "made with -2.0",
      ])
  }

  @Test("starts with the value of an overload step, which is undone with the step")
  func ladder() async throws {
    let step = OverloadStep(above: 50, settings: [.init(node: 1, parameter: "level", value: 1)])
    let run = try prepare("restart-ladder", failEvery: 4, overload: [step])
    run.at(.milliseconds(30)) { [unowned run] in try? run.set("dial", "level", to: 5) }
    run.at(.milliseconds(50)) { [unowned run] in run.apply(.rise(0), load: 90) }
    run.at(.milliseconds(110)) { [unowned run] in run.apply(.fall(0), load: 10) }
    _ = await runToEnd(run)
    #expect(
      Probe.named("restart-ladder").texts == [
        "made with 0.0", "level=5.0", "level=1.0", "made with 1.0", "level=5.0", "made with 5.0",
      ])
  }

  @Test("reads messages sent while there was no node")
  func waitingMail() async throws {
    let run = try prepare("restart-mail", failEvery: 3)
    // The second failure, at 120 ms, has a backoff of 50 ms.
    run.at(.milliseconds(130)) { [unowned run] in
      try? run.send("one", to: "dial")
      try? run.send("two", to: "dial")
    }
    let events = await runToEnd(run)
    // The third failure, at 180 ms, has a backoff of 100 ms, and no message is sent.
    #expect(
      Probe.named("restart-mail").texts == [
        "made with 0.0", "made with 0.0", "made with 0.0", "one", "two", "made with 0.0",
      ])
    #expect(!events.contains { $0.name == "messagesLost" })
  }

  @Test("mail after a message that a node failed with is read by its replacement")
  func mailBehindFailure() async throws {
    let run = try prepare("restart-behind", failEvery: 0)
    run.at(.milliseconds(30)) { [unowned run] in
      for text in ["before", "fail", "behind"] { try? run.send(text, to: "dial") }
    }
    _ = await runToEnd(run)
    #expect(
      Probe.named("restart-behind").texts == ["made with 0.0", "before", "made with 0.0", "behind"])
  }

  @Test("a node that is not recreated loses its mail, which is reported, and accepts no more")
  func lostMail() async throws {
    let run = try prepare("restart-lost", failEvery: 0, onError: .isolate)
    run.at(.milliseconds(30)) { [unowned run] in
      for text in ["before", "fail", "lost", "lost too"] { try? run.send(text, to: "dial") }
    }
    let refusals = Locked<[ControlProblem.Code]>([])
    run.at(.milliseconds(50)) { [unowned run] in
      do throws(ControlProblem) { try run.send("late", to: "dial") } catch {
        refusals.withLock { $0.append(error.code) }
      }
      do throws(ControlProblem) { try run.set("dial", "level", to: 3) } catch {
        refusals.withLock { $0.append(error.code) }
      }
    }
    let events = await runToEnd(run)
    #expect(Probe.named("restart-lost").texts == ["made with 0.0", "before"])
    let told = events.filter { $0.name == "messagesLost" }
    #expect(told.map(\.json) == [#"{"time":0.03,"node":"dial","event":"messagesLost","count":2}"#])
    #expect(refusals.withLock { $0 } == [.nodeEnded, .nodeEnded])
  }

  @Test("a message to a node that ended by itself is refused, although the graph continues")
  func endedNode() async throws {
    var builder = PlanBuilder()
    for (name, count) in [("short", 3), ("long", 10)] {
      let source = builder.add("source \(name)", "test.count", ["count": .integer(count), "interval": 20])
      let dial = builder.add(name, "test.dial", ["probe": .string("restart-\(name)")])
      builder.link(source, dial)
      builder.link(dial, builder.add("sink \(name)", "test.collect", ["probe": "restart-ended"]))
    }
    let run = try Engine(catalogue: testCatalogue, clock: .virtual, workers: 1).prepare(builder.plan)
    let refusals = Locked<[ControlProblem.Code]>([])
    run.at(.milliseconds(100)) { [unowned run] in
      for name in ["short", "long"] {
        do throws(ControlProblem) { try run.send("hello", to: name) } catch {
          refusals.withLock { $0.append(error.code) }
        }
      }
    }
    let events = await runToEnd(run)
    #expect(refusals.withLock { $0 } == [.nodeEnded])
    #expect(Probe.named("restart-long").texts == ["made with 0.0", "hello"])
    #expect(!events.contains { $0.name == "messagesLost" })
  }
}
