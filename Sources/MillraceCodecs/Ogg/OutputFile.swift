internal import Glibc
internal import MillraceCore
internal import MillraceFiles

/// An owned file, pipe or device open for writing; it is closed with the value. Bulk lane: every write may block on the disk.
struct OutputFile: ~Copyable {
  private let descriptor: Int32
  /// Writing to a pipe without a reader raises SIGPIPE, which must not kill the process.
  private let maySignal: Bool
  /// Bytes written so far.
  private(set) var byteCount: Int64 = 0

  /// True until the content of an older file is truncated.
  private var isFull: Bool

  /// Opens the path for writing and claims it. The first write truncates the file.
  init(_ path: String) throws(NodeProblem) {
    let file = try OpenedFile(path, for: .writing)
    descriptor = file.descriptor
    maySignal = file.kind == .pipe
    isFull = file.kind == .file
    // O_NONBLOCK was for opening only: a slow reader blocks the writer.
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
  }

  deinit { FileLock.close(descriptor) }

  /// Releases the claim: nothing more will be written.
  borrowing func release() { FileLock.unlock(descriptor) }

  /// Writes all bytes. Returns 0, or the `errno` of the failure; part of the bytes may have been written
  /// by then.
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
