import Foundation
import Glibc

/// A child process of the rig, without input; its output goes to a file or is discarded. Not Foundation's `Process`: its monitoring thread hangs on
/// a server that closes the descriptors it inherited, and then misses the exit of every other process.
final class RigProgram {
  private let pid: pid_t
  private var status: Int32?

  /// - Parameter output: file for its standard output; nil discards it.
  init(_ path: String, _ arguments: [String], _ environment: [String: String], output: String? = nil) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for descriptor in 0...2 as ClosedRange<Int32> {
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
    }
    if let output {
      posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    }
    // A test's thread may have signals blocked, which the child would inherit: then only SIGKILL would end it.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var argv: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
    var values: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for word in argv + values { free(word) } }
    var started: pid_t = 0
    let refusal = posix_spawn(&started, path, &actions, &attributes, &argv, &values)
    guard refusal == 0 else {
      throw RigProblem("cannot start \(path): \(String(cString: strerror(refusal)))")
    }
    pid = started
  }

  /// Path of this package's program, if the rig is to run it; set by `make`.
  static var millrace: String? { ProcessInfo.processInfo.environment["MILLRACE_PROGRAM"] }
  static var isBuilt: Bool { millrace != nil }

  /// True until the process has exited.
  var isRunning: Bool {
    if status == nil {
      var word: Int32 = 0
      if waitpid(pid, &word, WNOHANG) == pid { status = word }
    }
    return status == nil
  }

  /// Sends SIGTERM.
  func terminate() { if isRunning { kill(pid, SIGTERM) } }

  /// Sends SIGINT.
  func interrupt() { if isRunning { kill(pid, SIGINT) } }

  /// Waits for the process to exit and kills it if that takes too long. Returns its status; 0: success.
  @discardableResult
  func wait(seconds: Double) -> Int32 {
    // The system signals a child's exit only to the whole process, so poll.
    if !poll(seconds: seconds, every: 5_000, { !isRunning }) {
      kill(pid, SIGKILL)
      var word: Int32 = 0
      if waitpid(pid, &word, 0) == pid { status = word }
    }
    return status ?? -1
  }
}

/// Polls until a condition holds; false on timeout.
///
/// - Parameter pause: microseconds between polls. Conditions here depend on other processes, which do not notify us.
func poll(seconds: Double, every pause: UInt32 = 20_000, _ condition: () throws -> Bool) rethrows -> Bool {
  let deadline = Date(timeIntervalSinceNow: seconds)
  while true {
    if try condition() { return true }
    guard Date() < deadline else { return false }
    usleep(pause)
  }
}
