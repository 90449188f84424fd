internal import Glibc
internal import Millrace
internal import Synchronization

// Global, because a signal handler cannot capture anything. `listen` accesses them first, and the list of programs too, so that their
// initialisers never run inside a handler.
private let requests = Atomic<Int>(0)
private let hasHungUp = Atomic<Bool>(false)

/// Counts a termination request. The third ends the process immediately and kills the programs that nodes have started, even when
/// something hangs. Async-signal-safe.
private func countRequest() {
  guard requests.add(1, ordering: .relaxed).newValue >= 3 else { return }
  Programs.killAll()
  TalkTerminal.restore()
  _exit(ExitStatus.interrupted.rawValue)
}

/// Counts termination signals. Handlers only count; the main loop of the run checks the count.
///
/// Signals are not blocked, because programs started by a node would inherit the mask.
enum Signals {
  /// Termination requests since `listen`: SIGINT (Ctrl-C), SIGTERM, and SIGHUP when the terminal closes. SIGHUP counts once, because both
  /// the kernel and the shell may send it.
  static var requestCount: Int { requests.load(ordering: .relaxed) }

  /// True after the first termination request: drain the graphs.
  static var isDrainRequested: Bool { requestCount > 0 }

  /// True after the second termination request: stop the graphs.
  static var isStopRequested: Bool { requestCount > 1 }

  /// Turns SIGPIPE and SIGXFSZ (`ulimit -f`) into write errors, so that they do not end the process. Programs started by nodes get the
  /// default action, because `exec` resets handlers.
  static func ignoreWriteSignals() {
    for signal in [SIGPIPE, SIGXFSZ] { install(signal) { _ in } }
  }

  /// Starts counting termination requests from zero. The third ends the process immediately and kills the programs of nodes.
  static func listen() {
    requests.store(0, ordering: .relaxed)
    hasHungUp.store(false, ordering: .relaxed)
    _ = Programs.count
    for signal in [SIGINT, SIGTERM] { install(signal) { _ in countRequest() } }
    // When started by `nohup`, the process should outlive its terminal.
    if !isIgnored(SIGHUP) {
      install(SIGHUP) { _ in
        if !hasHungUp.exchange(true, ordering: .relaxed) { countRequest() }
      }
    }
    var handled = sigset_t()
    unsafe sigemptyset(&handled)
    for signal in [SIGINT, SIGTERM, SIGHUP] { unsafe sigaddset(&handled, signal) }
    unsafe pthread_sigmask(SIG_UNBLOCK, &handled, nil)
  }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    guard unsafe sigaction(signal, nil, &action) == 0 else { return false }
    let handler = unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
    return unsafe handler == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  private static func install(_ signal: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) {
    var action = sigaction()
    unsafe action.__sigaction_handler.sa_handler = handler
    unsafe sigemptyset(&action.sa_mask)
    action.sa_flags = SA_RESTART
    unsafe sigaction(signal, &action, nil)
  }
}
