internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import MillraceGraph

/// Reads control commands from standard input, a named pipe or a file.
///
/// Opening never blocks. Writers of a named pipe may come and go; the end of standard input or of a file ends the input, not the run. One
/// thread.
struct ControlInput: ~Copyable {
  /// The result of a read.
  enum Piece {
    case bytes([UInt8])
    /// The last writer has closed the pipe: bytes without a line break are a complete line.
    case writerClosed
    /// The end of the input.
    case end
    case timeout
  }

  private var descriptor: Int32
  private let what: String
  private let isPipe: Bool
  /// True for a regular file, which can be read to its end before the start without blocking.
  let isFile: Bool
  let isStandardInput: Bool
  private static let pieceBytes = 65_536

  /// - Parameters:
  ///   - path: `-` for standard input.
  ///   - what: names the content in error messages.
  init(_ path: String, what: String = "control commands") throws {
    self.what = what
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
      let reason = kind == .folder ? "it is a directory" : SystemError.text(errno)
      Output.error.write(
        "error: cannot read \(what) from \(Problem.quoted(path)): \(reason); name a file, a named pipe (mkfifo), or - for standard input\n"
      )
      throw ExitStatus.usage
    }
    // Locked, so that the run cannot overwrite its commands.
    guard isFile else { return }
    do throws(NodeProblem) { try FileLock.lock(descriptor, path, for: .reading) } catch {
      Output.error.write("error: \(error.description)\n")
      throw ExitStatus.usage
    }
  }

  deinit { if !isStandardInput { FileLock.close(descriptor) } }

  /// True when the input reads the pipe to which a descriptor writes.
  func readsPipe(of other: Int32) -> Bool { FileKind.isSamePipe(descriptor, other) }

  /// Waits for the next bytes.
  /// - Parameters:
  ///   - timeout: in milliseconds; -1 for none.
  ///   - wake: a descriptor that ends the wait when it becomes readable; -1 for none.
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
    if length < 0 {
      let code = errno
      if code == EINTR || code == EAGAIN { return .timeout }
      Output.error.write("error: cannot read \(what) any further: \(SystemError.text(code))\n")
      return .end
    }
    return isPipe && reopen() ? .writerClosed : .end
  }

  /// Opens the pipe again, so that `poll` waits for the next writer: after the last writer has closed a pipe, `poll` returns immediately.
  /// The new descriptor is opened before the old one is closed, so that bytes written meanwhile are not lost.
  private mutating func reopen() -> Bool {
    let again = unsafe open("/proc/self/fd/\(descriptor)", O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard again >= 0 else { return false }
    close(descriptor)
    descriptor = again
    return true
  }
}
