internal import Glibc
internal import MillraceCore

/// Gathers lines and writes them whole to a file, a pipe or a terminal. Blocks on the disk: for the bulk lane.
///
/// One line a packet: line breaks inside become spaces, those at the end go. No heap after `init`. When the system refuses
/// in the middle of a line of a file, the part of the line is taken back, so that the file holds whole lines only.
@safe
struct LineSink: ~Copyable {
  /// Bytes gathered before a write even inside one call: the capacity of a pipe, pipe(7).
  private static let gathered = 65_536

  private let descriptor: Int32
  private let ownsDescriptor: Bool
  private let isFile: Bool
  private let buffer: UnsafeMutablePointer<UInt8>
  private let capacity: Int
  private var count = 0

  /// Writes to a descriptor that stays open afterwards: 1 is the standard output, 2 the standard error.
  init(standard descriptor: Int32, longestLine: Int) {
    self.init(descriptor, owned: false, longestLine: longestLine)
  }

  /// Makes a file, or empties the one there is; with `appends` goes on behind what it holds.
  init(path: String, appends: Bool, longestLine: Int) throws(NodeProblem) {
    let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND | (appends ? 0 : O_TRUNC)
    var opened = unsafe open(path, flags, 0o644)
    if opened < 0 && (errno == EACCES || errno == EINVAL || errno == ENXIO) {
      // What may be written but not read, such as a named pipe's end or a file of mode 0200.
      opened = unsafe open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (appends ? 0 : O_TRUNC), 0o644)
    }
    guard opened >= 0 else { throw Self.problem(errno, path) }
    self.init(opened, owned: true, longestLine: longestLine)
    if appends && endsInsideLine { add(10) }
  }

  private init(_ descriptor: Int32, owned: Bool, longestLine: Int) {
    self.descriptor = descriptor
    ownsDescriptor = owned
    var status = stat()
    isFile = unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    // The longest line always fits, behind the break that mends an unfinished one.
    capacity = max(Self.gathered, longestLine + 2)
    unsafe buffer = .allocate(capacity: capacity)
  }

  deinit {
    unsafe buffer.deallocate()
    if ownsDescriptor { _ = close(descriptor) }
  }

  /// Adds one packet's text as a line. May write what was gathered before it.
  mutating func add(line packet: borrowing Packet) throws(NodeFault) {
    let text = packet.samples(of: UInt8.self)
    var length = text.count
    while length > 0 && (text[length - 1] == 10 || text[length - 1] == 13) { length -= 1 }
    if count + length + 1 > capacity { try flush() }
    for index in 0..<length {
      let byte = text[index]
      add(byte == 10 || byte == 13 ? 32 : byte)
    }
    add(10)
  }

  /// Writes what was gathered.
  mutating func flush() throws(NodeFault) {
    guard count > 0 else { return }
    defer { count = 0 }
    let refusal = isFile ? write() : PipeSignal.withBlocked { write() }
    guard refusal == 0 else { throw NodeFault(.system, code: refusal) }
  }

  private mutating func add(_ byte: UInt8) {
    unsafe buffer[count] = byte
    count += 1
  }

  /// Writes all that is gathered; answers 0, or why not.
  private func write() -> Int32 {
    var done = 0
    while done < count {
      let written = unsafe Glibc.write(descriptor, buffer + done, count - done)
      if written > 0 {
        done += written
        continue
      }
      let code = written == 0 ? ENOSPC : errno
      switch code {
      case EINTR: continue
      case EAGAIN: waitForRoom()
      default:
        takeBackPart(written: done)
        return code
      }
    }
    return 0
  }

  /// The reader of a pipe that was opened not to wait may still be slow.
  private func waitForRoom() {
    var wish = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    unsafe poll(&wish, 1, 1000)
  }

  /// Cuts off the part of a line that was still written.
  private func takeBackPart(written: Int) {
    guard isFile else { return }
    var part = 0
    while part < written, unsafe buffer[written - 1 - part] != 10 { part += 1 }
    guard part > 0 else { return }
    let end = lseek(descriptor, 0, SEEK_END)
    if end >= part { _ = ftruncate(descriptor, end - part) }
  }

  /// True when a program that was killed left the file without its last line break.
  private var endsInsideLine: Bool {
    guard isFile else { return false }
    let end = lseek(descriptor, 0, SEEK_END)
    var last: UInt8 = 10
    guard end > 0, unsafe pread(descriptor, &last, 1, end - 1) == 1 else { return false }
    return last != 10
  }

  // MARK: Words

  /// Why a file could not be opened.
  private static func problem(_ code: Int32, _ path: String) -> NodeProblem {
    let cure: String =
      switch code {
      case ENOENT, ENOTDIR: "make the directory first, or correct the path"
      case EISDIR: "name a file in it, such as \"\(path)/events.jsonl\""
      case EACCES, EPERM, EROFS: "give this user the right to write there, or name another place"
      default: "name another place"
      }
    return NodeProblem("cannot write \"\(path)\": \(SystemWords.error(code))", parameter: "path", cure: cure)
  }

  /// Why a write failed, and what to do about it.
  static func explain(_ fault: NodeFault, _ target: String) -> String? {
    guard fault.reason == .system else { return nil }
    let cure: String =
      switch fault.code {
      case ENOSPC, EDQUOT: "make room on the disk; the lines written so far are whole"
      case EFBIG: "start a new file; the lines written so far are whole"
      case EPIPE: "keep the program that reads it running as long as the graph"
      default: "the lines written before are whole"
      }
    return "cannot write \(target): \(SystemWords.error(fault.code)); \(cure)"
  }
}
