public import MillraceCore

/// Where a run stands in its life.
public enum RunPhase: String, Sendable, Hashable, CaseIterable {
  /// Nodes are made, nothing has moved.
  case prepared
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

  public init(node: String, fault: NodeFault?, text: String) {
    self.node = node
    self.fault = fault
    self.text = text
  }

  public var description: String { "node \"\(node)\": \(text)" }
}

/// What one node did.
public struct NodeReport: Sendable, Hashable {
  public var name: String
  public var type: String
  public var lane: Lane
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
  public var budget: Int
  /// Times it had work but no room on an output, and times it had work but no free block.
  public var blocked: Int
  public var starved: Int
  /// Times it was made anew after a fault.
  public var restarts: Int
  /// Time from capture to this node for the last packet, and the longest; nil in graphs that do not follow a clock.
  public var lastAge: Nanoseconds?
  public var worstAge: Nanoseconds?
}

/// What one link carried.
public struct LinkReport: Sendable, Hashable {
  /// `mic -> enc`.
  public var name: String
  public var format: Format
  public var limit: Int
  public var policy: LinkPolicy
  public var pushed: Int
  public var popped: Int
  public var droppedOldest: Int
  public var droppedNewest: Int
  /// Dropped because an interruption had voided them.
  public var droppedStale: Int
  /// Thrown away when the reading node had ended.
  public var discarded: Int
  /// Most packets queued at once.
  public var highWater: Int

  /// Everything that was lost while the graph was at work.
  public var dropped: Int { droppedOldest + droppedNewest + droppedStale }
}

/// What a run did, up to now or to its end.
public struct RunReport: Sendable {
  public var name: String
  public var phase: RunPhase
  public var clock: Clock.Kind
  /// Graph time since the start.
  public var duration: Nanoseconds
  /// From the request to start until the first packet reached the end of the graph; nil when none did.
  public var timeToFirstPacket: Nanoseconds?
  public var failure: RunFailure?
  public var nodes: [NodeReport]
  public var links: [LinkReport]
  /// Bytes of media memory.
  public var poolBytes: Int
  /// Blocks that nodes had not given back when the run ended. Memory of theirs is lost; a node leaks packets.
  public var leakedBlocks: Int
  /// Names of nodes that did not return when the run was stopped. Their threads were given up.
  public var detachedNodes: [String]
  /// Events that were lost because the program did not take them in time.
  public var lostEvents: Int
}

/// Something that happened in a run, as the embedding program gets it.
public struct GraphEvent: Sendable, Hashable {
  /// Time on the graph clock, in nanoseconds.
  public var time: Nanoseconds
  /// The node that posted it; empty for events of the run itself.
  public var node: String
  /// The event's name in the node's contract, or of the run: `started`, `draining`, `nodeFailed`, `nodeRestarted`,
  /// `nodeIsolated`, `nodeDetached`, `stopped`.
  public var name: String
  /// The whole event as one JSON object.
  public var json: String

  public init(time: Nanoseconds, node: String, name: String, json: String) {
    self.time = time
    self.node = node
    self.name = name
    self.json = json
  }
}
