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

  /// Makes a folder below this one, with those above it.
  func make(_ name: String) throws {
    var made = path
    for part in [""] + name.split(separator: "/").map(String.init) {
      if !part.isEmpty { made += "/" + part }
      if unsafe mkdir(made, 0o755) != 0 && errno != EEXIST {
        throw Self.refusal("make the folder", made, errno)
      }
    }
  }

  /// Reads `golden.json`; everything wrong with it is told, and ends the command.
  func read() throws -> GoldenRecord {
    do throws(Problem) {
      return try GoldenRecord(try JSONDocument.read(path: file(Self.recordName)))
    } catch {
      GraphOptions.tell(Problems([error]))
      throw ExitStatus.usage
    }
  }

  /// Copies a file here; answers its size and hash. nil when it is no regular file or cannot be read.
  func keep(_ source: String, as name: String) throws -> (bytes: Int, sha256: String)? {
    guard FileKind(path: source) == .regular else { return nil }
    let target = file(name)
    let descriptor = unsafe open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw Self.refusal("write", target, errno) }
    defer { close(descriptor) }
    return unsafe try Self.measure(source) { bytes in
      guard unsafe write(descriptor, bytes.baseAddress, bytes.count) == bytes.count else {
        throw Self.refusal("write", target, errno)
      }
    }
  }

  /// Size and hash of a file; nil when it cannot be read. `body` gets every piece.
  static func measure(
    _ path: String, _ body: (UnsafeBufferPointer<UInt8>) throws -> Void = { _ in }
  ) throws -> (bytes: Int, sha256: String)? {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var piece = [UInt8](repeating: 0, count: pieceBytes)
    var hash = SHA256()
    var total = 0
    while true {
      let count = unsafe Glibc.read(descriptor, &piece, piece.count)
      if count < 0 { return nil }
      if count == 0 { return (total, hash.digest()) }
      total += count
      hash.add(piece[..<count])
      unsafe try piece[..<count].withUnsafeBufferPointer { try unsafe body($0) }
    }
  }

  private static func refusal(_ what: String, _ path: String, _ code: Int32) -> ExitStatus {
    Output.error.write(
      "error: cannot \(what) \(Problem.quoted(path)) of the golden run: \(SystemError.text(code)); choose another place\n"
    )
    return .usage
  }
}
