internal import Glibc
internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// The first `errno` of a failed write to standard output; 0 when there was none.
private let standardOutputCode = Atomic<Int32>(0)

/// Standard output or standard error, without buffering.
///
/// When the reader has closed its end, text is discarded silently: `millrace nodes | head` is not an error. Any other failure to write
/// standard output, such as a full disk, is reported by `failure`.
struct Output: Sendable {
  static let standard = Output(descriptor: 1)
  /// The runner's own messages go here, so that standard output contains only what nodes write.
  static let error = Output(descriptor: 2)

  let descriptor: Int32

  /// Opens `/dev/null` for standard descriptors that are closed (`2>&-`). Otherwise the first file that the process opens would get such a
  /// descriptor, and messages would be written into that file.
  static func reserveStandardDescriptors() {
    for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 {
      // `open` returns the lowest free descriptor, which is this one. The access mode is wrong on purpose, so that using it still fails.
      _ = unsafe open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
    }
  }

  /// Why standard output could not be written since `clearFailure`; nil when there was no failure. Any thread.
  static var failure: String? {
    let code = standardOutputCode.load(ordering: .relaxed)
    return code == 0 ? nil : SystemError.text(code)
  }

  /// Forgets earlier failures.
  static func clearFailure() { standardOutputCode.store(0, ordering: .relaxed) }

  /// Writes a text completely, unless writing fails. Any thread.
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
            standardOutputCode.store(errno, ordering: .relaxed)
          }
          return
        }
      }
    }
  }

  /// True for a terminal.
  var isTerminal: Bool { isatty(descriptor) == 1 }

  /// The text style: on a terminal, the width of the window, and colour unless `NO_COLOR` or `TERM=dumb` is set; otherwise plain.
  var style: TerminalStyle {
    guard isTerminal else { return .plain }
    let isPlain = Environment.has("NO_COLOR") || Environment.value("TERM") == "dumb"
    return TerminalStyle(width: columns, isColoured: !isPlain)
  }

  /// Columns of the window; 80 when unknown.
  var columns: Int { window.ws_col > 0 ? Int(window.ws_col) : 80 }

  /// Rows of the window; nil when unknown.
  var rows: Int? { window.ws_row > 0 ? Int(window.ws_row) : nil }

  private var window: winsize {
    var size = winsize()
    return unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 ? size : winsize()
  }

  /// Shortens a list of lines so that it fits the window without scrolling, with one row left for the cursor. The last line then gives the
  /// number of hidden lines, unless the window has only two or three rows.
  func fitted(_ lines: [String]) -> [String] {
    guard let rows, lines.count > rows - 1 else { return lines }
    let room = max(1, rows - 1)
    guard room > 2 else { return Array(lines.prefix(room)) }
    let more = "\(lines.count - room + 1) more lines; enlarge the window"
    return lines.prefix(room - 1) + [style.paint(more, .dim)]
  }

  /// True when lines can be redrawn in place.
  var canRedraw: Bool { isTerminal && Environment.value("TERM") != "dumb" }
}

/// Environment variables of the process.
enum Environment {
  static func value(_ name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }
  /// True when a variable is set and not empty.
  static func has(_ name: String) -> Bool { value(name)?.isEmpty == false }
}
