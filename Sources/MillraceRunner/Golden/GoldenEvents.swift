internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// Collects all events of one run and writes them in an order that is the same for every run of the graph.
///
/// Events of nodes stay in the order in which they were posted. Events of the run itself come from another thread: they are inserted by
/// time, before node events of the same time. `stopped` comes last.
final class GoldenEvents: Sendable {
  private let events = Mutex<[GraphEvent]>([])
  private let plan: GraphPlan

  /// Starts collecting. Call before the run starts.
  /// - Parameter readers: when they have ended, all events of the run have been collected.
  init(of run: GraphRun, _ readers: ReaderTasks) {
    plan = run.plan
    let stream = run.events
    readers.start { [self] in
      for await event in stream { events.withLock { $0.append(event) } }
    }
  }

  /// The events as JSON, one per line.
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
