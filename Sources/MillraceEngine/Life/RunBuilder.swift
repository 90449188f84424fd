internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// Why a graph could not be started: the node that could not be made, in words.
public struct StartProblem: Error, Sendable, Hashable, CustomStringConvertible {
  public let node: String
  public let text: String
  public let cure: String?

  public init(node: String, text: String, cure: String? = nil) {
    self.node = node
    self.text = text
    self.cure = cure
  }

  public var description: String {
    let prefix = node.isEmpty ? "" : "node \"\(node)\": "
    return prefix + text + (cure.map { "; \($0)" } ?? "")
  }
}

/// Turns a plan into the memory of a run: strands, pools, links, port tables, nodes.
@safe
struct RunBuilder {
  /// Events an outbox holds between two looks of the supervisor: 4,800 a second. On a virtual clock, where the worker waits
  /// for the supervisor when half of them are used, enough for one turn of a strand.
  private var outboxLimit: Int { core.clock == .virtual ? 1_024 : 48 }
  /// Bytes of an event's block; longer events are marked as truncated.
  static let eventBytes = 256

  private let core: EngineCore
  private let plan: GraphPlan
  private let run: GraphRun
  private let observesEvents: Bool
  private let memory: RunMemory
  private var strands: [Strand] = []
  private var pools: [[Int]: BlockPool] = [:]

  /// Builds a run in phase `prepared`. Control side.
  static func build(_ plan: GraphPlan, on engine: Engine, observesEvents: Bool) throws(StartProblem)
    -> GraphRun
  {
    let core = engine.core
    let run = GraphRun(id: core.newRunNumber(), plan: plan, owner: engine)
    var builder = RunBuilder(core, plan, run, observesEvents)
    try builder.build()
    return run
  }

  private init(_ core: EngineCore, _ plan: GraphPlan, _ run: GraphRun, _ observesEvents: Bool) {
    self.core = core
    self.plan = plan
    self.run = run
    self.observesEvents = observesEvents && plan.nodes.contains { !$0.contract.events.isEmpty }
    // One outbox a strand; a run has at most one strand a lane.
    memory = RunMemory(plan, outboxes: self.observesEvents ? 2 : 0)
  }

  private mutating func build() throws(StartProblem) {
    makeStrands()
    let executors = try makeNodes()
    let pools = makePools()
    let links = unsafe makeLinks()
    unsafe makeCells(executors, pools, links)
    run.strands = strands
    run.memory = memory
    run.liveCells.store(plan.nodes.count, ordering: .releasing)
    for strand in strands { strand.worker.load.add(1, ordering: .relaxed) }
  }

  // MARK: Strands

  private mutating func makeStrands() {
    let voice = core.leastLoadedWorker()
    let onBulk = plan.nodes.map { $0.lane == .bulk && core.bulkWorker !== core.voiceWorkers[0] }
    var members: [Bool: Strand] = [:]
    for isBulk in [false, true] {
      let count = onBulk.count { $0 == isBulk }
      if count == 0 { continue }
      let strand = Strand(worker: isBulk ? core.bulkWorker : voice, run: run, cellCount: count)
      members[isBulk] = strand
      strands.append(strand)
    }
    var next: [Bool: Int] = [:]
    for isBulk in onBulk {
      guard let strand = members[isBulk] else { continue }
      run.places.append((strand, next[isBulk, default: 0]))
      next[isBulk, default: 0] += 1
    }
  }

  // MARK: Nodes

  static func setup(_ node: GraphPlan.Node, isVirtual: Bool, strand: Strand, index: Int) -> NodeSetup {
    NodeSetup(
      name: node.name, parameters: node.parameters, inputs: node.inputs, outputs: node.outputs,
      pacing: node.pacing, isVirtual: isVirtual, waker: Waker(strand, index: index))
  }

  private func makeNodes() throws(StartProblem) -> [AnyExecutor] {
    var executors: [AnyExecutor] = []
    for (index, node) in plan.nodes.enumerated() {
      guard let entry = core.catalogue[node.contract.type] else {
        throw StartProblem(
          node: node.name, text: "type \"\(node.contract.type)\" is not in the engine's catalogue",
          cure: "make the engine with the catalogue the graph was checked against")
      }
      let place = run.places[index]
      let setup = Self.setup(
        node, isVirtual: core.clock == .virtual, strand: place.strand, index: place.index)
      do throws(NodeProblem) {
        executors.append(try entry.make(setup))
      } catch {
        throw StartProblem(node: node.name, text: error.text, cure: error.cure)
      }
    }
    return executors
  }

