internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// All events of one run, to be written in an order that every run of the graph has.
///
/// Events of nodes come in the order they were posted in. What the run itself has to say comes from another thread: it is put
/// by its time, before what nodes posted at that time; the end of the run is last.
final class GoldenEvents: Sendable {
  private let events = Mutex<[GraphEvent]>([])
  private let plan: GraphPlan

  /// Takes the events of a run from now on. Call before it starts.
  /// - Parameter readers: when they are done, the run has ended and all of its events are here.
  init(of run: GraphRun, _ readers: Readers) {
    plan = run.plan
    let told = run.events
    readers.start { [self] in
      for await event in told { events.withLock { $0.append(event) } }
    }
  }

  /// The events as JSON, one a line.
  var lines: [String] {
    let events = events.withLock { $0 }
    let (ofNodes, ofRun) = (events.filter { isOfNode($0) }, events.filter { !isOfNode($0) })
    var rest = ofRun.filter { $0.name != "stopped" }[...]
    var lines: [String] = []
    for event in ofNodes {
      while let first = rest.first, first.time <= event.time {
        lines.append(first.json)
        rest.removeFirst()
      }
      lines.append(event.json)
    }
    return lines + rest.map(\.json) + ofRun.filter { $0.name == "stopped" }.map(\.json)
  }

  private func isOfNode(_ event: GraphEvent) -> Bool {
    guard let node = plan.nodes.first(where: { $0.name == event.node }) else { return false }
    return node.contract.events.contains { $0.name == event.name }
  }
}
