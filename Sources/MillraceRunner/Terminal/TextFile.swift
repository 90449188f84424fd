internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import MillraceGraph

/// A file the runner writes as a whole or bit by bit.
///
/// Claimed as long as this lives, so that it is none of those a graph reads or writes. What was in it stays until the first
/// write: a graph that never starts destroys no earlier report. Of a named pipe the reader has three seconds to come, and may then
/// be slow; once the process was asked to end it is waited for only while it goes on reading. Not for files of nodes; those are
/// `OpenedFile`.
struct TextFile: ~Copyable {
  let path: String
  private let descriptor: Int32
  /// True for what can be emptied; pipes and devices cannot.
  private let isRegular: Bool
  private var isEmptied = false
  /// The system's refusal of an earlier write.
  private(set) var failure: String?

  /// Milliseconds in which a named pipe has to find a reader, as one that is read has to find a writer.
  private static let pipePatience: Int32 = 3_000
  /// Milliseconds a reader may take nothing once the process was asked to end.
  private static let endPatience: Int32 = 2_000
  /// Milliseconds between two looks at either.
  private static let look: Int32 = 10

  /// Opens the file, or makes it. A failure is told as a usage error.
  init(creating path: String) throws {
    let (descriptor, refusal) = Self.open(path)
    self.path = path
    self.descriptor = descriptor
    isRegular = FileKind(descriptor: descriptor) == .regular
    guard descriptor >= 0 else {
      let isUnread = refusal == ENXIO && FileKind(path: path) == .pipe
      throw isUnread
        ? Self.refused(path, "it is a named pipe, and nobody reads it", "start its reader first")
        : Self.refused(path, SystemError.text(refusal), "choose another place")
    }
    guard isRegular else { return }
    do throws(NodeProblem) { try FileLock.lock(descriptor, path, for: .writing) } catch {
      throw Self.refused(
        path, "this run or another program reads or writes it", "choose another place")
    }
  }

  /// A descriptor that does not wait, and 0; or -1 and the `errno`.
  private static func open(_ path: String) -> (Int32, refusal: Int32) {
    var waited: Int32 = 0
    while true {
      // The open of a named pipe without a reader would wait for one, silently and for ever.
      let descriptor = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o644)
      let refusal = errno
      if descriptor >= 0 { return (descriptor, 0) }
      guard refusal == ENXIO, waited < pipePatience, FileKind(path: path) == .pipe else {
        return (-1, refusal)
      }
      poll(nil, 0, look)
      waited += look
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Appends a text. After a failure everything more is dropped; see `failure`.
  mutating func write(_ text: String) {
    var text = text
    text.withUTF8 { unsafe write($0) }
  }

  /// Appends bytes, as a text.
  mutating func write(_ bytes: UnsafeBufferPointer<UInt8>) {
    guard failure == nil else { return }
    failure = unsafe refusal(of: bytes)
  }

  /// Everything is written: tells the failure of a write, if there was one, as a usage error.
  mutating func finish() throws {
    write("")
    if let failure { throw Self.refused(path, failure, "make room or choose another place") }
  }

  /// Writes a whole file, or ends the command with the system's refusal.
  static func write(_ text: String, to path: String) throws {
    var file = try TextFile(creating: path)
    file.write(text)
    try file.finish()
  }

  /// nil, or why not all of it was written, in words.
  private mutating func refusal(of bytes: UnsafeBufferPointer<UInt8>) -> String? {
    if isRegular && !isEmptied && ftruncate(descriptor, 0) != 0 { return SystemError.text(errno) }
    isEmptied = true
    var offset = 0
    while offset < bytes.count {
      let count = unsafe Glibc.write(descriptor, bytes.baseAddress! + offset, bytes.count - offset)
      if count >= 0 {
        offset += count
      } else if errno == EAGAIN {
        guard waitForRoom() else { return "it is a pipe whose reader has stopped reading" }
      } else if errno != EINTR {
        return SystemError.text(errno)
      }
    }
    return nil
  }

  /// Waits until a pipe's reader has made room. False when it does not and the process was asked to end.
  private func waitForRoom() -> Bool {
    var left = Self.endPatience
    while left > 0 {
      var wish = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      if unsafe poll(&wish, 1, Self.look) > 0 { return true }
      if Signals.isAskedToStop { return false }
      if Signals.isAskedToEnd { left -= Self.look }
    }
    return false
  }

  private static func refused(_ path: String, _ reason: String, _ cure: String) -> ExitStatus {
    Output.error.write("error: cannot write \(Problem.quoted(path)): \(reason); \(cure)\n")
    return .usage
  }
}
