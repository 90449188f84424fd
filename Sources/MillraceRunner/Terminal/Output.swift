internal import Glibc
internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// One of the two outputs of the process, without buffering.
///
/// When the reader has gone, what is written is dropped without a word: `millrace nodes | head` is no mistake.
struct Output: Sendable {
  static let standard = Output(descriptor: 1)
  /// Where a run tells how it goes: what nodes write to standard output stays alone there.
  static let error = Output(descriptor: 2)

  let descriptor: Int32

  /// Takes the places of standard descriptors that the process was started without (`2>&-`): the first file it opens
  /// would otherwise get one of them, and everything told would be written into that file.
  static func takePlaces() {
    for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 {
      // The lowest free number is this one. Opened the wrong way round, so that its use still fails.
      _ = unsafe open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
    }
  }

  /// Writes a text, as a whole unless the reader has gone. Any thread.
  func write(_ text: String) {
    var text = text
    text.withUTF8 { bytes in
      var offset = 0
      while offset < bytes.count {
        let count = unsafe Glibc.write(descriptor, bytes.baseAddress! + offset, bytes.count - offset)
        if count > 0 {
          offset += count
        } else if errno == EAGAIN {
          var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          _ = unsafe poll(&wait, 1, -1)
        } else if errno != EINTR {
          return
        }
      }
    }
  }

  /// True when a person reads along.
  var isTerminal: Bool { isatty(descriptor) == 1 }

  /// How text is laid out here: as wide as the window, in colour when it is a terminal and nothing speaks against it
  /// (`NO_COLOR`, `TERM=dumb`).
  var style: TerminalStyle {
    guard isTerminal else { return .plain }
    let isPlain = Environment.has("NO_COLOR") || Environment.value("TERM") == "dumb"
    return TerminalStyle(width: columns, isColoured: !isPlain)
  }

  /// Columns of the window; 80 when it does not say.
  var columns: Int {
    var size = winsize()
    guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }

  /// True when lines can be redrawn in place.
  var canRedraw: Bool { isTerminal && Environment.value("TERM") != "dumb" }
}

/// Variables of the process.
enum Environment {
  static func value(_ name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }
  /// True when a variable is set to something.
  static func has(_ name: String) -> Bool { value(name)?.isEmpty == false }
}

/// A file the runner writes as a whole or bit by bit.
struct TextFile: ~Copyable {
  let path: String
  private let descriptor: Int32
  /// The system's refusal of an earlier write.
  private(set) var failure: String?

  /// Creates the file, or empties it. A failure is told as a usage error.
  init(creating path: String) throws {
    self.path = path
    descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
      Output.error.write(
        "error: cannot write \(Problem.quoted(path)): \(SystemError.text(errno)); choose another place\n")
      throw ExitStatus.usage
    }
  }

  deinit { close(descriptor) }

  /// Appends a text. After a failure everything more is dropped; see `failure`.
  mutating func write(_ text: String) {
    guard failure == nil else { return }
    var text = text
    let refusal = text.withUTF8 { bytes -> Int32? in
      var offset = 0
      while offset < bytes.count {
        let count = unsafe Glibc.write(descriptor, bytes.baseAddress! + offset, bytes.count - offset)
        if count >= 0 { offset += count } else if errno != EINTR { return errno }
      }
      return nil
    }
    failure = refusal.map(SystemError.text)
  }

  /// Writes a whole file, or ends the command with the system's refusal.
  static func write(_ text: String, to path: String) throws {
    var file = try TextFile(creating: path)
    file.write(text)
    if let failure = file.failure {
      Output.error.write(
        "error: cannot write \(Problem.quoted(path)): \(failure); make room or choose another place\n")
      throw ExitStatus.usage
    }
  }
}
