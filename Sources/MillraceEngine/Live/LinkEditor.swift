internal import MillraceCore
internal import MillraceGraph

/// One change of the topology: every step is checked on a copy, then links are created, then the change is applied.
///
/// Used under the topology's lock. Nothing has changed when a step throws.
struct LinkEditor {
  private(set) var topology: Topology
  private let core: EngineCore

  private struct Addition {
    var from: LiveEnd
    var to: LiveEnd
    var shape: OutputShape
    var terms: (limit: Int, policy: LinkPolicy)
    var live: LiveLink?
  }

  private struct Cut {
    var from: LiveEnd
    var to: LiveEnd
    var feeder: Feeder
    /// The input ends with the link.
    var ends: Bool
  }
  private var additions: [Addition] = []
  private var cuts: [Cut] = []

  init(_ topology: Topology, on core: EngineCore) {
    self.topology = topology
    self.core = core
  }

  // MARK: Steps

  mutating func take(_ steps: [GraphEdit.Step], in run: GraphRun) throws(EditProblem) {
    for step in steps { try take(step, in: run) }
  }

  private mutating func take(_ step: GraphEdit.Step, in run: GraphRun) throws(EditProblem) {
    switch step {
    case .link(let text, let capacity, let policy):
      let ends = try GraphEdit.ends(of: text)
      try link(output(ends.from, in: run), input(ends.to, in: run), capacity, policy)
    case .relink(let text, let capacity, let policy):
      let ends = try GraphEdit.ends(of: text)
      let (from, to) = (try output(ends.from, in: run), try input(ends.to, in: run))
      free(to)
      try link(from, to, capacity, policy)
    case .unlink(let text):
      let ends = try GraphEdit.ends(of: text)
      try unlink(output(ends.from, in: run), input(ends.to, in: run))
    }
  }

  func output(_ path: String, in run: GraphRun) throws(EditProblem) -> LiveEnd {
    try LiveName.end(path, isInput: false, in: run)
  }

  func input(_ path: String, in run: GraphRun) throws(EditProblem) -> LiveEnd {
    try LiveName.end(path, isInput: true, in: run)
  }

  mutating func link(_ from: LiveEnd, _ to: LiveEnd, _ capacity: LinkCapacity?, _ policy: LinkPolicy?)
    throws(EditProblem)
  {
    let name = Self.describe(from, to)
    let shape = try LinkRules.shape(from, to, on: core)
    let terms = try LinkRules.terms(from, shape, capacity, policy, name)
    if let feeder = topology.feeder(of: to) {
      throw EditProblem(
        .alreadyLinked,
        "\(Problem.quoted(to.described(isInput: true))) is already linked: \(Problem.quoted(describe(feeder)))",
        cure: "use relink, or unlink that first")
    }
    if additions.contains(where: { $0.to == to }) {
      throw EditProblem(
        .alreadyLinked, "\(Problem.quoted(to.described(isInput: true))) would have two links",
        cure: "mix the two first")
    }
    additions.append(Addition(from: from, to: to, shape: shape, terms: terms))
  }

  /// Removes the present link of an input, if any.
  mutating func free(_ to: LiveEnd) {
    if let feeder = topology.feeder(of: to) { cut(feeder, to, ends: false) }
  }

  mutating func unlink(_ from: LiveEnd, _ to: LiveEnd) throws(EditProblem) {
    guard let feeder = topology.feeder(of: to), writer(of: feeder) == from else {
      let other = topology.feeder(of: to).map { "; \(Problem.quoted(describe($0))) leads to it" } ?? ""
      throw EditProblem(
        .notLinked, "there is no link \(Problem.quoted(Self.describe(from, to)))\(other)",
        cure: "name an existing link")
    }
    try LinkRules.checkLife(of: from)
    try LinkRules.checkLife(of: to)
    cut(feeder, to, ends: false)
  }

  /// Ends the links from other runs into a run and its parts. Its outgoing links end with its nodes, and other links may follow.
  /// - Returns: its outgoing links.
  mutating func isolate(_ run: GraphRun) -> [LiveLink] {
    let family = run.familyNumbers
    for live in topology.links where family.contains(live.to.run) && !family.contains(live.from.run) {
      guard let reader = live.reader else { continue }
      cut(.live(live), LiveEnd(run: reader, end: live.to.end), ends: true)
    }
    let leaving = topology.links.filter { family.contains($0.from.run) && !family.contains($0.to.run) }
    for live in leaving { live.isLeaving = true }
    return leaving
  }

  private mutating func cut(_ feeder: Feeder, _ to: LiveEnd, ends: Bool) {
    switch feeder {
    case .plan(let run, let index):
      let from = LiveEnd(run: run, end: run.plan.links[index].from)
      cuts.append(Cut(from: from, to: to, feeder: feeder, ends: ends))
      topology.cut[run.id, default: []].insert(index)
    case .live(let live):
      topology.links.removeAll { $0 === live }
      guard let writer = live.writer else { return }
      cuts.append(
        Cut(from: LiveEnd(run: writer, end: live.from.end), to: to, feeder: feeder, ends: ends))
    }
  }

