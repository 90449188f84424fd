internal import Glibc
internal import MillraceCore
internal import MillraceFiles

/// Where lines go: a file, or a pipe, a terminal or a device, which may have a reader that takes its time. Bulk lane.
struct LineTarget: ~Copyable {
  /// Bytes that fit a pipe which poll(2) calls writable, pipe(7).
  private static let pipeUnit = Int(PIPE_BUF)
  private static let fileUnit = 65_536

  /// As errors call it: the quoted path, or the stream's name.
  let name: String
  /// Bytes that are best written at a time.
  let unit: Int
  private let descriptor: Int32
  private let ownsDescriptor: Bool
  private let isFile: Bool
  /// What an older file holds is still there, and is not to stay.
  private var isFull = false

  /// One of the streams of the process: 1 is the standard output, 2 the standard error. It stays open and as it is.
  init(standard stream: Int32, name: String) {
    self.name = name
    let kind = OpenedFile.Kind(of: stream)
    isFile = kind == .file
    unit = isFile ? Self.fileUnit : Self.pipeUnit
    // A way of our own to the same pipe or terminal: made not to wait, it leaves that of other programs alone. Where there is
    // none, small pieces are written when there is room for them.
    let flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
    let own = !isFile ? unsafe Glibc.open("/proc/self/fd/\(stream)", flags) : -1
    descriptor = own >= 0 ? own : stream
    ownsDescriptor = own >= 0
  }

  /// Makes a file, or replaces the one there is from the first write on; with `appends` goes on behind what it holds.
  init(path: String, appends: Bool) throws(NodeProblem) {
    let file = try OpenedFile(path, for: appends ? .appending : .writing)
    descriptor = file.descriptor
    name = "\"\(path)\""
    ownsDescriptor = true
    isFile = file.kind == .file
    unit = isFile ? Self.fileUnit : Self.pipeUnit
    isFull = isFile && !appends
  }

  /// True when a person reads along.
  var isTerminal: Bool { isatty(descriptor) == 1 }

  /// Empties a file that is to be replaced, if nothing has been written yet. Answers 0 or an `errno`.
  mutating func begin() -> Int32 {
    guard isFull else { return 0 }
    isFull = false
    return OpenedFile.empty(descriptor)
  }

  deinit { if ownsDescriptor && descriptor >= 0 { close(descriptor) } }

  /// True when a program that was killed left the file without its last line break.
  func endsInsideLine(_ path: String) -> Bool {
    guard isFile && !isFull else { return false }
    let reader = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    // What may be written but not read, such as a file of mode 0200, is taken as it is.
    guard reader >= 0 else { return false }
    defer { close(reader) }
    let end = lseek(reader, 0, SEEK_END)
    var last: UInt8 = 10
    guard end > 0, unsafe pread(reader, &last, 1, end - 1) == 1 else { return false }
    return last != 10
  }

  /// Writes as much as is taken now: all of it by a file. `refusal` is 0, or the `errno` that stands against the rest for good;
  /// the part of a line that a file took of it is taken back then.
  @unsafe
  func write(_ start: UnsafePointer<UInt8>, _ count: Int) -> (written: Int, refusal: Int32) {
    if !isFile { return PipeSignal.withBlocked { unsafe writeWhatFits(start, count) } }
    var (done, refusal) = unsafe writeAll(start, count)
    if refusal != 0 { unsafe takeBackPart(of: start, written: &done) }
    return (done, refusal)
  }

  /// Waits until the reader takes something, at most so many milliseconds.
  func waitForRoom(_ milliseconds: Int32) -> Bool {
    var wish = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    // An error counts as room: the write will tell which.
    return unsafe poll(&wish, 1, milliseconds) > 0
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

  /// Cuts off the part of a line that was still written.
  @unsafe
  private func takeBackPart(of start: UnsafePointer<UInt8>, written: inout Int) {
    var part = 0
    while part < written, unsafe start[written - 1 - part] != 10 { part += 1 }
    guard part > 0 else { return }
    let end = lseek(descriptor, 0, SEEK_END)
    if end >= part, ftruncate(descriptor, end - part) == 0 { written -= part }
  }
}
