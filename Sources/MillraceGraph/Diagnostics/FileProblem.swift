internal import Glibc
internal import MillraceCore

/// Why a file could not be read, in words for the person who named it.
public struct FileProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// What stood in the way.
  public enum Reason: Sendable, Hashable {
    /// Nothing has this name; `nearest` is a file of the same directory that is spelled almost like it.
    case missing(nearest: String?)
    /// A directory on the way to the file does not exist, or is no directory.
    case noDirectory(String)
    /// The name belongs to a directory.
    case directory
    /// The system does not let this user read it.
    case forbidden
    /// The file is larger than `SourceFile.sizeLimit`.
    case tooLarge
    /// The name is empty or holds a NUL character, so no file can have it.
    case impossibleName
    /// A named pipe that nobody writes to.
    case silentPipe
    /// Anything else, with the number (`errno`) and the words of the operating system.
    case system(code: Int32, text: String)
  }

  /// The path as the user wrote it.
  public let path: String
  /// What stood in the way.
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
    case .missing: return "cannot open \(name): there is no such file"
    case .noDirectory(let directory):
      return "cannot open \(name): there is no directory \(Problem.quoted(directory))"
    case .directory: return "cannot read \(name): it is a directory"
    case .forbidden: return "cannot read \(name): permission denied"
    case .tooLarge: return "cannot read \(name): it is larger than \(SourceFile.sizeLimit >> 20) MiB"
    case .impossibleName: return "cannot open \(name): no file can have this name"
    case .silentPipe: return "cannot read \(name): it is a named pipe, and nobody writes to it"
    case .system(_, let text): return "cannot read \(name): \(text)"
    }
  }

  /// What to do about it.
  public var hint: String {
    switch reason {
    case .missing(let nearest?): return "did you mean \(Problem.quoted(nearest))?"
    case .missing(nil), .noDirectory:
      return "check the spelling; relative names start at the current directory"
    case .directory: return "name a file in it"
    case .forbidden: return "ask its owner for the right to read it (chmod +r)"
    case .tooLarge: return "check that it is the file you meant"
    case .impossibleName: return "give the name of a file"
    case .silentPipe: return "start its writer first"
    case .system: return "check the disk and the path"
    }
  }

  /// `TEXT; HINT` on one line.
  public var description: String { "\(text); \(hint)" }
}

extension SourceFile {
  /// Reads a whole file.
  ///
  /// Blocks the calling thread until the file has been read; never call it on a voice worker. Pipes such as `/dev/stdin` work
  /// as long as they end; a named pipe has three seconds to find a writer.
  ///
  /// - Parameters:
  ///   - path: where the file is; a relative path starts at the current directory.
  ///   - name: what problems call the file; the path when nil.
  /// - Throws: a `FileProblem` when the file is missing, is a directory, may not be read, or is larger than `sizeLimit`.
  public static func read(path: String, named name: String? = nil) throws(FileProblem) -> SourceFile {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw FileProblem(path: path, reason: .impossibleName)
    }
    // The open of a named pipe without a writer would wait for one, silently and for ever.
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

  /// Milliseconds a named pipe has to find a writer, and between two looks.
  private static let pipePatience: Int32 = 3_000
  private static let pipeLook: Int32 = 10

  /// Everything a descriptor gives until its end. The expected size saves growing; a pipe or a file of `/proc` says 0.
  private static func bytes(
    of descriptor: Int32, openedAs path: String, isPipe: Bool, expecting size: Int
  ) throws(FileProblem) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(size)
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    // A pipe is open to a writer, or was.
    var isWritten = false
    var waited: Int32 = 0
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes {
        unsafe Glibc.read(descriptor, $0.baseAddress, $0.count)
      }
      if count == 0 {
        guard isPipe && !isWritten else { return bytes }
        if waited >= pipePatience { throw FileProblem(path: path, reason: .silentPipe) }
        poll(nil, 0, pipeLook)
        waited += pipeLook
        continue
      }
      isWritten = true
      if count < 0 {
        if errno == EINTR { continue }
        if errno == EAGAIN {
          // Somebody has it open who has nothing to say yet.
          var wish = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
          unsafe poll(&wish, 1, -1)
          continue
        }
        throw FileProblem(path: path, reason: .system(errno))
      }
      bytes.append(contentsOf: chunk[..<count])
      // The size was only a promise: the file may have grown, and a pipe has none.
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

  /// The names in a directory, at most the first thousand: they only serve a hint. Nil when it is no directory; empty when it
  /// may not be listed.
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
