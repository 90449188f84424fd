internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// A link as an input sees it, with what keeps its memory; nothing does for a link of the plan, which lives as long as the run.
@safe
struct Inlet {
  let link: UnsafeMutablePointer<Link>
  let keeper: AnyObject?

  init(_ live: LiveLink) {
    unsafe link = unsafe live.address
    keeper = live
  }

  init(_ plug: LinkPlug) {
    unsafe link = unsafe plug.address
    keeper = plug
  }

  init(ofPlan link: UnsafeMutablePointer<Link>) {
    unsafe self.link = unsafe link
    keeper = nil
  }
}

/// What the inputs of a run are fed by, where that differs from the plan. Under its lock; a worker takes that only when something changes.
struct InletBoard {
  /// The links of one input, in the order in which they are read: the first is in its slot.
  private struct Chain {
    var inlets: [Inlet]
    /// How many of them the worker knows.
    var announced: Int
  }
  private var chains: [GraphPlan.End: Chain] = [:]
  private(set) var isClosed = false

  /// Has a link follow the last one of an input. False when the run is over.
  /// - Parameter present: the link in the input's slot, where no other was ever put there.
  mutating func append(_ inlet: Inlet, to input: GraphPlan.End, present: () -> Inlet?) -> Bool {
    guard !isClosed else { return false }
    guard var chain = chains[input] ?? present().map({ Chain(inlets: [$0], announced: 1) }) else {
      return false
    }
    if let last = chain.inlets.last { unsafe last.link.pointee.continues() }
    chain.inlets.append(inlet)
    chains[input] = chain
    return true
  }

  /// Has a link follow another one, where that is the last of its input. False when it is not, or the run is over.
  mutating func append(_ inlet: Inlet, to input: GraphPlan.End, behind live: LiveLink) -> Bool {
    guard chains[input]?.inlets.last?.keeper === live else { return false }
    return append(inlet, to: input) { nil }
  }

  /// Notes the first link of an input, whose slot has it already: before the run's workers know of the run.
  mutating func begin(_ inlet: Inlet, at input: GraphPlan.End) {
    chains[input] = Chain(inlets: [inlet], announced: 1)
  }

  /// The links that the worker does not know yet.
  mutating func takeUnannounced(where isMine: (GraphPlan.End) -> Bool) -> [(input: GraphPlan.End, inlet: Inlet)] {
    var unannounced: [(GraphPlan.End, Inlet)] = []
    for (input, chain) in chains where chain.announced < chain.inlets.count && isMine(input) {
      unannounced += chain.inlets[chain.announced...].map { (input, $0) }
      chains[input]?.announced = chain.inlets.count
    }
    return unannounced
  }

  /// The slot of an input has its next link.
  mutating func advance(_ input: GraphPlan.End) {
    chains[input]?.inlets.removeFirst()
    chains[input]?.announced -= 1
  }

  /// No worker reads any more.
  mutating func close(releasing: Bool) {
    isClosed = true
    if releasing { chains = [:] }
  }
}

/// A link that takes its place in an input's slot as soon as the one there is spent. Only the worker uses it; the board keeps it.
@unsafe
struct PendingInlet {
  let input: GraphPlan.End
  let cell: UnsafeMutablePointer<Cell>
  let link: UnsafeMutablePointer<Link>
}

extension Worker {
  /// Takes note of the links that follow those in the slots of a strand's inputs.
  @inline(never)
  func takeInlets(of strand: Strand) {
    let run = unsafe strand.run
    let unannounced = run.inlets.withLock { board in
      board.takeUnannounced { run.places[$0.node].strand === strand }
    }
    for (input, inlet) in unannounced {
      let cell = unsafe strand.cells + run.places[input.node].index
      unsafe strand.pendingInlets.append(PendingInlet(input: input, cell: cell, link: inlet.link))
      if unsafe cell.pointee.phase.isOver { unsafe inlet.link.pointee.refuse() }
    }
    unsafe strand.hasPendingInlets = unsafe !strand.pendingInlets.isEmpty
  }

  /// Gives inputs their next links where nothing is left in the present ones. Once a turn at most, and only while any waits.
  @inline(never)
  func advanceInlets(of strand: Strand) {
    var index = 0
    while unsafe index < strand.pendingInlets.count {
      let pending = unsafe strand.pendingInlets[index]
      let slot = unsafe pending.cell.pointee.table.inputs + pending.input.port
      if let present = unsafe slot.pointee.link, unsafe !present.pointee.isSpent() {
        index += 1
        continue
      }
      unsafe slot.pointee.link = unsafe pending.link
      if unsafe strand.isDraining { unsafe pending.link.pointee.finishes() }
      _ = unsafe strand.pendingInlets.remove(at: index)
      unsafe strand.markReady(pending.cell)
      let input = unsafe pending.input
      unsafe strand.run.inlets.withLock { $0.advance(input) }
    }
    unsafe strand.hasPendingInlets = unsafe !strand.pendingInlets.isEmpty
  }

  /// The nodes of a strand take nothing more: who writes to them from other graphs need not wait. Those who read what these nodes
  /// wrote see the end.
  @inline(never)
  func closeLiveLinks(of cell: UnsafeMutablePointer<Cell>, _ strand: Strand) {
    unsafe refuseInputs(of: cell, strand)
    for index in unsafe 0..<cell.pointee.table.outputCount {
      let slot = unsafe cell.pointee.table.outputs[index]
      for link in unsafe 0..<slot.linkCount
      where unsafe slot.links.unsafelyUnwrapped[link].pointee.copiesPackets {
        unsafe slot.links.unsafelyUnwrapped[link].pointee.end()
      }
    }
  }

  /// A node takes nothing more: who writes to it from elsewhere need not wait.
  func refuseInputs(of cell: UnsafeMutablePointer<Cell>, _ strand: Strand) {
    for index in unsafe 0..<cell.pointee.table.inputCount {
      if let link = unsafe cell.pointee.table.inputs[index].link, unsafe link.pointee.copiesPackets {
        unsafe link.pointee.refuse()
      }
    }
    guard unsafe strand.hasPendingInlets else { return }
    for index in unsafe strand.pendingInlets.indices {
      let pending = unsafe strand.pendingInlets[index]
      if unsafe pending.cell == cell { unsafe pending.link.pointee.refuse() }
    }
  }
}
