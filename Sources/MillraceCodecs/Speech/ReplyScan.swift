internal import MillraceCore
internal import MillraceFiles

/// Looks over a coded reply as its bytes go by, without decoding it: whether there is sound in it, and whether it ends where it
/// should. No heap once its buffers have the size of the largest page.
struct ReplyScan: ~Copyable {
  /// Where a reply breaks off: the byte that the frame or page begins at, and how many bytes of it are there. For Ogg without its
  /// last page, the reply's end and 0.
  struct Cut: Equatable {
    var place: Int64
    var bytes: Int64
  }

  /// A frame that others confirm, or a packet of Opus, was found.
  private(set) var hasSound = false
  private let isMP3: Bool
  private var framer = MP3Framer()
  private var demuxer = OpusDemuxer()
  private var cut: Cut?
  private var hasHeader = false
  private var hasBadStream = false
  private var isDamaged = false

  init(isMP3: Bool) { self.isMP3 = isMP3 }

  /// Takes the next bytes.
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

  /// Says that the reply is over and answers where it breaks off; nil: nowhere. What is fed next is another.
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

  /// Why nothing of a file that was fed whole can be played. Before `finish`. `head`: its first bytes.
  borrowing func trouble(_ path: String, bytes: Int, head: [UInt8]) -> NodeProblem {
    if isMP3 { return MP3File.noSound(path, bytes: bytes, head: head) }
    return OpusFileProbe.trouble(
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
