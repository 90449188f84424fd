internal import Glibc

/// Replaces a file atomically: writes a new one beside it, syncs it to disk, and renames it into place. Readers see either the old
/// file or the whole new one, even after a crash.
///
/// Symbolic links are not followed. The temporary file must be new, and a link at the destination is itself replaced. All steps use
/// one directory descriptor, so replacing the directory in between has no effect.
/// While the value lives, no other writer may replace the file or write the old one. A file that others have locked is not replaced;
/// unlocked readers may read at any time. Blocks for the disk.
@safe
public struct AtomicFile: ~Copyable {
  /// Why the file cannot be replaced.
  public enum Refusal: Error, Equatable {
    /// The system's error number.
    case system(Int32)
    /// Another node or program reads or writes the file, or is replacing it.
    case taken
    /// The temporary path is occupied by something other than a leftover of a killed program.
    case inTheWay
  }

  /// Identifies a file independently of its name.
  public struct Identity: Sendable, Equatable {
    fileprivate var device: UInt
    fileprivate var number: UInt
  }

  /// Suffix of the temporary file.
  public static let temporarySuffix = ".part"
  /// O_PATH of Linux, missing from the Glibc module: opens a directory that may be written but not listed.
  private static let unlisted: Int32 = 0o10_000_000

  private let name: String
  private let folder: Int32
  private let file: Int32
  /// The old file, locked against writers; -1 if there was none.
  private let former: Int32
  /// Identity of the old file.
  private let formerIdentity: Identity?
  private var isCommitted = false

  /// Refuses a path that another writer has locked. Changes nothing.
  public static func check(_ path: String) throws(Refusal) {
    let folder = try open(folder: FileCheck.folder(of: path))
    defer { _ = close(folder) }
    let file = try lockFormer(name(of: path), in: folder, over: nil)
    if file >= 0 { release(file) }
  }

  /// Creates the empty temporary file and locks it and the old one. A leftover of a killed program is removed.
  /// - Parameter own: the file that this writer put in place before.
  public init(_ path: String, over own: Identity? = nil) throws(Refusal) {
    let opened = try Self.open(path, over: own)
    name = Self.name(of: path)
    (folder, former, file) = opened
    formerIdentity = former >= 0 ? Self.identity(former) : Self.identity(of: name, in: folder)
  }

  deinit {
    if !isCommitted { _ = unsafe unlinkat(folder, name + Self.temporarySuffix, 0) }
    if former >= 0 { Self.release(former) }
    ReplacementLock.release(file)
    Self.release(file)
    _ = close(folder)
  }

  /// Identity of the new file; unchanged by `commit`.
  public var identity: Identity? { Self.identity(file) }

  /// Writes the whole content, syncs it to disk and renames it into place. If this fails, the old file is unchanged.
  public mutating func commit(_ bytes: UnsafeRawBufferPointer) throws(Refusal) {
    var done = 0
    while done < bytes.count {
      let count = unsafe write(file, bytes.baseAddress.map { unsafe $0 + done }, bytes.count - done)
      if count < 0 && errno != EINTR { throw .system(errno) }
      done += max(0, count)
    }
    // Renamed before its data is on disk, the file may be empty after a power loss.
    guard fdatasync(file) == 0 || errno == EINVAL else { throw .system(errno) }
    // The old file is locked. A file that appeared since then belongs to another program.
    let present = Self.identity(of: name, in: folder)
    guard present == nil || present == formerIdentity else { throw .taken }
    guard unsafe renameat(folder, name + Self.temporarySuffix, folder, name) == 0 else {
      throw .system(errno)
    }
    isCommitted = true
  }

  /// Syncs the directory entry to disk. Returns 0 or an `errno`; a file system that does not support it is not an error.
  public borrowing func syncFolder() -> Int32 {
    fsync(folder) == 0 || errno == EINVAL || errno == EBADF ? 0 : errno
  }

  /// Unlocks and closes. Locks belong to the open file description, which a child process shares until its exec: with close alone
  /// they would last until then.
  private static func release(_ file: Int32) {
    FileLock.unlock(file)
    _ = close(file)
  }

  // MARK: Opening

  /// Opens the directory, the old file, and the temporary file.
  private static func open(
    _ path: String, over own: Identity?
  ) throws(Refusal) -> (folder: Int32, former: Int32, file: Int32) {
    let folder = try open(folder: FileCheck.folder(of: path))
    var former: Int32 = -1
    do throws(Refusal) {
      former = try lockFormer(name(of: path), in: folder, over: own)
      return (folder, former, try create(name(of: path) + temporarySuffix, in: folder))
    } catch {
      if former >= 0 { release(former) }
      _ = close(folder)
      throw error
    }
  }

