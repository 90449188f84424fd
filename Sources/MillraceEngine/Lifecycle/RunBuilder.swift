internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// Builds a run from a plan: strands, pools, links, port tables, nodes.
@safe
struct RunBuilder {
  let core: EngineCore
  let plan: GraphPlan
  let run: GraphRun
  /// The precomputed memory needs; the pools are created from it.
  let needs: PlanMemory
  let memory: RunMemory
  private(set) var strands: [Strand] = []
  /// Plan link indices by port: those from an output, and the one to an input.
  let leaving: [GraphPlan.End: [Int]]
  let arriving: [GraphPlan.End: Int]

  /// Builds a run in phase `prepared`. Control side.
  /// - Parameter family: the parent run and the part's name in it; nil: a top-level run.
  static func build(
    _ plan: GraphPlan, on engine: Engine, observesEvents: Bool,
    family: (parent: GraphRun, name: String)? = nil
  ) throws(StartProblem) -> GraphRun {
    let core = engine.core
    let needs = PlanMemory(plan, clock: core.clock, observesEvents: observesEvents)
    let claim = try core.memory.claim(needs, of: plan)
    let run = GraphRun(
      id: core.newRunNumber(), plan: plan, waitsForListeners: needs.waitsForListeners, owner: engine,
      family: family)
    var builder = RunBuilder(core, plan, run, needs)
    builder.memory.claim = claim
    try builder.build()
    return run
  }

  private init(_ core: EngineCore, _ plan: GraphPlan, _ run: GraphRun, _ needs: PlanMemory) {
    self.core = core
    self.plan = plan
    self.run = run
    self.needs = needs
    leaving = Dictionary(grouping: plan.links.indices) { plan.links[$0].from }
    arriving = Dictionary(plan.links.enumerated().map { ($1.to, $0) }) { first, _ in first }
    memory = RunMemory(plan, path: run.path, outboxes: needs.observesEvents ? needs.strandCount : 0)
  }

  private mutating func build() throws(StartProblem) {
    makeStrands()
    // Before the nodes, so that a refused allocation is reported before any node opens a file.
    try makePools()
    makeAppEnds()
    let executors = try makeNodes()
    let links = unsafe makeLinks()
    unsafe makeCells(executors, links)
    run.strands = strands
    run.memory = memory
    run.liveCells.store(plan.nodes.count, ordering: .releasing)
    for strand in strands { strand.worker.load.add(1, ordering: .relaxed) }
  }

  // MARK: Strands

  private mutating func makeStrands() {
    // A part runs on its parent's worker, and so on its clock.
    let voice = run.parent?.voiceWorker ?? core.leastLoadedWorker()
    let onBulk = plan.nodes.map { $0.lane == .bulk && core.bulkWorker !== core.voiceWorkers[0] }
    var members: [Bool: Strand] = [:]
    for isBulk in [false, true] {
      let count = onBulk.count { $0 == isBulk }
      if count == 0 { continue }
      let strand = Strand(worker: isBulk ? core.bulkWorker : voice, run: run, cellCount: count)
      members[isBulk] = strand
      strands.append(strand)
    }
    if let voice = members[false], let bulk = members[true] { voice.defersWakes(to: bulk) }
    var next: [Bool: Int] = [:]
    for isBulk in onBulk {
      guard let strand = members[isBulk] else { continue }
      run.places.append((strand, next[isBulk, default: 0]))
      next[isBulk, default: 0] += 1
    }
  }

  // MARK: Nodes

  /// The setup for creating a node, initially and when it is recreated; then with its latest live values.
  static func setup(_ node: Int, of run: GraphRun) -> NodeSetup {
    let (planned, place) = (run.plan.nodes[node], run.places[node])
    var parameters = planned.parameters
    run.liveValues.withLock { $0.apply(to: &parameters, of: node) }
    var setup = NodeSetup(
      name: planned.name, contract: planned.contract, parameters: parameters, inputs: planned.inputs,
      outputs: planned.outputs,
      pacing: planned.pacing, isVirtual: run.engine.clock == .virtual,
      waker: Waker(place.strand, index: place.index), secrets: run.secrets)
    setup.initial = planned.parameters
    setup.source = run.ends.sources[node]
    setup.sink = run.ends.sinks[node]
    setup.graph = run.identity
    return setup
  }

  private func makeNodes() throws(StartProblem) -> [AnyExecutor] {
    var executors: [AnyExecutor] = []
    for (index, node) in plan.nodes.enumerated() {
      guard let entry = core.catalogue[node.contract.type] else {
        throw StartProblem(
          node: node.name, text: "type \"\(node.contract.type)\" is not in the engine's catalogue",
          cure: "create the engine with the catalogue the graph was checked against")
      }
      do throws(NodeProblem) {
        executors.append(try entry.make(Self.setup(index, of: run)))
      } catch {
        throw StartProblem(node: node.name, run.secrets.redacting(error))
      }
    }
    return executors
  }

  // MARK: Memory

  private func wake(_ node: Int, from other: Int) -> Wake {
    let place = run.places[node]
    let caller = run.places[other].strand
    let bit = (1 as UInt64) << UInt64(place.index % 64)
    if place.strand === caller { return unsafe Wake(word: place.strand.words + place.index / 64, bit: bit) }
    let remote = unsafe Unmanaged.passUnretained(place.strand as RemoteWake)
    guard let deferredWakes = unsafe caller.deferredWakes else {
      return unsafe Wake(remote: remote, index: place.index)
    }
    return unsafe Wake(word: deferredWakes + place.index / 64, bit: bit, remote: remote, index: place.index)
  }

  private func makeLinks() -> [UnsafeMutablePointer<Link>] {
    unsafe plan.links.enumerated().map { index, link in
      unsafe memory.addLink(
        Link(
          limit: link.limit, policy: link.policy, burst: max(1, link.shape.burst),
          counters: memory.linkCounters + index,
          consumer: wake(link.to.node, from: link.from.node),
          producer: wake(link.from.node, from: link.to.node)))
    }
  }
}

/// A wake target that does nothing.
final class NullWake: RemoteWake, @unchecked Sendable {
  override func wake(_ index: Int) {}
}
