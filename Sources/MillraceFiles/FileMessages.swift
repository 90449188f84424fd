internal import Glibc
public import MillraceCore

/// Error messages for the system's file errors, each with its cure. Control side.
public enum FileMessages {
  /// Why a file could not be opened.
  public static func problem(_ code: Int32, _ path: String, for use: FileUse) -> NodeProblem {
    if path.isEmpty { return noPath }
    let verb = use == .reading ? "read" : "write"
    let reason = SystemError.text(code)
    if let problem = exhaustion(code, path, for: use) { return problem }
    switch code {
    case ENOENT, ENOTDIR:
      guard use == .reading else { return noPlace(for: path, code) }
      return NodeProblem(
        "there is no file \"\(path)\"", parameter: "path",
        cure:
          "check the path: in a graph it is relative to the graph file, with --set to the current directory")
    case EISDIR: return isFolder(path)
    case EACCES, EPERM, EROFS:
      return NodeProblem(
        "cannot \(verb) \"\(path)\": \(reason)", parameter: "path",
        cure: use == .reading
          ? "grant this user read permission"
          : "grant this user write permission, or choose another path")
    case ENXIO:
      return NodeProblem(
        "the pipe \"\(path)\" has no reader", parameter: "path", cure: "start its reader first")
    case ENOSPC, EDQUOT:
      return NodeProblem(
        "cannot \(verb) \"\(path)\": \(reason)", parameter: "path",
        cure: "free disk space, or choose another path")
    default:
      return NodeProblem(
        "cannot \(verb) \"\(path)\": \(reason)", parameter: "path", cure: "choose another file")
    }
  }

  /// The message for an exhausted limit of open files; nil for any other error.
  public static func exhaustion(_ code: Int32, _ path: String, for use: FileUse) -> NodeProblem? {
    guard code == EMFILE || code == ENFILE else { return nil }
    return NodeProblem(
      "cannot \(use == .reading ? "read" : "write") \"\(path)\": \(SystemError.text(code))",
      parameter: "path", cure: "raise the limit on open files (ulimit -n), or run fewer instances")
  }

  /// The message for a path that is a directory.
  public static func isFolder(_ path: String) -> NodeProblem {
    NodeProblem("\"\(path)\" is a directory", parameter: "path", cure: "name a file in it")
  }

  /// The message for an empty path.
  static var noPath: NodeProblem { NodeProblem("the path is empty", parameter: "path", cure: "name a file") }

  /// Why a file cannot be created. The system reports the same error for a missing directory and for one that accepts no new files,
  /// so look which it is.
  private static func noPlace(for path: String, _ code: Int32) -> NodeProblem {
    let folder = FileCheck.folder(of: path)
    func problem(_ text: String, _ cure: String) -> NodeProblem {
      NodeProblem(text, parameter: "path", cure: cure)
    }
    var status = stat()
    guard unsafe stat(folder, &status) == 0 else {
      return errno == ENOTDIR
        ? problem(
          "cannot write \"\(path)\": part of \"\(folder)\" is a file, not a directory", "choose another path")
        : problem(
          "cannot write \"\(path)\": the directory \"\(folder)\" does not exist",
          "create it: mkdir -p \"\(folder)\"")
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      return problem(
        "cannot write \"\(path)\": \"\(folder)\" is a file, not a directory", "choose another path")
    }
    if unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK {
      return problem(
        "\"\(path)\" is a symbolic link whose target does not exist", "create its target, or remove the link")
    }
    // One of the kernel's directories, such as /proc, or a current directory that was removed.
    return problem(
      "cannot create \"\(path)\" though the directory \"\(folder)\" exists: \(SystemError.text(code))",
      "the directory accepts no new files, like those under /proc; choose another path")
  }

  /// The message for a failed write: `writing TARGET failed: REASON; KEPT`, and the cure if there is one. `target` is a quoted path
  /// or a name such as `the standard output`; `kept` says what was written intact.
  public static func writeFailure(_ code: Int32, _ target: String, kept: String) -> String {
    let cure =
      switch code {
      case ENOSPC: "; free disk space"
      case EDQUOT: "; free space within this user's quota"
      case EFBIG: "; the file size limit is reached (ulimit -f, or the file system's)"
      case ENOENT: "; its directory was removed or accepts no new files; choose another path"
      case EMFILE, ENFILE: "; raise the limit on open files (ulimit -n), or run fewer instances"
      case EPIPE: "; keep its reader running until the graph ends"
      default: ""
      }
    return "writing \(target) failed: \(SystemError.text(code)); \(kept)\(cure)"
  }
}
