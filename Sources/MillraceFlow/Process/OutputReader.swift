internal import Glibc
internal import MillraceCore

/// Splits a program's output into the chunks that become packets: audio by length, text by line.
///
/// Reads only a few chunks ahead. What the graph does not take stays in the pipe, and back-pressure reaches the program.
@safe
struct OutputReader: ~Copyable, Sendable {
  /// The result of one read.
  enum ReadResult {
    /// Some bytes.
    case some
    /// Nothing at present.
    case none
    /// End of file.
    case end
  }

  /// What the program writes.
  enum Form: Sendable {
    /// 16-bit samples; `frameBytes` bytes hold one sample of every channel.
    case sound(frameBytes: Int)
    /// UTF-8 text in lines.
    case lines
    /// Discarded: the output is not linked.
    case nothing
  }

  /// Longest line in bytes, without its break.
  static let longestLine = 65_536

  /// Minimum bytes per read.
  static let leastRead = 4096

  private let form: Form
  private let chunkBytes: Int
  /// Bytes read; those from `start` on have not been forwarded.
  private var pending: [UInt8] = []
  private var start = 0
  /// Where the search for a line break continues.
  private var searched = 0
  /// Stream offset of `pending`, for error positions.
  private var passed = 0
  /// The first error in the stream.
  private(set) var outputError: ProcessExchange.ExitResult?

  init(_ form: Form, chunkBytes: Int) {
    self.form = form
    self.chunkBytes = chunkBytes
  }

  /// Reads once.
  mutating func read(_ descriptor: Int32) -> ReadResult {
    compact()
    let room = max(chunkBytes, Self.leastRead)
    let before = pending.count
    pending.append(contentsOf: repeatElement(0, count: room))
    let count = unsafe pending.withUnsafeMutableBytes {
      unsafe Glibc.read(descriptor, $0.baseAddress! + before, room)
    }
    let code = errno
    pending.removeLast(room - max(0, count))
    if count > 0 { return .some }
    return count == 0 || (code != EAGAIN && code != EINTR) ? .end : .none
  }

  /// Forwards every complete chunk there is room for. True when all of them had room.
  mutating func forward(to exchange: ProcessExchange) -> Bool {
    if case .nothing = form {
      start = pending.count
      return true
    }
    while outputError == nil, let chunk = nextChunk() {
      if !chunk.isEmpty {
        guard exchange.hasOutputRoom() else { return false }
        guard put(chunk, to: exchange) else { break }
      }
      advance(past: chunk.upperBound)
    }
    return true
  }

  /// Forwards what the stream ended with: a partial packet, or a line without a break. False when there is no room for it yet.
  mutating func forwardRest(to exchange: ProcessExchange) -> Bool {
    guard forward(to: exchange) else { return false }
    guard outputError == nil, start < pending.count else { return true }
    if case .sound(let frameBytes) = form, (pending.count - start) % frameBytes != 0 {
      outputError = .outputError(.partialSample, at: passed + pending.count)
      return true
    }
    guard exchange.hasOutputRoom() else { return false }
    if put(start..<pending.count, to: exchange) { start = pending.count }
    return true
  }

  /// The next complete chunk; a line excludes its break, which `advance` skips.
  private mutating func nextChunk() -> Range<Int>? {
    switch form {
    case .sound:
      return pending.count - start >= chunkBytes ? start..<start + chunkBytes : nil
    case .lines:
      searched = max(searched, start)
      while searched < pending.count && pending[searched] != 10 { searched += 1 }
      if searched - start > Self.longestLine {
        outputError = .outputError(.lineTooLong, at: passed + start)
        return nil
      }
      return searched < pending.count ? start..<searched : nil
    case .nothing: return nil
    }
  }

  private mutating func advance(past end: Int) {
    guard case .lines = form else {
      start = end
      return
    }
    start = end + 1
  }

  /// Copies a chunk into the queue. False when it is invalid.
  private mutating func put(_ chunk: Range<Int>, to exchange: ProcessExchange) -> Bool {
    var chunk = chunk
    if case .lines = form {
      if pending[chunk.upperBound - 1] == 13 { chunk = chunk.lowerBound..<chunk.upperBound - 1 }
      guard !chunk.isEmpty else { return true }
      guard String(validating: pending[chunk], as: UTF8.self) != nil else {
        outputError = .outputError(.invalidUTF8, at: passed + chunk.lowerBound)
        return false
      }
    }
    unsafe pending.withUnsafeBufferPointer { bytes in
      unsafe exchange.output.space.update(from: bytes.baseAddress! + chunk.lowerBound, count: chunk.count)
    }
    exchange.output.publish(chunk.count)
    exchange.waker.wake()
    return true
  }

  private mutating func compact() {
    guard start > 0 else { return }
    pending.removeFirst(start)
    passed += start
    searched -= min(searched, start)
    start = 0
  }
}
