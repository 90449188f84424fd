internal import MillraceCore
internal import MillraceEngine

/// The names and labels of the engine's figures as metrics.
enum FigureFamilies {
  private typealias Sample = MetricFamily.Sample
  private typealias Label = MetricFamily.Label

  static func ofEngine(_ engine: Engine) -> [MetricFamily] {
    let memory = engine.memory
    var families = [
      MetricFamily(
        "millrace_worker_busy_seconds_total", "Time a worker thread spent in nodes and scheduling.", .counter,
        engine.workerLoads.map { Sample([Label("worker", $0.name)], seconds($0.busy)) }),
      MetricFamily(
        "millrace_engine_memory_claimed_bytes", "Memory that the present runs can take at most.", .gauge,
        [Sample([], .count(memory.claimed))]),
    ]
    if let limit = memory.limit {
      families.append(
        MetricFamily(
          "millrace_engine_memory_limit_bytes", "Memory that all runs together may take.", .gauge,
          [Sample([], .count(limit))]))
    }
    return families
  }

  static func ofRuns(_ graphs: [String: GraphSums]) -> [MetricFamily] {
    runFamilies(graphs) + nodeCounters(graphs) + nodeGauges(graphs) + nodeHistograms(graphs)
      + linkFamilies(graphs)
  }

  // MARK: Runs

  private static func runFamilies(_ graphs: [String: GraphSums]) -> [MetricFamily] {
    func family(
      _ name: String, _ help: String, _ kind: MetricFamily.Kind,
      _ value: (GraphSums) -> MetricFamily.Value?
    ) -> MetricFamily {
      MetricFamily(
        "millrace_" + name, help, kind,
        graphs.compactMap { graph, sums in value(sums).map { Sample([Label("graph", graph)], $0) } })
    }
    let phases = graphs.flatMap { graph, sums in
      RunPhase.allCases.filter { $0 != .stopped }.map { phase in
        Sample(
          [Label("graph", graph), Label("phase", phase.rawValue)], .count(sums.present.phases[phase] ?? 0))
      }
    }
    return [
      MetricFamily("millrace_runs", "Runs that are there now, by where they stand.", .gauge, phases),
      family("runs_created_total", "Runs that were counted.", .counter) { .count($0.all.runs) },
      family("runs_failed_total", "Runs that a failure ended.", .counter) { .count($0.all.failed) },
      family("run_duration_seconds", "The longest graph time of a present run.", .gauge) {
        seconds($0.present.duration)
      },
      family("run_first_packet_seconds", "The longest time from start to the first packet at an end.", .gauge)
      {
        $0.present.timeToFirstPacket.map(seconds)
      },
      family("run_media_bytes", "Media memory of the present runs.", .gauge) { .count($0.present.poolBytes) },
      family("run_lost_events_total", "Events the program did not take in time.", .counter) {
        .count($0.all.lostEvents)
      },
      family("run_leaked_blocks_total", "Blocks that nodes had not returned at the end of a run.", .counter) {
        .count($0.all.leakedBlocks)
      },
    ]
  }

  // MARK: Nodes

  private static func nodeFamily(
    _ graphs: [String: GraphSums], _ name: String, _ help: String, _ kind: MetricFamily.Kind,
    isPresent: Bool = false, _ value: (NodeReport) -> MetricFamily.Value?
  ) -> MetricFamily {
    let samples = graphs.flatMap { graph, sums in
      (isPresent ? sums.present : sums.all).nodes.values.compactMap { node in
        value(node).map { Sample([Label("graph", graph), Label("node", node.name)], $0) }
      }
    }
    return MetricFamily("millrace_node_" + name, help, kind, samples)
  }

  private static func nodeCounters(_ graphs: [String: GraphSums]) -> [MetricFamily] {
    func counter(_ name: String, _ help: String, _ value: (NodeReport) -> MetricFamily.Value)
      -> MetricFamily
    {
      nodeFamily(graphs, name + "_total", help, .counter, value)
    }
    return [
      counter("activations", "Calls of the node.") { .count($0.activations) },
      counter("packets_taken", "Packets the node took from its inputs.") { .count($0.packetsIn) },
      counter("packets_emitted", "Packets the node emitted into links.") { .count($0.packetsOut) },
      counter("busy_seconds", "Time spent in calls of the node.") { seconds($0.busy) },
      counter("overruns", "Calls that took longer than the node's budget.") { .count($0.overBudget) },
      counter("late", "Calls that took packets older than the graph allows at the node.") {
        .count($0.overAge)
      },
      counter("blocked", "Times the node had work but no room on an output.") { .count($0.blocked) },
      counter("starved", "Times the node had work but no free block.") { .count($0.starved) },
      counter("restarts", "Times the node was restarted after a failure.") { .count($0.restarts) },
    ]
  }

