internal import MillraceCore
internal import Synchronization

/// What the node and the two threads of its program share.
///
/// Ends of the queues: the node writes `input` and reads `output`; `ProgramFeeder` reads `input`; `ProgramKeeper` writes
/// `output` and, last of all, `verdict`. The node's calls never wait here; they cost a system call only to wake a thread that
/// sleeps.
final class ProcessExchange: @unchecked Sendable {
  /// How the program ended.
  enum Verdict {
    /// With status 0.
    case done
    /// With another status or by a signal: the number that waitpid gave.
    case failed(Int32)
    /// What it wrote is not what it should be.
    case garbage(Garbage, at: Int)
  }

  /// What can be wrong with a program's output.
  enum Garbage: Int32 {
    case cutSample = 1
    case badText
    case longLine
  }

  let input: ChunkQueue
  let output: ChunkQueue
  let waker: Waker
  /// What is rung when there is input, or none to come.
  let feederBell = Bell()
  /// What is rung when there is room for output, or the program is to end.
  let keeperBell: PipeBell

  /// Nothing more comes into `input`.
  let isInputOver = Atomic<Bool>(false)
  /// Nobody reads the program's input any more.
  let isInputRefused = Atomic<Bool>(false)
  /// The node is gone.
  let isStopping = Atomic<Bool>(false)
  /// The node found `input` full.
  let nodeWaits = Atomic<Bool>(false)
  /// The keeper found `output` full.
  let keeperWaits = Atomic<Bool>(false)
  /// Chunks the program has read; moves on when it takes what it is given.
  let fed = Atomic<Int>(0)
  /// Reads and writes of the program that came to something, on any of its pipes: moves on while it lives.
  let signs = Atomic<Int>(0)
  /// Chunks of input, counted from the first, that were given for a reply that is over: from one up to before another.
  let voidFrom = Atomic<Int>(0)
  let voidTo = Atomic<Int>(0)
  private let hasVerdict = Atomic<Bool>(false)
  private nonisolated(unsafe) var verdictValue = Verdict.done
  /// The last of what the program said on its standard error.
  private let remarks = Mutex(Remarks())

  /// Bytes of the standard error that are kept for the words about a failure.
  private static let remarkBytes = 2048
  private static let remarkLines = 6

  init(input: ChunkQueue, output: ChunkQueue, waker: Waker, keeperBell: PipeBell) {
    self.input = input
    self.output = output
    self.waker = waker
    self.keeperBell = keeperBell
  }

  // MARK: Node

  /// True when one more chunk of input fits; otherwise the node will be woken when it does.
  func hasInputRoom() -> Bool {
    if input.isWritable { return true }
    // Ask first, look again after: room made in between is seen by one of the two.
    _ = nodeWaits.exchange(true, ordering: .sequentiallyConsistent)
    return input.isWritable
  }

  /// Tells the keeper that a chunk of output was taken.
  func noteOutputTaken() {
    if keeperWaits.exchange(false, ordering: .sequentiallyConsistent) { keeperBell.ring() }
  }

  /// Ends the program's input behind what is queued.
  func endInput() {
    guard !isInputOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
    feederBell.ring()
  }

  /// Lets the program have no more of the chunks of a range, save the one it is reading.
  func voidInput(from first: Int, to end: Int) {
    voidFrom.store(first, ordering: .relaxed)
    voidTo.store(end, ordering: .releasing)
  }

  /// Makes both threads end, and the program with them. Waits for nothing.
  func stop() {
    isStopping.store(true, ordering: .sequentiallyConsistent)
    feederBell.ring()
    keeperBell.ring()
  }

  /// How the program ended, once it has and all its output is in the queue.
  var verdict: Verdict? {
    guard hasVerdict.load(ordering: .acquiring) else { return nil }
    return unsafe verdictValue
  }

  // MARK: Threads

  /// True when the program is not to have a chunk of input any more.
  func isVoid(chunk number: Int) -> Bool {
    number < voidTo.load(ordering: .acquiring) && number >= voidFrom.load(ordering: .relaxed)
  }

  /// Tells the node that a chunk of input was taken.
  func noteInputTaken() {
    fed.add(1, ordering: .relaxed)
    if nodeWaits.exchange(false, ordering: .sequentiallyConsistent) { waker.wake() }
  }

  /// True when one more chunk of output fits; otherwise the keeper will be rung when it does.
  func hasOutputRoom() -> Bool {
    if output.isWritable { return true }
    _ = keeperWaits.exchange(true, ordering: .sequentiallyConsistent)
    return output.isWritable
  }

  /// Says how the program ended. Once, by the keeper, after the last output.
  func conclude(_ verdict: Verdict) {
    unsafe verdictValue = verdict
    hasVerdict.store(true, ordering: .releasing)
    waker.wake()
  }

  /// The end of what the program said on its standard error.
  private struct Remarks {
    var kept: [UInt8] = []
    var isCut = false
  }

  /// Keeps what the program says on its standard error.
  func note(remark bytes: some Collection<UInt8>) {
    remarks.withLock { remarks in
      remarks.kept += bytes
      let excess = remarks.kept.count - Self.remarkBytes
      guard excess > 0 else { return }
      remarks.kept.removeFirst(excess)
      remarks.isCut = true
    }
  }

  /// The last lines of the program's standard error; nil when it said nothing. Control side.
  var lastRemarks: String? {
    let remarks = remarks.withLock { $0 }
    // Dots where the beginning is gone: a secret that lost its own is known by them. A character that was cut is left out.
    let text =
      remarks.isCut
      ? "…" + String(decoding: remarks.kept.drop { $0 & 0xC0 == 0x80 }, as: UTF8.self)
      : String(decoding: remarks.kept, as: UTF8.self)
    let lines = text.split(whereSeparator: \.isNewline)
    return lines.isEmpty ? nil : lines.suffix(Self.remarkLines).joined(separator: " | ")
  }
}
