import Foundation
import Glibc

/// A program of the rig, without input and output. Not Foundation's `Process`, whose one thread waits for a server that closes the
/// descriptors it inherited, and then hears of no other program's end.
final class RigProgram {
  private let pid: pid_t
  private var status: Int32?

  init(_ path: String, _ arguments: [String], _ environment: [String: String]) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for descriptor in 0...2 as ClosedRange<Int32> {
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
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

  /// Waits for its end; one that goes on for longer is killed. 0: it ended well.
  @discardableResult
  func wait(seconds: Double) -> Int32 {
    let deadline = Date(timeIntervalSinceNow: seconds)
    while isRunning && Date() < deadline { usleep(5_000) }
    if isRunning {
      kill(pid, SIGKILL)
      var word: Int32 = 0
      if waitpid(pid, &word, 0) == pid { status = word }
    }
    return status ?? -1
  }
}
