internal import Glibc

/// Keeps SIGPIPE from ending the whole program when the reader of a pipe is gone. The write then fails with EPIPE.
///
/// Affects the calling thread only; the embedding program's handling of the signal is unchanged.
public enum PipeSignal {
  /// Blocks SIGPIPE on this thread permanently. For threads that only write.
  public static func block() {
    var pipe = set
    unsafe pthread_sigmask(SIG_BLOCK, &pipe, nil)
  }

  /// Runs the body with SIGPIPE blocked, then consumes the signal if the body raised it.
  public static func withBlocked<R>(_ body: () -> R) -> R {
    var pipe = set
    var before = sigset_t()
    var pending = sigset_t()
    unsafe sigpending(&pending)
    let wasPending = unsafe sigismember(&pending, SIGPIPE) == 1
    unsafe pthread_sigmask(SIG_BLOCK, &pipe, &before)
    let result = body()
    if !wasPending {
      // Only a signal raised by this thread is pending now; a zero timeout never waits.
      var zero = timespec(tv_sec: 0, tv_nsec: 0)
      unsafe sigtimedwait(&pipe, nil, &zero)
    }
    unsafe pthread_sigmask(SIG_SETMASK, &before, nil)
    return result
  }

  private static var set: sigset_t {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    unsafe sigaddset(&set, SIGPIPE)
    return set
  }
}
