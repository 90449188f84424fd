internal import Glibc
internal import MillraceCore
internal import MillraceFiles

/// A file, pipe or device open for writing, owned: closed with the value. Bulk lane: every write may wait for
/// the disk.
struct OutputFile: ~Copyable {
  private let descriptor: Int32
  /// Writing to a pipe without reader raises a signal, which must not end the process.
  private let maySignal: Bool
  /// Bytes written so far.
  private(set) var byteCount: Int64 = 0

  /// What an older file holds is still there.
  private var isFull: Bool

  /// Opens the path for writing and claims it. The first write empties it.
  init(_ path: String) throws(NodeProblem) {
    let file = try OpenedFile(path, for: .writing)
    descriptor = file.descriptor
    maySignal = file.kind == .pipe
    isFull = file.kind == .file
    // Not to wait was for the opening only: a reader that is slow holds the writer up.
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
  }

  deinit {
    // Closed only, it would stay claimed while a program that is being started has it open as well: see `FileLock`.
    release()
    close(descriptor)
  }

  /// Lets others use the file: nothing more will be written.
  borrowing func release() { FileLock.unlock(descriptor) }

  /// Writes all bytes. Answers 0, or the `errno` that stopped it; part of the bytes may have been written
  /// then.
  @unsafe
  mutating func write(_ bytes: UnsafeBufferPointer<UInt8>) -> Int32 {
    if isFull {
      let refusal = OpenedFile.truncate(descriptor)
      guard refusal == 0 else { return refusal }
      isFull = false
    }
    let (code, count) = maySignal ? PipeSignal.withBlocked { unsafe writeAll(bytes) } : unsafe writeAll(bytes)
    byteCount += Int64(count)
    return code
  }

  @unsafe
  private func writeAll(_ bytes: UnsafeBufferPointer<UInt8>) -> (code: Int32, count: Int) {
    guard let start = bytes.baseAddress else { return (0, 0) }
    var done = 0
    while done < bytes.count {
      let written = unsafe Glibc.write(descriptor, start + done, bytes.count - done)
      if written < 0 {
        if errno == EINTR { continue }
        return (errno, done)
      }
      done += written
    }
    return (0, done)
  }
}
