internal import MillraceCore
internal import MillraceEngine

/// Builds the metrics of an engine and its runs: names, help texts and labels.
enum MetricFamilies {
  private typealias Sample = MetricFamily.Sample
  private typealias Label = MetricFamily.Label

  static func ofEngine(_ engine: Engine) -> [MetricFamily] {
    let memory = engine.memory
    var families = [
      MetricFamily(
        "millrace_worker_busy_seconds_total", "Time a worker thread spent in nodes and scheduling.", .counter,
        engine.workerLoads.map { Sample([Label("worker", $0.name)], seconds($0.busy)) }),
      MetricFamily(
        "millrace_engine_memory_claimed_bytes", "Most memory that the current runs can use.", .gauge,
        [Sample([], .count(memory.claimed))]),
    ]
    if let limit = memory.limit {
      families.append(
        MetricFamily(
          "millrace_engine_memory_limit_bytes", "Memory limit of all runs together.", .gauge,
          [Sample([], .count(limit))]))
    }
    return families
  }

  static func ofRuns(_ graphs: [String: GraphTotals]) -> [MetricFamily] {
    runFamilies(graphs) + nodeCounters(graphs) + nodeGauges(graphs) + nodeHistograms(graphs)
      + linkFamilies(graphs)
  }

  // MARK: Runs

  private static func runFamilies(_ graphs: [String: GraphTotals]) -> [MetricFamily] {
    func family(
      _ name: String, _ help: String, _ kind: MetricFamily.Kind,
      _ value: (GraphTotals) -> MetricFamily.Value?
    ) -> MetricFamily {
      MetricFamily(
        "millrace_" + name, help, kind,
        graphs.compactMap { graph, totals in value(totals).map { Sample([Label("graph", graph)], $0) } })
    }
    let phases = graphs.flatMap { graph, totals in
      RunPhase.allCases.filter { $0 != .stopped }.map { phase in
        Sample(
          [Label("graph", graph), Label("phase", phase.rawValue)], .count(totals.current.phases[phase] ?? 0))
      }
    }
    return [
      MetricFamily("millrace_runs", "Current runs by phase.", .gauge, phases),
      family("runs_created_total", "Runs created.", .counter) { .count($0.all.runs) },
      family("runs_failed_total", "Runs that failed.", .counter) { .count($0.all.failed) },
      family("run_duration_seconds", "Longest graph time of a current run.", .gauge) {
        seconds($0.current.duration)
      },
      family("run_first_packet_seconds", "Longest time from start to the first packet at a sink.", .gauge) {
        $0.current.timeToFirstPacket.map(seconds)
      },
      family("run_media_bytes", "Media memory of the current runs.", .gauge) { .count($0.current.poolBytes) },
      family("run_lost_events_total", "Events dropped because the program read too slowly.", .counter) {
        .count($0.all.lostEvents)
      },
      family("run_leaked_blocks_total", "Blocks not returned by nodes at the end of a run.", .counter) {
        .count($0.all.leakedBlocks)
      },
    ]
  }

  // MARK: Nodes

  private static func nodeFamily(
    _ graphs: [String: GraphTotals], _ name: String, _ help: String, _ kind: MetricFamily.Kind,
    onlyCurrent: Bool = false, _ value: (NodeReport) -> MetricFamily.Value?
  ) -> MetricFamily {
    let samples = graphs.flatMap { graph, totals in
      (onlyCurrent ? totals.current : totals.all).nodes.values.compactMap { node in
        value(node).map { Sample([Label("graph", graph), Label("node", node.name)], $0) }
      }
    }
    return MetricFamily("millrace_node_" + name, help, kind, samples)
  }

  private static func nodeCounters(_ graphs: [String: GraphTotals]) -> [MetricFamily] {
    func counter(_ name: String, _ help: String, _ value: (NodeReport) -> MetricFamily.Value)
      -> MetricFamily
    {
      nodeFamily(graphs, name + "_total", help, .counter, value)
    }
    return [
      counter("activations", "Calls of the node.") { .count($0.activations) },
      counter("packets_taken", "Packets the node read from its inputs.") { .count($0.packetsIn) },
      counter("packets_emitted", "Packets the node emitted into links.") { .count($0.packetsOut) },
      counter("busy_seconds", "Time spent in calls of the node.") { seconds($0.busy) },
      counter("overruns", "Calls that took longer than the node's budget.") { .count($0.overBudget) },
      counter("late", "Calls that read packets older than the node's maximum age.") {
        .count($0.overAge)
      },
      counter("blocked", "Times the node had work but an output was full.") { .count($0.blocked) },
      counter("starved", "Times the node had work but no free block.") { .count($0.starved) },
      counter("restarts", "Times the node was restarted after a failure.") { .count($0.restarts) },
    ]
  }