  // MARK: Memory

  /// True for the output every node with events has: its blocks come from the event pool.
  private func isEventsPort(_ end: GraphPlan.End) -> Bool {
    plan.nodes[end.node].outputs[end.port].name == NodeContract.eventsPort
  }

  private func links(from node: Int, port: Int) -> [Int] {
    plan.links.indices.filter { plan.links[$0].from == GraphPlan.End(node: node, port: port) }
  }

  /// For each linked output of each node, the pool of its blocks. Outputs whose packets are of similar size share one.
  private mutating func makePools() -> [[BlockPool?]] {
    var needs: [Int: (bytes: Int, count: Int)] = [:]
    func key(_ bytes: Int) -> Int { Int.bitWidth - max(1, bytes - 1).leadingZeroBitCount }
    for link in plan.links where !isEventsPort(link.from) {
      let bytes = (max(1, link.shape.packetBytes) + 63) & ~63
      let held = plan.nodes[link.to.node].heldPackets[link.to.port]
      let bound = Link.bound(limit: link.limit, policy: link.policy, burst: link.shape.burst)
      // What waits in the link, what both nodes hold in their hands, what the reader keeps.
      let count = bound + link.shape.burst + 1 + held
      let old = needs[key(bytes)] ?? (0, 0)
      needs[key(bytes)] = (max(old.bytes, bytes), old.count + count)
    }
    var made: [Int: BlockPool] = [:]
    for (key, need) in needs {
      let pool = core.depot.take(blockBytes: need.bytes, blockCount: need.count)
      made[key] = pool
      memory.pools.append(pool)
    }
    run.poolBytes = made.values.reduce(0) { $0 + $1.byteCount }
    return plan.nodes.indices.map { node in
      plan.nodes[node].outputs.indices.map { port in
        guard let link = links(from: node, port: port).first else {
          return spare(plan.nodes[node].outputs[port])
        }
        let shape = plan.links[link].shape
        return isEventsPort(plan.links[link].from) ? nil : made[key((max(1, shape.packetBytes) + 63) & ~63)]
      }
    }
  }

  /// A node may make packets for an output nobody listens to: two blocks serve for that.
  private mutating func spare(_ port: NodeSetup.Port) -> BlockPool? {
    guard let shape = port.shape, port.name != NodeContract.eventsPort else { return nil }
    let pool = core.depot.take(blockBytes: max(1, shape.packetBytes), blockCount: 1 + shape.burst)
    memory.pools.append(pool)
    run.poolBytes += pool.byteCount
    return pool
  }

  private func wake(_ node: Int, from other: Int) -> Wake {
    let place = run.places[node]
    if place.strand === run.places[other].strand {
      return unsafe Wake(word: place.strand.words + place.index / 64, bit: 1 << UInt64(place.index % 64))
    }
    return unsafe Wake(remote: Unmanaged.passUnretained(place.strand), index: place.index)
  }

  private func makeLinks() -> [UnsafeMutablePointer<Link>] {
    unsafe plan.links.enumerated().map { index, link in
      unsafe memory.addLink(
        Link(
          limit: link.limit, policy: link.policy, burst: link.shape.burst,
          counters: memory.linkCounters + index,
          consumer: wake(link.to.node, from: link.from.node),
          producer: wake(link.from.node, from: link.to.node)))
    }
  }

  // MARK: Cells

