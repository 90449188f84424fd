internal import MillraceCore

/// The life cycle of a cell.
enum CellPhase: UInt8 {
  /// Called as its drive says.
  case running
  /// All inputs are over, or the graph drains: `finish` emits what is left.
  case finishing
  /// Failed and waits to be recreated; its inputs queue up.
  case failed
  /// Receives no input while the machine is overloaded: its input packets are discarded, until they end or the load falls.
  case shedding
  /// Isolated, or ended before its inputs: their packets are discarded, so that no node upstream waits for it.
  case discarding
  /// Never called again.
  case ended

  /// Its node is never called again.
  var isOver: Bool { self == .discarding || self == .ended }

  /// Its node receives messages, interruptions and ducking.
  var isActive: Bool { self == .running || self == .finishing || self == .shedding }
}

/// Counters of a cell since its graph started. One writer, the cell's worker; any thread may read.
@safe
struct CellCounters: ~Copyable {
  /// Calls of the node.
  let activations = Counter()
  /// Packets the node took.
  let packets = Counter()
  /// Ticks spent in calls.
  let busyTicks = Counter()
  /// Ticks of the longest call.
  let worstTicks = Counter()
  /// Calls that took longer than the budget.
  let overBudget = Counter()
  /// Ticks of the last such call.
  let lastOverBudget = Counter()
  /// Calls that took packets older than the node's limit.
  let overAge = Counter()
  /// Age of the packet of the last such call, in nanoseconds.
  let lastOverAge = Counter()
  /// Times the cell had work but no room on an output.
  let blocked = Counter()
  /// Times the cell had work but its pool had no free block.
  let starved = Counter()
  /// Age of the last packet taken, in nanoseconds since capture.
  let lastAge = Counter()
  /// Age of the oldest packet ever taken.
  let worstAge = Counter()
  /// Times the node was recreated after a fault.
  let restarts = Counter()
  /// Distribution of call times, in ticks.
  let callTimes: UnsafeMutablePointer<HistogramCounters>
  /// Distribution of packet ages, in nanoseconds; nil for nodes that are not sinks.
  let ages: UnsafeMutablePointer<HistogramCounters>?

  init(callTimes: UnsafeMutablePointer<HistogramCounters>, ages: UnsafeMutablePointer<HistogramCounters>?) {
    unsafe self.callTimes = unsafe callTimes
    unsafe self.ages = unsafe ages
  }
}

/// A node at its place in the scheduler: the ports its calls work on, and the bookkeeping around them.
///
/// Lives at a fixed address from the graph's start until every worker has released it. Used only by its worker, except for the
/// counters and the mailbox.
@unsafe
struct Cell: ~Copyable {
  // Read or written on every call.
  var table: PortTable
  var executor: Unmanaged<AnyExecutor>
  var phase = CellPhase.running
  let drive: Drive
  let isSink: Bool
  /// The last call asked for another one, whatever the inputs hold.
  var wantsCall = false
  /// When the node asked to be called, on the worker's clock; `Nanoseconds.max`: not at all.
  var requestedWake = Nanoseconds.max
  /// When the cell is tried again, because no block was free or the graph has not begun; `Nanoseconds.max`: not at all.
  var retry = Nanoseconds.max
  /// The node asked for the retry itself, and is then called whatever its inputs hold.
  var retryCalls = false
  /// The cell has taken its first packet.
  var isFed = false
  /// The node was notified that its reply is ducked.
  var isDucked = false
  /// The node is notified of ducking.
  let playsReplies: Bool
  /// No linked input: ends only by itself, with another node, or when the graph drains.
  let isSource: Bool
  /// Sources end with this node.
  let hasDependents: Bool
  /// The node waits for slow listeners of the run: no node of the run follows the real clock.
  let waitsForListeners: Bool
  let counters: UnsafeMutablePointer<CellCounters>
  /// The histogram bucket of the last call time; the next one is likely near it.
  var lastCallTime: UnsafeRawPointer?
  let lines: CallLines
  let mailbox: Mailbox
  let budgetTicks: UInt64
  /// The age limit of packets at this node.
  let maxAge: Nanoseconds
  /// ID in the engine's traces.
  let traceID: UInt32
  // Position.
  /// Bit in the strand's ready words.
  let index: Int
  /// Index in the plan's nodes.
  let nodeIndex: Int
  unowned(unsafe) let strand: Strand
  // Timer wheel.
  var timerNext: UnsafeMutablePointer<Cell>?
  var timerPrevious: UnsafeMutablePointer<Cell>?
  var timerDeadline: Nanoseconds = 0
  var timerTick: Int64 = 0
  var isInWheel = false

  init(
    table: PortTable, executor: Unmanaged<AnyExecutor>, drive: Drive, isSink: Bool, isSource: Bool,
    hasDependents: Bool, waitsForListeners: Bool, playsReplies: Bool,
    counters: UnsafeMutablePointer<CellCounters>, mailbox: Mailbox, budgetTicks: UInt64,
    maxAge: Nanoseconds, traceID: UInt32,
    index: Int, nodeIndex: Int, strand: Strand
  ) {
    unsafe lines = unsafe CallLines(table, executor.takeUnretainedValue())
    unsafe self.table = unsafe table
    unsafe self.executor = unsafe executor
    unsafe self.drive = drive
    unsafe self.isSink = isSink
    unsafe self.isSource = isSource
    unsafe self.hasDependents = hasDependents
    unsafe self.waitsForListeners = waitsForListeners
    unsafe self.playsReplies = playsReplies
    unsafe self.counters = unsafe counters
    unsafe self.mailbox = mailbox
    unsafe self.budgetTicks = budgetTicks
    unsafe self.maxAge = maxAge
    unsafe self.traceID = traceID
    unsafe self.index = index
    unsafe self.nodeIndex = nodeIndex
    unsafe self.strand = strand
    unsafe timerNext = nil
    unsafe timerPrevious = nil
    unsafe lastCallTime = nil
  }

  /// The cell's port table, for `Ports`.
  static func table(of cell: UnsafeMutablePointer<Cell>) -> UnsafeMutablePointer<PortTable> {
    // The table is the first field, so its address is the cell's.
    unsafe UnsafeMutableRawPointer(cell).assumingMemoryBound(to: PortTable.self)
  }
}
