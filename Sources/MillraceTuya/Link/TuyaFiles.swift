internal import Glibc
internal import MillraceDialog
internal import MillraceService

/// A file on this machine that is sent, in pieces. Reading may block: it is done off the loops.
final class TuyaFileReader: Sendable {
  /// Its name, without folders.
  let name: String
  /// Bytes, when it was opened.
  let count: Int
  private let descriptor: Int32

  /// Opens a file.
  /// - Parameter most: bytes of the largest file.
  /// - Throws: code 39009: it is missing, no file, empty or too large; the text does not repeat the path.
  init(_ path: String, most: Int) throws(DialogError) {
    func problem(_ text: String) -> DialogError { .tuya(.unreadableFile, text, scope: .command) }
    let opened = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard opened >= 0 else {
      let reason = unsafe String(cString: strerror(errno)).lowercased()
      throw problem("cannot open the file: \(reason); check the path")
    }
    var status = stat()
    guard unsafe fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      Glibc.close(opened)
      throw problem("the path does not lead to a file")
    }
    guard status.st_size > 0, status.st_size <= most else {
      Glibc.close(opened)
      throw problem("a file of \(status.st_size) bytes is not between 1 and \(most)")
    }
    descriptor = opened
    count = status.st_size
    name = path.split(separator: "/").last.map(String.init) ?? path
  }

  deinit { Glibc.close(descriptor) }

  /// Reads a piece.
  /// - Returns: exactly `count` bytes, or code 39009: the file has shrunk, or cannot be read.
  func read(offset: Int, count: Int) -> Result<[UInt8], DialogError> {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let got = unsafe bytes.withUnsafeMutableBytes {
        unsafe pread(descriptor, $0.baseAddress! + done, count - done, offset + done)
      }
      if got < 0 && errno == EINTR { continue }
      guard got > 0 else {
        let reason = got == 0 ? "it has become shorter" : unsafe String(cString: strerror(errno)).lowercased()
        return .failure(
          .tuya(.unreadableFile, "the file cannot be read to its end: \(reason)", scope: .command))
      }
      done += got
    }
    return .success(bytes)
  }
}

/// The vendor's numbers for formats of files, and suffixes. Source: the vendor's list of file formats.
enum TuyaFileFormat {
  private static let numbers: [(suffix: String, number: Int)] = [
    ("mp4", 1), ("opus", 2), ("ogg", 2), ("pdf", 3), ("json", 4), ("log", 5), ("txt", 5), ("map", 6),
  ]

  /// The number for a file's name; 0: none is known.
  static func number(of name: String) -> Int {
    let suffix = name.split(separator: ".").dropFirst().last?.lowercased()
    return numbers.first { $0.suffix == suffix }?.number ?? 0
  }

  /// The suffix for what was received without a name.
  static func suffix(_ video: TuyaVideoParameters?, of bytes: [UInt8]) -> String {
    if TuyaImageFormat(of: bytes) == .png { return "png" }
    return switch video?.codec {
    case 0?: "m4v"
    case 1?: "h263"
    case 2?: "h264"
    case 4?: "h265"
    default: "bin"
    }
  }
}

/// Files that were received and wait to be written, one after the other: a slow disk takes one thread, and no more memory than this. Pure.
struct TuyaStoreQueue: Sendable {
  struct Entry: Sendable {
    var file: TuyaReceivedFile
    /// The session it is for.
    var session: Int

    /// Roughly what it takes in memory.
    var size: Int { file.bytes.count + TuyaEventSize.overhead }
  }

  /// Bytes that may wait in all.
  static let most = 64 << 20

  private var waiting = TuyaQueue<Entry>()
  /// Bytes that wait or are being written.
  private var bytes = 0
  /// Bytes of the file that is being written; nil: none is.
  private var writing: Int?

  /// Adds a file.
  /// - Returns: false where too much waits; it is dropped.
  mutating func add(_ file: TuyaReceivedFile, of session: Int) -> Bool {
    let entry = Entry(file: file, session: session)
    guard bytes == 0 || bytes + entry.size <= Self.most else { return false }
    bytes += entry.size
    waiting.append(entry)
    return true
  }

  /// The file to write now; nil: none waits, or one is being written.
  mutating func next() -> Entry? {
    guard writing == nil, let entry = waiting.popFirst() else { return nil }
    writing = entry.size
    return entry
  }

  /// The file that `next` gave was written, or could not be.
  mutating func finish() {
    bytes -= writing ?? 0
    writing = nil
  }
}

/// A file that was received, on its way to the cache folder.
struct TuyaReceivedFile: Sendable {
  /// Bytes of the longest name: file systems take 255, and a number may be added.
  private static let longestName = 128
  /// How many names are tried.
  private static let mostNames = 10_000

  var folder: String
  /// The name the cloud gave it; nil: none.
  var name: String?
  var kind: TuyaDataKind
  var suffix: String
  var bytes: [UInt8]

  /// Writes it under a name that is new, and returns what to report. Blocks.
  func store() -> ServiceEvent<TuyaNotice> {
    let name = Self.safe(name) ?? "\(kind.rawValue).\(suffix)"
    for number in 0..<Self.mostNames {
      let path = "\(folder)/\(Self.numbered(name, number))"
      let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
      if file < 0 && errno == EEXIST { continue }
      guard file >= 0, write(to: file) else {
        let reason = unsafe String(cString: strerror(errno)).lowercased()
        if file >= 0 { unsafe unlink(path) }
        return Self.failure("a file was received and cannot be stored: \(reason); check \"cache\"")
      }
      return .message(.file(path: path, name: self.name, kind: kind))
    }
    return Self.failure(
      "a file was received and cannot be stored: \"cache\" is full of its name; empty it")
  }

  /// What is reported of a file that this machine cannot keep. The cloud is not to blame.
  static func failure(_ text: String) -> ServiceEvent<TuyaNotice> {
    .message(.failed(.tuya(.common, text), call: 0))
  }

  private func write(to file: Int32) -> Bool {
    var done = 0
    while done < bytes.count {
      let count = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.write(file, $0.baseAddress! + done, bytes.count - done)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { break }
      done += count
    }
    let reason = errno
    let isClosed = Glibc.close(file) == 0
    if isClosed { errno = reason }
    return done == bytes.count && isClosed
  }

  /// A name that leads nowhere else: letters, digits, points and a few signs, and no point in front. Nil: nothing of it is left.
  static func safe(_ name: String?) -> String? {
    guard let last = name?.split(whereSeparator: { $0 == "/" || $0 == "\\" }).last else { return nil }
    let kept = last.unicodeScalars.filter { scalar in
      scalar.properties.isAlphabetic || scalar.properties.numericType != nil
        || "._- ".unicodeScalars.contains(scalar)
    }
    var text = String(String.UnicodeScalarView(kept)).drop { $0 == "." || $0 == " " || $0 == "-" }
    while text.utf8.count > longestName { text = text.dropLast() }
    return text.isEmpty ? nil : String(text)
  }

  /// The name with a number in front of its suffix, from 1; 0: the name.
  static func numbered(_ name: String, _ number: Int) -> String {
    guard number > 0 else { return name }
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return "\(name)-\(number)" }
    return "\(name[..<dot])-\(number)\(name[dot...])"
  }
}
