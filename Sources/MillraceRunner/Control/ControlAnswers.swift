internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import MillraceGraph
internal import Synchronization

/// Writes the answers to control commands, one JSON object per line, to a file, a named pipe or standard error.
///
/// Never blocks: an answer for which a pipe has no room is dropped and counted, so a slow reader does not delay a graph. When a pipe
/// accepts only part of an answer, the remainder is written before the next answer, so lines are always complete. Any thread.
final class ControlAnswers: Sendable {
  private let descriptor: Int32
  private let ownsDescriptor: Bool
  private let counted = Mutex(Losses())
  /// The remainder of an answer that was written in part.
  private let remainder = Mutex<[UInt8]>([])

  /// Answers that were not written.
  struct Losses: Sendable {
    /// Answers dropped because a pipe was full.
    var unread = 0
    /// Answers that could not be written, and the last `errno`.
    var failed = 0
    var code: Int32 = 0

    mutating func add(_ code: Int32) {
      if code == EAGAIN {
        unread += 1
      } else {
        failed += 1
        self.code = code
      }
    }

    /// Messages for the user, one per line.
    var messages: [String] {
      var lines: [String] = []
      if unread > 0 {
        lines.append(
          "\(Figures.counted(unread, "answer")) dropped because the pipe was full; read the answers while the graph runs"
        )
      }
      if failed > 0 {
        lines.append(
          "\(Figures.counted(failed, "answer")) could not be written: \(SystemError.text(code)); free some space or choose another path"
        )
      }
      return lines
    }
  }

  /// True when answers go to standard error, among the runner's own messages.
  var isStandardError: Bool { !ownsDescriptor && descriptor == 2 }

  /// - Parameter path: a file, which is created if needed and truncated by `begin`; a named pipe, whose readers may come and go; `-` for
  ///   standard output; nil for standard error.
  init(_ path: String?) throws {
    guard let path, path != "-" else {
      descriptor = path == nil ? 2 : 1
      ownsDescriptor = false
      return
    }
    // Opened for reading too: then a named pipe needs no reader, and the descriptor stays valid when a reader closes it.
    let isPipe = FileKind(path: path) == .pipe
    let flags = isPipe ? O_RDWR | O_NONBLOCK : O_WRONLY | O_CREAT
    descriptor = unsafe open(path, flags | O_CLOEXEC, 0o644)
    ownsDescriptor = true
    guard descriptor >= 0 else {
      Output.error.write(
        "error: cannot write control answers to \(Problem.quoted(path)): \(SystemError.text(errno)); choose another path\n"
      )
      throw ExitStatus.usage
    }
    guard FileKind(descriptor: descriptor) == .regular else { return }
    do throws(NodeProblem) { try FileLock.lock(descriptor, path, for: .writing) } catch {
      Output.error.write(
        "error: cannot write control answers to \(Problem.quoted(path)): it is in use by this run or another program; choose another path\n"
      )
      throw ExitStatus.usage
    }
  }

  /// Rejects the pipe that commands come from: every answer would be read as a command and answered.
  func rejectSamePipe(as input: borrowing ControlInput) throws {
    guard input.readsPipe(of: descriptor) else { return }
    Output.error.write(
      "error: control commands and answers cannot use the same pipe; choose another path for the answers\n")
    throw ExitStatus.usage
  }

  /// Truncates the file. Called when the graphs are about to start, so that a graph that never starts does not destroy earlier answers.
  func begin() {
    // Fails for pipes and devices, which need no truncation.
    if ownsDescriptor { _ = ftruncate(descriptor, 0) }
  }

  deinit { if ownsDescriptor && descriptor >= 0 { FileLock.close(descriptor) } }

  /// The answers lost so far. First tries again to write the remainder of a partly written answer.
  var losses: Losses {
    var losses = counted.withLock { $0 }
    if let code = remainder.withLock({ writeOut(&$0) }) { losses.add(code) }
    return losses
  }

  func write(_ line: String) {
    // JSON does not escape U+0080 to U+009F, which terminals interpret. They occur only inside strings, where this makes them escapes.
    let answer = Array((Problem.printable(line) + "\n").utf8)
    let code = remainder.withLock { remainder -> Int32? in
      if let code = writeOut(&remainder) { return code }
      remainder = answer
      guard let code = writeOut(&remainder), remainder.count == answer.count else { return nil }
      remainder = []
      return code
    }
    if let code { counted.withLock { $0.add(code) } }
  }

  /// Writes bytes and removes them from the array. Returns nil when all were written, otherwise the `errno`.
  private func writeOut(_ bytes: inout [UInt8]) -> Int32? {
    while !bytes.isEmpty {
      let count = unsafe bytes.withUnsafeBufferPointer { buffer in
        unsafe Glibc.write(descriptor, buffer.baseAddress, buffer.count)
      }
      if count > 0 {
        bytes.removeFirst(count)
      } else if errno != EINTR {
        return errno
      }
    }
    return nil
  }
}
