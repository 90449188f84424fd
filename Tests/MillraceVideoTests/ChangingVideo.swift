import TestMedia
import TestSystem

/// An H.264 video whose picture size changes; each part has one colour.
struct ChangingVideo {
  /// How the file signals the change: in the stream itself (H.264 without a container, MPEG-TS), or by another sequence header (FLV).
  enum Kind: String, CaseIterable, Sendable {
    case h264, ts, flv
  }

  struct Part {
    var width: Int
    var height: Int
    var luma: UInt8
    var pictures = 10
    /// Milliseconds without pictures before it; in FLV only.
    var pause = 0
  }

  var kind: Kind
  var parts: [Part]

  /// Writes the video to a folder and returns its path.
  func write(in folder: TemporaryFolder) -> String {
    var bytes: [UInt8] = []
    var start = 0
    for part in parts {
      var video = TestVideo()
      (video.width, video.height, video.pictures) = (part.width, part.height, part.pictures)
      video.colour = { _ in (part.luma, 128, 128) }
      let path = folder.file("part.\(kind.rawValue)")
      video.write(to: path)
      start += part.pause
      bytes += kind == .flv ? Self.tags(contents(path), from: start, isFirst: bytes.isEmpty) : contents(path)
      start += part.pictures * 1_000 / video.rate
    }
    let path = folder.file("changing.\(kind.rawValue)")
    put(bytes, at: path)
    return path
  }

  /// The tags of an FLV file, to be appended to others: with times from `start` ms, and without an end of sequence (Adobe Flash Video File
  /// Format Specification 10.1, E.3 and E.4).
  ///
  /// - Parameter moved: the kind of tags to shift; nil: all.
  static func tags(_ file: [UInt8], from start: Int, isFirst: Bool, moved: UInt8? = nil) -> [UInt8] {
    let header = 13
    var kept = isFirst ? Array(file.prefix(header)) : []
    var place = header
    while place + 11 <= file.count {
      let size = Int(file[place + 1]) << 16 | Int(file[place + 2]) << 8 | Int(file[place + 3])
      var tag = Array(file[place..<place + 11 + size + 4])
      let offset = moved == nil || moved == tag[0] ? start : 0
      let time = (Int(tag[4]) << 16 | Int(tag[5]) << 8 | Int(tag[6])) + offset
      (tag[4], tag[5], tag[6]) = (UInt8(time >> 16 & 255), UInt8(time >> 8 & 255), UInt8(time & 255))
      let isScript = tag[0] == 18
      let isEnd = tag[0] == 9 && tag[11] & 15 == 7 && tag[12] == 2
      if !isEnd && (isFirst || !isScript) { kept += tag }
      place += tag.count
    }
    return kept
  }
}
