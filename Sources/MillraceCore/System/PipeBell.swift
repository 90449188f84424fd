internal import CMillraceSys
internal import Glibc

/// Lets a thread that waits on descriptors be woken by another one: a pipe whose reading end it waits on too.
@safe
package final class PipeBell: Sendable {
  /// Readable after a ring.
  package let descriptor: Int32
  private let writingEnd: Int32

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

  /// Wakes the thread. Any thread; never waits: a pipe that is full of rings is as good as one more.
  package func ring() {
    var byte: UInt8 = 1
    _ = unsafe write(writingEnd, &byte, 1)
  }

  /// Forgets the rings so far.
  package func clear() {
    var bytes: (UInt64, UInt64) = (0, 0)
    while unsafe read(descriptor, &bytes, 16) == 16 {}
  }
}
