internal import CMillraceSys
internal import Glibc
internal import Synchronization

/// Wakes a thread that polls descriptors: a pipe whose reading end the thread polls too.
///
/// A signal costs a system call only when the previous one has been cleared: while the thread is busy, many signals write one byte.
/// The thread calls `clear` before it looks for new work, so it sees everything that was made ready before a signal.
@safe
package final class WakePipe: Sendable {
  /// Readable after a signal.
  package let descriptor: Int32
  private let writingEnd: Int32
  /// A signal was written and not cleared yet.
  private let isSignaled = Atomic<Bool>(false)

  /// Creates the pipe; nil when the process has no file descriptor left.
  package init?() {
    var ends: (Int32, Int32) = (-1, -1)
    let status = unsafe withUnsafeMutableBytes(of: &ends) {
      unsafe millrace_pipe_make($0.baseAddress!.assumingMemoryBound(to: Int32.self), true)
    }
    guard status == 0 else { return nil }
    descriptor = ends.0
    writingEnd = ends.1
  }

  deinit {
    close(descriptor)
    close(writingEnd)
  }

  /// Wakes the polling thread. Any thread; never waits.
  package func signal() {
    guard !isSignaled.exchange(true, ordering: .acquiringAndReleasing) else { return }
    var byte: UInt8 = 1
    _ = unsafe write(writingEnd, &byte, 1)
  }

  /// Clears the signals so far.
  package func clear() {
    var bytes: (UInt64, UInt64) = (0, 0)
    while unsafe read(descriptor, &bytes, 16) == 16 {}
    // After the bytes: the next signal writes again. The exchange reads what the last signal wrote and so sees what was made ready
    // before it; a plain store would not.
    _ = isSignaled.exchange(false, ordering: .acquiringAndReleasing)
  }
}
