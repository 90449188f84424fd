internal import MillraceCore
internal import MillraceGraph

/// The differences between the links of an engine's runs and their plans: links added and links removed. Under its lock, which
/// workers take only on a virtual clock.
struct Topology {
  /// Live links.
  var links: [LiveLink] = []
  /// For each run, the links of its plan that were removed.
  var cut: [Int: Set<Int>] = [:]

  /// The present link of an input, ignoring one whose writer is ending.
  func feeder(of input: LiveEnd) -> Feeder? {
    if let live = links.first(where: { $0.to == (input.run.id, input.end) && !$0.isLeaving }) {
      return .live(live)
    }
    let plan = input.run.plan
    let index = plan.links.indices.first { plan.links[$0].to == input.end }
    return index.flatMap { cut[input.run.id]?.contains($0) == true ? nil : .plan(input.run, $0) }
  }
}

/// The present link of an input: of the plan, or live.
enum Feeder {
  case plan(GraphRun, Int)
  case live(LiveLink)
}

extension LiveLink {
  /// Its current counters.
  var report: LinkReport {
    let counters = unsafe self.counters
    return unsafe LinkReport(
      name: name, format: shape.format, limit: limit, policy: policy,
      pushed: counters.pointee.pushed.current, popped: counters.pointee.popped.current,
      droppedOldest: counters.pointee.droppedOldest.current,
      droppedNewest: counters.pointee.droppedNewest.current,
      droppedStale: counters.pointee.droppedStale.current, droppedShed: counters.pointee.droppedShed.current,
      discarded: counters.pointee.discarded.current, queued: counters.pointee.queued,
      highWater: counters.pointee.highWater.current)
  }
}

extension EngineCore {
  /// Changes the topology. One change at a time; control side.
  func edit<Answer>(_ body: (inout LinkEditor) throws(EditProblem) -> Answer) throws(EditProblem) -> Answer {
    try topology.withLock { topology throws(EditProblem) in
      var editor = LinkEditor(topology, on: self)
      let answer = try body(&editor)
      topology = editor.topology
      return answer
    }
  }

  /// A run drains: its links from other runs end, and what is queued in them is still read.
  func isolate(_ run: GraphRun) {
    guard topology.withLock({ !$0.links.isEmpty }) else { return }
    topology.withLock { topology in
      var editor = LinkEditor(topology, on: self)
      _ = editor.isolate(run)
      editor.moveWriters { _ in true }
      topology = editor.topology
    }
  }

  /// A run is about to close: readers of its links see the end, and writers to it get a new layout.
  func cutLinks(of run: GraphRun) {
    supervisor.threadOwner.assertIsCurrent()
    topology.withLock { topology in
      let mine = topology.links.filter { $0.from.run == run.id || $0.to.run == run.id }
      topology.links.removeAll { $0.from.run == run.id || $0.to.run == run.id }
      topology.cut[run.id] = nil
      for live in mine {
        if let writer = live.writer, writer !== run {
          drop(live, at: writer)
        } else {
          unsafe live.address.pointee.end()
        }
        if let reader = live.reader, reader !== run { plug(live, at: reader) }
      }
    }
  }

  private func drop(_ live: LiveLink, at writer: GraphRun) {
    let departure = unsafe Departure(link: live.address, live: live, ends: false)
    let isOpen = writer.outlets.withLock {
      $0.change(live.from.end, leaving: [departure], in: writer) { $0.live.removeAll { $0 === live } }
    }
    if isOpen { writer.places[live.from.end.node].strand.request(Strand.Request.outputs) }
  }

  /// Makes an input end after the link, so that the link's memory is freed before the reader ends.
  private func plug(_ live: LiveLink, at reader: GraphRun) {
    let plug = LinkPlug(hasEnded: true, nullWake: nullWake)
    let isOpen = reader.inlets.withLock { $0.append(Inlet(plug), to: live.to.end, behind: live) }
    if isOpen { reader.places[live.to.end.node].strand.request(Strand.Request.inputs) }
  }
}
