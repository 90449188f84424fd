internal import Glibc
internal import MillraceCore
internal import MillraceCrypto
internal import MillraceGraph

/// The directory of a golden run: `golden.json`, and under `files` a directory for each run with the files it wrote.
struct GoldenFolder {
  let path: String

  static let recordName = "golden.json"
  private static let pieceBytes = 65_536

  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// The directory of a run: its number, which makes it unique, and the letters, digits and dashes of its name.
  static func folderName(of run: String, number: Int) -> String {
    let plain = run.unicodeScalars.map { scalar in
      scalar.isASCII
        && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil || scalar == "-")
        ? Character(scalar) : "_"
    }
    return "files/\(number)-\(String(plain.prefix(60)))"
  }

  /// Creates a directory below this one, and its parents.
  func make(_ name: String) throws {
    let whole = file(name)
    let ends = whole.indices.dropFirst().filter { whole[$0] == "/" } + [whole.endIndex]
    for end in ends {
      let path = String(whole[..<end])
      // A directory that exists is fine, including a parent in which nothing can be created.
      guard unsafe mkdir(path, 0o755) != 0 else { continue }
      let code = errno
      if FileKind(path: path) != .folder { throw Self.notCreated(path, code) }
    }
  }

  /// Reads `golden.json`. When it is invalid, prints the problem and throws an exit status.
  func read() throws -> GoldenRecord {
    guard FileKind(path: file(Self.recordName)) != .missing else {
      Output.error.write(
        "error: there is no golden run in \(Problem.quoted(path)); check the path, or record one with --record-golden\n"
      )
      throw ExitStatus.usage
    }
    do throws(Problem) {
      return try GoldenRecord(try JSONDocument.read(path: file(Self.recordName)))
    } catch {
      GraphOptions.report(Problems([error]))
      throw ExitStatus.usage
    }
  }

  /// Copies a file that the run wrote. Returns its size and hash.
  func keep(_ source: String, as name: String) throws -> (bytes: Int, sha256: String) {
    var copy = try TextFile(creating: file(name))
    let measured = unsafe try Self.measure(source) { unsafe copy.write($0) }
    try copy.finish()
    return measured
  }

  /// Returns the size and hash of a file that the run wrote, and passes its content to `body`. When the file cannot be read, prints the
  /// error and throws an exit status.
  static func measure(
    _ path: String, _ body: (UnsafeBufferPointer<UInt8>) throws -> Void = { _ in }
  ) throws -> (bytes: Int, sha256: String) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw unreadable(path, errno) }
    defer { close(descriptor) }
    var piece = [UInt8](repeating: 0, count: pieceBytes)
    var hash = SHA256()
    var total = 0
    while true {
      let count = unsafe Glibc.read(descriptor, &piece, piece.count)
      if count < 0 { throw unreadable(path, errno) }
      if count == 0 { return (total, Hex.encode(hash.finish().span)) }
      total += count
      hash.update(piece.span.extracting(..<count))
      unsafe try piece[..<count].withUnsafeBufferPointer { try unsafe body($0) }
    }
  }

  private static func unreadable(_ path: String, _ code: Int32) -> ExitStatus {
    Output.error.write(
      "error: cannot read \(Problem.quoted(path)), which the run wrote: \(SystemError.text(code)); check its permissions\n"
    )
    return .usage
  }

  private static func notCreated(_ path: String, _ code: Int32) -> ExitStatus {
    Output.error.write(
      "error: cannot create directory \(Problem.quoted(path)) of the golden run: \(SystemError.text(code)); choose another path\n"
    )
    return .usage
  }
}
