internal import Glibc
internal import MillraceCore

/// Why a file could not be read.
public struct FileProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// What went wrong; programs and tests compare these.
  public enum Reason: Sendable, Hashable {
    /// The file does not exist; `nearest` is a file in the same directory with a similar name.
    case missing(nearest: String?)
    /// A directory of the path does not exist, or is not a directory.
    case noDirectory(String)
    /// The path is that of a directory.
    case directory
    /// Permission denied.
    case forbidden
    /// The file is larger than `SourceFile.sizeLimit`.
    case tooLarge
    /// The name is empty or contains a NUL character.
    case invalidName
    /// A named pipe without a writer.
    case pipeWithoutWriter
    /// Any other error of the operating system: its number (`errno`) and its message.
    case system(code: Int32, text: String)
  }

  /// The path as the user wrote it.
  public let path: String
  /// What went wrong.
  public let reason: Reason

  /// A problem with the file at a path.
  public init(path: String, reason: Reason) {
    self.path = path
    self.reason = reason
  }

  /// What is wrong, without the cure.
  public var text: String {
    let name = Problem.quoted(path)
    switch reason {
    case .missing: return "cannot open \(name): no such file"
    case .noDirectory(let directory):
      return "cannot open \(name): no such directory \(Problem.quoted(directory))"
    case .directory: return "cannot read \(name): it is a directory"
    case .forbidden: return "cannot read \(name): permission denied"
    case .tooLarge: return "cannot read \(name): it is larger than \(SourceFile.sizeLimit >> 20) MiB"
    case .invalidName: return "cannot open \(name): not a valid file name"
    case .pipeWithoutWriter: return "cannot read \(name): the named pipe has no writer"
    case .system(_, let text): return "cannot read \(name): \(text)"
    }
  }

  /// What to do about it.
  public var hint: String {
    switch reason {
    case .missing(let nearest?): return "did you mean \(Problem.quoted(nearest))?"
    case .missing(nil), .noDirectory: return "check the path; a relative one starts at the current directory"
    case .directory: return "name a file in it"
    case .forbidden: return "grant this user read permission (chmod +r)"
    case .tooLarge: return "check that it is the right file"
    case .invalidName: return "it must not be empty or contain a NUL character"
    case .pipeWithoutWriter: return "start its writer first"
    case .system: return "check the path and the disk"
    }
  }

  /// One line: `TEXT; HINT`.
  public var description: String { "\(text); \(hint)" }
}

extension SourceFile {
  /// Reads a whole file.
  ///
  /// Blocks the calling thread until the file has been read; never call it on a worker. Pipes such as `/dev/stdin` are read to their
  /// end; a named pipe is refused when it has no writer for three seconds.
  ///
  /// - Parameters:
  ///   - path: the file; a relative path starts at the current directory.
  ///   - name: what problems call the file; nil: its path.
  /// - Throws: a `FileProblem` when the file is missing, is a directory, is not readable, or is larger than `sizeLimit`.
  public static func read(path: String, named name: String? = nil) throws(FileProblem) -> SourceFile {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw FileProblem(path: path, reason: .invalidName)
    }
    // Without O_NONBLOCK, opening a named pipe waits for its writer without limit.
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw FileProblem(path: path, reason: .opening(path, failedWith: errno)) }
    defer { close(descriptor) }

    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      throw FileProblem(path: path, reason: .system(errno))
    }
    if status.st_mode & S_IFMT == S_IFDIR { throw FileProblem(path: path, reason: .directory) }
    if status.st_size > sizeLimit { throw FileProblem(path: path, reason: .tooLarge) }
    let bytes = try bytes(
      of: descriptor, openedAs: path, isPipe: status.st_mode & S_IFMT == S_IFIFO,
      expecting: Int(status.st_size))
    return SourceFile(name: name ?? path, bytes: bytes, path: path)
  }

  /// Milliseconds to wait for the writer of a named pipe, and between two attempts to read it.
  private static let pipeTimeout: Int32 = 3_000
  private static let pipeInterval: Int32 = 10

  /// Reads a descriptor to its end. The expected size is only reserved: it is 0 for a pipe or a file of `/proc`, and a file may grow.
  private static func bytes(
    of descriptor: Int32, openedAs path: String, isPipe: Bool, expecting size: Int
  ) throws(FileProblem) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(size)
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    // Whether a pipe has, or had, a writer.
    var hasWriter = false
    var waited: Int32 = 0
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes {
        unsafe Glibc.read(descriptor, $0.baseAddress, $0.count)
      }
      if count == 0 {
        guard isPipe && !hasWriter else { return bytes }
        if waited >= pipeTimeout { throw FileProblem(path: path, reason: .pipeWithoutWriter) }
        poll(nil, 0, pipeInterval)
        waited += pipeInterval
        continue
      }
      hasWriter = true
      if count < 0 {
        if errno == EINTR { continue }
        if errno == EAGAIN {
          // The pipe has a writer that has written nothing yet.
          var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
          unsafe poll(&request, 1, -1)
          continue
        }
        throw FileProblem(path: path, reason: .system(errno))
      }
      bytes.append(contentsOf: chunk[..<count])
      if bytes.count > sizeLimit { throw FileProblem(path: path, reason: .tooLarge) }
    }
  }
}

extension FileProblem.Reason {
  fileprivate static func system(_ code: Int32) -> FileProblem.Reason {
    .system(code: code, text: SystemError.message(code))
  }

  fileprivate static func opening(_ path: String, failedWith code: Int32) -> FileProblem.Reason {
    switch code {
    case EACCES, EPERM: return .forbidden
    case ENOENT, ENOTDIR:
      let (directory, file) = split(path)
      guard let names = names(in: directory) else { return .noDirectory(directory) }
      return .missing(nearest: Spelling.nearest(to: file, among: names))
    default: return .system(code)
    }
  }

  /// The directory part (`.` when there is none) and the last component of a path.
  private static func split(_ path: String) -> (directory: String, file: String) {
    guard let slash = path.lastIndex(of: "/") else { return (".", path) }
    let directory = path[..<slash]
    return (directory.isEmpty ? "/" : String(directory), String(path[path.index(after: slash)...]))
  }

  /// The names in a directory for a hint, at most the first thousand. Nil when it is not a directory, empty when it cannot be listed.
  private static func names(in directory: String) -> [String]? {
    let limit = 1_000
    guard let stream = unsafe opendir(directory) else {
      return errno == ENOENT || errno == ENOTDIR ? nil : []
    }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while names.count < limit, let entry = unsafe readdir(stream) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
        unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }
}
