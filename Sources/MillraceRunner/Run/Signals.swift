internal import Glibc
internal import Millrace
internal import Synchronization

// Outside the type, so that a handler, which may capture nothing, reaches them. `listen` touches them first: their
// initialisers, and those of the programs nodes start, never run inside a handler.
private let requests = Atomic<Int>(0)
private let hasHungUp = Atomic<Bool>(false)

/// Counts a request to end. The third ends the process immediately, with the programs that nodes started: whoever asks three times
/// wants out, whatever hangs. Safe in the handler of a signal.
private func countRequest() {
  guard requests.add(1, ordering: .relaxed).newValue >= 3 else { return }
  Programs.killAll()
  TalkTerminal.giveBack()
  _exit(ExitStatus.interrupted.rawValue)
}

/// Signals as counters: handlers only count, the run's own loop looks.
///
/// Handlers and not a blocked mask, because programs started by a node would inherit the mask.
enum Signals {
  /// Requests to end since `listen`, of whichever kind: interrupts (Ctrl-C), SIGTERM, and the end of the terminal (SIGHUP), which counts
  /// once, since the kernel tells of it and the shell may as well.
  static var requestCount: Int { requests.load(ordering: .relaxed) }

  /// True once the process was asked to end: what is inside may flow out.
  static var isAskedToEnd: Bool { requestCount > 0 }

  /// True once it was asked again: it is to end at once.
  static var isAskedToStop: Bool { requestCount > 1 }

  /// A closed pipe, and a file at the limit of its size (`ulimit -f`), become errors of the write, not the end of the process.
  /// Programs started by a node get the default again, since a handler does not survive `exec`.
  static func surviveWrites() {
    for signal in [SIGPIPE, SIGXFSZ] { install(signal) { _ in } }
  }

  /// Counts requests to end, from zero. The third ends the process immediately, with the programs nodes started.
  static func listen() {
    requests.store(0, ordering: .relaxed)
    hasHungUp.store(false, ordering: .relaxed)
    _ = Programs.count
    for signal in [SIGINT, SIGTERM] { install(signal) { _ in countRequest() } }
    // Started by `nohup`, it is meant to outlive its terminal.
    if !isIgnored(SIGHUP) {
      install(SIGHUP) { _ in
        if !hasHungUp.exchange(true, ordering: .relaxed) { countRequest() }
      }
    }
    var heard = sigset_t()
    unsafe sigemptyset(&heard)
    for signal in [SIGINT, SIGTERM, SIGHUP] { unsafe sigaddset(&heard, signal) }
    unsafe pthread_sigmask(SIG_UNBLOCK, &heard, nil)
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
