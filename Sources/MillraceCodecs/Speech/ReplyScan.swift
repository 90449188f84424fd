internal import MillraceCore
internal import MillraceFiles

/// Scans an encoded reply as its bytes pass, without decoding it: whether it contains audio, and whether it is complete. No heap once its
/// buffers have the size of the largest page.
struct ReplyScan: ~Copyable {
  /// Where a reply is truncated: offset of the incomplete frame or page, and how many bytes of it are there. For Ogg without its last page: the
  /// end of the reply, and 0.
  struct Cut: Equatable {
    var place: Int64
    var bytes: Int64
  }

  /// True if a confirmed MP3 frame or an Opus packet was found.
  private(set) var hasSound = false
  private let isMP3: Bool
  private var framer = MP3Framer()
  private var demuxer = OpusDemuxer()
  private var cut: Cut?
  private var hasHeader = false
  private var hasBadStream = false
  private var isDamaged = false

  init(isMP3: Bool) { self.isMP3 = isMP3 }

  /// Scans the next bytes.
  mutating func feed(_ bytes: Span<UInt8>) {
    guard isMP3 else {
      demuxer.feed(bytes)
      return drainPages()
    }
    var fed = 0
    while fed < bytes.count {
      fed += framer.feed(bytes.extracting(fed..<bytes.count))
      drainFrames(isEnding: false)
    }
  }

  /// Ends the reply and returns where it is truncated; nil if it is complete. The next bytes belong to another reply.
  mutating func finish() -> Cut? {
    if isMP3 {
      drainFrames(isEnding: true)
      framer.reset()
    } else {
      let count = demuxer.byteCount
      if demuxer.isCut { cut = Cut(place: Int64(count - demuxer.leftOver), bytes: Int64(demuxer.leftOver)) }
      demuxer.reset()
    }
    return cut.take()
  }

  /// The error for a file without playable audio, which was fed completely. Call it before `finish`. `head`: its first bytes.
  borrowing func problem(_ path: String, bytes: Int, head: [UInt8]) -> NodeProblem {
    if isMP3 { return MP3File.noSound(path, bytes: bytes, head: head) }
    return OpusFileProbe.problem(
      path, hasPages: demuxer.pageCount > 0, hasHeader: hasHeader, isCut: demuxer.isCut, isDamaged: isDamaged,
      hasBadStream: hasBadStream)
  }

  private mutating func drainFrames(isEnding: Bool) {
    while true {
      switch framer.next(isEnding: isEnding) {
      case .frame: hasSound = true
      case .cut(let offset, let count): cut = Cut(place: offset, bytes: count)
      case .damaged: break
      case .needsMore: return
      }
    }
  }

  private mutating func drainPages() {
    while true {
      switch unsafe demuxer.next() {
      case .packet: hasSound = true
      case .opened: hasHeader = true
      case .damage(.badStream): hasBadStream = true
      case .damage, .cut: isDamaged = true
      case .needsMore, .end, .failed: return
      }
    }
  }
}
