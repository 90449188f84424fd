internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// A link as an input sees it, with the owner of its memory; nil for a link of the plan, which lives as long as the run.
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

/// The links of a run's inputs where they differ from the plan. Under its lock, which a worker takes only on a change.
struct InletBoard {
  /// The links of one input, in reading order: the first is in its slot.
  private struct Chain {
    var inlets: [Inlet]
    /// How many of them the worker has seen.
    var announced: Int
  }
  private var chains: [GraphPlan.End: Chain] = [:]
  private(set) var isClosed = false

  /// Appends a link after the last one of an input. False when the run is over.
  /// - Parameter present: the input's original link, used when it was never changed.
  mutating func append(_ inlet: Inlet, to input: GraphPlan.End, present: () -> Inlet?) -> Bool {
    guard !isClosed else { return false }
    guard var chain = chains[input] ?? present().map({ Chain(inlets: [$0], announced: 1) }) else {
      return false
    }
    if let last = chain.inlets.last { unsafe last.link.pointee.expectSuccessor() }
    chain.inlets.append(inlet)
    chains[input] = chain
    return true
  }

  /// Appends a link after a given one, if that is the last of its input. False when it is not, or the run is over.
  mutating func append(_ inlet: Inlet, to input: GraphPlan.End, behind live: LiveLink) -> Bool {
    guard chains[input]?.inlets.last?.keeper === live else { return false }
    return append(inlet, to: input) { nil }
  }

  /// Records the first link of an input, already in its slot: before the run's workers have seen the run.
  mutating func begin(_ inlet: Inlet, at input: GraphPlan.End) {
    chains[input] = Chain(inlets: [inlet], announced: 1)
  }

  /// The links that the worker has not seen yet.
  mutating func takeUnannounced(where isMine: (GraphPlan.End) -> Bool) -> [(
    input: GraphPlan.End, inlet: Inlet
  )] {
    var unannounced: [(GraphPlan.End, Inlet)] = []
    for (input, chain) in chains where chain.announced < chain.inlets.count && isMine(input) {
      unannounced += chain.inlets[chain.announced...].map { (input, $0) }
      chains[input]?.announced = chain.inlets.count
    }
    return unannounced
  }

  /// The slot of an input has moved to its next link. Returns the one before, to be released outside the lock.
  mutating func advance(_ input: GraphPlan.End) -> Inlet? {
    chains[input]?.announced -= 1
    return chains[input]?.inlets.removeFirst()
  }

  /// No worker reads any more.
  mutating func close(releasing: Bool) {
    isClosed = true
    if releasing { chains = [:] }
  }
}

/// A link that goes into an input's slot as soon as the present one is spent. Used by the worker only; the board retains it.
@unsafe
struct PendingInlet {
  let input: GraphPlan.End
  let cell: UnsafeMutablePointer<Cell>
  let link: UnsafeMutablePointer<Link>
}

extension Worker {
  /// Queues the links that follow those in the slots of a strand's inputs.
  @inline(never)
  func takeInlets(of strand: Strand) {
    threadOwner.assertIsCurrent()
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

  /// Moves inputs to their next links when the present ones are spent. At most once per turn, and only while any is pending.
  @inline(never)
  func advanceInlets(of strand: Strand) {
    threadOwner.assertIsCurrent()
    var index = 0
    while unsafe index < strand.pendingInlets.count {
      let pending = unsafe strand.pendingInlets[index]
      let slot = unsafe pending.cell.pointee.table.inputs + pending.input.port
      if let present = unsafe slot.pointee.link, unsafe !present.pointee.isSpent() {
        index += 1
        continue
      }
      unsafe slot.pointee.link = unsafe pending.link
      if unsafe strand.isDraining { unsafe pending.link.pointee.expectNoSuccessor() }
      _ = unsafe strand.pendingInlets.remove(at: index)
      unsafe strand.markReady(pending.cell)
      let input = unsafe pending.input
      _ = unsafe strand.run.inlets.withLock { $0.advance(input) }
    }
    unsafe strand.hasPendingInlets = unsafe !strand.pendingInlets.isEmpty
  }

  /// A node stops reading: writers in other graphs no longer wait for it. Readers of its live links see the end.
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

  /// A node stops reading: writers in other graphs no longer wait for it.
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
