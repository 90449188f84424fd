internal import Synchronization

/// One end of a graph in the hands of the program: what `app.source` and `app.sink` have in common.
///
/// A link of its own leads from the program to the node, or from the node to the program. The program's side takes turns at a lock, which
/// the graph's side never touches: a worker that has news does one read-modify-write, and hands the channel to the courier if a task
/// waits for them.
@safe
package class AppChannel: RemoteWake, @unchecked Sendable {
  /// The node's name in its graph.
  package let node: String
  /// What packets carry.
  package let format: Format
  /// The program's turn. Never taken by a worker.
  let turn = Lock()
  let link: UnsafeMutablePointer<Link>
  /// Blocks of what is queued; it outlives the link.
  let pool: BlockPool
  let counters: UnsafeMutablePointer<LinkCounters>
  let replies: ReplyCounter
  private let courier: Courier
  /// The cells of the node: kept, for the link wakes them unowned.
  private let cells: RemoteWake
  private let cell: Int
  /// A task waits for news.
  private let isAwaited = Atomic<Bool>(false)
  private let isQueued = Atomic<Bool>(false)
  /// The channel below this one; only while the courier has it.
  var following: Unmanaged<AppChannel>?

  /// Where a channel leads, and what serves it.
  package struct Place {
    /// The node's name in its graph.
    package var node: String
    /// The cells that the node belongs to, and its number among them.
    package var cells: RemoteWake
    package var cell: Int
    package var replies: ReplyCounter
    package var courier: Courier

    package init(node: String, cells: RemoteWake, cell: Int, replies: ReplyCounter, courier: Courier) {
      self.node = node
      self.cells = cells
      self.cell = cell
      self.replies = replies
      self.courier = courier
    }
  }

  /// Which end of the link is the node.
  enum Direction { case toNode, toProgram }

  init(_ place: Place, _ direction: Direction, format: Format, capacity: Int, pool: BlockPool) {
    node = place.node
    self.format = format
    self.pool = pool
    cells = place.cells
    cell = place.cell
    replies = place.replies
    courier = place.courier
    unsafe following = nil
    unsafe counters = .allocate(capacity: 1)
    unsafe counters.initialize(to: LinkCounters())
    unsafe link = .allocate(capacity: 1)
    super.init()
    let cell = unsafe Wake(remote: Unmanaged.passUnretained(place.cells), index: place.cell)
    let program = unsafe Wake(remote: Unmanaged.passUnretained(self as RemoteWake), index: 0)
    let leadsToNode = direction == .toNode
    unsafe link.initialize(
      to: Link(
        limit: capacity, policy: .block, burst: 1, counters: counters, consumer: leadsToNode ? cell : program,
        producer: leadsToNode ? program : cell))
  }

  deinit {
    unsafe link.deinitialize(count: 1)
    unsafe link.deallocate()
    unsafe counters.deallocate()
  }

  /// There is news for the program. Any thread; no lock.
  package override func wake(_ index: Int) {
    // A read-modify-write whatever the value is: a plain load would lose news. The channel may still be with the courier for older ones.
    guard isAwaited.exchange(false, ordering: .acquiringAndReleasing) else { return }
    if !isQueued.exchange(true, ordering: .acquiringAndReleasing) { courier.push(self) }
  }

  /// Has the node called. Any thread.
  func wakeNode() { cells.wake(cell) }

  /// A task is about to wait: the next news go to the courier. Look once more after it.
  func awaitNews() { _ = isAwaited.exchange(true, ordering: .sequentiallyConsistent) }

  /// No task waits any more, and none will.
  func ignoreNews() { isAwaited.store(false, ordering: .releasing) }

  func leftQueue() { _ = isQueued.exchange(false, ordering: .sequentiallyConsistent) }

  /// Resumes the tasks that have what they waited for. On the courier's thread or one of the control side.
  func deliver() {}
}
