internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import MillraceGraph
internal import Synchronization

/// Where the answers to control commands go, one JSON object a line: a file, a named pipe, or standard error.
///
/// Never waits: an answer that a pipe has no room for is counted and dropped, so that nobody who reads slowly holds up a graph. Of one
/// that it took in part, the rest goes before anything else, so that every line is whole. Any thread.
final class ControlAnswers: Sendable {
  private let descriptor: Int32
  private let ownsDescriptor: Bool
  private let losses = Mutex(Losses())
  /// The rest of an answer that was taken in part.
  private let rest = Mutex<[UInt8]>([])

  /// Answers that are nowhere.
  struct Losses: Sendable {
    /// Those that a pipe had no room for.
    var unread = 0
    /// Those that the system refused, and why, an `errno`.
    var refused = 0
    var refusal: Int32 = 0

    mutating func add(_ reason: Int32) {
      if reason == EAGAIN {
        unread += 1
      } else {
        refused += 1
        refusal = reason
      }
    }

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
    do throws(NodeProblem) { try FileLock.lock(descriptor, path, for: .writing) } catch {
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

  /// Answers that are nowhere, up to now; tries once more to write the rest of one that is there in part.
  var lost: Losses {
    var losses = losses.withLock { $0 }
    if let refusal = rest.withLock({ writeOut(&$0) }) { losses.add(refusal) }
    return losses
  }

  func write(_ line: String) {
    // What JSON leaves as it is and a terminal obeys (U+0080 to U+009F) stands inside of strings, where this is an escape.
    let answer = Array((Problem.printable(line) + "\n").utf8)
    let refusal = rest.withLock { rest -> Int32? in
      if let refusal = writeOut(&rest) { return refusal }
      rest = answer
      guard let refusal = writeOut(&rest), rest.count == answer.count else { return nil }
      rest = []
      return refusal
    }
    if let refusal { losses.withLock { $0.add(refusal) } }
  }

  /// Writes bytes and leaves those that are not taken. nil: all were; otherwise why not, an `errno`.
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
