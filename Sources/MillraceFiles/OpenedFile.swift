internal import Glibc
public import MillraceCore

/// An open file, pipe or device for a node. A regular file is locked until its descriptor is closed, which the caller does with
/// `FileLock.close`.
public struct OpenedFile: Sendable {
  /// What a descriptor is open on.
  public enum Kind: Sendable {
    /// A regular file: a call may wait for the disk, and for nothing else.
    case file
    /// A pipe or a socket: its reader may be slow or gone.
    case pipe
    /// A terminal or another device.
    case device

    /// Classifies a descriptor with fstat(2); anything unknown counts as a device.
    public init(of descriptor: Int32) {
      var status = stat()
      guard unsafe fstat(descriptor, &status) == 0 else {
        self = .device
        return
      }
      switch status.st_mode & S_IFMT {
      case S_IFREG: self = .file
      case S_IFIFO, S_IFSOCK: self = .pipe
      default: self = .device
      }
    }
  }

  /// The descriptor, with O_NONBLOCK, which has no effect on a regular file.
  public let descriptor: Int32
  /// The kind of file it is.
  public let kind: Kind

  /// Opens a path. For writing, the file is created if needed and locked. Its content stays until `truncate`, so that a graph that
  /// fails to start, even because of another node, destroys nothing. A pipe without a reader is refused. Control side.
  /// - Parameter followsLinks: false refuses a path that is a symbolic link.
  public init(_ path: String, for use: FileUse, followsLinks: Bool = true) throws(NodeProblem) {
    let flags =
      switch use {
      case .reading: O_RDONLY
      case .writing: O_WRONLY | O_CREAT
      case .appending: O_WRONLY | O_CREAT | O_APPEND
      }
    let links = followsLinks ? 0 : O_NOFOLLOW
    descriptor = unsafe open(path, flags | links | O_CLOEXEC | O_NONBLOCK, 0o644)
    guard descriptor >= 0 else { throw FileMessages.problem(errno, path, for: use) }
    kind = Kind(of: descriptor)
    guard kind == .file else { return }
    do throws(NodeProblem) { try FileLock.lock(descriptor, path, for: use) } catch {
      close(descriptor)
      throw error
    }
  }

  /// Discards the file's content, before the first write. Returns 0 or an `errno`.
  public static func truncate(_ descriptor: Int32) -> Int32 { ftruncate(descriptor, 0) == 0 ? 0 : errno }
}
