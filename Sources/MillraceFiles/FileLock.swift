internal import Glibc
public import MillraceCore

/// An advisory lock on a file, held as long as the value lives: shared among readers, shared among appenders, exclusive for a writer.
///
/// Uses flock(2), so the lock also excludes other processes and ends with them. Pipes and devices are not locked. On a file system
/// without locks, nothing is refused. Control side.
@safe
public struct FileLock: ~Copyable {
  private let descriptor: Int32

  /// Locks a file. For writing or appending it is created if it does not exist; otherwise its content is left alone.
  public init(_ path: String, for use: FileUse) throws(NodeProblem) {
    descriptor = try Self.open(path, use)
  }

  deinit {
    if descriptor >= 0 { Self.close(descriptor) }
  }

  /// Opens a file only to lock it; -1 if it is not a regular file.
  private static func open(_ path: String, _ use: FileUse) throws(NodeProblem) -> Int32 {
    var status = stat()
    // A pipe must not even be opened: its reader would see an end of file when the lock is released.
    if unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG { return -1 }
    let flags = use == .reading ? O_RDONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_CLOEXEC
    let descriptor = unsafe Glibc.open(path, flags, 0o644)
    guard descriptor >= 0 else { throw FileMessages.problem(errno, path, for: use) }
    do throws(NodeProblem) { try lock(descriptor, path, for: use) } catch {
      _ = Glibc.close(descriptor)
      throw error
    }
    return descriptor
  }

  /// Locks a file through an open descriptor, until it is closed or passed to `unlock`.
  public static func lock(
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
        cure: "write to another file; several instances need one each (put {instance} in the name)")
    case .appending:
      throw NodeProblem(
        "\"\(path)\" is being written by another node or program", parameter: "path",
        cure: "write to another file, or append in both")
    }
  }

  /// Closes a descriptor through which a file was locked.
  ///
  /// The lock belongs to the open file description. A child process that is just being started shares it until its exec. With close(2)
  /// alone the file would stay locked until then, and a restarted node would be refused its own file.
  public static func close(_ descriptor: Int32) {
    unlock(descriptor)
    _ = Glibc.close(descriptor)
  }

  /// Unlocks a file whose descriptor stays open.
  public static func unlock(_ descriptor: Int32) { _ = flock(descriptor, LOCK_UN) }
}
