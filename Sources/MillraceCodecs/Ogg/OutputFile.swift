internal import Glibc

/// A file, pipe or device open for writing, owned: closed with the value. Bulk lane: every write may wait for
/// the disk.
struct OutputFile: ~Copyable {
  private let descriptor: Int32
  /// Writing to a pipe without reader raises a signal, which must not end the process.
  private let maySignal: Bool
  /// Bytes written so far.
  private(set) var byteCount: Int64 = 0

  /// What stands against writing to a path, without changing anything: nil, or an `errno`.
  static func obstacle(to path: String) -> Int32? {
    var status = stat()
    if unsafe stat(path, &status) == 0 {
      if status.st_mode & S_IFMT == S_IFDIR { return EISDIR }
      return unsafe access(path, W_OK) == 0 ? nil : errno
    }
    if errno != ENOENT { return errno }
    let folder = FileTrouble.folder(of: path)
    guard unsafe stat(folder, &status) == 0 else { return errno }
    guard status.st_mode & S_IFMT == S_IFDIR else { return ENOTDIR }
    return unsafe access(folder, W_OK | X_OK) == 0 ? nil : errno
  }

  /// Opens the path for writing and empties it.
  init(_ path: String) throws(FileTrouble) {
    // Non-blocking only for the opening: a pipe that nobody reads is an error, not a wait without end.
    let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK
    descriptor = unsafe open(path, flags, 0o644)
    if descriptor < 0 { throw .writing(path, code: errno) }
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
    var status = stat()
    _ = unsafe fstat(descriptor, &status)
    maySignal = status.st_mode & S_IFMT == S_IFIFO || status.st_mode & S_IFMT == S_IFSOCK
  }

  deinit { close(descriptor) }

  /// Writes all bytes. Answers 0, or the `errno` that stopped it; part of the bytes may have been written
  /// then.
  @unsafe
  mutating func write(_ bytes: UnsafeBufferPointer<UInt8>) -> Int32 {
    if !maySignal { return unsafe writeAll(bytes) }
    var pipe = sigset_t()
    var before = sigset_t()
    _ = unsafe sigemptyset(&pipe)
    _ = unsafe sigaddset(&pipe, SIGPIPE)
    _ = unsafe pthread_sigmask(SIG_BLOCK, &pipe, &before)
    let code = unsafe writeAll(bytes)
    if code == EPIPE {
      var now = timespec()
      _ = unsafe sigtimedwait(&pipe, nil, &now)
    }
    _ = unsafe pthread_sigmask(SIG_SETMASK, &before, nil)
    return code
  }

  @unsafe
  private mutating func writeAll(_ bytes: UnsafeBufferPointer<UInt8>) -> Int32 {
    guard let start = bytes.baseAddress else { return 0 }
    var done = 0
    while done < bytes.count {
      let written = unsafe Glibc.write(descriptor, start + done, bytes.count - done)
      if written < 0 {
        if errno == EINTR { continue }
        return errno
      }
      done += written
      byteCount += Int64(written)
    }
    return 0
  }
}
