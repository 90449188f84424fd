internal import Glibc
internal import Synchronization

// Global, because a signal handler cannot capture anything.
private let isRaw = Atomic<Bool>(false)
nonisolated(unsafe) private var savedSettings = termios()

/// Puts the terminal into noncanonical mode without echo while this value exists. The settings are restored however the program ends: by
/// returning, by an error, by `exit`, or by a third Ctrl-C. One at a time.
///
/// Ctrl-C still sends a signal. Ctrl-Z and Ctrl-\ have no effect: a suspended program would leave the session open, and a killed one would
/// not restore the terminal.
struct TalkTerminal: ~Copyable {
  private var keys = TalkKeyReader()

  /// nil when standard input is not a terminal, or this process is in the background.
  init?() {
    guard isatty(0) == 1, tcgetpgrp(0) == getpgrp(), unsafe tcgetattr(0, &savedSettings) == 0 else {
      return nil
    }
    var raw = unsafe savedSettings
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO | IEXTEN)
    raw.c_iflag &= ~tcflag_t(IXON)
    unsafe withUnsafeMutableBytes(of: &raw.c_cc) { letters in
      unsafe letters[Int(VMIN)] = 0
      unsafe letters[Int(VTIME)] = 0
      unsafe letters[Int(VSUSP)] = 0
      unsafe letters[Int(VQUIT)] = 0
    }
    guard unsafe tcsetattr(0, TCSANOW, &raw) == 0 else { return nil }
    isRaw.store(true, ordering: .sequentiallyConsistent)
    atexit { TalkTerminal.restore() }
  }

  deinit { Self.restore() }

  /// Restores the settings. Async-signal-safe, because `tcsetattr` is (POSIX 2.4.3).
  static func restore() {
    guard isRaw.exchange(false, ordering: .sequentiallyConsistent) else { return }
    // TCSANOW, because waiting for the output of a blocked terminal could hang.
    _ = unsafe tcsetattr(0, TCSANOW, &savedSettings)
  }

  enum Input: Equatable {
    case keys([TalkKey])
    /// The terminal has been closed.
    case closed
  }

  /// The keys typed since the last call. Does not block.
  mutating func read() -> Input {
    var wait = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
    guard unsafe poll(&wait, 1, 0) > 0 else { return .keys([]) }
    var bytes = [UInt8](repeating: 0, count: 1_024)
    let count = unsafe Glibc.read(0, &bytes, bytes.count)
    if count > 0 { return .keys(keys.add(bytes.prefix(count))) }
    return count < 0 && (errno == EINTR || errno == EAGAIN) ? .keys([]) : .closed
  }
}