  private mutating func makeCells(
    _ executors: [AnyExecutor], _ pools: [[BlockPool?]], _ links: [UnsafeMutablePointer<Link>]
  ) {
    let eventPool = makeEventPool()
    let outboxes = unsafe makeOutboxes()
    run.firstTraceID = core.reserveTraceIDs(run.name, plan.nodes.map(\.name))
    var nextInput = 0
    var nextOutput = 0
    var nextFan = 0
    var nextPrefix = 0
    for (index, node) in plan.nodes.enumerated() {
      let place = run.places[index]
      var table = unsafe PortTable(
        inputs: memory.inputs + nextInput, inputCount: node.inputs.count,
        outputs: memory.outputs + nextOutput,
        outputCount: node.outputs.count)
      for port in node.inputs.indices {
        let link = plan.links.firstIndex { $0.to == GraphPlan.End(node: index, port: port) }
        unsafe (memory.inputs + nextInput).initialize(
          to: InputSlot(link: link.map { unsafe links[$0] }, drives: node.drivingInputs[port]))
        nextInput += 1
      }
      for port in node.outputs.indices {
        let leading = self.links(from: index, port: port)
        let first = unsafe memory.fanOut + nextFan
        for link in leading {
          unsafe (memory.fanOut + nextFan).initialize(to: links[link])
          nextFan += 1
        }
        let isEvents = node.outputs[port].name == NodeContract.eventsPort
        let pool = isEvents ? eventPool : pools[index][port]
        let format =
          node.outputs[port].shape.flatMap { shape in plan.formats.firstIndex(of: shape.format) } ?? 0
        unsafe (memory.outputs + nextOutput).initialize(
          to: OutputSlot(
            links: leading.isEmpty ? nil : first, linkCount: leading.count,
            pool: pool.map { unsafe Unmanaged.passUnretained($0) }, format: UInt16(format)))
        if isEvents { unsafe table.eventsOutput = port }
        nextOutput += 1
      }
      unsafe table.nodeIndex = index
      unsafe table.prefixes = unsafe memory.prefixes + nextPrefix
      unsafe table.prefixCount = node.contract.events.count
      nextPrefix += node.contract.events.count
      unsafe table.eventPool = unsafe eventPool.map { unsafe Unmanaged.passUnretained($0) }
      if observesEvents, let number = strands.firstIndex(where: { $0 === place.strand }) {
        unsafe table.outbox = unsafe outboxes[number]
      }
      unsafe table.generation = run.generation.load(ordering: .relaxed)
      unsafe placeCell(node, index, table, executors[index])
    }
  }

  private func placeCell(
    _ node: GraphPlan.Node, _ index: Int, _ table: consuming PortTable, _ executor: AnyExecutor
  ) {
    let place = run.places[index]
    let mailbox = Mailbox()
    run.mailboxes.append(mailbox)
    unsafe (place.strand.cells + place.index).initialize(
      to: Cell(
        table: table, executor: Unmanaged.passRetained(executor), drive: node.contract.drive,
        isSink: !node.outputs.contains { $0.isLinked && $0.name != NodeContract.eventsPort },
        isSource: !node.inputs.contains { $0.isLinked }, counters: memory.cellCounters + index,
        mailbox: mailbox,
        budgetTicks: TickScale.machine.ticks(Nanoseconds(node.budget) * 1_000),
        traceID: run.firstTraceID &+ UInt32(index), index: place.index, nodeIndex: index, strand: place.strand
      ))
  }

  private mutating func makeEventPool() -> BlockPool? {
    let speaking = plan.nodes.count { !$0.contract.events.isEmpty }
    guard speaking > 0 else { return nil }
    let linked = plan.links.filter { isEventsPort($0.from) }
      .reduce(0) { $0 + Link.bound(limit: $1.limit, policy: $1.policy, burst: $1.shape.burst) }
    guard observesEvents || linked > 0 else { return nil }
    let count = linked + (observesEvents ? strands.count * (outboxLimit + 1) : 0) + 2 * speaking
    let pool = core.depot.take(blockBytes: Self.eventBytes, blockCount: count)
    memory.pools.append(pool)
    run.poolBytes += pool.byteCount
    return pool
  }

  private func makeOutboxes() -> [UnsafeMutablePointer<Link>] {
    guard observesEvents else { return unsafe [] }
    return unsafe strands.enumerated().map { index, _ in
      // The supervisor looks by itself; nobody waits on either side.
      let nobody = unsafe Wake(remote: Unmanaged.passUnretained(core.deaf), index: 0)
      let link = unsafe memory.addLink(
        Link(
          limit: outboxLimit, policy: .dropNewest, burst: 1,
          counters: memory.linkCounters + plan.links.count + index, consumer: nobody, producer: nobody))
      unsafe memory.outboxes.append(link)
      unsafe strands[index].outbox = unsafe link
      return unsafe link
    }
  }
}

/// A wake-up that nobody needs.
final class DeafWake: RemoteWake, @unchecked Sendable {
  override func wake(_ index: Int) {}
}
