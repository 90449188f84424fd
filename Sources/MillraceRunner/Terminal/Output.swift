internal import Glibc
internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// Why standard output took no more; 0 while it takes everything.
private let refusalOfStandardOutput = Atomic<Int32>(0)

/// One of the two outputs of the process, without buffering.
///
/// When the reader has gone, what is written is dropped without a word: `millrace nodes | head` is no mistake. Any other refusal of
/// standard output, such as a full disk behind `>`, is kept in `refusal`.
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

  /// The system's first refusal of standard output since `forgetRefusal`, in words. Any thread.
  static var refusal: String? {
    let code = refusalOfStandardOutput.load(ordering: .relaxed)
    return code == 0 ? nil : SystemError.text(code)
  }

  /// A new call of the runner begins.
  static func forgetRefusal() { refusalOfStandardOutput.store(0, ordering: .relaxed) }

  /// Writes a text, as a whole unless the reader has gone or there is no room. Any thread.
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
          if descriptor == 1 && errno != EPIPE {
            refusalOfStandardOutput.store(errno, ordering: .relaxed)
          }
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
  var columns: Int { window.ws_col > 0 ? Int(window.ws_col) : 80 }

  /// Rows of the window; nil when it does not say, or is none.
  var rows: Int? { window.ws_row > 0 ? Int(window.ws_row) : nil }

  private var window: winsize {
    var size = winsize()
    return unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 ? size : winsize()
  }

  /// As many of these lines as the window has rows, one of which stays free for the cursor: what is redrawn in place must not
  /// scroll. The last line says how many there would be more; a window of two or three rows has no room for that.
  func fitted(_ lines: [String]) -> [String] {
    guard let rows, lines.count > rows - 1 else { return lines }
    let room = max(1, rows - 1)
    guard room > 2 else { return Array(lines.prefix(room)) }
    let more = "\(lines.count - room + 1) more lines; make the window higher"
    return lines.prefix(room - 1) + [style.paint(more, .dim)]
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