  private func writer(of feeder: Feeder) -> LiveEnd? {
    switch feeder {
    case .plan(let run, let index): LiveEnd(run: run, end: run.plan.links[index].from)
    case .live(let live): live.writer.map { LiveEnd(run: $0, end: live.from.end) }
    }
  }

  private func describe(_ feeder: Feeder) -> String {
    switch feeder {
    case .plan(let run, let index): run.path + run.plan.describe(run.plan.links[index])
    case .live(let live): live.name
    }
  }

  static func describe(_ from: LiveEnd, _ to: LiveEnd) -> String {
    "\(from.described(isInput: false)) -> \(to.described(isInput: true))"
  }

  // MARK: Carrying it out

  /// Applies the whole change, when all runs are running.
  mutating func commit() throws(EditProblem) {
    try makeLinks()
    attachReaders()
    moveWriters { _ in true }
  }

  /// Creates the links; their memory may be refused.
  mutating func makeLinks() throws(EditProblem) {
    try LinkRules.checkCycles(additions.map { ($0.from, $0.to) }, topology)
    for index in additions.indices {
      let addition = additions[index]
      let name = Self.describe(addition.from, addition.to)
      let needs = LiveLink.needs(from: addition.from, to: addition.to, addition.shape, addition.terms)
      guard needs.blockBytes <= BlockPool.maxBlockBytes && needs.blockCount <= BlockPool.maxBlocks else {
        throw EditProblem(
          .memory,
          "link \(Problem.quoted(name)) needs \(needs.blockCount) packets of \(needs.blockBytes) bytes; a pool has at most \(BlockPool.maxBlocks) of \(BlockPool.maxBlockBytes)",
          cure: "give it a smaller capacity, or make the packets smaller")
      }
      let claim = try core.memory.claim(needs.byteCount, for: name)
      do throws(AllocationError) {
        additions[index].live = try LiveLink(
          from: addition.from, to: addition.to, shape: addition.shape, terms: addition.terms, needs: needs,
          claim: claim)
      } catch {
        throw EditProblem(
          .memory, "link \(Problem.quoted(name)): \(error)",
          cure: "give it a smaller capacity, run fewer graphs at once, or raise the limit (ulimit -v)")
      }
    }
  }

  /// Readers first: when its old link ends, an input already knows that another follows.
  mutating func attachReaders() {
    for addition in additions {
      guard let live = addition.live else { continue }
      topology.links.append(live)
      attach(Inlet(live), to: addition.to)
    }
    for cut in cuts where !cut.ends && !additions.contains(where: { $0.to == cut.to }) {
      attach(Inlet(LinkPlug(hasEnded: false, nullWake: core.nullWake)), to: cut.to)
    }
  }

  private func attach(_ inlet: Inlet, to input: LiveEnd) {
    let (run, strand) = (input.run, input.place.strand)
    let isOpen = run.inlets.withLock { board -> Bool in
      let cell = unsafe strand.cells + input.place.index
      // A part that its workers have not seen yet.
      if run.isUnstarted {
        unsafe cell.pointee.table.inputs[input.end.port].link = unsafe inlet.link
        board.begin(inlet, at: input.end)
        return false
      }
      return board.append(inlet, to: input.end) {
        let index = run.plan.links.indices.first { run.plan.links[$0].to == input.end }
        guard let index, let memory = run.memory else { return nil }
        return unsafe Inlet(ofPlan: memory.links + index)
      }
    }
    if isOpen { strand.request(Strand.Request.inputs) }
  }

  /// Every output that gains or loses links changes in one step.
  /// - Parameter isMeant: whether to change a run's outputs in this call.
  func moveWriters(where isMeant: (GraphRun) -> Bool) {
    var outputs: [LiveEnd] = []
    for end in cuts.map(\.from) + additions.map(\.from) where isMeant(end.run) && !outputs.contains(end) {
      outputs.append(end)
    }
    for output in outputs { move(output) }
  }

  private func move(_ output: LiveEnd) {
    let leaving = cuts.filter { $0.from == output }
    let departures = leaving.compactMap(departure)
    let isOpen = output.run.outlets.withLock { board in
      board.change(output.end, leaving: departures, in: output.run) { layout in
        for cut in leaving {
          switch cut.feeder {
          case .plan(_, let index): layout.own.removeAll { $0 == index }
          case .live(let live): layout.live.removeAll { $0 === live }
          }
        }
        layout.live += additions.filter { $0.from == output }.compactMap(\.live)
      }
    }
    if isOpen { output.place.strand.request(Strand.Request.outputs) }
  }

  private func departure(_ cut: Cut) -> Departure? {
    switch cut.feeder {
    case .plan(let run, let index):
      run.memory.map { unsafe Departure(link: $0.links + index, live: nil, ends: cut.ends) }
    case .live(let live): unsafe Departure(link: live.address, live: live, ends: cut.ends)
    }
  }
}
