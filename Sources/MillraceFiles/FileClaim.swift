internal import Glibc
public import MillraceCore

/// A claim on a file for as long as it is held: many may read it, many may append to it, one may write it, and nobody else then.
///
/// An advisory lock of the system, flock(2), so it also holds between processes, and ends with them. What is no regular file
/// (a pipe, a device) is not claimed, and where a file system knows no locks nothing is refused. Control side.
@safe
public struct FileClaim: ~Copyable {
  private let descriptor: Int32

  /// Claims a file; to be written or appended to it is created if need be, and not touched otherwise.
  public init(_ path: String, for use: FileUse) throws(NodeProblem) {
    descriptor = try Self.open(path, use)
  }

  deinit {
    guard descriptor >= 0 else { return }
    // The lock belongs to the open file, which a program that is just being started has open as well, until its first instruction:
    // closed only, the file would stay claimed as long as that takes, and a node that is restarted be refused its own file.
    Self.release(descriptor)
    _ = close(descriptor)
  }

  /// Opens a file for the lock's sake only; -1 for what is not claimed.
  private static func open(_ path: String, _ use: FileUse) throws(NodeProblem) -> Int32 {
    var status = stat()
    // A pipe must not even be opened: its reader would see an end when the claim is given back.
    if unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG { return -1 }
    let flags = use == .reading ? O_RDONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_CLOEXEC
    let descriptor = unsafe Glibc.open(path, flags, 0o644)
    guard descriptor >= 0 else { throw FileWords.problem(errno, path, for: use) }
    do throws(NodeProblem) { try claim(descriptor, path, for: use) } catch {
      close(descriptor)
      throw error
    }
    return descriptor
  }

  /// Claims a file by a descriptor that is open on it, until that is closed or given to `release`.
  public static func claim(
    _ descriptor: Int32, _ path: String, for use: FileUse
  ) throws(NodeProblem) {
    guard flock(descriptor, (use == .writing ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0, errno == EWOULDBLOCK
    else { return }
    switch use {
    case .reading:
      throw NodeProblem(
        "\"\(path)\" is being written by another node or program", parameter: "path",
        cure: "read it after its writer has finished, or write to another file")
    case .writing:
      throw NodeProblem(
        "\"\(path)\" is being read or written by another node or program", parameter: "path",
        cure: "write to another file; of several instances each needs its own ({instance} in the name)")
    case .appending:
      throw NodeProblem(
        "\"\(path)\" is being written by another node or program", parameter: "path",
        cure: "write to another file, or append in both")
    }
  }

  /// Gives back what was claimed by a descriptor that stays open.
  public static func release(_ descriptor: Int32) { _ = flock(descriptor, LOCK_UN) }
}
