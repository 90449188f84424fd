/// One input of a cell: its link, or none.
@unsafe
@usableFromInline package struct InputSlot {
  /// The link that leads here.
  @usableFromInline package var link: UnsafeMutablePointer<Link>?
  /// True when a packet here makes the cell run.
  @usableFromInline package var drives: Bool
  /// An input of a cell.
  package init(link: UnsafeMutablePointer<Link>?, drives: Bool) {
    unsafe self.link = unsafe link
    unsafe self.drives = drives
  }
}

/// One output of a cell: its links, and where its packets' blocks come from.
@unsafe
@usableFromInline package struct OutputSlot {
  /// The links that lead away, `linkCount` of them.
  @usableFromInline package var links: UnsafeMutablePointer<UnsafeMutablePointer<Link>>?
  /// How many of them there are; 0: nobody listens.
  @usableFromInline package var linkCount: Int
  /// The pool of this output's blocks; nil when the output carries nothing.
  @usableFromInline package var pool: Unmanaged<BlockPool>?
  /// Index of the output's format in the graph's table.
  @usableFromInline package var format: UInt16
  /// The cell is called only when there is room here. False: the node asks for itself.
  @usableFromInline package var gates: Bool
  /// An output of a cell.
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

/// A constant piece of JSON that starts an event: `"node":"meter","event":"level"`.
@unsafe
@usableFromInline package struct EventPrefix {
  /// Its first byte, in memory that lives as long as the run.
  @usableFromInline package var start: UnsafePointer<UInt8>
  /// Its length in bytes.
  @usableFromInline package var count: Int
  /// A prefix in memory that stays where it is.
  package init(start: UnsafePointer<UInt8>, count: Int) {
    unsafe self.start = unsafe start
    unsafe self.count = count
  }
}

/// The memory behind `Ports`: what one cell's calls work on. Built by the engine, at a fixed address while the graph runs.
///
/// Only the cell's worker touches it, save for what `Link` says itself.
@unsafe
@usableFromInline package struct PortTable {
  /// The inputs, `inputCount` of them, in the setup's order.
  @usableFromInline package var inputs: UnsafeMutablePointer<InputSlot>
  /// How many inputs there are.
  @usableFromInline package var inputCount: Int
  /// The outputs, `outputCount` of them, in the setup's order.
  @usableFromInline package var outputs: UnsafeMutablePointer<OutputSlot>
  /// How many outputs there are.
  @usableFromInline package var outputCount: Int
  /// Index of the `events` output; -1 when the node has none.
  @usableFromInline package var eventsOutput = -1
  /// The node's index in the graph's plan.
  @usableFromInline package var nodeIndex = 0
  /// Beginnings of the node's events, in the contract's order.
  @usableFromInline package var prefixes: UnsafeMutablePointer<EventPrefix>?
  /// How many events the contract has.
  @usableFromInline package var prefixCount = 0
  /// A second place events go: the program that embeds the graph.
  @usableFromInline package var outbox: UnsafeMutablePointer<Link>?
  /// The pool of event blocks.
  @usableFromInline package var eventPool: Unmanaged<BlockPool>?
  /// Time of the present call on the graph clock.
  @usableFromInline package var now: Nanoseconds = 0
  /// Added to the time of events: a part of a run begins later, and its events go to the run's listeners.
  @usableFromInline package var eventShift: Nanoseconds = 0
  /// When the node wants to run next; `Nanoseconds.max`: no wish.
  @usableFromInline package var wakeAt = Nanoseconds.max
  /// The graph is to end: its sources have been told.
  @usableFromInline package var isDraining = false
  /// The reply that is valid now.
  @usableFromInline package var generation: UInt32 = 0
  /// What the call left for the engine to do; empty after nearly every call.
  @usableFromInline package var notes: CallNotes = []
  /// A fault the call caused without throwing it: an emit without room. Noted in `notes` too.
  @usableFromInline package var fault: NodeFault?
  /// Packets taken since the graph started.
  @usableFromInline package var taken = 0
  /// Age of the oldest packet taken since the engine last looked, in nanoseconds; negative when it was early or none came.
  @usableFromInline package var age = Nanoseconds.min

  /// A table around slots that stay where they are; the rest is filled in by who made it.
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
