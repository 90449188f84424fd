/// One input of a cell: its link, or none.
@unsafe
@usableFromInline package struct InputSlot {
  /// The link that leads here.
  @usableFromInline package var link: UnsafeMutablePointer<Link>?
  /// True when a packet here makes the cell run.
  @usableFromInline package var drives: Bool
  /// Creates an input.
  package init(link: UnsafeMutablePointer<Link>?, drives: Bool) {
    unsafe self.link = unsafe link
    unsafe self.drives = drives
  }
}

/// One output of a cell: its links and the pool of its packets.
@unsafe
@usableFromInline package struct OutputSlot {
  /// The outgoing links, `linkCount` of them.
  @usableFromInline package var links: UnsafeMutablePointer<UnsafeMutablePointer<Link>>?
  /// Number of links; 0: the output has no listener.
  @usableFromInline package var linkCount: Int
  /// The pool for packets of this output; nil when the output has no format.
  @usableFromInline package var pool: Unmanaged<BlockPool>?
  /// Index of the output's format in the graph's table.
  @usableFromInline package var format: UInt16
  /// True when the cell is called only while this output has room; false when the node checks itself.
  @usableFromInline package var gates: Bool
  /// Creates an output.
  package init(
    links: UnsafeMutablePointer<UnsafeMutablePointer<Link>>?, linkCount: Int, pool: Unmanaged<BlockPool>?,
    format: UInt16, gates: Bool = true
  ) {
    unsafe self.gates = gates
    unsafe self.links = unsafe links
    unsafe self.linkCount = linkCount
    unsafe self.pool = unsafe pool
    unsafe self.format = format
  }
}

/// The constant JSON at the beginning of an event: `"node":"meter","event":"level"`.
@unsafe
@usableFromInline package struct EventPrefix {
  /// Its first byte, in memory that exists as long as the run.
  @usableFromInline package var start: UnsafePointer<UInt8>
  /// Its length in bytes.
  @usableFromInline package var count: Int
  /// Creates a prefix in memory with a fixed address.
  package init(start: UnsafePointer<UInt8>, count: Int) {
    unsafe self.start = unsafe start
    unsafe self.count = count
  }
}

/// The state behind `Ports`, used by the calls of one cell. The engine creates it, at a fixed address while the graph runs.
///
/// Only the cell's worker accesses it, except where `Link` documents otherwise.
@unsafe
@usableFromInline package struct PortTable {
  /// The inputs, `inputCount` of them, in the setup's order.
  @usableFromInline package var inputs: UnsafeMutablePointer<InputSlot>
  /// Number of inputs.
  @usableFromInline package var inputCount: Int
  /// The outputs, `outputCount` of them, in the setup's order.
  @usableFromInline package var outputs: UnsafeMutablePointer<OutputSlot>
  /// Number of outputs.
  @usableFromInline package var outputCount: Int
  /// Index of the `events` output; -1 when the node has none.
  @usableFromInline package var eventsOutput = -1
  /// The node's index in the graph's plan.
  @usableFromInline package var nodeIndex = 0
  /// The prefixes of the node's events, in the contract's order.
  @usableFromInline package var prefixes: UnsafeMutablePointer<EventPrefix>?
  /// Number of events in the contract.
  @usableFromInline package var prefixCount = 0
  /// The link that delivers events to the embedding program.
  @usableFromInline package var outbox: UnsafeMutablePointer<Link>?
  /// The pool of event blocks.
  @usableFromInline package var eventPool: Unmanaged<BlockPool>?
  /// Time of the current call on the graph clock.
  @usableFromInline package var now: Nanoseconds = 0
  /// Added to the time of events: a part starts later than its run, and the run's listeners receive its events.
  @usableFromInline package var eventShift: Nanoseconds = 0
  /// When the node asked to be called next; `Nanoseconds.max`: not at all.
  @usableFromInline package var wakeAt = Nanoseconds.max
  /// The graph drains: its sources are ending.
  @usableFromInline package var isDraining = false
  /// The current reply.
  @usableFromInline package var generation: UInt32 = 0
  /// What the call asked of the engine; empty after nearly every call.
  @usableFromInline package var requests: CallRequests = []
  /// A fault that the call caused without throwing it: an emit without room. `requests` contains `fault` then.
  @usableFromInline package var fault: NodeFault?
  /// Packets taken since the graph started.
  @usableFromInline package var taken = 0
  /// Age of the oldest packet taken since the engine last read it, in nanoseconds; negative when it was early or none was taken.
  @usableFromInline package var age = Nanoseconds.min

  /// Creates a table of slots with fixed addresses; its creator fills in the rest.
  package init(
    inputs: UnsafeMutablePointer<InputSlot>, inputCount: Int, outputs: UnsafeMutablePointer<OutputSlot>,
    outputCount: Int
  ) {
    unsafe self.inputs = unsafe inputs
    unsafe self.inputCount = inputCount
    unsafe self.outputs = unsafe outputs
    unsafe self.outputCount = outputCount
  }
}

/// What a node's call asks of the engine besides its return value.
public struct CallRequests: OptionSet, Sendable {
  public let rawValue: UInt8
  /// For `OptionSet`.
  @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// `PortTable.fault` is set.
  public static let fault = CallRequests(rawValue: 1 << 0)
  /// Cancel the replies.
  public static let interrupt = CallRequests(rawValue: 1 << 1)
  /// Duck playback.
  public static let duck = CallRequests(rawValue: 1 << 2)
  /// Resume playback.
  public static let resume = CallRequests(rawValue: 1 << 3)
  /// The node asked for room and no block was free: call it again a little later.
  public static let retry = CallRequests(rawValue: 1 << 4)
}
