internal import MillraceCore

/// Finds the frames of one stream of MPEG audio, wherever its bytes were cut.
///
/// What is found depends on the bytes alone: while the next bytes could change an answer, the answer is to wait. A frame that
/// follows one of its kind, and the first of a stream, is given as soon as its last byte is there; any other, after damage or
/// where the stream changes, when the header behind it agrees, or when the stream ends just there.
///
/// Tags (ID3v2 in front or between, ID3v1 behind) are passed over. Feed only when `next` answers `needsMore`. No heap after
/// `init`.
@safe
struct MP3Framer: ~Copyable {
  /// A frame, or what lay where one should be.
  enum Step: Equatable {
    /// A whole frame, in `frame` until the next call; `offset` is its place in the stream, in bytes.
    case frame(offset: Int64, size: Int)
    /// So many bytes from `offset` on are no frame.
    case damaged(offset: Int64, count: Int64)
    case needsMore
  }

  private var buffer: FrameBuffer
  /// The bytes that wait: first and one past the last.
  private var start = 0
  private var end = 0
  /// The place of the first in the stream.
  private var position: Int64 = 0
  /// The frame given last.
  private var given = 0..<0

  /// Bytes of a tag still to be passed over.
  private var tagRest: Int64 = 0
  /// The frame before: nil at the start.
  private var last: MP3Header?
  /// Nothing but frames and tags so far, or again.
  private var isInStep = true
  /// Bytes passed over and not yet told.
  private var lost: (offset: Int64, count: Int64) = (0, 0)

  /// Room for the longest frame, the header behind it, and as much again, so that bytes are seldom moved.
  private static let capacity = 8_192
  /// Bytes of ID3v1, and of the head of ID3v2 (id3.org).
  private static let oldTag: Int64 = 128
  private static let tagHead = 10

  init() { buffer = FrameBuffer(byteCount: Self.capacity) }

  /// Begins another stream.
  mutating func reset() {
    (start, end, position, given) = (0, 0, 0, 0..<0)
    (tagRest, last, isInStep, lost) = (0, nil, true, (0, 0))
  }

  /// Takes the next bytes and answers how many; at least one.
  mutating func feed(_ bytes: Span<UInt8>) -> Int {
    if start > 0 {
      buffer.bringForward(from: start, count: end - start)
      (start, end) = (0, end - start)
    }
    let count = min(bytes.count, Self.capacity - end)
    buffer.copy(bytes.extracting(0..<count), to: end)
    end += count
    return count
  }

  /// The frame that `next` gave. Lives no longer than the framer, which the compiler does not see.
  @unsafe
  @_lifetime(immortal)
  func frame() -> Span<UInt8> {
    unsafe buffer.contents(of: UInt8.self, count: given.upperBound).extracting(given)
  }

  /// Looks for the next frame.
  ///
  /// - Parameter isEnding: no byte will follow. Then `needsMore` says that the stream is used up.
  mutating func next(isEnding: Bool) -> Step {
    while true {
      if tagRest > 0 {
        pass(over: min(tagRest, Int64(end - start)))
        if tagRest > 0 { return finish(isEnding) }
      }
      switch look(isEnding) {
      case .wait: return finish(isEnding)
      case .tag(let count):
        if let damage = tell() { return damage }
        tagRest = count
      case .frame(let header):
        if let damage = tell() { return damage }
        return take(header)
      case .nothing: lose(1)
      }
    }
  }

  // MARK: Looking

  /// What begins at the first byte that waits.
  private enum Find {
    case frame(MP3Header), tag(Int64), nothing, wait
  }

  private borrowing func look(_ isEnding: Bool) -> Find {
    let count = end - start
    guard count > 0 else { return .wait }
    let first = buffer[start]
    if isInStep && (first == UInt8(ascii: "I") || first == UInt8(ascii: "T")) { return lookAtTag(isEnding) }
    guard first == 0xFF else { return .nothing }
    guard count >= MP3Header.byteCount else { return isEnding ? .nothing : .wait }
    guard let header = header(at: start) else { return .nothing }
    let isTrusted = isInStep && last.map { $0.agrees(with: header) } ?? true
    guard count >= header.frameBytes else { return isEnding ? .nothing : .wait }
    return isTrusted ? .frame(header) : confirm(header, isEnding)
  }

  /// A frame is believed when another of its kind follows, or the end.
  private borrowing func confirm(_ header: MP3Header, _ isEnding: Bool) -> Find {
    let behind = start + header.frameBytes
    if behind + MP3Header.byteCount <= end {
      return self.header(at: behind)?.agrees(with: header) ?? false ? .frame(header) : .nothing
    }
    guard isEnding else { return .wait }
    return behind == end ? .frame(header) : .nothing
  }

  private borrowing func lookAtTag(_ isEnding: Bool) -> Find {
    let (new, old): (StaticString, StaticString) = ("ID3", "TAG")
    let count = min(end - start, 3)
    if matches(old, count) { return count == 3 ? .tag(Self.oldTag) : isEnding ? .nothing : .wait }
    guard matches(new, count) else { return .nothing }
    guard end - start >= Self.tagHead else { return isEnding ? .nothing : .wait }
    var size: Int64 = 0
    for index in 6..<Self.tagHead {
      let digit = buffer[start + index]
      guard digit < 0x80 else { return .nothing }
      size = size << 7 | Int64(digit)
    }
    let hasFoot = buffer[start + 5] & 0x10 != 0
    return .tag(Int64(Self.tagHead) * (hasFoot ? 2 : 1) + size)
  }

  private borrowing func matches(_ word: StaticString, _ count: Int) -> Bool {
    for index in 0..<count where unsafe buffer[start + index] != word.utf8Start[index] { return false }
    return true
  }

  private borrowing func header(at index: Int) -> MP3Header? {
    var bits: UInt32 = 0
    for byte in 0..<MP3Header.byteCount { bits = bits << 8 | UInt32(buffer[index + byte]) }
    return MP3Header(bits)
  }

  // MARK: Taking

  private mutating func take(_ header: MP3Header) -> Step {
    let offset = position
    given = start..<start + header.frameBytes
    start += header.frameBytes
    position += Int64(header.frameBytes)
    (last, isInStep) = (header, true)
    return .frame(offset: offset, size: header.frameBytes)
  }

  private mutating func pass(over count: Int64) {
    start += Int(count)
    position += count
    tagRest -= count
  }

  private mutating func lose(_ count: Int) {
    if lost.count == 0 { lost.offset = position }
    lost.count += Int64(count)
    isInStep = false
    start += count
    position += Int64(count)
  }

  /// What was lost and not yet told.
  private mutating func tell() -> Step? {
    guard lost.count > 0 else { return nil }
    defer { lost.count = 0 }
    return .damaged(offset: lost.offset, count: lost.count)
  }

  /// At a stream's end what waits will never be a frame.
  private mutating func finish(_ isEnding: Bool) -> Step {
    guard isEnding else { return .needsMore }
    if end > start { lose(end - start) }
    return tell() ?? .needsMore
  }
}
