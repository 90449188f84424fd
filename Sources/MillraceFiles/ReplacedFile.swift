internal import Glibc

/// A file that is put in its place whole: written beside it, brought onto the disk, and renamed. Whoever reads the place, also after a
/// crash, finds the file that was there before or this one, never a part of one.
///
/// Symbolic links are not followed: neither where the file is written, which has to be a new file, nor in its place, where the link itself
/// is replaced. All steps are in one folder, opened once, so that replacing the folder in between changes nothing.
/// As long as the value lives nobody else may replace the file, or write what was there before. What others have claimed to read or write
/// is not replaced; whoever reads without a claim may do so at any time. Blocks for the disk.
@safe
public struct ReplacedFile: ~Copyable {
  /// Why the file cannot be replaced.
  public enum Refusal: Error, Equatable {
    /// The system's number.
    case system(Int32)
    /// Another node or program reads or writes the file, or puts others in its place.
    case taken
    /// Something lies where the file would be written, and is no file that a program left there when it was killed.
    case inTheWay
  }

  /// Which file it is, whatever its name.
  public struct Identity: Sendable, Equatable {
    fileprivate var device: UInt
    fileprivate var number: UInt
  }

  /// Behind the name of what is not whole yet.
  public static let ending = ".part"
  /// O_PATH of Linux, which Glibc's module leaves out: a folder that may be written in but not listed.
  private static let unlisted: Int32 = 0o10_000_000

  private let name: String
  private let folder: Int32
  private let file: Int32
  /// What was there before, claimed against writers; -1: nothing.
  private let former: Int32
  /// Which file that was.
  private let before: Identity?
  private var isPlaced = false

  /// Refuses a path that somebody else writes. Changes nothing.
  public static func check(_ path: String) throws(Refusal) {
    let folder = try open(folder: FileCheck.folder(of: path))
    defer { _ = close(folder) }
    let file = try claimPlace(name(of: path), in: folder, over: nil)
    if file >= 0 { release(file) }
  }

  /// Makes the file beside its place, empty, and claims both. What a program that was killed has left is removed.
  /// - Parameter own: the file of this writer that lies in the place already.
  public init(_ path: String, over own: Identity? = nil) throws(Refusal) {
    let opened = try Self.open(path, over: own)
    name = Self.name(of: path)
    (folder, former, file) = opened
    before = former >= 0 ? Self.identity(former) : Self.identity(of: name, in: folder)
  }

  deinit {
    if !isPlaced { _ = unsafe unlinkat(folder, name + Self.ending, 0) }
    if former >= 0 { Self.release(former) }
    ReplacingLock.give(file)
    Self.release(file)
    _ = close(folder)
  }

  /// Which file it is; the same when it is in its place.
  public var identity: Identity? { Self.identity(file) }

  /// Writes all of the file, brings it onto the disk and puts it in its place. Where that fails, the place is as it was.
  public mutating func place(_ bytes: UnsafeRawBufferPointer) throws(Refusal) {
    var done = 0
    while done < bytes.count {
      let count = unsafe write(file, bytes.baseAddress.map { unsafe $0 + done }, bytes.count - done)
      if count < 0 && errno != EINTR { throw .system(errno) }
      done += max(0, count)
    }
    // Renamed before its bytes are on the disk, it may be empty after a loss of power.
    guard fdatasync(file) == 0 || errno == EINVAL else { throw .system(errno) }
    // What was there before is claimed. What has come there since is somebody else's.
    let present = Self.identity(of: name, in: folder)
    guard present == nil || present == before else { throw .taken }
    guard unsafe renameat(folder, name + Self.ending, folder, name) == 0 else { throw .system(errno) }
    isPlaced = true
  }

  /// Brings the name onto the disk too. Answers 0 or an `errno`; what a file system does not know is no error.
  public borrowing func syncFolder() -> Int32 {
    fsync(folder) == 0 || errno == EINVAL || errno == EBADF ? 0 : errno
  }

