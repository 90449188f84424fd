internal import Glibc

/// Keeps SIGPIPE from ending the whole program when a pipe's reader is gone; the write then fails with EPIPE.
///
/// For the calling thread only: what the embedding program does about the signal stays as it is.
public enum PipeSignal {
  /// Blocks the signal on this thread for good. For threads that do nothing but write.
  public static func block() {
    var pipe = set
    unsafe pthread_sigmask(SIG_BLOCK, &pipe, nil)
  }

  /// Runs the body with the signal blocked, and takes away the one it raised.
  public static func withBlocked<R>(_ body: () -> R) -> R {
    var pipe = set
    var before = sigset_t()
    var pending = sigset_t()
    unsafe sigpending(&pending)
    let wasPending = unsafe sigismember(&pending, SIGPIPE) == 1
    unsafe pthread_sigmask(SIG_BLOCK, &pipe, &before)
    let result = body()
    if !wasPending {
      // Only one that this thread raised is waiting now; a time of zero never waits.
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
