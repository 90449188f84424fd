internal import ArgumentParser
internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph

/// The report of runs as JSON, for `--report`. Times are in milliseconds. It contains no parameter values.
enum RunReportFile {
  /// Version of the layout below.
  static let version = 1

  /// Throws when the extension of the file is not that of a report.
  static func checkName(_ path: String?) throws(ValidationError) {
    guard let path, !path.hasSuffix(".json"), !path.hasSuffix(".html") else { return }
    throw ValidationError("--report writes HTML or JSON; name a file that ends in .html or .json")
  }

  /// - Parameter turns: the turns of all dialogues, in order of their start.
  static func json(_ reports: [RunReport], turns: [Turn]) -> String {
    var json = JSONWriter(pretty: true)
    json.object { json in
      write(reports, to: &json)
      guard !turns.isEmpty else { return }
      json.array("turns") { json in for turn in turns { json.object { write(turn, to: &$0) } } }
    }
    return json.text + "\n"
  }

  /// Writes the members of the report object.
  static func write(_ reports: [RunReport], to json: inout JSONWriter) {
    json.member("millraceReport", version)
    json.array("runs") { json in
      for report in reports { json.object { write(report, to: &$0) } }
    }
  }

  private static func milliseconds(_ time: Nanoseconds) -> Double { Double(time) / 1e6 }

  private static func write(_ report: RunReport, to json: inout JSONWriter) {
    json.member("name", report.name)
    json.member("clock", report.clock.rawValue)
    json.member("phase", report.phase.rawValue)
    json.member("duration", milliseconds(report.duration))
    if let first = report.timeToFirstPacket { json.member("timeToFirstPacket", milliseconds(first)) }
    if let failure = report.failure {
      json.object("failure") { json in
        json.member("node", failure.node)
        json.member("text", failure.text)
      }
    }
    json.member("poolBytes", report.poolBytes)
    json.member("leakedBlocks", report.leakedBlocks)
    json.member("lostEvents", report.lostEvents)
    json.array("detachedNodes") { json in for name in report.detachedNodes { json.value(name) } }
    json.array("nodes") { json in for node in report.nodes { json.object { write(node, to: &$0) } } }
    json.array("links") { json in for link in report.links { json.object { write(link, to: &$0) } } }
  }

  private static func write(_ turn: Turn, to json: inout JSONWriter) {
    if !turn.label.isEmpty { json.member("run", String(turn.label.dropLast(2))) }
    for (mark, time) in turn.marks { json.member(mark.rawValue, milliseconds(time)) }
    if let time = turn.answerTime { json.member("answerTime", milliseconds(time)) }
  }

  static func write(_ node: NodeReport, to json: inout JSONWriter) {
    json.member("name", node.name)
    json.member("type", node.type)
    json.member("lane", node.lane.rawValue)
    json.member("calls", node.activations)
    json.member("packetsIn", node.packetsIn)
    json.member("packetsOut", node.packetsOut)
    json.member("busy", milliseconds(node.busy))
    json.member("worstCall", milliseconds(node.worst))
    json.member("budget", Double(node.budget) / 1e3)
    json.member("overBudget", node.overBudget)
    if let age = node.maxAge {
      json.member("maxAge", milliseconds(age))
      json.member("overAge", node.overAge)
    }
    json.member("blocked", node.blocked)
    json.member("starved", node.starved)
    json.member("restarts", node.restarts)
    if let age = node.lastAge { json.member("lastAge", milliseconds(age)) }
    if let age = node.worstAge { json.member("worstAge", milliseconds(age)) }
    json.object("callTimes") { write(node.callTimes, to: &$0) }
    if let ages = node.ages { json.object("ages") { write(ages, to: &$0) } }
  }

  /// Writes quantiles, and for every bucket that is not empty its lower bound and its count.
  private static func write(_ histogram: Histogram, to json: inout JSONWriter) {
    json.member("count", histogram.count)
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
      if let value = histogram.quantile(share) { json.member(name, milliseconds(value)) }
    }
    json.member("max", milliseconds(histogram.largest))
    json.array("buckets") { json in
      for bucket in histogram.buckets {
        json.array { json in
          json.value(milliseconds(bucket.range.lowerBound))
          json.value(bucket.count)
        }
      }
    }
  }

  static func write(_ link: LinkReport, to json: inout JSONWriter) {
    json.member("name", link.name)
    json.member("format", link.format.description)
    json.member("capacity", link.limit)
    json.member("whenFull", link.policy.rawValue)
    json.member("pushed", link.pushed)
    json.member("popped", link.popped)
    json.member("droppedOldest", link.droppedOldest)
    json.member("droppedNewest", link.droppedNewest)
    json.member("droppedStale", link.droppedStale)
    json.member("droppedShed", link.droppedShed)
    json.member("discarded", link.discarded)
    json.member("highWater", link.highWater)
  }
}
