internal import Glibc
internal import MillraceCore
internal import MillraceGraph

/// The folder of a golden run: `golden.json`, and under `files` a folder for each run with what it wrote.
struct GoldenFolder {
  let path: String

  static let recordName = "golden.json"
  private static let pieceBytes = 65_536

  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// A name for a run's folder: letters, digits, dots, dashes and underscores of its name, unique by its number.
  static func folderName(of run: String, number: Int) -> String {
    let plain = run.unicodeScalars.map { scalar in
      scalar.isASCII
        && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil || scalar == "-")
        ? Character(scalar) : "_"
    }
    return "files/\(number)-\(String(plain.prefix(60)))"
  }

  /// Makes a folder below this one, with all those above it.
  func make(_ name: String) throws {
    let whole = file(name)
    let ends = whole.indices.dropFirst().filter { whole[$0] == "/" } + [whole.endIndex]
    for end in ends {
      let made = String(whole[..<end])
      // Folders that are there are no failure, nor are those above that one may not write to.
      guard unsafe mkdir(made, 0o755) != 0 else { continue }
      let code = errno
      if FileKind(path: made) != .folder { throw Self.refusal("make the folder", made, code) }
    }
  }

  /// Reads `golden.json`; everything wrong with it is told, and ends the command.
  func read() throws -> GoldenRecord {
    guard FileKind(path: file(Self.recordName)) != .missing else {
      Output.error.write(
        "error: there is no golden run in \(Problem.quoted(path)); check the spelling, or record it with --record-golden\n"
      )
      throw ExitStatus.usage
    }
    do throws(Problem) {
      return try GoldenRecord(try JSONDocument.read(path: file(Self.recordName)))
    } catch {
      GraphOptions.tell(Problems([error]))
      throw ExitStatus.usage
    }
  }

  /// Copies a file that the run wrote; answers its size and hash.
  func keep(_ source: String, as name: String) throws -> (bytes: Int, sha256: String) {
    var copy = try TextFile(creating: file(name))
    let measured = unsafe try Self.measure(source) { unsafe copy.write($0) }
    try copy.finish()
    return measured
  }

  /// Size and hash of a file that the run wrote. `body` gets every piece. One that cannot be read is told, and ends the
  /// command: without it there is nothing to compare.
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
      if count == 0 { return (total, hash.digest()) }
      total += count
      hash.add(piece[..<count])
      unsafe try piece[..<count].withUnsafeBufferPointer { try unsafe body($0) }
    }
  }

  private static func unreadable(_ path: String, _ code: Int32) -> ExitStatus {
    Output.error.write(
      "error: cannot read \(Problem.quoted(path)), which the run wrote: \(SystemError.text(code)); make it readable\n"
    )
    return .usage
  }

  private static func refusal(_ what: String, _ path: String, _ code: Int32) -> ExitStatus {
    Output.error.write(
      "error: cannot \(what) \(Problem.quoted(path)) of the golden run: \(SystemError.text(code)); choose another place\n"
    )
    return .usage
  }
}
