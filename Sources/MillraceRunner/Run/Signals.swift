internal import Glibc
internal import Millrace
internal import Synchronization

// Outside the type, so that a handler, which may capture nothing, reaches them. `listen` touches both first: their
// initialisers, and those of the programs nodes start, never run inside a handler.
private let interrupts = Atomic<Int>(0)
private let terminations = Atomic<Int>(0)

/// Signals as counters: handlers only count, the run's own loop looks.
///
/// Handlers and not a blocked mask, because programs started by a node would inherit the mask.
enum Signals {
  /// Interrupts (Ctrl-C) since `listen`.
  static var interruptCount: Int { interrupts.load(ordering: .relaxed) }
  /// True once the process was asked to end (SIGTERM, SIGHUP).
  static var isTerminated: Bool { terminations.load(ordering: .relaxed) > 0 }

  /// True once the process was asked to end, be it by an interrupt.
  static var isAskedToEnd: Bool { interruptCount > 0 || isTerminated }

  /// A closed pipe, and a file at the limit of its size (`ulimit -f`), become errors of the write, not the end of the process.
  /// Programs started by a node get the default again, since a handler does not survive `exec`.
  static func surviveWrites() {
    for signal in [SIGPIPE, SIGXFSZ] { install(signal) { _ in } }
  }

  /// Counts interrupts and requests to end, from zero. A third interrupt ends the process on the spot, with
  /// the programs nodes started.
  static func listen() {
    interrupts.store(0, ordering: .relaxed)
    terminations.store(0, ordering: .relaxed)
    _ = Programs.count
    install(SIGINT) { _ in
      // Whoever presses it three times wants out, whatever hangs.
      guard interrupts.add(1, ordering: .relaxed).newValue >= 3 else { return }
      Programs.killAll()
      TalkTerminal.giveBack()
      _exit(ExitStatus.interrupted.rawValue)
    }
    // Started by `nohup`, it is meant to outlive its terminal.
    for signal in [SIGTERM, SIGHUP] where signal != SIGHUP || !isIgnored(SIGHUP) {
      install(signal) { _ in terminations.add(1, ordering: .relaxed) }
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