  private static func name(of path: String) -> String {
    path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[path.utf8.index(after: $0)...]) } ?? path
  }

  private static func open(folder: String) throws(Refusal) -> Int32 {
    var descriptor = unsafe Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if descriptor < 0 && errno == EACCES {
      descriptor = unsafe Glibc.open(folder, unlisted | O_DIRECTORY | O_CLOEXEC)
    }
    guard descriptor >= 0 else { throw .system(errno) }
    return descriptor
  }

  /// Creates and locks a new file.
  private static func create(_ name: String, in folder: Int32) throws(Refusal) -> Int32 {
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    var file = unsafe openat(folder, name, flags, 0o644)
    if file < 0 && errno == EEXIST {
      try remove(name, in: folder)
      file = unsafe openat(folder, name, flags, 0o644)
    }
    guard file >= 0 else { throw errno == EEXIST ? .taken : .system(errno) }
    guard ReplacementLock.take(file) else {
      _ = close(file)
      throw .taken
    }
    return file
  }

  /// Removes the leftover of a killed program: a file without a lock.
  private static func remove(_ name: String, in folder: Int32) throws(Refusal) {
    let left = unsafe openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard left >= 0 else {
      if errno == ENOENT { return }
      throw .inTheWay
    }
    defer { _ = close(left) }
    guard OpenedFile.Kind(of: left) == .file else { throw .inTheWay }
    guard ReplacementLock.take(left) else { throw .taken }
    guard unsafe unlinkat(folder, name, 0) == 0 || errno == ENOENT else { throw .system(errno) }
  }

  /// Locks the old file against writers; -1 if there is none.
  private static func lockFormer(
    _ name: String, in folder: Int32, over own: Identity?
  ) throws(Refusal) -> Int32 {
    let file = unsafe openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard file >= 0 else {
      // No file, a link, or an unreadable file: replacing it needs only write permission on the directory.
      guard errno == EMFILE || errno == ENFILE else { return -1 }
      throw .system(errno)
    }
    guard OpenedFile.Kind(of: file) == .file else {
      var status = stat()
      let isFolder = unsafe fstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
      _ = close(file)
      throw .system(isFolder ? EISDIR : EEXIST)
    }
    let isOwn = own != nil && identity(file) == own
    // The writer's own file is locked already, and others may read it.
    let lock = isOwn ? LOCK_SH : LOCK_EX
    guard isOwn || !ReplacementLock.isTaken(file), flock(file, lock | LOCK_NB) == 0 || errno != EWOULDBLOCK
    else {
      _ = close(file)
      throw .taken
    }
    return file
  }

  private static func identity(_ file: Int32) -> Identity? {
    var status = stat()
    guard unsafe fstat(file, &status) == 0 else { return nil }
    return Identity(device: UInt(status.st_dev), number: UInt(status.st_ino))
  }

  /// Identity of the file with a name; nil if there is none, or a link, which is replaced itself.
  private static func identity(of name: String, in folder: Int32) -> Identity? {
    var status = stat()
    guard unsafe fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT != S_IFLNK
    else { return nil }
    return Identity(device: UInt(status.st_dev), number: UInt(status.st_ino))
  }
}

/// The lock between writers that replace the same file. Separate from `FileLock`, which readers share. An open file description lock
/// (fcntl(2), F_OFD_SETLK) on the first byte; it stays with the file across a rename.
private enum ReplacementLock {
  /// F_OFD_GETLK and F_OFD_SETLK of Linux, missing from the Glibc module.
  private static let ask: Int32 = 36
  private static let set: Int32 = 37

  private static var firstByte: flock {
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_len = 1
    return lock
  }

  /// Takes the lock and a shared `FileLock`; false when another process holds either. Without lock support, nothing is refused.
  static func take(_ file: Int32) -> Bool {
    var lock = firstByte
    let isLocked = unsafe fcntl(file, set, &lock) == 0 || errno != EAGAIN && errno != EACCES
    return isLocked && (flock(file, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
  }

  /// Releases the lock.
  static func release(_ file: Int32) {
    var lock = firstByte
    lock.l_type = Int16(F_UNLCK)
    _ = unsafe fcntl(file, set, &lock)
  }

  /// True when another writer holds the lock.
  static func isTaken(_ file: Int32) -> Bool {
    var lock = firstByte
    return unsafe fcntl(file, ask, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
  }
}
