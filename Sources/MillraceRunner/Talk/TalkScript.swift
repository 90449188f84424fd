internal import Glibc
internal import MillraceCore

/// Reads lines from a file or standard input instead of keys. Each line is returned when the previous one has been performed.
struct TalkScript: ~Copyable {
  private var input: ControlInput?
  private var splitter = LineSplitter()
  private var lines: [String] = []
  private var waiting: (for: TalkRequest.Wait, since: Nanoseconds, answers: Int)?
  private let isScript: Bool

  /// Most lines read ahead; further ones stay in the pipe.
  private static let maxLines = 1_000

  /// - Parameter path: a file or named pipe; nil for standard input.
  init(_ path: String?) throws {
    isScript = path != nil
    // In a background process, reading from the terminal would suspend the process.
    let isBackground = isatty(0) == 1 && tcgetpgrp(0) != getpgrp()
    if path != nil || !isBackground { input = try ControlInput(path ?? "-", what: "the script") }
  }

  /// Stops reading.
  mutating func close() { input = nil }

  /// The next line if it is due, otherwise nil. Does not block.
  mutating func next(now: Nanoseconds, state: String, answers: Int) -> String? {
    read()
    guard isReady(now, state, answers), !lines.isEmpty else { return nil }
    return lines.removeFirst()
  }

  /// Delays the next line.
  mutating func wait(_ wait: TalkRequest.Wait, now: Nanoseconds, answers: Int) {
    waiting = (wait, now, answers)
  }

  /// A message about lines that have not been performed, if any.
  var unfinished: [String] {
    let count = lines.count
    guard count > 0 else { return [] }
    return ["the dialogue ended before \(count) line\(count == 1 ? "" : "s") of the script"]
  }

  private mutating func isReady(_ now: Nanoseconds, _ state: String, _ answers: Int) -> Bool {
    guard let waiting else { return true }
    let isOver =
      switch waiting.for {
      case .time(let time): now - waiting.since >= time
      case .state(let name): state == name
      case .answer: answers > waiting.answers
      }
    if isOver { self.waiting = nil }
    return isOver
  }

  private mutating func read() {
    guard lines.count < Self.maxLines, var input = input.take() else { return }
    switch input.next(timeout: 0) {
    case .bytes(let bytes):
      for line in splitter.add(bytes) { add(line) }
      self.input = consume input
    case .writerClosed:
      if let line = splitter.end() { add(line) }
      self.input = consume input
    case .timeout: self.input = consume input
    case .end: if let line = splitter.end() { add(line) }
    }
  }

  private mutating func add(_ line: LineSplitter.Line) {
    switch line {
    case .whole(let bytes):
      // Comments.
      if isScript && bytes.first == UInt8(ascii: "#") { return }
      // Invalid and overlong lines are reported when it is their turn.
      lines.append(String(validating: bytes, as: UTF8.self) ?? "/not-utf-8")
    case .tooLong: lines.append("/too-long")
    }
  }
}