  private static func nodeGauges(_ graphs: [String: GraphSums]) -> [MetricFamily] {
    let information = graphs.flatMap { graph, sums in
      sums.all.nodes.values.map { node in
        Sample(
          [
            Label("graph", graph), Label("node", node.name), Label("type", node.type),
            Label("lane", node.lane.rawValue),
          ], .count(1))
      }
    }
    return [
      MetricFamily("millrace_node_info", "The type and the lane of a node; always 1.", .gauge, information),
      nodeFamily(graphs, "budget_seconds", "What one call of the node may take.", .gauge) {
        seconds(Nanoseconds($0.budget) * 1_000)
      },
      nodeFamily(graphs, "worst_call_seconds", "The longest call of the node.", .gauge) { seconds($0.worst) },
      nodeFamily(
        graphs, "last_age_seconds", "Time from capture to the node, of the latest packet.", .gauge,
        isPresent: true
      ) { $0.lastAge.map(seconds) },
      nodeFamily(graphs, "worst_age_seconds", "The longest time from capture to the node.", .gauge) {
        $0.worstAge.map(seconds)
      },
    ]
  }

  private static func nodeHistograms(_ graphs: [String: GraphSums]) -> [MetricFamily] {
    [
      nodeFamily(graphs, "call_seconds", "How long calls of the node took.", .histogram) { node in
        .histogram(
          MetricHistogram(node.callTimes, bounds: MetricHistogram.callBounds, sum: node.busy))
      },
      nodeFamily(
        graphs, "age_seconds", "How old packets were at the ends of the graph; the sum is within 6 %.",
        .histogram
      ) { node in
        node.ages.map {
          .histogram(MetricHistogram($0, bounds: MetricHistogram.ageBounds, sum: nil))
        }
      },
    ]
  }

  // MARK: Links

  private static func linkFamilies(_ graphs: [String: GraphSums]) -> [MetricFamily] {
    func family(
      _ name: String, _ help: String, _ kind: MetricFamily.Kind, isPresent: Bool = false,
      _ value: (LinkReport) -> Int
    ) -> MetricFamily {
      let samples = graphs.flatMap { graph, sums in
        (isPresent ? sums.present : sums.all).links.values.map { link in
          Sample([Label("graph", graph), Label("link", link.name)], .count(value(link)))
        }
      }
      return MetricFamily("millrace_link_" + name, help, kind, samples)
    }
    let drops = graphs.flatMap { graph, sums in
      sums.all.links.values.flatMap { link in
        link.drops.map { reason, count in
          Sample(
            [Label("graph", graph), Label("link", link.name), Label("reason", reason)], .count(count))
        }
      }
    }
    return [
      family("packets_pushed_total", "Packets that came into the link.", .counter) { $0.pushed },
      family("packets_popped_total", "Packets that left the link through its reader.", .counter) {
        $0.popped
      },
      MetricFamily(
        "millrace_link_packets_dropped_total", "Packets lost on the link, by reason.", .counter, drops),
      family("queued_packets", "Packets in the link now.", .gauge, isPresent: true) { $0.queued },
      family("high_water_packets", "Most packets the link held at once.", .gauge) { $0.highWater },
      family("capacity_packets", "Packets the link can hold.", .gauge) { $0.limit },
    ]
  }

  private static func seconds(_ time: Nanoseconds) -> MetricFamily.Value { .number(Double(time) / 1e9) }
}

extension LinkReport {
  /// Lost packets by the reason: the oldest or the newest made room, an interruption made it stale, load was shed, or the run had ended.
  var drops: [(reason: String, count: Int)] {
    [
      ("oldest", droppedOldest), ("newest", droppedNewest), ("stale", droppedStale), ("shed", droppedShed),
      ("ended", discarded),
    ]
  }
}
