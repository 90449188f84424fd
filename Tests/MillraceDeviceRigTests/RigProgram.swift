import Foundation
import Glibc

/// A program of the rig, without input; its output goes into a file or nowhere. Not Foundation's `Process`, whose one thread waits for a server that closes the
/// descriptors it inherited, and then hears of no other program's end.
final class RigProgram {
  private let pid: pid_t
  private var status: Int32?

  /// - Parameter output: file for its standard output; nil: nobody reads it.
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
    // A test's thread may have signals blocked, which a program would inherit: then only SIGKILL would end it.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
    var values: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for word in words + values { free(word) } }
    var started: pid_t = 0
    let refusal = posix_spawn(&started, path, &actions, &attributes, &words, &values)
    guard refusal == 0 else {
      throw RigProblem("cannot start \(path): \(String(cString: strerror(refusal)))")
    }
    pid = started
  }

  /// The program of this package, where the rig is to run it: `make` says where it is.
  static var millrace: String? { ProcessInfo.processInfo.environment["MILLRACE_PROGRAM"] }
  static var isBuilt: Bool { millrace != nil }

  /// True until it has ended.
  var isRunning: Bool {
    if status == nil {
      var word: Int32 = 0
      if waitpid(pid, &word, WNOHANG) == pid { status = word }
    }
    return status == nil
  }

  /// Asks it to end.
  func terminate() { if isRunning { kill(pid, SIGTERM) } }

  /// Asks it to end as a terminal does.
  func interrupt() { if isRunning { kill(pid, SIGINT) } }

  /// Waits for its end; one that goes on for longer is killed. 0: it ended well.
  @discardableResult
  func wait(seconds: Double) -> Int32 {
    // The system tells of a program's end by a signal to the whole process only: it is looked for.
    if !poll(seconds: seconds, every: 5_000, { !isRunning }) {
      kill(pid, SIGKILL)
      var word: Int32 = 0
      if waitpid(pid, &word, 0) == pid { status = word }
    }
    return status ?? -1
  }
}

/// Looks again and again until a condition holds; false when it did not in time.
///
/// - Parameter pause: microseconds between two looks. What is waited for here happens in other programs, which do not call back.
func poll(seconds: Double, every pause: UInt32 = 20_000, _ condition: () throws -> Bool) rethrows -> Bool {
  let deadline = Date(timeIntervalSinceNow: seconds)
  while true {
    if try condition() { return true }
    guard Date() < deadline else { return false }
    usleep(pause)
  }
}
