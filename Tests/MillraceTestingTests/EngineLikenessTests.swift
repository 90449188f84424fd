import MillraceCore
import MillraceEngine
import MillraceGraph
import MillraceTesting
import Testing

/// Which drive a `Recorder` has.
protocol RecorderKind: Sendable {
  static var name: String { get }
  static var drive: Drive { get }
}
enum ByPackets: RecorderKind {
  static let name = "test.byPackets"
  static let drive = Drive.anyInput
}
enum ByItself: RecorderKind {
  static let name = "test.byItself"
  static let drive = Drive.itself
}

/// The calls that recorders logged, by the name in their parameter.
let notes = Locked<[String: [String]]>([:])

/// Logs every call with its time and what it took. It behaves in every way that an engine has to handle: it takes nothing in its
/// first call with a packet, requests a call 7 ms after each packet, asks for another call now and then, and finishes in three
/// calls, the last one later than the end of its input.
struct Recorder<Kind: RecorderKind>: Node {
  static var contract: NodeContract {
    NodeContract(
      Kind.name, "notes its calls", inputs: [PortContract("in", .any, text: "packets")],
      parameters: [ParameterContract("log", .string, default: "", text: "where to note")], drive: Kind.drive)
  }
  let log: String
  var seen = 0
  var finishing = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { log = setup.parameters.string("log") }

  private func note(_ what: String, _ ports: borrowing Ports) {
    let line = "\(what)@\(ports.now / 1_000_000)"
    let log = log
    notes.withLock { $0[log, default: []].append(line) }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard ports.hasPacket() else {
      note("none", ports)
      return .done
    }
    seen += 1
    if seen == 1 {
      note("left", ports)
      return .done
    }
    _ = ports.next()
    note("took", ports)
    ports.wake(at: ports.now + .milliseconds(7))
    return seen == 3 ? .again : .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    note("finish", ports)
    finishing += 1
    if finishing == 2 { ports.wake(at: ports.now + .milliseconds(5)) }
    return finishing < 3 ? .again : .done
  }
}

@Suite("node bench compared with the engine", .timeLimit(.minutes(30))) struct EngineLikenessTests {
  /// One letter every 20 ms from 0 on; the end comes 20 ms after the last.
  private func engineCalls<Kind: RecorderKind>(_ kind: Kind.Type, count: Int) throws -> [String] {
    var catalogue = Catalogue()
    catalogue.add(Ticker.self)
    catalogue.add(Recorder<Kind>.self)
    let log = "engine \(Kind.name) \(count)"
    var graph = GraphDescription("likeness")
    graph.add("tick", "test.tick", ["count": .integer(count)])
    graph.add("node", Kind.name, ["log": .string(log)])
    graph.link("tick -> node")
    let plan = try Graph.load(graph, settings: GraphSettings(clock: .virtual), catalogue: catalogue)
    let run = try Engine(catalogue: catalogue, clock: .virtual, workers: 1).start(plan)
    #expect(try #require(run.waitUntilStopped(timeout: .seconds(20))).failure == nil)
    return notes.withLock { $0[log] ?? [] }
  }

  private func benchCalls<Kind: RecorderKind>(_ kind: Kind.Type, count: Int) throws -> [String] {
    let log = "bench \(Kind.name) \(count)"
    let bench = try NodeBench(
      Recorder<Kind>.self, ["log": .string(log)],
      inputs: ["in": OutputShape(.text, packetDuration: nil, packetBytes: 8)])
    // An engine activates the node farthest downstream first.
    try bench.run()
    for number in 0..<count {
      try bench.advance(to: Int64(number) * .milliseconds(20))
      bench.push(text: "x")
      try bench.run()
    }
    try bench.advance(to: Int64(count) * .milliseconds(20))
    try bench.finish()
    #expect(bench.hasEnded)
    return notes.withLock { $0[log] ?? [] }
  }

  @Test(
    "bench and engine make the same calls at the same times for a node driven by packets",
    arguments: [1, 2, 3, 5])
  func byPackets(count: Int) throws {
    let calls = try engineCalls(ByPackets.self, count: count)
    #expect(try benchCalls(ByPackets.self, count: count) == calls)
    #expect(calls.last?.hasPrefix("finish") == true)
  }

  @Test(
    "bench and engine make the same calls at the same times for a node that drives itself",
    arguments: [1, 2, 3, 5])
  func byItself(count: Int) throws {
    let calls = try engineCalls(ByItself.self, count: count)
    #expect(try benchCalls(ByItself.self, count: count) == calls)
    #expect(calls.first == "none@0" && calls.contains("left@0"))
  }
}
