internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import MillraceGraph
internal import Synchronization

/// Where the answers to control commands go, one JSON object a line: a file, a named pipe, or standard error.
///
/// Never waits: what a pipe does not take at once is counted and dropped, so that nobody who reads slowly holds up a graph.
/// Any thread.
final class ControlAnswers: Sendable {
  private let descriptor: Int32
  private let ownsDescriptor: Bool
  private let losses = Mutex(Losses())
  private let turn = Mutex(())

  /// Answers that are nowhere.
  struct Losses: Sendable {
    /// Those that a pipe had no room for.
    var unread = 0
    /// Those that the system refused, and why, an `errno`.
    var refused = 0
    var refusal: Int32 = 0

    /// What to tell of them, in lines.
    var remarks: [String] {
      var lines: [String] = []
      if unread > 0 { lines.append("\(Figures.counted(unread, "answer")) found nobody to read them") }
      if refused > 0 {
        lines.append(
          "\(Figures.counted(refused, "answer")) could not be written: \(SystemError.text(refusal)); make room, or choose another place"
        )
      }
      return lines
    }
  }

  /// True when answers and what the runner tells share a terminal or a file.
  var isStandardError: Bool { !ownsDescriptor && descriptor == 2 }

  /// - Parameter path: a file, made, or emptied by `begin`; a named pipe, whose reader may come and go; `-` for standard output; nil for
  ///   standard error.
  init(_ path: String?) throws {
    guard let path, path != "-" else {
      descriptor = path == nil ? 2 : 1
      ownsDescriptor = false
      return
    }
    // For reading too: a named pipe then opens without a reader, and outlives one.
    let isPipe = FileKind(path: path) == .pipe
    let flags = isPipe ? O_RDWR | O_NONBLOCK : O_WRONLY | O_CREAT
    descriptor = unsafe open(path, flags | O_CLOEXEC, 0o644)
    ownsDescriptor = true
    guard descriptor >= 0 else {
      Output.error.write(
        "error: cannot write the control answers to \(Problem.quoted(path)): \(SystemError.text(errno)); choose another place\n"
      )
      throw ExitStatus.usage
    }
    guard FileKind(descriptor: descriptor) == .regular else { return }
    do throws(NodeProblem) { try FileClaim.claim(descriptor, path, for: .writing) } catch {
      Output.error.write(
        "error: cannot write the control answers to \(Problem.quoted(path)): this run or another program reads or writes it; choose another place\n"
      )
      throw ExitStatus.usage
    }
  }

  /// Refuses to answer into the pipe that commands come from: every answer would be read as a command, and answered.
  func refuse(asCommandsOf input: borrowing ControlInput) throws {
    guard input.reads(whatGoesTo: descriptor) else { return }
    Output.error.write(
      "error: cannot write the control answers into the pipe that the commands come from; choose another place\n"
    )
    throw ExitStatus.usage
  }

  /// The graphs are about to start: empties the file. Before that, what was in it is not lost by a graph that never starts.
  func begin() {
    // Pipes and devices refuse, and have nothing to be emptied.
    if ownsDescriptor { _ = ftruncate(descriptor, 0) }
  }

  deinit { if ownsDescriptor && descriptor >= 0 { close(descriptor) } }

  /// Answers that are nowhere, up to now.
  var lost: Losses { losses.withLock { $0 } }

  func write(_ line: String) {
    // What JSON leaves as it is and a terminal obeys (U+0080 to U+009F) stands inside of strings, where this is an escape.
    var text = Problem.printable(line) + "\n"
    let refusal = turn.withLock { _ in text.withUTF8 { unsafe writeAll($0) } }
    guard let refusal else { return }
    losses.withLock { losses in
      if refusal == EAGAIN {
        losses.unread += 1
      } else {
        losses.refused += 1
        losses.refusal = refusal
      }
    }
  }

  /// nil, or why not all of it was written: an `errno`.
  private func writeAll(_ bytes: UnsafeBufferPointer<UInt8>) -> Int32? {
    var offset = 0
    while offset < bytes.count {
      let count = unsafe Glibc.write(descriptor, bytes.baseAddress! + offset, bytes.count - offset)
      if count > 0 {
        offset += count
      } else if errno != EINTR {
        return errno
      }
    }
    return nil
  }
}
