internal import Glibc
internal import MillraceCore

/// Cuts what a program writes into the chunks that become packets: sound by length, text by line.
///
/// Reads no further ahead than a few chunks: what the graph does not take stays in the pipe and holds the program back.
@safe
struct OutputIntake: ~Copyable, Sendable {
  /// What came of one read.
  enum Result {
    /// Bytes.
    case some
    /// Nothing for now.
    case none
    /// The end of the stream.
    case end
  }

  /// What the program writes.
  enum Form: Sendable {
    /// 16-bit samples; so many bytes are one of every channel.
    case sound(frameBytes: Int)
    /// UTF-8 text in lines.
    case lines
    /// Whatever it is, nobody wants it.
    case nothing
  }

  /// Bytes of the longest line, without its break.
  static let longestLine = 65_536

  /// Bytes asked for at a time, at least.
  static let leastRead = 4096

  private let form: Form
  private let chunkBytes: Int
  /// What was read; from `start` on it has not been handed on.
  private var pending: [UInt8] = []
  private var start = 0
  /// Where the search for a line break goes on.
  private var searched = 0
  /// Bytes of the stream before `pending`, to say where garbage is.
  private var passed = 0
  /// What is wrong with the stream, and at which byte.
  private(set) var garbage: ProcessExchange.Verdict?

  init(_ form: Form, chunkBytes: Int) {
    self.form = form
    self.chunkBytes = chunkBytes
  }

  /// Reads once.
  mutating func read(_ descriptor: Int32) -> Result {
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

  /// Hands on every whole chunk there is room for. True when all of them found room.
  mutating func handOn(to exchange: ProcessExchange) -> Bool {
    if case .nothing = form {
      start = pending.count
      return true
    }
    while garbage == nil, let chunk = nextChunk() {
      if !chunk.isEmpty {
        guard exchange.hasOutputRoom() else { return false }
        guard put(chunk, to: exchange) else { break }
      }
      advance(past: chunk.upperBound)
    }
    return true
  }

  /// Hands on what the stream ended with: a part of a packet, a line without a break. False when there is no room for it yet.
  mutating func handOnRest(to exchange: ProcessExchange) -> Bool {
    guard handOn(to: exchange) else { return false }
    guard garbage == nil, start < pending.count else { return true }
    if case .sound(let frameBytes) = form, (pending.count - start) % frameBytes != 0 {
      garbage = .garbage(.cutSample, at: passed + pending.count)
      return true
    }
    guard exchange.hasOutputRoom() else { return false }
    if put(start..<pending.count, to: exchange) { start = pending.count }
    return true
  }

  /// The next whole chunk; a line comes without its break, which `advance` steps over.
  private mutating func nextChunk() -> Range<Int>? {
    switch form {
    case .sound:
      return pending.count - start >= chunkBytes ? start..<start + chunkBytes : nil
    case .lines:
      searched = max(searched, start)
      while searched < pending.count && pending[searched] != 10 { searched += 1 }
      if searched - start > Self.longestLine {
        garbage = .garbage(.longLine, at: passed + start)
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

  /// Copies a chunk into the queue. False when it is garbage.
  private mutating func put(_ chunk: Range<Int>, to exchange: ProcessExchange) -> Bool {
    var chunk = chunk
    if case .lines = form {
      if pending[chunk.upperBound - 1] == 13 { chunk = chunk.lowerBound..<chunk.upperBound - 1 }
      guard !chunk.isEmpty else { return true }
      guard String(validating: pending[chunk], as: UTF8.self) != nil else {
        garbage = .garbage(.badText, at: passed + chunk.lowerBound)
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
