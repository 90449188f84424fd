/// One input of a cell: its link, or none.
@unsafe
public struct InputSlot {
  /// The link that leads here.
  public var link: UnsafeMutablePointer<Link>?
  /// True when a packet here makes the cell run.
  public var drives: Bool
  /// An input of a cell.
  public init(link: UnsafeMutablePointer<Link>?, drives: Bool) {
    unsafe self.link = unsafe link
    unsafe self.drives = drives
  }
}

/// One output of a cell: its links, and where its packets' blocks come from.
@unsafe
public struct OutputSlot {
  /// The links that lead away, `linkCount` of them.
  public var links: UnsafeMutablePointer<UnsafeMutablePointer<Link>>?
  /// How many of them there are; 0: nobody listens.
  public var linkCount: Int
  /// The pool of this output's blocks; nil when the output carries nothing.
  public var pool: Unmanaged<BlockPool>?
  /// Index of the output's format in the graph's table.
  public var format: UInt16
  /// The cell is called only when there is room here. False: the node asks for itself.
  public var gates: Bool
  /// An output of a cell.
  public init(
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

/// A constant piece of JSON that starts an event: `"node":"meter","event":"level"`.
@unsafe
public struct EventPrefix {
  /// Its first byte, in memory that lives as long as the run.
  public var start: UnsafePointer<UInt8>
  /// Its length in bytes.
  public var count: Int
  /// A prefix in memory that stays where it is.
  public init(start: UnsafePointer<UInt8>, count: Int) {
    unsafe self.start = unsafe start
    unsafe self.count = count
  }
}

/// The memory behind `Ports`: what one cell's calls work on. Built by the engine, at a fixed address while the graph runs.
///
/// Only the cell's worker touches it, save for what `Link` says itself.
@unsafe
public struct PortTable {
  /// The inputs, `inputCount` of them, in the setup's order.
  public var inputs: UnsafeMutablePointer<InputSlot>
  /// How many inputs there are.
  public var inputCount: Int
  /// The outputs, `outputCount` of them, in the setup's order.
  public var outputs: UnsafeMutablePointer<OutputSlot>
  /// How many outputs there are.
  public var outputCount: Int
  /// Index of the `events` output; -1 when the node has none.
  public var eventsOutput = -1
  /// The node's index in the graph's plan.
  public var nodeIndex = 0
  /// Beginnings of the node's events, in the contract's order.
  public var prefixes: UnsafeMutablePointer<EventPrefix>?
  /// How many events the contract has.
  public var prefixCount = 0
  /// A second place events go: the program that embeds the graph.
  public var outbox: UnsafeMutablePointer<Link>?
  /// The pool of event blocks.
  public var eventPool: Unmanaged<BlockPool>?
  /// Time of the present call on the graph clock.
  public var now: Nanoseconds = 0
  /// When the node wants to run next; `Nanoseconds.max`: no wish.
  public var wakeAt = Nanoseconds.max
  /// The graph is to end: its sources have been told.
  public var isDraining = false
  /// The reply that is valid now.
  public var generation: UInt32 = 0
  /// What the call left for the engine to do; empty after nearly every call.
  public var notes: CallNotes = []
  /// A fault the call caused without throwing it: an emit without room. Noted in `notes` too.
  public var fault: NodeFault?
  /// Packets taken since the graph started.
  public var taken = 0
  /// Age of the oldest packet taken since the engine last looked, in nanoseconds; negative when it was early or none came.
  public var age = Nanoseconds.min

  /// A table around slots that stay where they are; the rest is filled in by who made it.
  public init(
    inputs: UnsafeMutablePointer<InputSlot>, inputCount: Int, outputs: UnsafeMutablePointer<OutputSlot>,
    outputCount: Int
  ) {
    unsafe self.inputs = unsafe inputs
    unsafe self.inputCount = inputCount
    unsafe self.outputs = unsafe outputs
    unsafe self.outputCount = outputCount
  }
}

/// What a call of a node asks of the engine besides its answer.
public struct CallNotes: OptionSet, Sendable {
  public let rawValue: UInt8
  /// For `OptionSet`.
  @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// `PortTable.fault` is set.
  public static let fault = CallNotes(rawValue: 1 << 0)
  /// The replies are to be voided.
  public static let interrupt = CallNotes(rawValue: 1 << 1)
  /// Playback is to make room.
  public static let duck = CallNotes(rawValue: 1 << 2)
  /// Playback is to go on.
  public static let resume = CallNotes(rawValue: 1 << 3)
  /// No block was free where the node asked for room: it is to be called again a little later.
  public static let retry = CallNotes(rawValue: 1 << 4)
}
