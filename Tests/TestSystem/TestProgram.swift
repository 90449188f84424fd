import CMillraceSys
import Glibc

/// A program that runs beside a test.
///
/// Not Foundation's `Process`: its one thread waits for all programs through a descriptor that they inherit, and a program that closes
/// what it inherited blocks that thread, so that the end of no other program is seen.
///
/// It ends with the last reference to it. A program that has ended and is not waited for would block exit tests: their monitor asks
/// the system for any child that has ended, and would be given that one for ever.
public final class TestProgram {
  /// Where one of its standard streams leads.
  public enum Stream {
    case nothing
    /// A file of this path, emptied first where the program writes to it.
    case file(String)
    /// A descriptor of this process, such as the end of a pipe.
    case descriptor(Int32)
  }

  /// The system starts no such program.
  public struct Refusal: Error, CustomStringConvertible {
    public let description: String
  }

  public let pid: pid_t
  /// What `waitpid` has told; nil while it runs.
  private var status: Int32?
  /// `wait(seconds:)` has killed it.
  public private(set) var wasKilled = false

  /// Starts a program.
  /// - Parameters:
  ///   - environment: nil: as this process has it.
  ///   - folder: where it runs; nil: where this process does.
  public init(
    _ path: String, _ arguments: [String], environment: [String: String]? = nil, in folder: String? = nil,
    input: Stream = .nothing, output: Stream = .nothing, errors: Stream = .nothing
  ) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let folder { _ = millrace_spawn_enter_folder(&actions, folder) }
    for (descriptor, stream) in [(Int32(0), input), (1, output), (2, errors)] {
      let flags = descriptor == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC
      switch stream {
      case .nothing: posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
      case .file(let path): posix_spawn_file_actions_addopen(&actions, descriptor, path, flags, 0o600)
      case .descriptor(let own): posix_spawn_file_actions_adddup2(&actions, own, descriptor)
      }
    }
    // The other end of a pipe that some test has open, held by a program of another, would never close.
    _ = millrace_spawn_close_from(&actions, 3)
    // A test's thread may have signals blocked, which a program would inherit: then nothing short of SIGKILL ends it.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var texts: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
    var values: [UnsafeMutablePointer<CChar>?] = environment?.map { strdup("\($0)=\($1)") } ?? []
    values.append(nil)
    defer { for text in texts + values { free(text) } }
    var started: pid_t = 0
    let refusal =
      environment == nil
      ? posix_spawn(&started, path, &actions, &attributes, &texts, environ)
      : posix_spawn(&started, path, &actions, &attributes, &texts, &values)
    guard refusal == 0 else {
      throw Refusal(description: "cannot start \(path): \(String(cString: strerror(refusal)))")
    }
    pid = started
  }

  deinit { wait(seconds: 0) }

  /// A program of the system by its name; nil where it is not installed.
  public static func path(of name: String) -> String? {
    ["/usr/bin/", "/usr/local/bin/", "/bin/"].map { $0 + name }.first { access($0, X_OK) == 0 }
  }

  public static func isInstalled(_ name: String) -> Bool { path(of: name) != nil }

  /// True until it has ended.
  public var isRunning: Bool {
    if status == nil { look(WNOHANG) }
    return status == nil
  }

  /// Sends a signal, unless it has ended.
  public func send(_ signal: Int32) { if isRunning { kill(pid, signal) } }

  /// Waits for its end, however long that takes, and answers its exit status, or 128 and the signal that ended it.
  @discardableResult
  public func wait() -> Int32 {
    while status == nil { look(0) }
    return exitStatus
  }

  /// Waits for its end; kills it after this time. Returns as `wait`.
  @discardableResult
  public func wait(seconds: Double) -> Int32 {
    let end = millrace_monotonic_ns() + Int64(seconds * 1e9)
    // The system reports a child's end by a signal to the whole process, which many tests share: polling every few milliseconds
    // disturbs none of them.
    while isRunning && millrace_monotonic_ns() < end { usleep(2_000) }
    if isRunning {
      wasKilled = true
      send(SIGKILL)
    }
    return wait()
  }

  private func look(_ options: Int32) {
    var raw: Int32 = 0
    let found = waitpid(pid, &raw, options)
    if found == pid { status = raw }
    // It was waited for elsewhere: its exit status is not known.
    if found < 0 && errno == ECHILD { status = 0xFF00 }
  }

  private var exitStatus: Int32 {
    let status = status ?? 0
    return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
  }
}
