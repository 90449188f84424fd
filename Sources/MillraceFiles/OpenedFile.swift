internal import Glibc
public import MillraceCore

/// A file, pipe or device opened for a node; a file is claimed until its descriptor is closed. Whoever opens it closes it.
public struct OpenedFile: Sendable {
  /// What a descriptor is open on.
  public enum Kind: Sendable {
    /// A regular file: it may make its caller wait for the disk only.
    case file
    /// A pipe or a socket: it has a reader, who may be slow or gone.
    case pipe
    /// A terminal or another device.
    case device

    /// Asks the system; what it does not know is a device.
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

  /// Open until closed; not waiting (O_NONBLOCK), which means nothing to a file.
  public let descriptor: Int32
  /// What it is open on.
  public let kind: Kind

  /// Opens a path. To be written, a file is made if need be and claimed; it keeps what it holds until `empty`, so that a graph
  /// that does not start, be it for another node's sake, destroys nothing. A pipe that nobody reads is refused. Control side.
  /// - Parameter followsLinks: false: a path that is a symbolic link is refused.
  public init(_ path: String, for use: FileUse, followsLinks: Bool = true) throws(NodeProblem) {
    let flags =
      switch use {
      case .reading: O_RDONLY
      case .writing: O_WRONLY | O_CREAT
      case .appending: O_WRONLY | O_CREAT | O_APPEND
      }
    let links = followsLinks ? 0 : O_NOFOLLOW
    descriptor = unsafe open(path, flags | links | O_CLOEXEC | O_NONBLOCK, 0o644)
    guard descriptor >= 0 else { throw FileWords.problem(errno, path, for: use) }
    kind = Kind(of: descriptor)
    guard kind == .file else { return }
    do throws(NodeProblem) { try FileClaim.claim(descriptor, path, for: use) } catch {
      close(descriptor)
      throw error
    }
  }

  /// Throws away what a file holds, before the first write. Answers 0 or an `errno`.
  public static func empty(_ descriptor: Int32) -> Int32 { ftruncate(descriptor, 0) == 0 ? 0 : errno }
}
