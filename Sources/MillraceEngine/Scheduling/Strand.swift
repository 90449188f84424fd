internal import MillraceCore
internal import Synchronization

/// The cells of one graph instance that share one worker, with the words that say which of them have work.
///
/// Bits follow the graph from upstream to downstream, and the worker always takes the highest: downstream first, so a packet
/// runs to its sink before the next one is let in, and depth stays at one or two.
///
/// Within the strand a cell is made ready by setting a bit, without any atomic operation. From elsewhere (`wake`) it takes two
/// read-modify-writes: one on the remote words, one on the state, whose old value says who has to queue the strand. A plain
/// load of the state would lose wake-ups.
@safe
final class Strand: RemoteWake, @unchecked Sendable {
  /// Bits of `state`.
  enum State {
    /// In a worker's queue, or being run.
    static let scheduled: UInt32 = 1
    /// Something came since the worker last looked.
    static let notified: UInt32 = 2
    /// Retired: wake-ups come to nothing.
    static let closed: UInt32 = 4
  }

  /// Requests from the control side, answered before the next call of a node.
  enum Request {
    static let drain: UInt32 = 1
    static let retire: UInt32 = 2
    static let interrupt: UInt32 = 4
    static let replace: UInt32 = 8
    static let begin: UInt32 = 16
    static let drainAtTime: UInt32 = 32
    /// The run has new appointments; only on a virtual clock.
    static let callbacks: UInt32 = 64
    static let duck: UInt32 = 128
    static let shed: UInt32 = 256
    /// Outputs feed other links or taps.
    static let outputs: UInt32 = 512
    /// A node has ended that sources of this strand end with.
    static let endSources: UInt32 = 1024
    /// Inputs have links that follow the present ones.
    static let inputs: UInt32 = 2048
  }

  /// Born as if queued: until the run starts or is stopped, wake-ups only leave their bits.
  let state = Atomic<UInt32>(State.scheduled)
  let requests = Atomic<UInt32>(0)
  let worker: Worker
  unowned(unsafe) let run: GraphRun
  let cells: UnsafeMutablePointer<Cell>
  let cellCount: Int
  let wordCount: Int
  /// Ready cells, as the worker knows them.
  let words: UnsafeMutablePointer<UInt64>
  /// Cells with mail. Apart from the mailboxes, so that a call need not touch its own.
  let mailWords: UnsafeMutablePointer<Atomic<UInt64>>
  /// Ready cells, as others told.
  let remoteWords: UnsafeMutablePointer<Atomic<UInt64>>
  /// The strand of the same run on the bulk worker, which hears of packets and of room at the end of this strand's turns only; nil
  /// for that strand itself, and when there is none. Disk and pictures do not live by the single packet, and waking a thread for
  /// each costs more than the packet does.
  @exclusivity(unchecked) private(set) var partner: Unmanaged<Strand>?
  /// Cells of `partner` that have something to hear: one word for each of its `words`.
  @exclusivity(unchecked) private(set) var deferredWakes: UnsafeMutablePointer<UInt64>?
  /// Graph time 0 on the worker's clock.
  @exclusivity(unchecked) var epoch: Nanoseconds = 0
  @exclusivity(unchecked) var isDraining = false
  /// Graph time before which sources of a draining strand still give what was due.
  @exclusivity(unchecked) var drainsFrom = Nanoseconds.max
  /// Place among the strands that are to drain at a time of their own.
  @exclusivity(unchecked) var drainEntry = unsafe DrainEntry()
  /// Where the strand's events go to the program; nil when nobody listens.
  @exclusivity(unchecked) var outbox: UnsafeMutablePointer<Link>?
  /// The first of the taps on outputs of the strand's cells; only on a virtual clock, which waits for them.
  @exclusivity(unchecked) var firstTap: Unmanaged<TapLine>?
  /// Links that wait for the one in their input's slot to be spent.
  @exclusivity(unchecked) var pendingInlets: [PendingInlet] = unsafe []
  /// Whether there are any: looked at in every turn.
  @exclusivity(unchecked) var hasPendingInlets = false
  /// Next in a worker's inbox or queue.
  @exclusivity(unchecked) var following: Unmanaged<Strand>?

  init(worker: Worker, run: GraphRun, cellCount: Int) {
    self.worker = worker
    unsafe self.run = run
    unsafe following = nil
    unsafe firstTap = nil
    unsafe outbox = nil
    unsafe partner = nil
    unsafe deferredWakes = nil
    self.cellCount = cellCount
    wordCount = (cellCount + 63) / 64
    unsafe cells = .allocate(capacity: cellCount)
    unsafe words = .allocate(capacity: wordCount)
    unsafe words.initialize(repeating: 0, count: wordCount)
    unsafe remoteWords = .allocate(capacity: wordCount)
    unsafe mailWords = .allocate(capacity: wordCount)
    for index in 0..<wordCount {
      unsafe (remoteWords + index).initialize(to: Atomic(0))
      unsafe (mailWords + index).initialize(to: Atomic(0))
    }
  }