  /// Gives a claim back and closes. Locks belong to open files, which a program that is just being started has open as well: closed only,
  /// they would last until its first instruction.
  private static func release(_ file: Int32) {
    FileClaim.release(file)
    _ = close(file)
  }

  // MARK: Opening

  /// Opens the folder, what lies in the place, and the file beside it.
  private static func open(
    _ path: String, over own: Identity?
  ) throws(Refusal) -> (folder: Int32, former: Int32, file: Int32) {
    let folder = try open(folder: FileCheck.folder(of: path))
    var former: Int32 = -1
    do throws(Refusal) {
      former = try claimPlace(name(of: path), in: folder, over: own)
      return (folder, former, try make(name(of: path) + ending, in: folder))
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

  /// Makes and claims a file that is not there.
  private static func make(_ name: String, in folder: Int32) throws(Refusal) -> Int32 {
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    var file = unsafe openat(folder, name, flags, 0o644)
    if file < 0 && errno == EEXIST {
      try remove(name, in: folder)
      file = unsafe openat(folder, name, flags, 0o644)
    }
    guard file >= 0 else { throw errno == EEXIST ? .taken : .system(errno) }
    guard ReplacingLock.take(file) else {
      _ = close(file)
      throw .taken
    }
    return file
  }

  /// Removes what a killed program has left: a file that nobody has claimed.
  private static func remove(_ name: String, in folder: Int32) throws(Refusal) {
    let left = unsafe openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard left >= 0 else {
      if errno == ENOENT { return }
      throw .inTheWay
    }
    defer { _ = close(left) }
    guard OpenedFile.Kind(of: left) == .file else { throw .inTheWay }
    guard ReplacingLock.take(left) else { throw .taken }
    guard unsafe unlinkat(folder, name, 0) == 0 || errno == ENOENT else { throw .system(errno) }
  }

  /// Claims what lies in the place against those who would write it; -1 where there is no file.
  private static func claimPlace(
    _ name: String, in folder: Int32, over own: Identity?
  ) throws(Refusal) -> Int32 {
    let file = unsafe openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard file >= 0 else {
      // Nothing, a link, or a file that may not be read: replacing it needs the right to write in the folder only.
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
    // Its own is claimed already, and others may read it.
    let lock = isOwn ? LOCK_SH : LOCK_EX
    guard isOwn || !ReplacingLock.isTaken(file), flock(file, lock | LOCK_NB) == 0 || errno != EWOULDBLOCK
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

  /// Which file lies under a name; nil: none, or a link, which is replaced itself.
  private static func identity(of name: String, in folder: Int32) -> Identity? {
    var status = stat()
    guard unsafe fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT != S_IFLNK
    else { return nil }
    return Identity(device: UInt(status.st_dev), number: UInt(status.st_ino))
  }
}

/// The lock of who puts a file in the place of another: beside that of `FileClaim`, which readers share. A lock of an open file
/// (fcntl(2), F_OFD_SETLK), on its first byte; it stays with the file when that gets another name.
private enum ReplacingLock {
  /// F_OFD_GETLK and F_OFD_SETLK of Linux, which Glibc's module leaves out.
  private static let ask: Int32 = 36
  private static let set: Int32 = 37

  private static var firstByte: flock {
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_len = 1
    return lock
  }

  /// Takes the lock, and shares the claim on the file; false when somebody else has either. Where locks are not known nothing is refused.
  static func take(_ file: Int32) -> Bool {
    var lock = firstByte
    let isLocked = unsafe fcntl(file, set, &lock) == 0 || errno != EAGAIN && errno != EACCES
    return isLocked && (flock(file, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
  }

  /// Gives the lock back.
  static func give(_ file: Int32) {
    var lock = firstByte
    lock.l_type = Int16(F_UNLCK)
    _ = unsafe fcntl(file, set, &lock)
  }

  /// True when somebody else has the lock.
  static func isTaken(_ file: Int32) -> Bool {
    var lock = firstByte
    return unsafe fcntl(file, ask, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
  }
}
