internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import MillraceGraph

/// A file the runner writes as a whole or bit by bit.
///
/// Claimed as long as this lives, so that it is none of those a graph reads or writes. What was in it stays until the first
/// write: a graph that never starts destroys no earlier report. Not for files of nodes; those are `OpenedFile`.
struct TextFile: ~Copyable {
  let path: String
  private let descriptor: Int32
  /// True for what can be emptied; pipes and devices cannot.
  private let isRegular: Bool
  private var isEmptied = false
  /// The system's refusal of an earlier write.
  private(set) var failure: String?

  /// Opens the file, or makes it. A failure is told as a usage error.
  init(creating path: String) throws {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
    let refusal = errno
    self.path = path
    self.descriptor = descriptor
    isRegular = FileKind(descriptor: descriptor) == .regular
    guard descriptor >= 0 else { throw Self.refused(path, SystemError.text(refusal), "choose another place") }
    guard isRegular else { return }
    do throws(NodeProblem) { try FileClaim.claim(descriptor, path, for: .writing) } catch {
      throw Self.refused(
        path, "this run or another program reads or writes it", "choose another place")
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
    failure = unsafe refusal(of: bytes).map(SystemError.text)
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

  private mutating func refusal(of bytes: UnsafeBufferPointer<UInt8>) -> Int32? {
    if isRegular && !isEmptied && ftruncate(descriptor, 0) != 0 { return errno }
    isEmptied = true
    var offset = 0
    while offset < bytes.count {
      let count = unsafe Glibc.write(descriptor, bytes.baseAddress! + offset, bytes.count - offset)
      if count >= 0 { offset += count } else if errno != EINTR { return errno }
    }
    return nil
  }

  private static func refused(_ path: String, _ reason: String, _ cure: String) -> ExitStatus {
    Output.error.write("error: cannot write \(Problem.quoted(path)): \(reason); \(cure)\n")
    return .usage
  }
}
