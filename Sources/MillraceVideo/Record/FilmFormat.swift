internal import MillraceAudio
internal import MillraceCore

/// How pictures are coded.
enum PictureCoding: String, CaseIterable {
  case h264, vp8

  /// The name in texts.
  var name: String { self == .h264 ? "H.264" : "VP8" }

  /// FFmpeg's name of the encoder.
  var encoder: String { self == .h264 ? "libx264" : "libvpx" }

  /// The other one.
  var other: PictureCoding { self == .h264 ? .vp8 : .h264 }

  /// The largest side it can have: of VP8 the bitstream's limit (RFC 6386, section 9.1), of x264 the library's.
  var mostSide: Int { self == .h264 ? 16_384 : 16_383 }
}

/// The kinds of file a film may become, and what is in them.
enum FilmFormat: String, CaseIterable {
  case mp4, mkv, webm

  /// The kind that belongs to a path's ending; nil for one this module does not write.
  init?(path: String) {
    guard let dot = path.lastIndex(of: ".") else { return nil }
    switch path[path.index(after: dot)...].lowercased() {
    case "mp4", "m4v", "mov": self = .mp4
    case "mkv": self = .mkv
    case "webm": self = .webm
    default: return nil
    }
  }

  /// The kind a node's parameters choose: `format`, or else the path's ending.
  init?(_ values: ParameterValues) {
    guard values.has("format") else {
      self.init(path: values.string("path"))
      return
    }
    self.init(rawValue: values.string("format"))
  }

  /// The name in texts.
  var name: String {
    switch self {
    case .mp4: "MP4"
    case .mkv: "Matroska"
    case .webm: "WebM"
    }
  }

  /// What its pictures may be, the usual first.
  var codings: [PictureCoding] {
    switch self {
    case .mp4: [.h264]
    case .mkv: [.h264, .vp8]
    case .webm: [.vp8]
    }
  }

  /// What its sound is.
  var sound: RecordingFormat { self == .mp4 ? .m4a : .opus }

  /// FFmpeg's name of the container, and its options: pieces of a second, each readable by itself, whether pictures or sound or
  /// both come.
  var library: (container: String, options: [(String, String)]) {
    switch self {
    // The index waits for the first piece, which tells the encoder's delay.
    case .mp4: ("mp4", [("movflags", "+delay_moov+default_base_moof"), ("frag_duration", "1000000")])
    case .mkv: ("matroska", [("cluster_time_limit", "1000")])
    case .webm: ("webm", [("cluster_time_limit", "1000")])
    }
  }

  /// What may be on the disk without being readable there: the piece that is not complete.
  static let unfinished = Nanoseconds.milliseconds(1_200)
}
