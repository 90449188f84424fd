public import MillraceCore
internal import MillraceGraph

/// Where a run stands in its life.
public enum RunPhase: String, Sendable, Hashable, CaseIterable {
  /// Nodes are made, nothing has moved.
  case prepared
  /// Packets move.
  case running
  /// Sources have ended; what is inside flows out.
  case draining
  /// Workers are letting go.
  case stopping
  case stopped
}

/// Why a run ended before its time, in words.
public struct RunFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// The node at fault.
  public var node: String
  /// The fault as the node threw it; nil when the engine gave up on the node (it did not return in time).
  public var fault: NodeFault?
  /// What happened and what to do.
  public var text: String

  /// A failure in words, without secrets.
  public init(node: String, fault: NodeFault?, text: String) {
    self.node = node
    self.fault = fault
    self.text = text
  }

  public var description: String { "node \"\(node)\": \(text)" }
}

/// What one node did.
public struct NodeReport: Sendable, Hashable {
  /// Its name in the graph, its type, and the kind of thread it ran on.
  public var name: String
  /// The type of node.
  public var type: String
  /// The kind of thread it was called on.
  public var lane: Lane
  /// No media leaves it into the graph.
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
  /// Calls longer than the budget, and the budget in microseconds.
  public var overBudget: Int
  /// What one call may take, in microseconds.
  public var budget: Int
  /// Calls that took packets older than the graph allows at this node, and how old it allows; nil: as old as they like.
  public var overAge: Int
  /// The age allowed in nanoseconds; nil: any.
  public var maxAge: Nanoseconds?
  /// Times it had work but no room on an output, and times it had work but no free block.
  public var blocked: Int
  /// Times it had work but no free block.
  public var starved: Int
  /// Times it was made anew after a fault.
  public var restarts: Int
  /// Time from capture to this node for the last packet, and the longest; nil in graphs that do not follow a clock.
  public var lastAge: Nanoseconds?
  /// The longest such time.
  public var worstAge: Nanoseconds?
  /// How the times of calls were spread.
  public var callTimes: Histogram
  /// At the ends of the graph, how the ages of packets were spread (of several taken in a call, the oldest); nil elsewhere,
  /// and in graphs that do not follow a clock.
  public var ages: Histogram?
}

/// What one link carried.
public struct LinkReport: Sendable, Hashable {
  /// `mic -> enc`.
  public var name: String
  /// What it carried.
  public var format: Format
  /// Packets it holds, and what happens to one more.
  public var limit: Int
  /// What happens to a packet that finds it full.
  public var policy: LinkPolicy
  /// Packets that came in, and packets that its reader took or had thrown away as stale or shed.
  public var pushed: Int
  /// Packets its reader took, or had thrown away as stale or shed.
  public var popped: Int
  /// Packets lost because it was full: old ones that had been in it, and new ones that never came in.
  public var droppedOldest: Int
  /// Packets that never came in because it was full.
  public var droppedNewest: Int
  /// Dropped because an interruption had voided them.
  public var droppedStale: Int
  /// Thrown away to shed load, as a step against overload says.
  public var droppedShed: Int
  /// Thrown away when the reading node had ended, or the run was stopped. When the run is over, `pushed` is the sum of `popped`,
  /// `droppedOldest` and this (what was void or shed has left through the reader, and is in `popped`).
  public var discarded: Int
  /// Packets queued at the moment of the report, as near as that can be told from outside; and most at once.
  public var queued: Int
  /// Most packets queued at once.
  public var highWater: Int

  /// Everything that was lost while the graph was at work.
  public var dropped: Int { droppedOldest + droppedNewest + droppedStale + droppedShed }
}

/// What a run did, up to now or to its end.
public struct RunReport: Sendable {
  /// The graph's name, where the run stands, and what it takes time from.
  public var name: String
  /// Where the run stands.
  public var phase: RunPhase
  /// What the run takes time from.
  public var clock: Clock.Kind
  /// Graph time since the start.
  public var duration: Nanoseconds
  /// From the request to start until the first packet reached the end of the graph; nil when none did.
  public var timeToFirstPacket: Nanoseconds?
  /// What ended the run before its time; nil while it goes, and when it ended by itself or on request.
  public var failure: RunFailure?
  /// Nodes and links, in the order of the plan.
  public var nodes: [NodeReport]
  /// The links, in the order of the plan.
  public var links: [LinkReport]
  /// Links that were made while the graph ran and lead to its nodes, as far as they are there now.
  public var liveLinks: [LinkReport] = []
  /// Reports of its parts, as far as they are at work, or ended with the run.
  public var parts: [RunReport] = []
  /// Bytes of media memory.
  public var poolBytes: Int
  /// Blocks that nodes had not given back when the run ended. Memory of theirs is lost; a node leaks packets.
  public var leakedBlocks: Int
  /// Names of nodes that did not return when the run was stopped. Their threads were given up.
  public var detachedNodes: [String]
  /// Events that were lost because the program did not take them in time: on the way to all listeners, and in the queue of
  /// each (see `GraphRun.events`).
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
