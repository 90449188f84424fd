internal import MillraceCore
internal import Synchronization

/// State shared between the node and the two threads of its program.
///
/// The node writes `input` and reads `output`. `ProcessWriter` reads `input`. `ProcessSupervisor` writes `output` and, last of all,
/// the exit result. The node's calls never block; they make a system call only to wake a sleeping thread.
final class ProcessExchange: @unchecked Sendable {
  /// How the program ended.
  enum ExitResult {
    /// Exit status 0.
    case done
    /// Another status, or a signal: the number waitpid(2) returned.
    case failed(Int32)
    /// Its output is invalid.
    case outputError(OutputError, at: Int)
  }

  /// Why a program's output is invalid.
  enum OutputError: Int32 {
    case partialSample = 1
    case invalidUTF8
    case lineTooLong
  }

  let input: ChunkQueue
  let output: ChunkQueue
  let waker: Waker
  /// Signalled when there is input, or when no more will come.
  let writerWake = WakeSignal()
  /// Signalled when there is room for output, or when the program must end.
  let supervisorWake: WakePipe

  /// No more data will enter `input`.
  let isInputOver = Atomic<Bool>(false)
  /// The program has closed its input.
  let isInputRefused = Atomic<Bool>(false)
  /// The node is being destroyed.
  let isStopping = Atomic<Bool>(false)
  /// The node found `input` full and is waiting for room.
  let nodeWaits = Atomic<Bool>(false)
  /// The supervisor found `output` full and is waiting for room.
  let supervisorWaits = Atomic<Bool>(false)
  /// Chunks the program has read; grows while it takes its input.
  let fed = Atomic<Int>(0)
  /// Successful reads and writes on any of its pipes; grows while the program is active.
  let activity = Atomic<Int>(0)
  /// Input chunks of a cancelled reply, counted from the first chunk: half-open range.
  let cancelledFrom = Atomic<Int>(0)
  let cancelledTo = Atomic<Int>(0)
  private let hasExitResult = Atomic<Bool>(false)
  private nonisolated(unsafe) var exitResultValue = ExitResult.done
  /// The tail of the program's standard error.
  private let errorTail = Mutex(ErrorTail())

  /// Bytes of standard error kept for the error message.
  private static let errorTailBytes = 2048
  private static let errorTailLines = 6

  init(input: ChunkQueue, output: ChunkQueue, waker: Waker, supervisorWake: WakePipe) {
    self.input = input
    self.output = output
    self.waker = waker
    self.supervisorWake = supervisorWake
  }

  // MARK: Node

  /// True when one more input chunk fits; otherwise the node is woken when it does.
  func hasInputRoom() -> Bool {
    if input.isWritable { return true }
    // Set the flag, then check again: one of the two threads then sees room made in between.
    _ = nodeWaits.exchange(true, ordering: .sequentiallyConsistent)
    return input.isWritable
  }

  /// Notifies the supervisor that an output chunk was taken.
  func noteOutputTaken() {
    if supervisorWaits.exchange(false, ordering: .sequentiallyConsistent) { supervisorWake.signal() }
  }

  /// Ends the program's input after what is queued.
  func endInput() {
    guard !isInputOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
    writerWake.signal()
  }

  /// Withholds a range of input chunks from the program, except the one being written.
  func cancelInput(from first: Int, to end: Int) {
    cancelledFrom.store(first, ordering: .relaxed)
    cancelledTo.store(end, ordering: .releasing)
  }

  /// Ends both threads, and the program with them. Does not wait.
  func stop() {
    isStopping.store(true, ordering: .sequentiallyConsistent)
    writerWake.signal()
    supervisorWake.signal()
  }

  /// How the program ended, once it has exited and all its output is queued.
  var exitResult: ExitResult? {
    guard hasExitResult.load(ordering: .acquiring) else { return nil }
    return unsafe exitResultValue
  }

  // MARK: Threads

  /// True when an input chunk must no longer be written.
  func isCancelled(chunk number: Int) -> Bool {
    number < cancelledTo.load(ordering: .acquiring) && number >= cancelledFrom.load(ordering: .relaxed)
  }

  /// Notifies the node that an input chunk was taken.
  func noteInputTaken() {
    fed.add(1, ordering: .relaxed)
    if nodeWaits.exchange(false, ordering: .sequentiallyConsistent) { waker.wake() }
  }

  /// True when one more output chunk fits; otherwise the supervisor is woken when it does.
  func hasOutputRoom() -> Bool {
    if output.isWritable { return true }
    _ = supervisorWaits.exchange(true, ordering: .sequentiallyConsistent)
    return output.isWritable
  }

  /// Records how the program ended. Once, by the supervisor, after the last output.
  func conclude(_ exitResult: ExitResult) {
    unsafe exitResultValue = exitResult
    hasExitResult.store(true, ordering: .releasing)
    waker.wake()
  }

  /// The tail of the program's standard error.
  private struct ErrorTail {
    var kept: [UInt8] = []
    var isCut = false
  }

  /// Appends to the tail of the program's standard error.
  func appendErrors(_ bytes: some Collection<UInt8>) {
    errorTail.withLock { errorTail in
      errorTail.kept += bytes
      let excess = errorTail.kept.count - Self.errorTailBytes
      guard excess > 0 else { return }
      errorTail.kept.removeFirst(excess)
      errorTail.isCut = true
    }
  }

  /// The last lines of the program's standard error; nil if it wrote none. Control side.
  var lastErrorLines: String? {
    let errorTail = errorTail.withLock { $0 }
    // "…" marks the cut beginning: redaction recognises a secret cut there by it. A partial character is dropped.
    let text =
      errorTail.isCut
      ? "…" + String(decoding: errorTail.kept.drop { $0 & 0xC0 == 0x80 }, as: UTF8.self)
      : String(decoding: errorTail.kept, as: UTF8.self)
    let lines = text.split(whereSeparator: \.isNewline)
    return lines.isEmpty ? nil : lines.suffix(Self.errorTailLines).joined(separator: " | ")
  }
}
