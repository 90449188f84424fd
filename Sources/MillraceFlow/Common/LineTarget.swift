internal import Glibc
internal import MillraceCore
internal import MillraceFiles

/// Where lines are written: a file, or a pipe, terminal or device whose reader may be slow. Bulk lane.
struct LineTarget: ~Copyable {
  /// Bytes that fit a pipe that poll(2) reports as writable (pipe(7)).
  private static let pipeUnit = Int(PIPE_BUF)
  private static let fileUnit = 65_536

  /// Name used in messages: the quoted path, or the name of the stream.
  let name: String
  /// Preferred number of bytes per write.
  let unit: Int
  private let descriptor: Int32
  private let ownsDescriptor: Bool
  private let isFile: Bool
  /// The old content of a file to be replaced has not been removed yet.
  private var isFull = false

  /// A standard stream of the process: 1 is standard output, 2 standard error. It is neither closed nor reconfigured.
  init(standard stream: Int32, name: String) {
    self.name = name
    let kind = OpenedFile.Kind(of: stream)
    isFile = kind == .file
    unit = isFile ? Self.fileUnit : Self.pipeUnit
    // Reopened, so that O_NONBLOCK does not affect other programs on the same pipe or terminal. If that fails, small writes are made
    // whenever there is room for them.
    let flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
    let own = !isFile ? unsafe Glibc.open("/proc/self/fd/\(stream)", flags) : -1
    descriptor = own >= 0 ? own : stream
    ownsDescriptor = own >= 0
  }

  /// Creates a file, or replaces an existing one at the first write; with `appends`, writes after its present content.
  init(path: String, appends: Bool) throws(NodeProblem) {
    let file = try OpenedFile(path, for: appends ? .appending : .writing)
    descriptor = file.descriptor
    name = "\"\(path)\""
    ownsDescriptor = true
    isFile = file.kind == .file
    unit = isFile ? Self.fileUnit : Self.pipeUnit
    isFull = isFile && !appends
  }

  /// True for a terminal.
  var isTerminal: Bool { isatty(descriptor) == 1 }

  /// Truncates a file to be replaced, before the first write. Returns 0 or an `errno`.
  mutating func begin() -> Int32 {
    guard isFull else { return 0 }
    isFull = false
    return OpenedFile.truncate(descriptor)
  }

  deinit { if ownsDescriptor && descriptor >= 0 { FileLock.close(descriptor) } }

  /// True when the file's last line is unfinished, as a killed program leaves it.
  func endsInsideLine(_ path: String) -> Bool {
    guard isFile && !isFull else { return false }
    let reader = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    // A file that can be written but not read, such as mode 0200, is assumed complete.
    guard reader >= 0 else { return false }
    defer { close(reader) }
    let end = lseek(reader, 0, SEEK_END)
    var last: UInt8 = 10
    guard end > 0, unsafe pread(reader, &last, 1, end - 1) == 1 else { return false }
    return last != 10
  }

  /// Writes as much as the target accepts now; a file accepts everything. `refusal` is 0, or the `errno` of a permanent failure; a
  /// partly written last line is then removed from a file.
  @unsafe
  func write(_ start: UnsafePointer<UInt8>, _ count: Int) -> (written: Int, refusal: Int32) {
    if !isFile { return PipeSignal.withBlocked { unsafe writeWhatFits(start, count) } }
    var (done, refusal) = unsafe writeAll(start, count)
    if refusal != 0 { unsafe takeBackPart(of: start, written: &done) }
    return (done, refusal)
  }

  /// Waits until the reader takes something, at most `milliseconds`.
  func waitForRoom(_ milliseconds: Int32) -> Bool {
    var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    // An error counts as room: the write will report it.
    return unsafe poll(&request, 1, milliseconds) > 0
  }

  @unsafe
  private func writeWhatFits(_ start: UnsafePointer<UInt8>, _ count: Int) -> (Int, Int32) {
    var done = 0
    while done < count, waitForRoom(0) {
      let (written, refusal) = unsafe writeAll(start + done, min(count - done, Self.pipeUnit))
      done += written
      if refusal == EAGAIN { break }
      if refusal != 0 { return (done, refusal) }
    }
    return (done, 0)
  }

  @unsafe
  private func writeAll(_ start: UnsafePointer<UInt8>, _ count: Int) -> (Int, Int32) {
    var done = 0
    while done < count {
      let written = unsafe Glibc.write(descriptor, start + done, count - done)
      if written > 0 {
        done += written
      } else if written == 0 || errno != EINTR {
        return (done, written == 0 ? ENOSPC : errno)
      }
    }
    return (done, 0)
  }

  /// Truncates a partly written last line.
  @unsafe
  private func takeBackPart(of start: UnsafePointer<UInt8>, written: inout Int) {
    var part = 0
    while part < written, unsafe start[written - 1 - part] != 10 { part += 1 }
    guard part > 0 else { return }
    let end = lseek(descriptor, 0, SEEK_END)
    if end >= part, ftruncate(descriptor, end - part) == 0 { written -= part }
  }
}
