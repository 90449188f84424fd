internal import Glibc
public import MillraceCore

/// Checks a path before it is opened. Changes nothing. Control side.
public enum FileCheck {
  /// Checks a file that will be read at arbitrary positions.
  public static func reading(_ path: String) throws(NodeProblem) {
    if path.isEmpty { throw FileMessages.noPath }
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { throw FileMessages.problem(errno, path, for: .reading) }
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFDIR: throw FileMessages.isFolder(path)
    default:
      throw NodeProblem(
        "\"\(path)\" is a pipe or a device, not a file", parameter: "path",
        cure: "read a stream with process.pipe")
    }
    guard unsafe access(path, R_OK) == 0 else { throw FileMessages.problem(errno, path, for: .reading) }
    if status.st_size == 0 {
      throw NodeProblem("\"\(path)\" is empty", parameter: "path", cure: "record it again")
    }
  }

  /// Checks a file, device or pipe that will be created or overwritten.
  public static func writing(_ path: String) throws(NodeProblem) {
    if path.isEmpty { throw FileMessages.noPath }
    var status = stat()
    if unsafe stat(path, &status) == 0 {
      if status.st_mode & S_IFMT == S_IFDIR { throw FileMessages.isFolder(path) }
      guard unsafe access(path, W_OK) == 0 else { throw FileMessages.problem(errno, path, for: .writing) }
      return
    }
    guard errno == ENOENT else { throw FileMessages.problem(errno, path, for: .writing) }
    let folder = folder(of: path)
    guard unsafe stat(folder, &status) == 0 else { throw FileMessages.problem(errno, path, for: .writing) }
    let isFolder = status.st_mode & S_IFMT == S_IFDIR
    guard isFolder else { throw FileMessages.problem(ENOTDIR, path, for: .writing) }
    guard unsafe access(folder, W_OK | X_OK) == 0 else {
      throw FileMessages.problem(errno, path, for: .writing)
    }
  }

  /// Checks a directory in which files will be created.
  /// - Parameters:
  ///   - folder: its path.
  ///   - parameter: the name of the parameter that says so, for the problem.
  public static func creating(in folder: String, parameter: String) throws(NodeProblem) {
    func problem(_ reason: String, _ cure: String) -> NodeProblem {
      NodeProblem("cannot store files in \"\(folder)\": \(reason)", parameter: parameter, cure: cure)
    }
    var status = stat()
    guard unsafe stat(folder, &status) == 0 else {
      switch errno {
      case ENOENT: throw problem("there is no such directory", "create it: mkdir -p \"\(folder)\"")
      case ENOTDIR: throw problem("part of the path is a file, not a directory", "choose another path")
      default: throw problem(SystemError.text(errno), "choose another path")
      }
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      throw problem("it is a file, not a directory", "name a directory")
    }
    guard unsafe access(folder, W_OK | X_OK) == 0 else {
      throw problem(
        SystemError.text(errno), "grant this user write permission, or choose another directory")
    }
  }

  /// True for a pipe or a socket: it has one reader and cannot seek.
  public static func isPipe(_ path: String) -> Bool {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return false }
    return status.st_mode & S_IFMT == S_IFIFO || status.st_mode & S_IFMT == S_IFSOCK
  }

  /// True when the path names a regular file or does not exist yet. Pipes and devices belong to the system and must not be removed or
  /// replaced.
  public static func isPlain(_ path: String) -> Bool {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return errno == ENOENT }
    return status.st_mode & S_IFMT == S_IFREG
  }

  /// The directory part of a path; `.` for a bare name.
  static func folder(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.utf8.startIndex ? "/" : String(path[..<slash])
  }
}
