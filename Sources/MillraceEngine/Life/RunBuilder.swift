internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// Turns a plan into the memory of a run: strands, pools, links, port tables, nodes.
@safe
struct RunBuilder {
  /// Events an outbox holds between two looks of the supervisor: 4,800 a second. On a virtual clock, where the worker waits
  /// for the supervisor when half of them are used, enough for one turn of a strand.
  var outboxLimit: Int { core.clock == .virtual ? 1_024 : 48 }

  let core: EngineCore
  let plan: GraphPlan
  let run: GraphRun
  let observesEvents: Bool
  let memory: RunMemory
  private(set) var strands: [Strand] = []

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
    if let voice = members[false], let bulk = members[true] { voice.tellsAfterTurns(bulk) }
    var next: [Bool: Int] = [:]
    for isBulk in onBulk {
      guard let strand = members[isBulk] else { continue }
      run.places.append((strand, next[isBulk, default: 0]))
      next[isBulk, default: 0] += 1
    }
  }

  // MARK: Nodes

  /// What a node of a run is made from, the first time and again.
  static func setup(_ node: Int, of run: GraphRun) -> NodeSetup {
    let (planned, place) = (run.plan.nodes[node], run.places[node])
    return NodeSetup(
      name: planned.name, parameters: planned.parameters, inputs: planned.inputs, outputs: planned.outputs,
      pacing: planned.pacing, isVirtual: run.engine.clock == .virtual,
      waker: Waker(place.strand, index: place.index), secrets: run.secrets)
  }

  private func makeNodes() throws(StartProblem) -> [AnyExecutor] {
    var executors: [AnyExecutor] = []
    for (index, node) in plan.nodes.enumerated() {
      guard let entry = core.catalogue[node.contract.type] else {
        throw StartProblem(
          node: node.name, text: "type \"\(node.contract.type)\" is not in the engine's catalogue",
          cure: "make the engine with the catalogue the graph was checked against")
      }
      do throws(NodeProblem) {
        executors.append(try entry.make(Self.setup(index, of: run)))
      } catch {
        throw StartProblem(node: node.name, run.secrets.removed(from: error))
      }
    }
    return executors
  }

  // MARK: Memory

  func links(from node: Int, port: Int) -> [Int] {
    plan.links.indices.filter { plan.links[$0].from == GraphPlan.End(node: node, port: port) }
  }

  private func wake(_ node: Int, from other: Int) -> Wake {
    let place = run.places[node]
    let caller = run.places[other].strand
    let bit = (1 as UInt64) << UInt64(place.index % 64)
    if place.strand === caller { return unsafe Wake(word: place.strand.words + place.index / 64, bit: bit) }
    let remote = unsafe Unmanaged.passUnretained(place.strand as RemoteWake)
    guard let owed = unsafe caller.owed else { return unsafe Wake(remote: remote, index: place.index) }
    return unsafe Wake(word: owed + place.index / 64, bit: bit, remote: remote, index: place.index)
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
        isSink: node.isSink, isSource: !node.inputs.contains { $0.isLinked },
        playsReplies: node.contract.playsReplies, counters: memory.cellCounters + index,
        mailbox: mailbox,
        budgetTicks: TickScale.machine.ticks(Nanoseconds(node.budget) * 1_000),
        maxAge: node.maxAge ?? Nanoseconds.max, traceID: run.firstTraceID &+ UInt32(index),
        index: place.index, nodeIndex: index, strand: place.strand
      ))
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
