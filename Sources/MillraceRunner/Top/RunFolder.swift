internal import Glibc
internal import MillraceCore

/// The folder in which running processes of this user offer their statistics, one socket each, named by its process:
/// `$XDG_RUNTIME_DIR/millrace/4711`, or `/tmp/millrace-1000/4711` where there is no such folder.
///
/// Nobody else can look inside: the folder must be this user's own and closed to all others, else it is not used.
struct RunFolder: Sendable {
  let path: String

  /// Why a folder cannot be used, in words.
  struct Refusal: Error, Sendable, Hashable {
    var text: String
  }

  /// The longest path of a socket, with its closing zero (`sun_path` of unix(7)).
  private static let longestAddress = 108
  /// Room for a slash and a process number.
  private static let longestFolder = longestAddress - 24

  /// The folder this environment asks for.
  init() {
    let runtime = Environment.value("XDG_RUNTIME_DIR") ?? ""
    path =
      runtime.hasPrefix("/") && runtime.utf8.count + "/millrace".utf8.count <= Self.longestFolder
      ? "\(runtime)/millrace" : "/tmp/millrace-\(geteuid())"
  }

  init(path: String) { self.path = path }

  /// Makes the folder when it is missing, and looks whether it is safe.
  func open() throws(Refusal) {
    if unsafe mkdir(path, 0o700) != 0 && errno != EEXIST {
      throw Refusal(text: "the folder \(path) cannot be made: \(SystemError.text(errno))")
    }
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else {
      throw Refusal(text: "the folder \(path) cannot be looked at: \(SystemError.text(errno))")
    }
    let isOwn = status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid()
    guard isOwn && status.st_mode & 0o077 == 0 else {
      throw Refusal(text: "\(path) is not a folder of this user alone; remove it")
    }
  }

  func address(of process: Int32) -> String { "\(path)/\(process)" }

  /// The processes that offer something, by number. What processes left behind that are no more is removed.
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

/// A socket of the local machine, by its place in the file system.
enum LocalSocket {
  /// Does something with an address as the system takes it.
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

  /// Bounds how long one call of `recv` or `send` waits.
  static func limit(_ descriptor: Int32, _ option: Int32, milliseconds: Int) {
    var time = timeval(tv_sec: milliseconds / 1_000, tv_usec: milliseconds % 1_000 * 1_000)
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
  }
}
