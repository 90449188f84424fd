internal import Glibc

/// Bytes that can be read at any position: a file, or memory.
public protocol ByteSource: Sendable {
  /// What to call it in an error.
  var name: String { get }
  /// How many bytes there are, at the time of the call.
  var byteCount: Int64 { get }
  /// Fills `bytes` from `offset` on and returns how many there were; fewer than asked only at the end.
  func read(at offset: Int64, into bytes: inout MutableRawSpan) throws(FileFault) -> Int
}

/// A file opened for reading or created for writing, used at explicit positions.
///
/// Interrupted calls are repeated and short ones continued. Blocks the calling thread: not for the voice
/// lane. Several threads may read at once. Closed with the last reference.
public final class FileBytes: ByteSource {
  /// The path as given.
  public let name: String
  private let descriptor: Int32
  private let calls: Calls

  /// The system calls in use; tests put refusing ones in their place.
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
  /// - Throws: ``FileFault`` when it does not exist, may not be read, or cannot be read at any position: a
  ///   folder (EISDIR), a pipe or a terminal (ESPIPE).
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

  /// Creates a file, or empties the one that is there.
  ///
  /// - Throws: ``FileFault`` when the system refuses.
  public convenience init(creating path: String) throws(FileFault) {
    try self.init(creating: path, calls: Calls())
  }

  /// As the other; with `keepsContent` what the file holds stays until somebody clears it.
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

  /// The file's length at the time of the call; 0 when the system does not say.
  public var byteCount: Int64 {
    var status = stat()
    return unsafe fstat(descriptor, &status) == 0 ? Int64(status.st_size) : 0
  }

  /// Fills `bytes` from `offset` on and returns how many there were; fewer than asked only at the end of the
  /// file.
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
  /// - Throws: ``FileFault`` when the system refuses; bytes before the refused one may have been written.
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

  /// Makes the bytes from `start` to `end`, which becomes the end of the file, zeros that take no room on the
  /// disk.
  public func clear(from start: Int64, to end: Int64) throws(FileFault) {
    for length in [start, end] {
      guard ftruncate(descriptor, Int(length)) == 0 else {
        throw FileFault(.write, path: name, errorNumber: errno)
      }
    }
  }
}

/// Bytes in memory that are read like a file.
public struct MemoryBytes: ByteSource {
  /// What to call it in an error.
  public let name: String
  private let bytes: [UInt8]

  /// Reads `bytes`.
  public init(_ bytes: [UInt8], name: String = "memory") {
    self.bytes = bytes
    self.name = name
  }

  /// How many bytes there are.
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
