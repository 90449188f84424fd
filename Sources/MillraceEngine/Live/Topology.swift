internal import MillraceCore
internal import MillraceGraph

/// The links of an engine's runs that differ from their plans: those made since, and those taken away. Under its lock, which no worker
/// waits for while it carries packets.
struct Topology {
  /// Links made while their graphs run.
  var links: [LiveLink] = []
  /// For each run, links of its plan that were taken away.
  var cut: [Int: Set<Int>] = [:]

  /// What feeds an input now; a link whose writer is about to end does not count.
  func feeder(of input: LiveEnd) -> Feeder? {
    if let live = links.first(where: { $0.to == (input.run.id, input.end) && !$0.isLeaving }) {
      return .live(live)
    }
    let plan = input.run.plan
    let index = plan.links.indices.first { plan.links[$0].to == input.end }
    return index.flatMap { cut[input.run.id]?.contains($0) == true ? nil : .plan(input.run, $0) }
  }
}

/// A link as edits know it.
enum Feeder {
  case plan(GraphRun, Int)
  case live(LiveLink)
}

extension LiveLink {
  /// Its counters now.
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

  /// A run drains by itself: what leads into it from other runs ends, and what is in these links is still read.
  func isolate(_ run: GraphRun) {
    guard topology.withLock({ !$0.links.isEmpty }) else { return }
    topology.withLock { topology in
      var editor = LinkEditor(topology, on: self)
      _ = editor.isolate(run)
      editor.moveWriters { _ in true }
      topology = editor.topology
    }
  }

  /// A run is about to close: whoever reads from it sees the end, and whoever writes to it writes elsewhere. Only the supervisor.
  func cutLinks(of run: GraphRun) {
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

  /// Has an input end behind the link, so that its memory need not wait for the reader's end.
  private func plug(_ live: LiveLink, at reader: GraphRun) {
    let plug = LinkPlug(hasEnded: true, nullWake: nullWake)
    let isOpen = reader.inlets.withLock { $0.append(Inlet(plug), to: live.to.end, behind: live) }
    if isOpen { reader.places[live.to.end.node].strand.request(Strand.Request.inputs) }
  }
}
