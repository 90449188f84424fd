internal import CMillraceSys
internal import Glibc
internal import MillraceCore
internal import Synchronization

/// The thread that reads a program's output, sees its end, and sees to its end.
///
/// Lives until the program is reaped, however the graph ended before.
struct ProgramKeeper: ~Copyable, Sendable {
  /// Milliseconds between two looks at whether the program still lives. Its end closes its pipes and is seen at once, save
  /// when something it started holds them open.
  private static let patience: Int32 = 200
  /// Milliseconds between two looks at a program that is about to end.
  private static let lastPatience: Int32 = 5
  /// Milliseconds a program has between SIGTERM and SIGKILL.
  private static let grace = 1000

  /// Bytes asked for at a time, at least.
  private static let leastRead = OutputIntake.leastRead
  private let exchange: ProcessExchange
  private let child: ChildProcess
  private var intake: OutputIntake
  private var readsOutput = true
  private var readsErrors = true

  init(_ exchange: ProcessExchange, _ child: ChildProcess, _ intake: consuming OutputIntake) {
    self.exchange = exchange
    self.child = child
    self.intake = intake
  }

  consuming func run() {
    follow()
    let status = end()
    readLastErrors()
    close(child.output)
    close(child.errors)
    exchange.conclude(intake.garbage ?? (status == 0 ? .done : .failed(status)))
  }

  /// True when there is nothing to wait for any more: the node is gone, or what came is useless.
  private var isPointless: Bool {
    exchange.isStopping.load(ordering: .acquiring) || intake.garbage != nil
  }

  /// Reads until the program has ended and all its output is handed on.
  ///
  /// What the program wrote itself is in the pipe when it ends. After so many reads as empty a full one, what comes is from
  /// others that it left behind, and they may write for ever.
  private mutating func follow() {
    var readsLeft = Self.readsOfFullPipe(child.output)
    while !isPointless {
      let isGone = child.hasExited
      let hasRoom = readsOutput ? intake.handOn(to: exchange) : intake.handOnRest(to: exchange)
      if isGone && !readsOutput && hasRoom { return }
      let wait = isGone && hasRoom ? 0 : readsOutput || readsErrors ? Self.patience : Self.lastPatience
      let happened = look(readingOutput: readsOutput && hasRoom, wait: wait)
      // Gone, and its pipes are empty: what it left behind may hold them open for ever.
      if isGone && hasRoom {
        readsLeft -= 1
        if !happened || readsLeft <= 0 { readsOutput = false }
      }
    }
  }

  /// Waits for something to happen and reads what came. True when something did.
  private mutating func look(readingOutput: Bool, wait: Int32) -> Bool {
    // A negative descriptor is left out, poll(2).
    var wishes = (
      pollfd(fd: exchange.keeperBell.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: readingOutput ? child.output : -1, events: Int16(POLLIN), revents: 0),
      pollfd(fd: readsErrors ? child.errors : -1, events: Int16(POLLIN), revents: 0)
    )
    let count = unsafe withUnsafeMutableBytes(of: &wishes) {
      unsafe poll($0.baseAddress!.assumingMemoryBound(to: pollfd.self), 3, wait)
    }
    guard count > 0 else { return false }
    if wishes.0.revents != 0 { exchange.keeperBell.clear() }
    if wishes.1.revents | wishes.2.revents != 0 { exchange.signs.add(1, ordering: .relaxed) }
    if wishes.1.revents != 0, case .end = intake.read(child.output) { readsOutput = false }
    if wishes.2.revents != 0 { _ = readErrors() }
    return true
  }

  /// Reads once. True when something came.
  private mutating func readErrors() -> Bool {
    guard readsErrors else { return false }
    var bytes = [UInt8](repeating: 0, count: Self.leastRead)
    let count = unsafe read(child.errors, &bytes, bytes.count)
    if count > 0 { exchange.note(remark: bytes[..<count]) }
    if count == 0 { readsErrors = false }
    return count > 0
  }

  /// Reads what the program said last. No more than a full pipe: what comes after that is from others that it left behind,
  /// and they may write for ever.
  private mutating func readLastErrors() {
    for _ in 0..<Self.readsOfFullPipe(child.errors) {
      guard readErrors() else { return }
    }
  }

  /// Reads that empty a full pipe.
  private static func readsOfFullPipe(_ descriptor: Int32) -> Int {
    Int(millrace_pipe_capacity(descriptor)) / leastRead + 1
  }

  /// Ends the program if it still runs, and what it started in any case. Answers its status.
  private func end() -> Int32 {
    // The group's number cannot be another's before the reaping.
    child.signal(SIGTERM)
    var waited = 0
    while !child.hasExited && waited < Self.grace {
      poll(nil, 0, Self.lastPatience)
      waited += Int(Self.lastPatience)
    }
    child.signal(SIGKILL)
    return child.reap()
  }
}
