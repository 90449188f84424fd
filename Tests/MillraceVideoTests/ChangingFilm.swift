import TestMedia
import TestSystem

/// A film of H.264 whose pictures have another size from some moment on, each part of one colour.
struct ChangingFilm {
  /// How the change lies in the file: in the stream itself (H.264 without a container, MPEG-TS), or as another sequence header (FLV).
  enum Kind: String, CaseIterable, Sendable {
    case h264, ts, flv
  }

  struct Part {
    var width: Int
    var height: Int
    var luma: UInt8
    var pictures = 10
    /// Milliseconds without a picture before it; in FLV only.
    var pause = 0
  }

  var kind: Kind
  var parts: [Part]

  /// Writes the film into a folder; its path.
  func write(in folder: TemporaryFolder) -> String {
    var bytes: [UInt8] = []
    var start = 0
    for part in parts {
      var film = FilmFile()
      (film.width, film.height, film.pictures) = (part.width, part.height, part.pictures)
      film.colour = { _ in (part.luma, 128, 128) }
      let path = folder.file("part.\(kind.rawValue)")
      film.write(to: path)
      start += part.pause
      bytes += kind == .flv ? Self.tags(contents(path), from: start, isFirst: bytes.isEmpty) : contents(path)
      start += part.pictures * 1_000 / film.rate
    }
    let path = folder.file("changing.\(kind.rawValue)")
    put(bytes, at: path)
    return path
  }

  /// The tags of an FLV file, to be put behind others: their times from `start` ms on, and no end of the pictures among them (Adobe Flash
  /// Video File Format Specification 10.1, E.3 and E.4).
  ///
  /// - Parameter moved: the kind of tags that are moved; nil: all.
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
