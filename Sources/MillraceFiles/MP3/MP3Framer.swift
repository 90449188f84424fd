/// Splits an MPEG audio stream into frames, however its bytes are chunked.
///
/// The result depends on the bytes alone: while the next bytes could change it, `next` answers `needsMore`. A frame that follows one
/// of the same kind is returned as soon as it is complete. Any other must be confirmed, because random bytes look like a header every
/// few thousand bytes:
///
/// - the first frame of a stream, and one of the stream's kind after damage, by the header that follows it;
/// - any other by two headers, each at the offset the one before gives;
/// - by a tag or the end of the stream in place of such a header. A single frame counts as a stream only if nothing precedes it.
///
/// Tags (ID3v2 at the start or between frames, ID3v1 at the end) are skipped. Feed only when `next` answers `needsMore`. No heap
/// after `init`.
@safe
package struct MP3Framer: ~Copyable {
  /// A frame, or what was found in place of one.
  package enum Step: Equatable {
    /// A whole frame, in `frame` until the next call; `offset` is its byte offset in the stream.
    case frame(offset: Int64, size: Int)
    /// `count` bytes from `offset` on are not a frame.
    case damaged(offset: Int64, count: Int64)
    /// The stream ends inside a frame, of which `count` bytes are there.
    case cut(offset: Int64, count: Int64)
    case needsMore
  }

  private let buffer: UnsafeMutablePointer<UInt8>
  /// The unconsumed bytes: first, and one past the last.
  private var start = 0
  private var end = 0
  /// Stream offset of the first unconsumed byte.
  private var position: Int64 = 0
  /// The frame returned last.
  private var given = 0..<0

  /// Bytes of a tag still to skip.
  private var tagRest: Int64 = 0
  /// Header of the previous frame; nil at the start.
  private var last: MP3Header?
  /// True while only frames and tags have been seen since the start or the last resync.
  private var isInStep = true
  /// Bytes skipped and not yet reported.
  private var lost: (offset: Int64, count: Int64) = (0, 0)

  /// Room for the two longest frames and the header after them, plus half as much again so that bytes are seldom moved.
  private static let capacity = 8_192
  /// Bytes of ID3v1, and of the head of ID3v2 (id3.org).
  private static let oldTag: Int64 = 128
  private static let tagHead = 10

  package init() {
    unsafe buffer = .allocate(capacity: Self.capacity)
    unsafe buffer.initialize(repeating: 0, count: Self.capacity)
  }

  deinit { unsafe buffer.deallocate() }

  /// Starts another stream.
  package mutating func reset() {
    (start, end, position, given) = (0, 0, 0, 0..<0)
    (tagRest, last, isInStep, lost) = (0, nil, true, (0, 0))
  }

  /// Copies in the next bytes and returns how many it took; at least one.
  package mutating func feed(_ bytes: Span<UInt8>) -> Int {
    if start > 0 {
      unsafe buffer.update(from: buffer + start, count: end - start)
      (start, end) = (0, end - start)
    }
    let count = min(bytes.count, Self.capacity - end)
    let target = unsafe buffer + end
    unsafe bytes.extracting(0..<count).withUnsafeBufferPointer { source in
      if let first = source.baseAddress { unsafe target.update(from: first, count: count) }
    }
    end += count
    return count
  }

  /// The frame `next` returned. Valid only while the framer lives, which the compiler does not check.
  @unsafe
  @_lifetime(immortal)
  package func frame() -> Span<UInt8> {
    let span = unsafe Span(_unsafeStart: UnsafePointer(buffer + given.lowerBound), count: given.count)
    return unsafe _overrideLifetime(span, copying: ())
  }

  /// Header of the frame returned last; nil before the first.
  package var header: MP3Header? { last }

  /// Looks for the next frame.
  ///
  /// - Parameter isEnding: no bytes will follow. `needsMore` then means that the stream is exhausted.
  package mutating func next(isEnding: Bool) -> Step {
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
      case .cut: return takeCut()
      case .nothing: lose(1)
      }
    }
  }

  // MARK: Parsing

  /// What the first unconsumed byte begins.
  private enum Find {
    case frame(MP3Header), tag(Int64), cut, nothing, wait
  }

  private borrowing func look(_ isEnding: Bool) -> Find {
    let count = end - start
    guard count > 0 else { return .wait }
    let first = unsafe buffer[start]
    if isInStep && (first == UInt8(ascii: "I") || first == UInt8(ascii: "T")) { return lookAtTag(isEnding) }
    guard first == 0xFF else { return .nothing }
    guard count >= MP3Header.byteCount else { return isEnding ? rest() : .wait }
    guard let header = header(at: start) else { return .nothing }
    let isTrusted = isInStep && last.map { $0.agrees(with: header) } ?? false
    guard count >= header.frameBytes else {
      return !isEnding ? .wait : isTrusted ? .cut : .nothing
    }
    return isTrusted ? .frame(header) : confirm(header, isEnding)
  }

  /// Classifies the end of a stream that is shorter than a header.
  private borrowing func rest() -> Find {
    guard isInStep, let last else { return .nothing }
    return agrees(last, at: start) ? .cut : .nothing
  }

  /// Confirms a frame by what follows it.
  private borrowing func confirm(_ header: MP3Header, _ isEnding: Bool) -> Find {
    // Only tags precede it, or it is a frame of the stream's kind.
    let isLikely = last.map { $0.agrees(with: header) } ?? isInStep
    var place = start + header.frameBytes
    for confirmed in 0..<(isLikely ? 1 : 2) {
      if place + MP3Header.byteCount > end {
        guard isEnding else { return .wait }
        // A stream may end here or inside the next frame. A lone frame between damage and the end does not count.
        return (isLikely || confirmed > 0) && agrees(header, at: place) ? .frame(header) : .nothing
      }
      guard let next = self.header(at: place), next.agrees(with: header) else {
        return (isLikely || confirmed > 0) && isTag(at: place) ? .frame(header) : .nothing
      }
      place += next.frameBytes
    }
    return .frame(header)
  }

  /// True when the bytes from `place` on, fewer than a header, can begin another frame of the stream.
  private borrowing func agrees(_ header: MP3Header, at place: Int) -> Bool {
    guard place <= end else { return true }
    var first: UInt32 = 0
    for index in place..<end { unsafe first |= UInt32(buffer[index]) << UInt32(24 - 8 * (index - place)) }
    return header.agrees(withFirst: first, count: end - place)
  }

  private borrowing func isTag(at place: Int) -> Bool {
    matches("ID3", at: place, 3) || matches("TAG", at: place, 3)
  }

  private borrowing func lookAtTag(_ isEnding: Bool) -> Find {
    let (new, old): (StaticString, StaticString) = ("ID3", "TAG")
    let count = min(end - start, 3)
    if matches(old, at: start, count) { return count == 3 ? .tag(Self.oldTag) : isEnding ? .nothing : .wait }
    guard matches(new, at: start, count) else { return .nothing }
    guard end - start >= Self.tagHead else { return isEnding ? .nothing : .wait }
    var size: Int64 = 0
    for index in 6..<Self.tagHead {
      let digit = unsafe buffer[start + index]
      guard digit < 0x80 else { return .nothing }
      size = size << 7 | Int64(digit)
    }
    let hasFoot = unsafe buffer[start + 5] & 0x10 != 0
    return .tag(Int64(Self.tagHead) * (hasFoot ? 2 : 1) + size)
  }

  private borrowing func matches(_ word: StaticString, at place: Int, _ count: Int) -> Bool {
    for index in 0..<count where unsafe buffer[place + index] != word.utf8Start[index] { return false }
    return true
  }

  private borrowing func header(at index: Int) -> MP3Header? {
    var bits: UInt32 = 0
    for byte in 0..<MP3Header.byteCount { unsafe bits = bits << 8 | UInt32(buffer[index + byte]) }
    return MP3Header(bits)
  }

  // MARK: Consuming

  private mutating func take(_ header: MP3Header) -> Step {
    let offset = position
    given = start..<start + header.frameBytes
    start += header.frameBytes
    position += Int64(header.frameBytes)
    (last, isInStep) = (header, true)
    return .frame(offset: offset, size: header.frameBytes)
  }

  private mutating func takeCut() -> Step {
    let (offset, count) = (position, Int64(end - start))
    pass(over: count)
    tagRest = 0
    return .cut(offset: offset, count: count)
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

  /// Reports the bytes that were skipped and not yet reported.
  private mutating func tell() -> Step? {
    guard lost.count > 0 else { return nil }
    defer { lost.count = 0 }
    return .damaged(offset: lost.offset, count: lost.count)
  }

  /// At the end of a stream the remaining bytes can no longer become a frame.
  private mutating func finish(_ isEnding: Bool) -> Step {
    guard isEnding else { return .needsMore }
    if end > start { lose(end - start) }
    return tell() ?? .needsMore
  }
}
