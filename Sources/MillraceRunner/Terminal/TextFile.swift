internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import MillraceGraph

/// A file that the runner writes: a report, a trace, a transcript. Nodes use `OpenedFile` instead.
///
/// The file is locked while this value exists, so the graphs cannot read or write it. It is truncated by the first write, so a graph that
/// never starts does not destroy an earlier report. A named pipe must have a reader within three seconds; the reader may then be slow. After
/// a termination signal, the runner waits for a reader only as long as it keeps reading. `-` is standard output, which is neither
/// locked nor truncated.
struct TextFile: ~Copyable {
  let path: String
  private let descriptor: Int32
  /// True when the file can be truncated, which pipes and devices cannot.
  private let isRegular: Bool
  private var isTruncated = false
  /// The error of an earlier write.
  private(set) var failure: String?

  /// Milliseconds to wait for the reader of a named pipe; the same as for the writer of one that is read.
  private static let pipePatience: Int32 = 3_000
  /// Milliseconds to wait for a reader that has stopped reading, after a termination signal.
  private static let endPatience: Int32 = 2_000
  /// Milliseconds between two checks.
  private static let interval: Int32 = 10

  /// Opens or creates the file. On failure, prints the error and throws a usage error.
  init(creating path: String) throws {
    let (descriptor, code) = Self.open(path)
    self.path = path
    self.descriptor = descriptor
    isRegular = path != "-" && FileKind(descriptor: descriptor) == .regular
    guard descriptor >= 0 else {
      let hasNoReader = code == ENXIO && FileKind(path: path) == .pipe
      throw hasNoReader
        ? Self.usageError(path, "it is a named pipe without a reader", "start the reader first")
        : Self.usageError(path, SystemError.text(code), "choose another path")
    }
    guard isRegular else { return }
    do throws(NodeProblem) { try FileLock.lock(descriptor, path, for: .writing) } catch {
      throw Self.usageError(path, "it is in use by this run or another program", "choose another path")
    }
  }

  /// Returns a nonblocking descriptor and 0, or -1 and the `errno`.
  private static func open(_ path: String) -> (Int32, code: Int32) {
    if path == "-" {
      let copy = dup(1)
      return (copy, copy < 0 ? errno : 0)
    }
    var waited: Int32 = 0
    while true {
      // Without O_NONBLOCK, opening a named pipe without a reader would block forever.
      let descriptor = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o644)
      let code = errno
      if descriptor >= 0 { return (descriptor, 0) }
      guard code == ENXIO, waited < pipePatience, FileKind(path: path) == .pipe else { return (-1, code) }
      poll(nil, 0, interval)
      waited += interval
    }
  }

  deinit {
    guard descriptor >= 0 else { return }
    // A lock on standard output is another program's.
    if isRegular { FileLock.close(descriptor) } else { close(descriptor) }
  }

  /// Appends a text. After a failure, further text is discarded; see `failure`.
  mutating func write(_ text: String) {
    var text = text
    text.withUTF8 { unsafe write($0) }
  }

  /// Appends bytes.
  mutating func write(_ bytes: UnsafeBufferPointer<UInt8>) {
    guard failure == nil else { return }
    failure = unsafe writeAll(bytes)
  }

  /// Ends the file. If a write has failed, prints the error and throws a usage error.
  mutating func finish() throws {
    write("")
    if let failure { throw Self.usageError(path, failure, "free some space or choose another path") }
  }

  /// Writes a whole file. On failure, prints the error and throws a usage error.
  static func write(_ text: String, to path: String) throws {
    var file = try TextFile(creating: path)
    file.write(text)
    try file.finish()
  }

  /// Writes all bytes. Returns nil, or why not all of them could be written.
  private mutating func writeAll(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
    if isRegular && !isTruncated && ftruncate(descriptor, 0) != 0 { return SystemError.text(errno) }
    isTruncated = true
    var offset = 0
    while offset < bytes.count {
      let count = unsafe Glibc.write(descriptor, bytes.baseAddress! + offset, bytes.count - offset)
      if count >= 0 {
        offset += count
      } else if errno == EAGAIN {
        guard waitForRoom() else { return "the reader of the pipe has stopped reading" }
      } else if errno != EINTR {
        return SystemError.text(errno)
      }
    }
    return nil
  }

  /// Waits until the pipe is writable. Returns false when it does not become so after a termination signal.
  private func waitForRoom() -> Bool {
    var remaining = Self.endPatience
    while remaining > 0 {
      var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      if unsafe poll(&entry, 1, Self.interval) > 0 { return true }
      if Signals.isStopRequested { return false }
      if Signals.isDrainRequested { remaining -= Self.interval }
    }
    return false
  }

  private static func usageError(_ path: String, _ reason: String, _ cure: String) -> ExitStatus {
    Output.error.write("error: cannot write \(Problem.quoted(path)): \(reason); \(cure)\n")
    return .usage
  }
}
