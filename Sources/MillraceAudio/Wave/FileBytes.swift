internal import Glibc

/// Bytes that can be read at any offset: a file, or memory.
public protocol ByteSource: Sendable {
  /// Name used in messages.
  var name: String { get }
  /// Number of bytes at the time of the call.
  var byteCount: Int64 { get }
  /// Fills `bytes` from `offset` on and returns how many there were; fewer than requested only at the end.
  func read(at offset: Int64, into bytes: inout MutableRawSpan) throws(FileFault) -> Int
}

/// A file opened for reading or created for writing, accessed at explicit offsets.
///
/// Interrupted calls are retried and short ones continued. Blocks the calling thread: not for the voice lane. Several threads may
/// read at once. Closed with the last reference.
public final class FileBytes: ByteSource {
  /// The path as given.
  public let name: String
  private let descriptor: Int32
  private let calls: Calls

  /// The system calls used; tests replace them with failing ones.
  @safe package struct Calls: Sendable {
    package init() {}

    package var read: @Sendable (Int32, UnsafeMutableRawPointer, Int, Int) -> Int = {
      file, bytes, count, offset in
      unsafe pread(file, bytes, count, offset)
    }
    package var write: @Sendable (Int32, UnsafeRawPointer, Int, Int) -> Int = { file, bytes, count, offset in
      unsafe pwrite(file, bytes, count, offset)
    }
  }

  private init(name: String, descriptor: Int32, calls: Calls) {
    self.name = name
    self.descriptor = descriptor
    self.calls = calls
  }

  /// Opens a file to read it.
  ///
  /// - Throws: ``FileFault`` when it does not exist, cannot be read, or is not seekable: a directory (EISDIR), a pipe or a terminal
  ///   (ESPIPE).
  public convenience init(reading path: String) throws(FileFault) {
    try self.init(reading: path, calls: Calls())
  }

  convenience init(reading path: String, calls: Calls) throws(FileFault) {
    let descriptor = try Self.open(path, O_RDONLY | O_CLOEXEC, .open)
    self.init(name: path, descriptor: descriptor, calls: calls)
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      throw FileFault(.open, path: path, errorNumber: errno)
    }
    if status.st_mode & S_IFMT == S_IFDIR { throw FileFault(.open, path: path, errorNumber: EISDIR) }
    guard lseek(descriptor, 0, SEEK_END) >= 0 else { throw FileFault(.open, path: path, errorNumber: errno) }
  }

  /// Creates a file, or truncates an existing one.
  ///
  /// - Throws: ``FileFault`` on a system error.
  public convenience init(creating path: String) throws(FileFault) {
    try self.init(creating: path, calls: Calls())
  }

  /// Like the public initialiser; with `keepsContent` the content stays until it is cleared.
  package convenience init(creating path: String, calls: Calls, keepsContent: Bool = false) throws(FileFault)
  {
    let flags = O_RDWR | O_CREAT | O_CLOEXEC | (keepsContent ? 0 : O_TRUNC)
    let descriptor = try Self.open(path, flags, .create)
    self.init(name: path, descriptor: descriptor, calls: calls)
  }

  deinit { _ = close(descriptor) }

  private static func open(
    _ path: String, _ flags: Int32, _ operation: FileFault.Operation
  ) throws(FileFault) -> Int32 {
    while true {
      let descriptor = unsafe Glibc.open(path, flags, 0o644)
      if descriptor >= 0 { return descriptor }
      if errno != EINTR { throw FileFault(operation, path: path, errorNumber: errno) }
    }
  }

  /// The file's length at the time of the call; 0 if the system does not report it.
  public var byteCount: Int64 {
    var status = stat()
    return unsafe fstat(descriptor, &status) == 0 ? Int64(status.st_size) : 0
  }

  /// Fills `bytes` from `offset` on and returns how many there were; fewer than requested only at the end of the file.
  public func read(at offset: Int64, into bytes: inout MutableRawSpan) throws(FileFault) -> Int {
    var done = 0
    let wanted = bytes.byteCount
    while done < wanted {
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        guard let start = buffer.baseAddress else { return 0 }
        return unsafe calls.read(descriptor, start + done, wanted - done, Int(offset) + done)
      }
      if count == 0 { break }
      if count > 0 {
        done += count
      } else if errno != EINTR {
        throw FileFault(.read, path: name, errorNumber: errno)
      }
    }
    return done
  }

  /// Writes all of `bytes` at `offset`.
  ///
  /// - Throws: ``FileFault`` on a system error; bytes before the failed one may have been written.
  public func write(_ bytes: RawSpan, at offset: Int64) throws(FileFault) {
    var done = 0
    let wanted = bytes.byteCount
    while done < wanted {
      let count = unsafe bytes.withUnsafeBytes { buffer in
        guard let start = buffer.baseAddress else { return 0 }
        return unsafe calls.write(descriptor, start + done, wanted - done, Int(offset) + done)
      }
      if count > 0 {
        done += count
      } else if count == 0 || errno != EINTR {
        throw FileFault(.write, path: name, errorNumber: count == 0 ? ENOSPC : errno)
      }
    }
  }

  /// Turns the bytes from `start` to `end`, the new end of the file, into a hole: zeros that take no disk space.
  public func clear(from start: Int64, to end: Int64) throws(FileFault) {
    for length in [start, end] {
      guard ftruncate(descriptor, Int(length)) == 0 else {
        throw FileFault(.write, path: name, errorNumber: errno)
      }
    }
  }
}

/// Bytes in memory with the interface of a file.
public struct MemoryBytes: ByteSource {
  /// Name used in messages.
  public let name: String
  private let bytes: [UInt8]

  /// Reads `bytes`.
  public init(_ bytes: [UInt8], name: String = "memory") {
    self.bytes = bytes
    self.name = name
  }

  /// Number of bytes.
  public var byteCount: Int64 { Int64(bytes.count) }

  /// Copies from `offset` on and returns how many bytes there were.
  public func read(at offset: Int64, into bytes: inout MutableRawSpan) throws(FileFault) -> Int {
    guard offset >= 0, offset < byteCount else { return 0 }
    let start = Int(offset)
    let count = min(bytes.byteCount, self.bytes.count - start)
    for index in 0..<count {
      bytes.storeBytes(of: self.bytes[start + index], toByteOffset: index, as: UInt8.self)
    }
    return count
  }
}
