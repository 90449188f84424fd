internal import Synchronization

/// The program's end of a graph: what `app.source` and `app.sink` have in common.
///
/// A link connects the program to the node, or the node to the program. The program's side shares a lock that the graph's side never
/// takes: a worker with a packet or room does one read-modify-write, and hands the channel to the resumer when a task waits.
@safe
package class AppChannel: RemoteWake, @unchecked Sendable {
  /// The node's name in its graph.
  package let node: String
  /// The format of the packets.
  package let format: Format
  /// The lock of the program's side. Never taken by a worker.
  let turn = Lock()
  let link: UnsafeMutablePointer<Link>
  /// The blocks of queued packets; it outlives the link.
  let pool: BlockPool
  let counters: UnsafeMutablePointer<LinkCounters>
  let replies: ReplyCounter
  private let resumer: TaskResumer
  /// The cells of the node: retained here, because the link references them unowned.
  private let cells: RemoteWake
  private let cell: Int
  /// A task waits for a packet or for room.
  private let wantsWake = Atomic<Bool>(false)
  private let isQueued = Atomic<Bool>(false)
  /// The next channel on the resumer's stack; valid only while this one is on it.
  var following: Unmanaged<AppChannel>?

  /// What a channel is connected to.
  package struct Place {
    /// The node's name in its graph.
    package var node: String
    /// The cells that the node belongs to, and its index among them.
    package var cells: RemoteWake
    package var cell: Int
    package var replies: ReplyCounter
    package var resumer: TaskResumer

    package init(node: String, cells: RemoteWake, cell: Int, replies: ReplyCounter, resumer: TaskResumer) {
      self.node = node
      self.cells = cells
      self.cell = cell
      self.replies = replies
      self.resumer = resumer
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
    resumer = place.resumer
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

  /// Signals a packet or room to the program. Any thread; no lock.
  package override func wake(_ index: Int) {
    // Always a read-modify-write: a plain load would lose wake-ups. The channel may still be queued for an earlier one.
    guard wantsWake.exchange(false, ordering: .acquiringAndReleasing) else { return }
    if !isQueued.exchange(true, ordering: .acquiringAndReleasing) { resumer.push(self) }
  }

  /// Makes the engine call the node. Any thread.
  func wakeNode() { cells.wake(cell) }

  /// Asks for a wake-up because a task is about to wait. Check the link once more afterwards.
  func requestWake() { _ = wantsWake.exchange(true, ordering: .sequentiallyConsistent) }

  /// Cancels the request: no task waits or will wait.
  func cancelWake() { wantsWake.store(false, ordering: .releasing) }

  func didLeaveQueue() { _ = isQueued.exchange(false, ordering: .sequentiallyConsistent) }

  /// Resumes the tasks whose packet or room is there. On the resumer's thread or a thread of the control side.
  func deliver() {}
}
