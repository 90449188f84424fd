internal import MillraceCore
package import MillraceEngine

extension NodeReport {
  /// Combines the reports of this node in two runs: counts are added, maxima are the greater of both.
  package func combined(with other: NodeReport) -> NodeReport {
    var both = self
    both.activations += other.activations
    both.packetsIn += other.packetsIn
    both.packetsOut += other.packetsOut
    both.busy += other.busy
    both.worst = max(worst, other.worst)
    both.overBudget += other.overBudget
    both.overAge += other.overAge
    both.blocked += other.blocked
    both.starved += other.starved
    both.restarts += other.restarts
    both.lastAge = [lastAge, other.lastAge].compactMap(\.self).max()
    both.worstAge = [worstAge, other.worstAge].compactMap(\.self).max()
    both.callTimes = callTimes.merged(with: other.callTimes)
    both.ages = [ages, other.ages].compactMap(\.self).reduce(nil) { $0?.merged(with: $1) ?? $1 }
    return both
  }
}

extension LinkReport {
  /// Combines the reports of this link in two runs: counts are added, maxima are the greater of both.
  package func combined(with other: LinkReport) -> LinkReport {
    var both = self
    both.pushed += other.pushed
    both.popped += other.popped
    both.droppedOldest += other.droppedOldest
    both.droppedNewest += other.droppedNewest
    both.droppedStale += other.droppedStale
    both.droppedShed += other.droppedShed
    both.discarded += other.discarded
    both.queued += other.queued
    both.highWater = max(highWater, other.highWater)
    return both
  }
}

/// The combined reports of a graph's runs, with nodes and links by name.
struct ReportTotals: Sendable {
  private(set) var runs = 0
  private(set) var failed = 0
  private(set) var phases: [RunPhase: Int] = [:]
  private(set) var nodes: [String: NodeReport] = [:]
  private(set) var links: [String: LinkReport] = [:]
  private(set) var lostEvents = 0
  private(set) var leakedBlocks = 0
  private(set) var poolBytes = 0
  /// The longest graph time of a run.
  private(set) var duration: Nanoseconds = 0
  /// The longest time to the first packet.
  private(set) var timeToFirstPacket: Nanoseconds?

  mutating func add(_ report: RunReport) {
    runs += 1
    if report.failure != nil { failed += 1 }
    phases[report.phase, default: 0] += 1
    for node in report.nodes { nodes[node.name] = nodes[node.name]?.combined(with: node) ?? node }
    for link in report.links { links[link.name] = links[link.name]?.combined(with: link) ?? link }
    lostEvents += report.lostEvents
    leakedBlocks += report.leakedBlocks
    poolBytes += report.poolBytes
    duration = max(duration, report.duration)
    timeToFirstPacket = [timeToFirstPacket, report.timeToFirstPacket].compactMap(\.self).max()
  }

  /// Adds the counters and maxima of a run that has stopped, but not its current values.
  mutating func addEnded(_ report: RunReport) {
    var report = report
    for index in report.nodes.indices { report.nodes[index].lastAge = nil }
    for index in report.links.indices { report.links[index].queued = 0 }
    report.poolBytes = 0
    report.duration = 0
    report.timeToFirstPacket = nil
    add(report)
  }
}
