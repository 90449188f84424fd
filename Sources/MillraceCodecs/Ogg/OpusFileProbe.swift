internal import MillraceCore

/// What must be known of an Ogg Opus file before it is read: found by running through it without decoding.
struct OpusFileProbe {
  var header: OpusHeader
  /// Samples of the first packet at 48 kHz.
  var packetSamples: Int
  /// Bytes of the largest packet.
  var packetBytes: Int

  /// Bytes looked at most; beyond them packets are assumed to be no larger than their length allows.
  private static let reach = 16 << 20

  /// Looks at a file; throws in words what makes it unreadable.
  init(_ path: String) throws(FileTrouble) {
    var demuxer = try OpusDemuxer(path)
    var header: OpusHeader?
    var packetSamples = 0
    var packetBytes = 1
    var hasBadStream = false
    var isCut = false
    var isOver = false
    while !isOver && demuxer.byteCount < Self.reach {
      switch unsafe demuxer.next() {
      case .opened(let found): header = header ?? found
      case .packet(let packet):
        if packetSamples == 0 { packetSamples = unsafe packet.samples }
        packetBytes = unsafe max(packetBytes, packet.count)
      case .damage(.badStream): hasBadStream = true
      case .damage(.cut): isCut = true
      case .damage: break
      case .end: isOver = true
      case .failed(let code): throw .reading(path, code: code)
      }
    }
    guard let header, packetSamples > 0 else {
      throw Self.trouble(
        path, hasPages: demuxer.pageCount > 0, hasHeader: header != nil, isCut: isCut,
        hasBadStream: hasBadStream,
        isEmpty: demuxer.byteCount == 0)
    }
    if !isOver {
      let pieces = max(1, packetSamples * 50 / OpusRates.granule)
      packetBytes = max(packetBytes, pieces * (OpusRates.frameBytes + 2) + 2)
    }
    self.header = header
    self.packetSamples = packetSamples
    self.packetBytes = packetBytes
  }

  private static func trouble(
    _ path: String, hasPages: Bool, hasHeader: Bool, isCut: Bool, hasBadStream: Bool, isEmpty: Bool
  ) -> FileTrouble {
    let start = "cannot read \"\(path)\": "
    if hasHeader {
      return FileTrouble(
        text: start + (isCut ? "it is cut off before its first Opus packet" : "it holds no Opus packet"),
        cure: "use a complete file")
    }
    if hasBadStream {
      return FileTrouble(
        text: start + "its Opus stream is neither mono nor stereo, or its header is damaged",
        cure: "convert it, for example with ffmpeg -i IN -ac 2 OUT.opus")
    }
    if hasPages {
      return FileTrouble(
        text: start + "it is an Ogg file without Opus in it",
        cure: "convert it, for example with ffmpeg -i IN OUT.opus")
    }
    if isEmpty { return FileTrouble(text: start + "it is empty", cure: "use a complete file") }
    return FileTrouble(
      text: start + (isCut ? "it is cut off inside its first page" : "it is not an Ogg file"),
      cure: isCut ? "use a complete file" : "convert it, for example with ffmpeg -i IN OUT.opus")
  }
}
