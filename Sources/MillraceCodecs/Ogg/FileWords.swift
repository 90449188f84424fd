internal import Glibc

/// Why a file could not be opened, read or written, in words with a cure. Control side.
struct FileTrouble: Error, Equatable {
  var text: String
  var cure: String

  /// What the operating system's error number means for a file that was to be written.
  static func writing(_ path: String, code: Int32) -> FileTrouble {
    let start = "cannot write \"\(path)\": "
    switch code {
    case ENOENT, ENOTDIR:
      let folder = Self.folder(of: path)
      return FileTrouble(
        text: start + "there is no folder \"\(folder)\"", cure: "make the folder or change \"path\"")
    case EISDIR: return FileTrouble(text: start + "it is a folder", cure: "name a file in \"path\"")
    case EACCES, EPERM:
      return FileTrouble(text: start + "permission denied", cure: "change the permissions or \"path\"")
    case EROFS: return FileTrouble(text: start + "the file system is read-only", cure: "change \"path\"")
    case ENOSPC, EDQUOT:
      return FileTrouble(text: start + "the disk is full", cure: "make room or change \"path\"")
    case EPIPE:
      return FileTrouble(
        text: start + "the pipe's reader is gone", cure: "keep the reader running until the end")
    case ENXIO:
      return FileTrouble(text: start + "nobody reads the pipe", cure: "start the reader first")
    default: return FileTrouble(text: start + words(code), cure: "change \"path\"")
    }
  }

  /// What the operating system's error number means for a file that was to be read.
  static func reading(_ path: String, code: Int32) -> FileTrouble {
    let start = "cannot read \"\(path)\": "
    switch code {
    case ENOENT, ENOTDIR: return FileTrouble(text: start + "there is no such file", cure: "change \"path\"")
    case EISDIR: return FileTrouble(text: start + "it is a folder", cure: "name a file in \"path\"")
    case EACCES, EPERM:
      return FileTrouble(text: start + "permission denied", cure: "change the permissions or \"path\"")
    default: return FileTrouble(text: start + words(code), cure: "change \"path\"")
    }
  }

  /// The folder a path lies in, `.` for a bare name.
  static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  private static func words(_ code: Int32) -> String {
    guard let text = unsafe strerror(code) else { return "error \(code)" }
    return unsafe String(cString: text).lowercased()
  }
}
