import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

/// Makes its own packet for each it takes, and requests once to be called at `wish`; records when it first is. With `asks` it
/// checks for room itself, as with an output of burst 0.
struct WishingNode: Node {
  static let contract = NodeContract(
    "test.wishing", "requests a wake-up", inputs: [PortContract("in", .any, text: "numbers")],
    outputs: [PortContract("out", .any, text: "fresh packets")],
    parameters: [
      probeParameter, ParameterContract("asks", .bool, default: false, text: "looks for room itself"),
      ParameterContract("wish", .integer(0...Int.max), unit: "ns", default: 0, text: "graph time"),
      ParameterContract("insists", .bool, default: false, text: "says its wish in every call"),
    ])
  let probe: Probe
  let asks: Bool
  let wish: Nanoseconds
  let insists: Bool
  var hasWished = false
  var isMet = false

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    probe = Probe.named(setup.parameters.string("probe"))
    asks = setup.parameters.bool("asks")
    wish = Nanoseconds(setup.parameters.integer("wish"))
    insists = setup.parameters.bool("insists")
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if !hasWished || insists { ports.wake(at: wish) }
    hasWished = true
    if ports.now >= wish && !isMet {
      isMet = true
      let now = ports.now
      probe.state.withLock { $0.times.append(now) }
    }
    if asks && !ports.hasRoomOrRequestsWake() { return .done }
    guard let packet = ports.next() else { return .done }
    _ = consume packet
    ports.emit(try ports.makePacket(bytes: 4, of: .none))
    return .done
  }
}

/// Holds all packets until 100 ms, more than its contract declares, then none.
struct MiserNode: Node, ~Copyable {
  static let contract = NodeContract(
    "test.miser", "keeps packets", inputs: [PortContract("in", .any, text: "anything")])
  private var writer: RingWriter<Packet>
  private var reader: RingReader<Packet>

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let ring = Ring<Packet>(minimumCapacity: 256)
    writer = ring.writer
    reader = ring.reader
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let packet = ports.next() { writer.push(packet) }
    if ports.now < .milliseconds(100) {
      ports.wake(at: .milliseconds(100))
    } else {
      while reader.pop() != nil {}
    }
    return .done
  }
}

@Suite("Requested wake-ups", .timeLimit(.minutes(30)))
struct WishTests {
  @Test(
    "a node that had to wait for a free block is still called at the time it wished for",
    arguments: [false, true])
  func starvedWish(asks: Bool) throws {
    let name = "starved-wish-\(asks)"
    var builder = PlanBuilder()
    // A number every millisecond, and a requested wake-up between two of them.
    let source = builder.add("source", "test.count", ["count": 400, "interval": 1])
    let wishing = builder.add(
      "wishing", "test.wishing", ["probe": .string(name), "wish": 300_500_000, "asks": .bool(asks)])
    let miser = builder.add("miser", "test.miser")
    builder.link(source, wishing, limit: 4, policy: .block)
    builder.link(wishing, miser, limit: 4, policy: .block, burst: asks ? 0 : nil)
    let report = try builder.plan.runToEnd(.virtual)
    // For most of the first 100 ms there was no block.
    #expect(report.nodes[asks ? source : wishing].starved > 50)
    #expect(Probe.named(name).times == [300_500_000])
    #expect(report.nodes[miser].packetsIn == 400)
  }

  @Test("a wake-up requested for the end of time does not come now")
  func farWish() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 20, "interval": 2])
    let wishing = builder.add(
      "wishing", "test.wishing",
      ["probe": "far-wish", "wish": .integer(Int.max - 1), "insists": true])
    let sink = builder.add("sink", "test.collect", ["probe": "far-wish-sink"])
    builder.link(source, wishing)
    builder.link(wishing, sink)
    let report = try builder.plan.runToEnd(.realtime)
    // A call a packet, and the end.
    #expect(report.nodes[wishing].activations <= 21)
    #expect(Probe.named("far-wish").times.isEmpty)
  }

  @Test("a deadline that no clock reaches is rounded without overflow")
  func farDeadline() {
    let farthest = TimerWheel.farthest
    #expect(TimerWheel.deadline(.max - 1, after: 1_000) == farthest)
    #expect(TimerWheel.deadline(.max - 1, after: 0) == farthest)
    #expect(TimerWheel.deadline(5, after: 1_000) == 1_005)
    #expect((farthest + (TimerWheel.tick - 1)) / TimerWheel.tick * TimerWheel.tick >= farthest)
  }
}
