internal import MillraceCore
internal import MillraceFiles

/// The properties of an Ogg Opus file needed before it is read; found by scanning it without decoding.
struct OpusFileProbe {
  var header: OpusHeader
  /// Samples of the first packet at 48 kHz.
  var packetSamples: Int
  /// Bytes of the largest packet.
  var packetBytes: Int

  /// Most bytes scanned; packets after that are assumed to have the maximum size for their length.
  private static let reach = 16 << 20

  /// Scans a file; throws the reason if it cannot be read.
  init(_ path: String) throws(NodeProblem) {
    var demuxer = try OpusDemuxer(path)
    var header: OpusHeader?
    var packetSamples = 0
    var packetBytes = 1
    var hasBadStream = false
    var isCut = false
    var isDamaged = false
    var isOver = false
    while !isOver && demuxer.byteCount < Self.reach {
      switch unsafe demuxer.next() {
      case .opened(let found): header = header ?? found
      case .packet(let packet):
        if packetSamples == 0 { packetSamples = unsafe packet.samples }
        packetBytes = unsafe max(packetBytes, packet.count)
      case .damage(.badStream): hasBadStream = true
      case .cut: isCut = true
      case .damage: isDamaged = true
      case .end, .needsMore: isOver = true
      case .failed(let code): throw FileMessages.problem(code, path, for: .reading)
      }
    }
    guard let header, packetSamples > 0 else {
      throw Self.problem(
        path, hasPages: demuxer.pageCount > 0, hasHeader: header != nil, isCut: isCut,
        isDamaged: isDamaged, hasBadStream: hasBadStream)
    }
    if !isOver {
      let pieces = max(1, packetSamples * 50 / OpusRates.granule)
      packetBytes = max(packetBytes, pieces * (OpusRates.frameBytes + 2) + 2)
    }
    self.header = header
    self.packetSamples = packetSamples
    self.packetBytes = packetBytes
  }

  /// The error for a file without readable Opus.
  static func problem(
    _ path: String, hasPages: Bool, hasHeader: Bool, isCut: Bool, isDamaged: Bool, hasBadStream: Bool
  ) -> NodeProblem {
    func problem(_ text: String, cure: String) -> NodeProblem {
      NodeProblem("\"\(path)\" \(text)", parameter: "path", cure: cure)
    }
    let conversion = "convert it, for example with ffmpeg -i IN OUT.opus"
    if hasHeader {
      if isDamaged { return problem("is damaged before its first Opus packet", cure: "use a complete file") }
      return problem(
        isCut ? "ends before its first Opus packet" : "contains no Opus packet",
        cure: "use a complete file")
    }
    if hasBadStream {
      return problem(
        "contains Opus that is neither mono nor stereo, or its header is damaged",
        cure: "convert it, for example with ffmpeg -i IN -ac 2 OUT.opus")
    }
    if hasPages { return problem("is an Ogg file without an Opus stream", cure: conversion) }
    if isCut { return problem("ends inside its first page", cure: "use a complete file") }
    return problem("is not an Ogg file", cure: conversion)
  }
}
