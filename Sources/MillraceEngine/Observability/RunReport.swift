public import MillraceCore
internal import MillraceGraph

/// The life cycle of a run.
public enum RunPhase: String, Sendable, Hashable, CaseIterable {
  /// Nodes are created, no packet has moved.
  case prepared
  /// Packets move.
  case running
  /// Sources have ended; queued packets flow out.
  case draining
  /// Workers are releasing the run.
  case stopping
  /// All nodes have ended; the report is final.
  case stopped
}

/// Why a run failed.
public struct RunFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// The node at fault.
  public var node: String
  /// The fault as the node threw it; nil when the node was abandoned because it did not return in time.
  public var fault: NodeFault?
  /// What happened and what to do.
  public var text: String

  /// A failure with its message, which must contain no secret.
  public init(node: String, fault: NodeFault?, text: String) {
    self.node = node
    self.fault = fault
    self.text = text
  }

  public var description: String { "node \"\(node)\": \(text)" }
}

/// The report of one node.
public struct NodeReport: Sendable, Hashable {
  /// Its name in the graph.
  public var name: String
  /// The type of node.
  public var type: String
  /// The kind of thread it was called on.
  public var lane: Lane
  /// True when it emits no media into the graph.
  public var isSink: Bool
  /// Calls of `process` and `finish`.
  public var activations: Int
  /// Packets taken from inputs.
  public var packetsIn: Int
  /// Packets emitted into links.
  public var packetsOut: Int
  /// Time spent in calls, in nanoseconds.
  public var busy: Nanoseconds
  /// The longest call.
  public var worst: Nanoseconds
  /// Calls longer than the budget.
  public var overBudget: Int
  /// The budget of one call, in microseconds.
  public var budget: Int
  /// Calls that took packets older than the graph allows at this node.
  public var overAge: Int
  /// The age limit in nanoseconds; nil: none.
  public var maxAge: Nanoseconds?
  /// Times it had work but no room on an output.
  public var blocked: Int
  /// Times it had work but no free block.
  public var starved: Int
  /// Times it was recreated after a fault.
  public var restarts: Int
  /// Time from capture to this node for the last packet; nil in graphs that do not follow a clock.
  public var lastAge: Nanoseconds?
  /// The longest such time.
  public var worstAge: Nanoseconds?
  /// Distribution of call times.
  public var callTimes: Histogram
  /// At sinks, the distribution of packet ages (the oldest of several taken in one call); nil elsewhere, and in graphs that do not
  /// follow a clock.
  public var ages: Histogram?
}

/// The report of one link.
public struct LinkReport: Sendable, Hashable {
  /// `mic -> enc`.
  public var name: String
  /// What it carried.
  public var format: Format
  /// The most packets it holds.
  public var limit: Int
  /// Its policy for a packet that finds it full.
  public var policy: LinkPolicy
  /// Packets that came in.
  public var pushed: Int
  /// Packets its reader took, or discarded as stale or shed.
  public var popped: Int
  /// Queued packets dropped because it was full.
  public var droppedOldest: Int
  /// New packets dropped because it was full.
  public var droppedNewest: Int
  /// Packets discarded as stale after an interruption.
  public var droppedStale: Int
  /// Packets discarded to shed load, by an overload step.
  public var droppedShed: Int
  /// Packets discarded because the reading node had ended or the run was stopped. When the run is over, `pushed` is the sum of
  /// `popped`, `droppedOldest` and this (stale and shed packets leave through the reader and are in `popped`).
  public var discarded: Int
  /// Packets queued at the time of the report; approximate while the run is active.
  public var queued: Int
  /// High-water mark: the most packets queued at once.
  public var highWater: Int

  /// All packets lost while the graph was running.
  public var dropped: Int { droppedOldest + droppedNewest + droppedStale + droppedShed }
}

/// The report of a run, so far or final.
public struct RunReport: Sendable {
  /// The graph's name.
  public var name: String
  /// The run's phase.
  public var phase: RunPhase
  /// The run's clock.
  public var clock: Clock.Kind
  /// Graph time since the start.
  public var duration: Nanoseconds
  /// Time from the request to start until the first packet reached a sink; nil when none has.
  public var timeToFirstPacket: Nanoseconds?
  /// Why the run failed; nil while it runs, and when it ended by itself or on request.
  public var failure: RunFailure?
  /// The nodes, in plan order.
  public var nodes: [NodeReport]
  /// The links, in plan order.
  public var links: [LinkReport]
  /// The present live links that lead to its nodes.
  public var liveLinks: [LinkReport] = []
  /// Reports of its parts that are running, or ended with the run.
  public var parts: [RunReport] = []
  /// Bytes of media memory.
  public var poolBytes: Int
  /// Blocks that nodes had not returned when the run ended: a node leaks packets, and their memory is lost.
  public var leakedBlocks: Int
  /// Names of nodes that did not return when the run was stopped. Their threads were abandoned.
  public var detachedNodes: [String]
  /// Events lost because the program did not read them in time: before they reached the listeners, and in the queue of each (see
  /// `GraphRun.events`).
  public var lostEvents: Int
}

extension RunReport: CustomStringConvertible {
  /// One line: `uplink: stopped after 2.1 s, 104 packets delivered, 3 dropped, worst call 412.5 us (enc)`.
  public var description: String {
    let delivered = nodes.filter(\.isSink).reduce(0) { $0 + $1.packetsIn }
    var parts = [
      "\(name): \(phase.rawValue) after \(Figures.duration(duration))",
      "\(Figures.counted(delivered, "packet")) delivered",
    ]
    let dropped = links.reduce(0) { $0 + $1.dropped }
    if dropped > 0 { parts.append("\(dropped) dropped") }
    if let worst = nodes.max(by: { $0.worst < $1.worst }), worst.worst > 0 {
      parts.append("worst call \(Figures.duration(worst.worst)) (\(worst.name))")
    }
    if let failure { parts.append("failed: \(failure)") }
    return parts.joined(separator: ", ")
  }
}