  private static func nodeGauges(_ graphs: [String: GraphTotals]) -> [MetricFamily] {
    let information = graphs.flatMap { graph, totals in
      totals.all.nodes.values.map { node in
        Sample(
          [
            Label("graph", graph), Label("node", node.name), Label("type", node.type),
            Label("lane", node.lane.rawValue),
          ], .count(1))
      }
    }
    return [
      MetricFamily("millrace_node_info", "Type and lane of a node; always 1.", .gauge, information),
      nodeFamily(graphs, "budget_seconds", "Time budget of one call of the node.", .gauge) {
        seconds(Nanoseconds($0.budget) * 1_000)
      },
      nodeFamily(graphs, "worst_call_seconds", "Longest call of the node.", .gauge) { seconds($0.worst) },
      nodeFamily(
        graphs, "last_age_seconds", "Age of the latest packet at the node, since capture.", .gauge,
        onlyCurrent: true
      ) { $0.lastAge.map(seconds) },
      nodeFamily(graphs, "worst_age_seconds", "Greatest age of a packet at the node, since capture.", .gauge)
      {
        $0.worstAge.map(seconds)
      },
    ]
  }

  private static func nodeHistograms(_ graphs: [String: GraphTotals]) -> [MetricFamily] {
    [
      nodeFamily(graphs, "call_seconds", "Duration of calls of the node.", .histogram) { node in
        .histogram(
          MetricHistogram(node.callTimes, bounds: MetricHistogram.callBounds, sum: node.busy))
      },
      nodeFamily(
        graphs, "age_seconds", "Age of packets at the sinks of the graph; the sum is accurate to 6 %.",
        .histogram
      ) { node in
        node.ages.map {
          .histogram(MetricHistogram($0, bounds: MetricHistogram.ageBounds, sum: nil))
        }
      },
    ]
  }

  // MARK: Links

  private static func linkFamilies(_ graphs: [String: GraphTotals]) -> [MetricFamily] {
    func family(
      _ name: String, _ help: String, _ kind: MetricFamily.Kind, onlyCurrent: Bool = false,
      _ value: (LinkReport) -> Int
    ) -> MetricFamily {
      let samples = graphs.flatMap { graph, totals in
        (onlyCurrent ? totals.current : totals.all).links.values.map { link in
          Sample([Label("graph", graph), Label("link", link.name)], .count(value(link)))
        }
      }
      return MetricFamily("millrace_link_" + name, help, kind, samples)
    }
    let drops = graphs.flatMap { graph, totals in
      totals.all.links.values.flatMap { link in
        link.drops.map { reason, count in
          Sample(
            [Label("graph", graph), Label("link", link.name), Label("reason", reason)], .count(count))
        }
      }
    }
    return [
      family("packets_pushed_total", "Packets written into the link.", .counter) { $0.pushed },
      family("packets_popped_total", "Packets read from the link.", .counter) {
        $0.popped
      },
      MetricFamily(
        "millrace_link_packets_dropped_total", "Packets dropped on the link, by reason.", .counter, drops),
      family("queued_packets", "Packets queued in the link.", .gauge, onlyCurrent: true) { $0.queued },
      family("high_water_packets", "Most packets that have been queued in the link.", .gauge) {
        $0.highWater
      },
      family("capacity_packets", "Packets the link can hold.", .gauge) { $0.limit },
    ]
  }

  private static func seconds(_ time: Nanoseconds) -> MetricFamily.Value { .number(Double(time) / 1e9) }
}

extension LinkReport {
  /// Dropped packets by reason: `oldest` and `newest` when the link was full, `stale` after an interruption, `shed` under overload, `ended`
  /// when the run had ended.
  var drops: [(reason: String, count: Int)] {
    [
      ("oldest", droppedOldest), ("newest", droppedNewest), ("stale", droppedStale), ("shed", droppedShed),
      ("ended", discarded),
    ]
  }
}
