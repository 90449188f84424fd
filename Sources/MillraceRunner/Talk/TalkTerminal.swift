internal import Glibc
internal import Synchronization

// Outside the types, so that the handler of a signal, which may capture nothing, reaches them.
private let isTaken = Atomic<Bool>(false)
nonisolated(unsafe) private var found = termios()

/// The terminal, key by key and without echo, for as long as this lives; then as it was found, however that comes: by the end of
/// a call, an error, an `exit` or a third Ctrl-C. One at a time.
///
/// Ctrl-C goes on to be a signal. Ctrl-Z and Ctrl-\ do nothing: a program that stands still hangs up on nobody, and one that is ended on
/// the spot would leave the terminal as it is now.
struct TalkTerminal: ~Copyable {
  private var keys = TalkKeyReader()

  /// nil: standard input is no terminal, or is another program's now.
  init?() {
    guard isatty(0) == 1, tcgetpgrp(0) == getpgrp(), unsafe tcgetattr(0, &found) == 0 else { return nil }
    var raw = unsafe found
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO | IEXTEN)
    raw.c_iflag &= ~tcflag_t(IXON)
    unsafe withUnsafeMutableBytes(of: &raw.c_cc) { letters in
      unsafe letters[Int(VMIN)] = 0
      unsafe letters[Int(VTIME)] = 0
      unsafe letters[Int(VSUSP)] = 0
      unsafe letters[Int(VQUIT)] = 0
    }
    guard unsafe tcsetattr(0, TCSANOW, &raw) == 0 else { return nil }
    isTaken.store(true, ordering: .sequentiallyConsistent)
    atexit { TalkTerminal.giveBack() }
  }

  deinit { Self.giveBack() }

  /// As it was found. Safe in the handler of a signal: `tcsetattr` is (POSIX 2.4.3).
  static func giveBack() {
    guard isTaken.exchange(false, ordering: .sequentiallyConsistent) else { return }
    // Waits for nobody: a terminal that takes no output would hold the end up.
    _ = unsafe tcsetattr(0, TCSANOW, &found)
  }

  enum Input: Equatable {
    case keys([TalkKey])
    /// The terminal has gone away.
    case gone
  }

  /// What was typed since the last look. Does not wait.
  mutating func read() -> Input {
    var wait = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
    guard unsafe poll(&wait, 1, 0) > 0 else { return .keys([]) }
    var bytes = [UInt8](repeating: 0, count: 1_024)
    let count = unsafe Glibc.read(0, &bytes, bytes.count)
    if count > 0 { return .keys(keys.add(bytes.prefix(count))) }
    return count < 0 && (errno == EINTR || errno == EAGAIN) ? .keys([]) : .gone
  }
}
