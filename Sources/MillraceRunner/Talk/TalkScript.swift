internal import Glibc
internal import MillraceCore

/// Lines from a file or from standard input, in place of keys: each when the one before has been done.
struct TalkScript: ~Copyable {
  private var input: ControlInput?
  private var splitter = LineSplitter()
  private var lines: [String] = []
  private var waiting: (for: TalkRequest.Wait, since: Nanoseconds, answers: Int)?
  private let isScript: Bool

  /// Lines that may wait; what a program writes beyond that waits in its pipe.
  private static let mostLines = 1_000

  /// - Parameter path: a file or named pipe; nil: standard input.
  init(_ path: String?) throws {
    isScript = path != nil
    // In the background a read from the terminal would stop the process.
    let isOthers = isatty(0) == 1 && tcgetpgrp(0) != getpgrp()
    if path != nil || !isOthers { input = try ControlInput(path ?? "-", what: "the script") }
  }

  /// Reads no more.
  mutating func close() { input = nil }

  /// The next line, when its time has come. Does not wait.
  mutating func next(now: Nanoseconds, state: String, answers: Int) -> String? {
    read()
    guard isReady(now, state, answers), !lines.isEmpty else { return nil }
    return lines.removeFirst()
  }

  /// Nothing more until this has come.
  mutating func wait(_ wait: TalkRequest.Wait, now: Nanoseconds, answers: Int) {
    waiting = (wait, now, answers)
  }

  /// What was not done, in words.
  var leftovers: [String] {
    let rest = lines.count
    guard rest > 0 else { return [] }
    return ["the dialogue ended with \(rest) line\(rest == 1 ? "" : "s") of the script left"]
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
    guard lines.count < Self.mostLines, var input = input.take() else { return }
    switch input.next(timeout: 0) {
    case .bytes(let bytes):
      for line in splitter.add(bytes) { add(line) }
      self.input = consume input
    case .pause:
      if let line = splitter.end() { add(line) }
      self.input = consume input
    case .timeout: self.input = consume input
    case .end: if let line = splitter.end() { add(line) }
    }
  }

  private mutating func add(_ line: LineSplitter.Line) {
    switch line {
    case .whole(let bytes):
      // Remarks of a script's author.
      if isScript && bytes.first == UInt8(ascii: "#") { return }
      // Refused in words when its turn comes, as are lines that are too long.
      lines.append(String(validating: bytes, as: UTF8.self) ?? "/not-utf-8")
    // Longer than any text may be.
    case .tooLong: lines.append("/too-long")
    }
  }
}
