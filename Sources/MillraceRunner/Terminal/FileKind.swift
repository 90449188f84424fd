internal import Glibc

/// The kind of file at a path or descriptor.
enum FileKind: Equatable {
  case missing, regular, pipe, folder, other

  init(path: String) {
    var status = stat()
    self = unsafe stat(path, &status) == 0 ? FileKind(status) : .missing
  }

  init(descriptor: Int32) {
    var status = stat()
    self = unsafe fstat(descriptor, &status) == 0 ? FileKind(status) : .missing
  }

  /// True when both descriptors refer to the same pipe.
  static func isSamePipe(_ one: Int32, _ other: Int32) -> Bool {
    var (status, otherStatus) = (stat(), stat())
    guard unsafe fstat(one, &status) == 0, unsafe fstat(other, &otherStatus) == 0 else { return false }
    return FileKind(status) == .pipe && status.st_dev == otherStatus.st_dev
      && status.st_ino == otherStatus.st_ino
  }

  private init(_ status: stat) {
    switch status.st_mode & S_IFMT {
    case S_IFREG: self = .regular
    case S_IFIFO: self = .pipe
    case S_IFDIR: self = .folder
    default: self = .other
    }
  }
}
