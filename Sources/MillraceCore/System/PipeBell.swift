internal import CMillraceSys
internal import Glibc
internal import Synchronization

/// Lets a thread that waits on descriptors be woken by another one: a pipe whose reading end it waits on too.
///
/// A ring costs a system call only when the one before it was heard: of many, while the thread is busy, one is written. The thread
/// calls `clear` first and looks for what is new after it; what was made ready before a ring is then seen.
@safe
package final class PipeBell: Sendable {
  /// Readable after a ring.
  package let descriptor: Int32
  private let writingEnd: Int32
  /// A ring is on its way that was not heard yet.
  private let isRung = Atomic<Bool>(false)

  /// Answers nil when the process may open no more files.
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

  /// Wakes the thread. Any thread; never waits.
  package func ring() {
    guard !isRung.exchange(true, ordering: .acquiringAndReleasing) else { return }
    var byte: UInt8 = 1
    _ = unsafe write(writingEnd, &byte, 1)
  }

  /// Forgets the rings so far.
  package func clear() {
    var bytes: (UInt64, UInt64) = (0, 0)
    while unsafe read(descriptor, &bytes, 16) == 16 {}
    // After the bytes: a ring from here on writes again. The exchange reads what the last ring wrote, and so sees what was made
    // ready before it; a plain store would not.
    _ = isRung.exchange(false, ordering: .acquiringAndReleasing)
  }
}
