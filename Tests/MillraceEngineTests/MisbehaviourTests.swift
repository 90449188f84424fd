import CMallocCount
import Glibc
import MillraceCore
import MillraceGraph
import Synchronization
import Testing

@testable import MillraceEngine

/// Misbehaves from its tenth packet on.
struct BadNode: Node {
  enum Kind: String, CaseIterable {
    /// Throws.
    case fails
    /// Does not return.
    case hangs
    /// Loses every packet's block.
    case leaks
    /// Posts more events than any listener can read, with every packet.
    case floods
    /// Requests another call forever and does nothing in it.
    case spins
    /// Takes nothing, so that everything upstream fills up.
    case starves
  }

  static let contract = NodeContract(
    "test.bad", "misbehaves", inputs: [PortContract("in", .any, text: "numbers")],
    parameters: [probeParameter, ParameterContract("kind", .string, default: "fails", text: "how")],
    events: [EventContract("noise", text: "nothing")])
  let kind: Kind
  let probe: Probe
  var seen = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    kind = Kind(rawValue: setup.parameters.string("kind"))!
    probe = Probe.named(setup.parameters.string("probe"))
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isBad = seen >= 10
    if isBad && kind == .starves { return .done }
    guard let packet = ports.next() else { return isBad && kind == .spins ? .again : .done }
    seen += 1
    guard isBad else { return .done }
    if seen == 11 { probe.state.withLock { $0.texts.append("bad now") } }
    switch kind {
    case .fails: throw NodeFault(.custom, code: 1)
    case .hangs: Hang.until(probe)
    case .leaks:
      let lost = UnsafeMutablePointer<Packet>.allocate(capacity: 1)
      lost.initialize(to: packet)
      return .done
    case .floods: for _ in 0..<1_000 { ports.post(0) }
    case .spins: return .again
    case .starves: break
    }
    return .done
  }

  borrowing func explain(_ fault: NodeFault) -> String? { "it was asked to fail" }
}

@Suite("A node that misbehaves", .serialized, .timeLimit(.minutes(30)))
struct MisbehaviourTests {
  /// A healthy graph and a bad one on the same worker: the outcome of each.
  private func beside(_ kind: BadNode.Kind) throws -> (healthy: RunReport, bad: RunReport, delivered: [Int32])
  {
    let name = "beside \(kind)"
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": -1, "interval": 1])
    let bad = builder.add("bad", "test.bad", ["kind": .string(kind.rawValue), "probe": .string(name)])
    builder.link(source, bad)
    let badRun = try engine.start(builder.plan)
    let healthyRun = try engine.start(
      PlanBuilder.chain(source: ["count": 300, "interval": 1], passes: 2, probe: name))
    let probe = Probe.named(name)
    // A node that takes nothing is bad from its tenth packet on, without a call that could record it.
    while kind == .starves ? badRun.report().nodes[1].packetsIn < 10 : probe.texts.isEmpty { pauseBriefly() }
    if kind != .hangs {
      // The bad node keeps running for as long as the healthy graph needs.
      _ = try #require(healthyRun.waitUntilStopped(timeout: .seconds(120)))
    }
    badRun.stop()
    let badReport = try #require(badRun.waitUntilStopped(timeout: .seconds(120)))
    let healthy = try #require(healthyRun.waitUntilStopped(timeout: .seconds(120)))
    let values = Probe.named(name).values
    Probe.named(name).state.withLock { $0.finished = 1_000 }
    return (healthy, badReport, values)
  }

  @Test(
    "is stopped within two seconds, is named, and affects no other graph", arguments: BadNode.Kind.allCases)
  func harmsNobody(kind: BadNode.Kind) throws {
    let (healthy, bad, delivered) = try beside(kind)
    #expect(healthy.failure == nil)
    #expect(delivered == (0..<300).map(Int32.init))
    #expect(healthy.leakedBlocks == 0)
    switch kind {
    case .fails: #expect(bad.failure?.description == "node \"bad\": it was asked to fail")
    case .hangs:
      #expect(bad.detachedNodes == ["bad"])
      #expect(bad.failure?.node == "bad")
    case .leaks:
      #expect(bad.leakedBlocks > 0)
      #expect(bad.failure == nil)
    case .floods:
      #expect(bad.lostEvents > 0)
      #expect(bad.failure == nil)
    case .spins: #expect(bad.failure == nil && bad.nodes[1].activations > 1_000)
    case .starves:
      #expect(bad.failure == nil && bad.nodes[1].packetsIn == 10)
      #expect(bad.nodes[0].blocked > 0)
    }
  }

  /// Pages of the process in memory.
  private static func residentPages() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return -1 }
    defer { fclose(file) }
    var text = [UInt8](repeating: 0, count: 256)
    let count = fread(&text, 1, text.count, file)
    let fields = String(decoding: text[..<count], as: UTF8.self).split(separator: " ")
    guard fields.count > 1 else { return -1 }
    return Int(fields[1]) ?? -1
  }

  /// Starts and stops runs of one plan, every other one before its first packet. False when one did not stop or lost a block.
  private static func comeAndGo(_ rounds: Int, on engine: Engine) throws -> Bool {
    let name = "come and go"
    let plan = PlanBuilder.chain(source: ["count": -1], passes: 2, probe: name, policy: .dropNewest)
    for round in 1...rounds {
      let run = try engine.start(plan)
      if round % 2 == 0 { while run.firstPacketTime.load(ordering: .relaxed) == 0 { pauseBriefly() } }
      run.stop()
      guard let report = run.waitUntilStopped(timeout: .seconds(120)), report.leakedBlocks == 0 else {
        return false
      }
      Probe.named(name).state.withLock {
        $0.values.removeAll(keepingCapacity: true)
        $0.times.removeAll(keepingCapacity: true)
      }
    }
    return true
  }

  @Test("graphs come and go by the hundred, each stops, and none loses a block")
  func churn() throws {
    #expect(try Self.comeAndGo(500, on: Engine(catalogue: testCatalogue, workers: 1)))
  }

  @Test(
    "ten thousand graphs come and go, and the memory stays as it was",
    .enabled(
      if: millrace_malloc_counting_available() != 0, "the sanitizers keep books of their own in memory"))
  func soak() async {
    await #expect(processExitsWith: .success) {
      let engine = Engine(catalogue: testCatalogue, workers: 1)
      // The names of the last 4,096 runs are kept for the trace: the first half fills that.
      guard try Self.comeAndGo(5_000, on: engine) else { exit(2) }
      // A leak grows with every five thousand; a single step, such as a starved thread leaves, does not repeat.
      for _ in 1...4 {
        let before = (heap: millrace_malloc_process_bytes(), pages: Self.residentPages())
        guard try Self.comeAndGo(5_000, on: engine) else { exit(2) }
        let after = (heap: millrace_malloc_process_bytes(), pages: Self.residentPages())
        let isFlat = before.pages > 0 && (after.pages - before.pages) * 100 <= before.pages
        if isFlat && (after.heap - before.heap) * 100 <= before.heap { return }
      }
      exit(3)
    }
  }
}
