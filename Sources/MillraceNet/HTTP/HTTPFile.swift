internal import Glibc
internal import NIOCore
internal import NIOPosix

/// A regular file that is open for reading. Its methods block; they are called on a thread pool.
@safe
final class HTTPFile: Sendable {
  private let descriptor: Int32
  let size: Int

  /// Opens a file; nil when it does not exist, cannot be read, or is not a regular file. Opening a pipe does not wait for its writer.
  init?(_ path: String) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { return nil }
    var info = stat()
    guard unsafe fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFREG else {
      Glibc.close(descriptor)
      return nil
    }
    self.descriptor = descriptor
    size = Int(info.st_size)
  }

  deinit { Glibc.close(descriptor) }

  /// Reads up to `count` bytes; nil when there are none, because the file has become shorter or cannot be read.
  func read(at position: Int, _ count: Int) -> ByteBuffer? {
    var buffer = ByteBuffer()
    buffer.reserveCapacity(count)
    let read = unsafe buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { bytes in
      unsafe max(0, pread(descriptor, bytes.baseAddress, count, off_t(position)))
    }
    return read > 0 ? buffer : nil
  }

  /// Runs `body` on a thread of NIO's pool for blocking calls, and its result on the loop.
  static func onPool<Value: Sendable>(
    _ loop: any EventLoop, _ body: @escaping @Sendable () throws -> Value
  ) -> EventLoopFuture<Value> {
    NIOSingletons.posixBlockingThreadPool.runIfActive(eventLoop: loop, body)
  }
}
