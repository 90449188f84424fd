internal import Glibc
public import MillraceCore

/// What the system's error numbers mean for a file that a node was told to use: in words, with the cure. Control side.
public enum FileWords {
  /// Why a file could not be opened.
  public static func problem(_ code: Int32, _ path: String, for use: FileUse) -> NodeProblem {
    if path.isEmpty { return noPath }
    let verb = use == .reading ? "read" : "written"
    let reason = SystemError.text(code)
    if let problem = exhaustion(code, path, for: use) { return problem }
    switch code {
    case ENOENT, ENOTDIR:
      guard use == .reading else { return noPlace(for: path, code) }
      return NodeProblem(
        "there is no file \"\(path)\"", parameter: "path",
        cure:
          "check the path; a relative one starts at the graph file's folder, with --set at the current one")
    case EISDIR: return isFolder(path)
    case EACCES, EPERM, EROFS:
      return NodeProblem(
        "\"\(path)\" may not be \(verb): \(reason)", parameter: "path",
        cure: use == .reading
          ? "give this user the right to read it"
          : "give this user the right to write there, or name another place")
    case ENXIO:
      return NodeProblem(
        "nobody reads the pipe \"\(path)\"", parameter: "path", cure: "start its reader first")
    case ENOSPC, EDQUOT:
      return NodeProblem(
        "\"\(path)\" cannot be \(verb): \(reason)", parameter: "path",
        cure: "make room on the disk, or name another place")
    default:
      return NodeProblem(
        "\"\(path)\" cannot be \(verb): \(reason)", parameter: "path", cure: "name another file")
    }
  }

  /// The words for a file that cannot be opened because too many are; nil for any other number.
  public static func exhaustion(_ code: Int32, _ path: String, for use: FileUse) -> NodeProblem? {
    guard code == EMFILE || code == ENFILE else { return nil }
    return NodeProblem(
      "\"\(path)\" cannot be \(use == .reading ? "read" : "written"): \(SystemError.text(code))",
      parameter: "path", cure: "raise the limit of open files (ulimit -n), or run fewer instances")
  }

  /// The words for a path that is a folder.
  public static func isFolder(_ path: String) -> NodeProblem {
    NodeProblem("\"\(path)\" is a folder", parameter: "path", cure: "name a file in it")
  }

  /// The words for a path without a character.
  static var noPath: NodeProblem { NodeProblem("the path is empty", parameter: "path", cure: "name a file") }

  /// Why there is no place for a file that is to be made. The system's number is the same for a folder that is missing and for one that
  /// takes no files, so the disk is asked.
  private static func noPlace(for path: String, _ code: Int32) -> NodeProblem {
    let folder = FileCheck.folder(of: path)
    func problem(_ text: String, _ cure: String) -> NodeProblem {
      NodeProblem(text, parameter: "path", cure: cure)
    }
    var status = stat()
    guard unsafe stat(folder, &status) == 0 else {
      return errno == ENOTDIR
        ? problem(
          "a part of the folder \"\(folder)\" of \"\(path)\" is a file, not a folder", "name another place")
        : problem(
          "the folder \"\(folder)\" of \"\(path)\" does not exist", "make it: mkdir -p \"\(folder)\"")
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      return problem("\"\(folder)\" of \"\(path)\" is a file, not a folder", "name another place")
    }
    if unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK {
      return problem(
        "\"\(path)\" is a link to a place that does not exist", "make that place, or remove the link")
    }
    // A folder of the kernel's, as those of /proc are, or one that was removed while it was the current one.
    return problem(
      "\"\(path)\" cannot be made, though its folder \"\(folder)\" is there: \(SystemError.text(code))",
      "that folder takes no new files, as those of /proc do not; name another place")
  }

  /// Why a write failed on the way: `writing TARGET failed: REASON; KEPT`, and the cure where there is one. `target` is a
  /// quoted path or a name such as `the standard output`; `kept` says what is safe.
  public static func writeFailure(_ code: Int32, _ target: String, kept: String) -> String {
    let cure =
      switch code {
      case ENOSPC: "; make room on the disk"
      case EDQUOT: "; this user's share of the disk is used up"
      case EFBIG: "; no longer file is allowed there"
      case ENOENT: "; its folder was removed or takes no new files: name another place"
      case EMFILE, ENFILE: "; raise the limit of open files (ulimit -n), or run fewer instances"
      case EPIPE: "; keep the program that reads it running as long as the graph"
      default: ""
      }
    return "writing \(target) failed: \(SystemError.text(code)); \(kept)\(cure)"
  }
}
