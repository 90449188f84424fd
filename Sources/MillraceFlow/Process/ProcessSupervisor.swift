internal import CMillraceSys
internal import Glibc
internal import MillraceCore
internal import Synchronization

/// The thread that reads a program's output, notices its exit, and makes it exit.
///
/// Lives until the program is reaped, however the graph ended.
struct ProcessSupervisor: ~Copyable, Sendable {
  /// Milliseconds between two checks whether the program still runs. Its exit closes its pipes and is noticed at once, except when a
  /// child of it holds them open.
  private static let pollInterval: Int32 = 200
  /// Milliseconds between two checks of a program that is about to exit.
  private static let exitPollInterval: Int32 = 5
  /// Milliseconds between SIGTERM and SIGKILL.
  private static let grace = 1000

  /// Minimum bytes per read.
  private static let leastRead = OutputReader.leastRead
  private let exchange: ProcessExchange
  private let child: ChildProcess
  private var reader: OutputReader
  private var readsOutput = true
  private var readsErrors = true

  init(_ exchange: ProcessExchange, _ child: ChildProcess, _ reader: consuming OutputReader) {
    self.exchange = exchange
    self.child = child
    self.reader = reader
  }

  consuming func run() {
    follow()
    let status = end()
    readLastErrors()
    close(child.output)
    close(child.errors)
    exchange.conclude(reader.outputError ?? (status == 0 ? .done : .failed(status)))
  }

  /// True when there is nothing left to wait for: the node is gone, or the output is invalid.
  private var isFinished: Bool {
    exchange.isStopping.load(ordering: .acquiring) || reader.outputError != nil
  }

  /// Reads until the program has exited and all its output is forwarded.
  ///
  /// The program's own output is in the pipe when it exits. After as many reads as empty a full pipe, what arrives comes from
  /// children it left behind, which may write forever.
  private mutating func follow() {
    var readsLeft = Self.readsOfFullPipe(child.output)
    while !isFinished {
      let isGone = child.hasExited
      let hasRoom = readsOutput ? reader.forward(to: exchange) : reader.forwardRest(to: exchange)
      if isGone && !readsOutput && hasRoom { return }
      let wait =
        isGone && hasRoom ? 0 : readsOutput || readsErrors ? Self.pollInterval : Self.exitPollInterval
      let happened = look(readingOutput: readsOutput && hasRoom, wait: wait)
      // Exited with empty pipes: children it left behind may hold them open forever.
      if isGone && hasRoom {
        readsLeft -= 1
        if !happened || readsLeft <= 0 { readsOutput = false }
      }
    }
  }

  /// Waits for an event and reads what arrived. True when something happened.
  private mutating func look(readingOutput: Bool, wait: Int32) -> Bool {
    // poll(2) ignores a negative descriptor.
    var requests = (
      pollfd(fd: exchange.supervisorWake.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: readingOutput ? child.output : -1, events: Int16(POLLIN), revents: 0),
      pollfd(fd: readsErrors ? child.errors : -1, events: Int16(POLLIN), revents: 0)
    )
    let count = unsafe withUnsafeMutableBytes(of: &requests) {
      unsafe poll($0.baseAddress!.assumingMemoryBound(to: pollfd.self), 3, wait)
    }
    guard count > 0 else { return false }
    if requests.0.revents != 0 { exchange.supervisorWake.clear() }
    if requests.1.revents | requests.2.revents != 0 { exchange.activity.add(1, ordering: .relaxed) }
    if requests.1.revents != 0, case .end = reader.read(child.output) { readsOutput = false }
    if requests.2.revents != 0 { _ = readErrors() }
    return true
  }

  /// Reads once. True when something arrived.
  private mutating func readErrors() -> Bool {
    guard readsErrors else { return false }
    var bytes = [UInt8](repeating: 0, count: Self.leastRead)
    let count = unsafe read(child.errors, &bytes, bytes.count)
    if count > 0 { exchange.appendErrors(bytes[..<count]) }
    if count == 0 { readsErrors = false }
    return count > 0
  }

  /// Reads the last of the program's standard error, at most one full pipe: what follows comes from children it left behind, which
  /// may write forever.
  private mutating func readLastErrors() {
    for _ in 0..<Self.readsOfFullPipe(child.errors) {
      guard readErrors() else { return }
    }
  }

  /// Number of reads that empty a full pipe.
  private static func readsOfFullPipe(_ descriptor: Int32) -> Int {
    Int(millrace_pipe_capacity(descriptor)) / leastRead + 1
  }

  /// Ends the program if it still runs, and its process group in any case. Returns its status.
  private func end() -> Int32 {
    // The group's number cannot be reused before the program is reaped.
    child.signal(SIGTERM)
    var waited = 0
    while !child.hasExited && waited < Self.grace {
      poll(nil, 0, Self.exitPollInterval)
      waited += Int(Self.exitPollInterval)
    }
    child.signal(SIGKILL)
    return child.reap()
  }
}
