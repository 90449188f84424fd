internal import Glibc
internal import MillraceCore

/// The directory with the statistics sockets of this user's runs, one per process, named by process ID:
/// `$XDG_RUNTIME_DIR/millrace/4711`, or `/tmp/millrace-1000/4711` when `XDG_RUNTIME_DIR` is not set.
///
/// The directory must belong to this user and be inaccessible to all others; otherwise it is not used.
struct RunFolder: Sendable {
  let path: String

  /// Why the directory cannot be used.
  struct Failure: Error, Sendable, Hashable {
    var text: String
  }

  /// Longest path of a socket, including the final zero (`sun_path` of unix(7)).
  private static let longestAddress = 108
  /// Leaves room for a slash and a process ID.
  private static let longestFolder = longestAddress - 24

  /// The directory for this environment.
  init() {
    let runtime = Environment.value("XDG_RUNTIME_DIR") ?? ""
    path =
      runtime.hasPrefix("/") && runtime.utf8.count + "/millrace".utf8.count <= Self.longestFolder
      ? "\(runtime)/millrace" : "/tmp/millrace-\(geteuid())"
  }

  init(path: String) { self.path = path }

  /// Creates the directory if needed, and checks its owner and permissions.
  func open() throws(Failure) {
    if unsafe mkdir(path, 0o700) != 0 && errno != EEXIST {
      throw Failure(text: "cannot create directory \(path): \(SystemError.text(errno))")
    }
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else {
      throw Failure(text: "cannot access directory \(path): \(SystemError.text(errno))")
    }
    let isOwn = status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid()
    guard isOwn && status.st_mode & 0o077 == 0 else {
      throw Failure(text: "\(path) is not a directory that only this user can access; remove it")
    }
  }

  func address(of process: Int32) -> String { "\(path)/\(process)" }

  /// The IDs of the processes with a socket, sorted. Removes the sockets of processes that no longer exist.
  func processes() -> [Int32] {
    guard (try? open()) != nil, let folder = unsafe opendir(path) else { return [] }
    defer { unsafe closedir(folder) }
    var processes: [Int32] = []
    while let entry = unsafe readdir(folder) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      guard let process = Int32(name), process > 0 else { continue }
      if kill(process, 0) != 0 && errno == ESRCH {
        unsafe unlink("\(path)/\(name)")
      } else {
        processes.append(process)
      }
    }
    return processes.sorted()
  }
}

/// Helpers for Unix domain sockets.
enum LocalSocket {
  /// Calls `body` with the socket address of a path.
  static func withAddress<Answer>(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Answer
  ) -> Answer {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { bytes in
      // The last byte stays zero.
      for (index, byte) in path.utf8.prefix(bytes.count - 1).enumerated() { unsafe bytes[index] = byte }
    }
    return unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  static func make(nonblocking: Bool) -> Int32 {
    socket(
      AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC | (nonblocking ? O_NONBLOCK : 0), 0)
  }

  /// Sets the timeout of `recv` or `send`.
  static func limit(_ descriptor: Int32, _ option: Int32, milliseconds: Int) {
    var time = timeval(tv_sec: milliseconds / 1_000, tv_usec: milliseconds % 1_000 * 1_000)
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
  }
}
