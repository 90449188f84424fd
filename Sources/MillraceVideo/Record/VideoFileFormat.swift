internal import MillraceAudio
internal import MillraceCore

/// The video codec.
enum PictureCoding: String, CaseIterable {
  case h264, vp8

  /// The display name.
  var name: String { self == .h264 ? "H.264" : "VP8" }

  /// FFmpeg's name of the encoder.
  var encoder: String { self == .h264 ? "libx264" : "libvpx" }

  /// The other codec.
  var other: PictureCoding { self == .h264 ? .vp8 : .h264 }

  /// The longest side: for VP8 the limit of the bitstream (RFC 6386, section 9.1), for x264 the library's.
  var longestSide: Int { self == .h264 ? 16_384 : 16_383 }
}

/// The container formats for recordings, and their contents.
enum VideoFileFormat: String, CaseIterable {
  case mp4, mkv, webm

  /// The format for a path's extension; nil if it is not supported.
  init?(path: String) {
    guard let dot = path.lastIndex(of: ".") else { return nil }
    switch path[path.index(after: dot)...].lowercased() {
    case "mp4", "m4v", "mov": self = .mp4
    case "mkv": self = .mkv
    case "webm": self = .webm
    default: return nil
    }
  }

  /// The format chosen by a node's parameters: `format`, or else the path's extension.
  init?(_ values: ParameterValues) {
    guard values.has("format") else {
      self.init(path: values.string("path"))
      return
    }
    self.init(rawValue: values.string("format"))
  }

  /// The display name.
  var name: String {
    switch self {
    case .mp4: "MP4"
    case .mkv: "Matroska"
    case .webm: "WebM"
    }
  }

  /// Supported video codecs, the default first.
  var codings: [PictureCoding] {
    switch self {
    case .mp4: [.h264]
    case .mkv: [.h264, .vp8]
    case .webm: [.vp8]
    }
  }

  /// The audio format.
  var sound: RecordingFormat { self == .mp4 ? .m4a : .opus }

  /// FFmpeg's name of the container, and its options: fragments of a second, each readable on its own, with pictures, audio or
  /// both.
  var library: (container: String, options: [(String, String)]) {
    switch self {
    // The index is delayed until the first fragment, which determines the encoder's delay.
    case .mp4: ("mp4", [("movflags", "+delay_moov+default_base_moof"), ("frag_duration", "1000000")])
    case .mkv: ("matroska", [("cluster_time_limit", "1000")])
    case .webm: ("webm", [("cluster_time_limit", "1000")])
    }
  }

  /// Most content on disk that is not readable yet: the incomplete fragment.
  static let unfinished = Nanoseconds.milliseconds(1_200)
}
