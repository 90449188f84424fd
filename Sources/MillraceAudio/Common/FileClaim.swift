internal import Glibc
internal import MillraceCore

/// A claim on a sound file for as long as it is held: many may read one, one may write it, never both.
///
/// An advisory lock of the system (`flock`), so it also holds between processes, and ends with them. Where a file system
/// knows no locks there is no claim and nothing is refused. Control side.
@safe
struct FileClaim: ~Copyable {
  /// What a file is claimed for.
  enum Purpose {
    case reading
    case writing
  }

  private let descriptor: Int32

  /// Claims a file; for writing it is created if need be, and not touched otherwise.
  init(_ path: String, for purpose: Purpose) throws(NodeProblem) {
    let flags = purpose == .writing ? O_WRONLY | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC
    descriptor = unsafe open(path, flags, 0o644)
    guard descriptor >= 0 else { throw FileCheck.problem(errno, path, for: purpose) }
    guard flock(descriptor, (purpose == .writing ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0, errno == EWOULDBLOCK
    else { return }
    switch purpose {
    case .reading:
      throw NodeProblem(
        "\"\(path)\" is being written by another node or program", parameter: "path",
        cure: "read it after its writer has finished, or write to another file")
    case .writing:
      throw NodeProblem(
        "\"\(path)\" is being read or written by another node or program", parameter: "path",
        cure: "write to another file")
    }
  }

  deinit { if descriptor >= 0 { _ = close(descriptor) } }
}

/// What can be said against a path before it is opened. Looks, changes nothing; control side.
enum FileCheck {
  /// Checks a file that is to be read.
  static func reading(_ path: String) throws(NodeProblem) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { throw problem(errno, path, for: .reading) }
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFDIR:
      throw NodeProblem(
        "\"\(path)\" is a folder", parameter: "path", cure: "name a sound file in it")
    default:
      throw NodeProblem(
        "\"\(path)\" is a pipe or a device, not a file", parameter: "path",
        cure: "read a stream with process.pipe")
    }
    guard unsafe access(path, R_OK) == 0 else { throw problem(errno, path, for: .reading) }
    if status.st_size == 0 {
      throw NodeProblem("\"\(path)\" is empty", parameter: "path", cure: "record it again")
    }
  }

  /// Checks a file that is to be made or overwritten.
  static func writing(_ path: String) throws(NodeProblem) {
    var status = stat()
    if unsafe stat(path, &status) == 0 {
      switch status.st_mode & S_IFMT {
      case S_IFREG, S_IFCHR: break
      case S_IFDIR:
        throw NodeProblem(
          "\"\(path)\" is a folder", parameter: "path",
          cure: "name a file in it, such as \"\(path)/sound.wav\"")
      default:
        throw NodeProblem(
          "\"\(path)\" is a pipe; the length in a WAV file's header is written last", parameter: "path",
          cure: "write to a file, or send the sound to process.pipe")
      }
      guard unsafe access(path, W_OK) == 0 else { throw problem(errno, path, for: .writing) }
      return
    }
    guard errno == ENOENT else { throw problem(errno, path, for: .writing) }
    let folder = folder(of: path)
    guard unsafe stat(folder, &status) == 0 else {
      throw NodeProblem(
        "the folder \"\(folder)\" of \"\(path)\" does not exist", parameter: "path",
        cure: "make it: mkdir -p \"\(folder)\"")
    }
    guard unsafe access(folder, W_OK) == 0 else { throw problem(errno, path, for: .writing) }
  }

  /// An error number on opening a file, in words with the cure.
  static func problem(_ code: Int32, _ path: String, for purpose: FileClaim.Purpose) -> NodeProblem {
    let verb = purpose == .reading ? "read" : "written"
    switch code {
    case ENOENT, ENOTDIR:
      return NodeProblem(
        "there is no file \"\(path)\"", parameter: "path",
        cure:
          "check the path; a relative one starts at the graph file's folder, with --set at the current one")
    case EACCES, EPERM, EROFS:
      return NodeProblem(
        "\"\(path)\" may not be \(verb): \(reason(code))", parameter: "path",
        cure: purpose == .reading
          ? "give this user the right to read it"
          : "give this user the right to write there, or name another place")
    case ENOSPC, EDQUOT:
      return NodeProblem(
        "\"\(path)\" cannot be \(verb): \(reason(code))", parameter: "path",
        cure: "make room on the disk, or name another place")
    default:
      return NodeProblem(
        "\"\(path)\" cannot be \(verb): \(reason(code))", parameter: "path", cure: "name another file")
    }
  }

  /// The system's words for an error number.
  static func reason(_ code: Int32) -> String {
    guard let text = unsafe strerror(code) else { return "error \(code)" }
    return unsafe "\(String(cString: text)) (errno \(code))"
  }

  private static func folder(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    let folder = String(path[..<slash])
    return folder.isEmpty ? "/" : folder
  }
}
