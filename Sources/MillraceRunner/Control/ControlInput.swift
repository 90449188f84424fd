internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import MillraceGraph

/// Where control commands come from: standard input, a named pipe, or a file.
///
/// Opening never waits for anybody. Writers of a named pipe come and go; the end of standard input or of a file ends the
/// control, not the run. One thread.
struct ControlInput: ~Copyable {
  /// The bytes that came, or why there are none.
  enum Piece {
    case bytes([UInt8])
    /// A writer has gone: what it left without a line break is a line.
    case pause
    /// Nothing more will come.
    case end
    case timeout
  }

  private var descriptor: Int32
  private let isPipe: Bool
  /// True for what can be read to its end before the start without waiting for anybody.
  let isFile: Bool
  let isStandardInput: Bool
  private static let pieceBytes = 65_536

  /// - Parameters:
  ///   - path: `-` is standard input.
  ///   - what: is read from it, as a refusal calls it.
  init(_ path: String, what: String = "control commands") throws {
    isStandardInput = path == "-"
    guard !isStandardInput else {
      descriptor = 0
      isPipe = false
      isFile = FileKind(descriptor: 0) == .regular
      return
    }
    let kind = FileKind(path: path)
    isPipe = kind == .pipe
    isFile = kind == .regular
    descriptor = kind == .folder ? -1 : unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else {
      let reason = kind == .folder ? "it is a folder" : SystemError.text(errno)
      Output.error.write(
        "error: cannot read \(what) from \(Problem.quoted(path)): \(reason); name a pipe made with mkfifo, a file, or - for standard input\n"
      )
      throw ExitStatus.usage
    }
    // Nothing the run writes may take the place of its commands.
    guard isFile else { return }
    do throws(NodeProblem) { try FileLock.lock(descriptor, path, for: .reading) } catch {
      Output.error.write("error: \(error.description)\n")
      throw ExitStatus.usage
    }
  }

  deinit { if !isStandardInput { close(descriptor) } }

  /// True when what is written to a descriptor would be read here.
  func reads(whatGoesTo other: Int32) -> Bool { FileKind.isOnePipe(descriptor, other) }

  /// Waits for the next bytes.
  /// - Parameters:
  ///   - timeout: milliseconds; -1: for ever.
  ///   - wake: a descriptor that ends the wait when it can be read; -1: none.
  mutating func next(timeout: Int32, wake: Int32 = -1) -> Piece {
    var waits = [
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
    ]
    let count = unsafe poll(&waits, 2, timeout)
    if count <= 0 { return .timeout }
    if waits[1].revents != 0 { return .end }
    guard waits[0].revents != 0 else { return .timeout }
    var bytes = [UInt8](repeating: 0, count: Self.pieceBytes)
    let length = unsafe read(descriptor, &bytes, bytes.count)
    if length > 0 { return .bytes(Array(bytes[..<length])) }
    if length < 0 { return errno == EINTR || errno == EAGAIN ? .timeout : .end }
    return isPipe && reopen() ? .pause : .end
  }

  /// Waits for the next writer: a pipe whose last writer has gone answers every wait at once until it is opened again. Opened
  /// before the old end is closed, so that nothing a new writer wrote meanwhile is lost.
  private mutating func reopen() -> Bool {
    let again = unsafe open("/proc/self/fd/\(descriptor)", O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard again >= 0 else { return false }
    close(descriptor)
    descriptor = again
    return true
  }
}
