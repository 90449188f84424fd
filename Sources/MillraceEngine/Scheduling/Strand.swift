internal import MillraceCore
internal import Synchronization

/// The cells of one graph instance on one worker, with bit sets of those that have work.
///
/// Bits are in graph order, from upstream to downstream, and the worker always takes the highest: downstream first, so a packet
/// reaches its sink before the next one enters, and queues stay one or two packets deep.
///
/// Within the strand a cell is made ready by setting a bit, without an atomic operation. From other threads (`wake`) it takes two
/// read-modify-writes: one on the remote words, one on the state, whose old value decides who queues the strand. A plain load of
/// the state would lose wake-ups.
@safe
final class Strand: RemoteWake, @unchecked Sendable {
  /// Bits of `state`.
  enum State {
    /// In a worker's queue, or being run.
    static let scheduled: UInt32 = 1
    /// Woken since the worker last checked.
    static let notified: UInt32 = 2
    /// Retired: wake-ups have no effect.
    static let closed: UInt32 = 4
  }

  /// Requests from the control side, carried out before the next node call.
  enum Request {
    static let drain: UInt32 = 1
    static let retire: UInt32 = 2
    static let interrupt: UInt32 = 4
    static let replace: UInt32 = 8
    static let begin: UInt32 = 16
    static let drainAtTime: UInt32 = 32
    /// The run has new scheduled callbacks; only on a virtual clock.
    static let callbacks: UInt32 = 64
    static let duck: UInt32 = 128
    static let shed: UInt32 = 256
    /// Outputs have new layouts: links or taps have changed.
    static let outputs: UInt32 = 512
    /// A node has ended, and sources of this strand end with it.
    static let endSources: UInt32 = 1024
    /// Inputs have further links after the present ones.
    static let inputs: UInt32 = 2048
  }

  /// Initially `scheduled`, as if queued: until the run starts or is stopped, wake-ups only set their bits.
  let state = Atomic<UInt32>(State.scheduled)
  let requests = Atomic<UInt32>(0)
  let worker: Worker
  unowned(unsafe) let run: GraphRun
  let cells: UnsafeMutablePointer<Cell>
  let cellCount: Int
  let wordCount: Int
  /// Ready cells; the worker's own.
  let words: UnsafeMutablePointer<UInt64>
  /// Cells with mail. Separate from the mailboxes, so that a call need not touch its mailbox.
  let mailWords: UnsafeMutablePointer<Atomic<UInt64>>
  /// Cells made ready by other threads.
  let remoteWords: UnsafeMutablePointer<Atomic<UInt64>>
  /// The same run's strand on the bulk worker, which is woken for packets and room only at the end of this strand's turns; nil for
  /// that strand itself, and when there is none. Disk and video work is not urgent per packet, and waking a thread for each costs
  /// more than the packet does.
  @exclusivity(unchecked) private(set) var partner: Unmanaged<Strand>?
  /// Cells of `partner` to wake at the end of the turn: one word for each of its `words`.
  @exclusivity(unchecked) private(set) var deferredWakes: UnsafeMutablePointer<UInt64>?
  /// Graph time 0 on the worker's clock.
  @exclusivity(unchecked) var epoch: Nanoseconds = 0
  @exclusivity(unchecked) var isDraining = false
  /// Graph time before which sources of a draining strand still emit what was due.
  @exclusivity(unchecked) var drainsFrom = Nanoseconds.max
  /// List node in the worker's drain queue.
  @exclusivity(unchecked) var drainEntry = unsafe DrainEntry()
  /// Carries the strand's events to the program; nil when events are not observed.
  @exclusivity(unchecked) var outbox: UnsafeMutablePointer<Link>?
  /// The first tap on the strand's outputs; only on a virtual clock, which waits for taps.
  @exclusivity(unchecked) var firstTap: Unmanaged<TapLine>?
  /// Links that wait until the present link of their input is spent.
  @exclusivity(unchecked) var pendingInlets: [PendingInlet] = unsafe []
  /// Whether there are any: checked in every turn.
  @exclusivity(unchecked) var hasPendingInlets = false
  /// The next strand in a worker's inbox or queue.
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

  /// Defers wake-ups of `other` to the end of each turn. Control side, before the run starts.
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

  /// Marks cell `index` as having mail and wakes it.
  func wakeForMail(_ index: Int) {
    unsafe mailWords[index >> 6].bitwiseOr(1 &<< UInt64(index & 63), ordering: .acquiringAndReleasing)
    wake(index)
  }

  /// Posts a request to the worker.
  func request(_ request: UInt32) {
    requests.bitwiseOr(request, ordering: .acquiringAndReleasing)
    notify()
  }

  /// Queues the strand for the first time. Called once, when the run starts or is stopped before that.
  func start(with request: UInt32) {
    requests.bitwiseOr(request, ordering: .acquiringAndReleasing)
    worker.post(self)
  }

  func notify() {
    let old = state.bitwiseOr(State.scheduled | State.notified, ordering: .acquiringAndReleasing).oldValue
    if old & (State.scheduled | State.closed) == 0 { worker.post(self) }
  }

  // MARK: On the worker

  /// Moves remote wake-ups into the worker's own words.
  func collect() {
    for index in 0..<wordCount {
      if unsafe remoteWords[index].load(ordering: .relaxed) != 0 {
        unsafe words[index] |= remoteWords[index].exchange(0, ordering: .acquiringAndReleasing)
      }
    }
  }

  /// Delivers deferred wake-ups to the partner: one read-modify-write per word, one notification for all.
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

  /// True once after `wakeForMail`.
  @inline(__always)
  func takeMailSignal(_ index: Int) -> Bool {
    let bit = 1 as UInt64 &<< UInt64(index & 63)
    if unsafe mailWords[index &>> 6].load(ordering: .relaxed) & bit == 0 { return false }
    unsafe mailWords[index &>> 6].bitwiseAnd(~bit, ordering: .acquiringAndReleasing)
    return true
  }

  /// Makes a cell check its mailbox the next time it is called.
  func keepMailSignal(_ index: Int) {
    unsafe mailWords[index &>> 6].bitwiseOr(1 &<< UInt64(index & 63), ordering: .acquiringAndReleasing)
  }

  /// Makes a cell check its mailbox.
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
