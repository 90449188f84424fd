internal import MillraceCore

/// Where a cell stands in its life.
enum CellPhase: UInt8 {
  /// Called as its drive says.
  case running
  /// All inputs are over, or the graph drains: emits what is left.
  case finishing
  /// Failed and waits to be made anew; its inputs queue up.
  case failed
  /// Isolated, or ended before its inputs: takes them and throws them away, so that nobody upstream waits for it.
  case discarding
  /// Will never be called again.
  case ended
}

/// What a cell did since its graph started. One writer, the cell's worker; any thread may read.
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
  /// Times the cell had work but no room on an output.
  let blocked = Counter()
  /// Times the cell had work but its pool had no free block.
  let starved = Counter()
  /// Age of the last packet taken, in nanoseconds since capture.
  let lastAge = Counter()
  /// Age of the oldest packet ever taken.
  let worstAge = Counter()
  /// Times the node was made anew after a fault.
  let restarts = Counter()
}

/// A node at its place in the scheduler: the ports its calls work on, and the bookkeeping around them.
///
/// Lives at a fixed address from the graph's start until every worker has let go of it. Only the cell's worker touches it,
/// except for the counters, the mailbox and `replacement`.
@unsafe
struct Cell: ~Copyable {
  // Read or written on every call.
  var table: PortTable
  var executor: Unmanaged<AnyExecutor>
  var phase = CellPhase.running
  let drive: Drive
  let isSink: Bool
  /// The last call asked for another one, whatever the inputs hold.
  var wantsAgain = false
  /// The armed timer is the node's own wish.
  var hasWish = false
  /// The cell has taken its first packet.
  var isFed = false
  /// No linked input: ends only by itself or when the graph drains.
  let isSource: Bool
  let counters: UnsafeMutablePointer<CellCounters>
  let mailbox: Mailbox
  let budgetTicks: UInt64
  /// Number in the engine's traces.
  let traceID: UInt32
  // Place.
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
    counters: UnsafeMutablePointer<CellCounters>, mailbox: Mailbox, budgetTicks: UInt64, traceID: UInt32,
    index: Int, nodeIndex: Int, strand: Strand
  ) {
    unsafe self.table = unsafe table
    unsafe self.executor = unsafe executor
    unsafe self.drive = drive
    unsafe self.isSink = isSink
    unsafe self.isSource = isSource
    unsafe self.counters = unsafe counters
    unsafe self.mailbox = mailbox
    unsafe self.budgetTicks = budgetTicks
    unsafe self.traceID = traceID
    unsafe self.index = index
    unsafe self.nodeIndex = nodeIndex
    unsafe self.strand = strand
    unsafe timerNext = nil
    unsafe timerPrevious = nil
  }

  /// The cell's port table, for `Ports`.
  static func table(of cell: UnsafeMutablePointer<Cell>) -> UnsafeMutablePointer<PortTable> {
    // The table is the first field, so its address is the cell's.
    unsafe UnsafeMutableRawPointer(cell).assumingMemoryBound(to: PortTable.self)
  }
}
