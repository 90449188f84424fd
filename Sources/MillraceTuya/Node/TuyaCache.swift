internal import Glibc
internal import MillraceCore
internal import MillraceService

/// The folder for received files.
enum TuyaCache {
  /// Checks that files can be created in it. Changes nothing.
  static func check(_ values: ParameterValues) throws(NodeProblem) {
    guard let folder = values.given("cache") else { return }
    func problem(_ reason: String, _ cure: String) -> NodeProblem {
      NodeProblem("cannot store files in \"\(folder)\": \(reason)", parameter: "cache", cure: cure)
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
}
