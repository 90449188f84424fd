import Glibc

/// A program that runs beside the tests, without input and output. Not Foundation's `Process`, whose waiting needs a run loop that
/// a test's thread has not.
public final class TestProgram {
  private let pid: pid_t
  private var status: Int32?

  /// Starts a program; nil where it cannot be started. It is killed when it still runs after `seconds`, whatever becomes of the
  /// tests.
  public init?(_ path: String, _ arguments: [String], seconds: Int) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for descriptor in 0...2 as ClosedRange<Int32> {
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
    }
    // A test's thread may have signals blocked, which a program would inherit: then nothing short of SIGKILL ends it.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    // It outlives tests that crash, but not for long.
    let timeout = "/usr/bin/timeout"
    var words: [UnsafeMutablePointer<CChar>?] =
      ([timeout, "--kill-after=5", "\(seconds)", path] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var started: pid_t = 0
    guard posix_spawn(&started, timeout, &actions, &attributes, &words, environ) == 0 else { return nil }
    pid = started
  }

  /// True until it has ended.
  public var isRunning: Bool {
    if status == nil {
      var word: Int32 = 0
      if waitpid(pid, &word, WNOHANG) == pid { status = word }
    }
    return status == nil
  }

  /// Asks it to end, and waits until it has.
  public func stop() {
    guard isRunning else { return }
    // `timeout` hands the signal on, and ends with the program.
    kill(pid, SIGTERM)
    var word: Int32 = 0
    while waitpid(pid, &word, 0) < 0 && errno == EINTR {}
    status = word
  }

  deinit { stop() }

  /// Where a program is; nil when it is not installed.
  public static func find(_ program: String) -> String? {
    ["/usr/bin/", "/usr/sbin/", "/usr/local/bin/"].map { $0 + program }.first { access($0, X_OK) == 0 }
  }
}