  deinit {
    unsafe cells.deallocate()
    unsafe words.deallocate()
    unsafe remoteWords.deallocate()
    unsafe mailWords.deallocate()
    unsafe deferredWakes?.deallocate()
  }

  /// From now on what this strand has to tell `other` waits for the end of a turn. Control side, before the run starts.
  func defersWakes(to other: Strand) {
    unsafe partner = Unmanaged.passUnretained(other)
    let words = UnsafeMutablePointer<UInt64>.allocate(capacity: other.wordCount)
    unsafe words.initialize(repeating: 0, count: other.wordCount)
    unsafe deferredWakes = unsafe words
  }

  // MARK: From any thread

  override func wake(_ index: Int) {
    unsafe remoteWords[index >> 6].bitwiseOr(1 &<< UInt64(index & 63), ordering: .acquiringAndReleasing)
    notify()
  }

  /// Cell `index` has mail, and work for that reason.
  func wakeForMail(_ index: Int) {
    unsafe mailWords[index >> 6].bitwiseOr(1 &<< UInt64(index & 63), ordering: .acquiringAndReleasing)
    wake(index)
  }

  /// Leaves a request for the worker.
  func request(_ request: UInt32) {
    requests.bitwiseOr(request, ordering: .acquiringAndReleasing)
    notify()
  }

  /// Queues the strand for the first time. Once in its life, when the run starts or is stopped before that.
  func start(with request: UInt32) {
    requests.bitwiseOr(request, ordering: .acquiringAndReleasing)
    worker.post(self)
  }

  func notify() {
    let old = state.bitwiseOr(State.scheduled | State.notified, ordering: .acquiringAndReleasing).oldValue
    if old & (State.scheduled | State.closed) == 0 { worker.post(self) }
  }

  // MARK: On the worker

  /// Moves what others told into the worker's own words.
  func collect() {
    for index in 0..<wordCount {
      if unsafe remoteWords[index].load(ordering: .relaxed) != 0 {
        unsafe words[index] |= remoteWords[index].exchange(0, ordering: .acquiringAndReleasing)
      }
    }
  }

  /// Tells the partner what this turn left for it: one read-modify-write for all of a word's cells, one wake-up for all.
  @inline(__always)
  func wakePartner() {
    guard let partner = unsafe partner, let deferredWakes = unsafe deferredWakes else { return }
    unsafe partner._withUnsafeGuaranteedRef { other in
      var wakesAny = false
      for index in 0..<other.wordCount where unsafe deferredWakes[index] != 0 {
        unsafe other.remoteWords[index].bitwiseOr(deferredWakes[index], ordering: .acquiringAndReleasing)
        unsafe deferredWakes[index] = 0
        wakesAny = true
      }
      if wakesAny { other.notify() }
    }
  }

  /// Takes the ready cell farthest downstream.
  @inline(__always)
  func takeReady() -> UnsafeMutablePointer<Cell>? {
    var index = wordCount
    while index > 0 {
      index &-= 1
      let word = unsafe words[index]
      if word != 0 {
        let bit = 63 &- word.leadingZeroBitCount
        unsafe words[index] = word & ~(1 &<< UInt64(bit))
        return unsafe cells + (index &<< 6 &+ bit)
      }
    }
    return nil
  }

  /// The cell that `takeReady` would take.
  @inline(__always)
  var firstReady: UnsafeMutablePointer<Cell>? {
    for index in (0..<wordCount).reversed() where unsafe words[index] != 0 {
      return unsafe cells + (index &<< 6 &+ (63 &- words[index].leadingZeroBitCount))
    }
    return nil
  }

  /// True once after a cell was told of mail.
  @inline(__always)
  func takeMailSignal(_ index: Int) -> Bool {
    let bit = 1 as UInt64 &<< UInt64(index & 63)
    if unsafe mailWords[index &>> 6].load(ordering: .relaxed) & bit == 0 { return false }
    unsafe mailWords[index &>> 6].bitwiseAnd(~bit, ordering: .acquiringAndReleasing)
    return true
  }

  /// A cell may have mail, and is to look.
  func markMail(_ cell: UnsafeMutablePointer<Cell>) {
    let index = unsafe cell.pointee.index
    unsafe mailWords[index &>> 6].bitwiseOr(1 &<< UInt64(index & 63), ordering: .acquiringAndReleasing)
    unsafe markReady(cell)
  }

  var hasReady: Bool {
    for index in 0..<wordCount where unsafe words[index] != 0 { return true }
    return false
  }

  @inline(__always)
  func markReady(_ cell: UnsafeMutablePointer<Cell>) {
    let index = unsafe cell.pointee.index
    unsafe words[index &>> 6] |= 1 &<< UInt64(index & 63)
  }
}
