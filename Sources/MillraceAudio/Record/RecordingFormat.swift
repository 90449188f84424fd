internal import MillraceCore

/// The file formats of a recording, and what each supports.
package enum RecordingFormat: String, CaseIterable, Sendable {
  case wav, flac, opus, aac, m4a

  /// The format of a path's extension; nil for one this module does not write.
  init?(path: String) {
    guard let dot = path.lastIndex(of: ".") else { return nil }
    switch path[path.index(after: dot)...].lowercased() {
    case "wav": self = .wav
    case "flac": self = .flac
    case "ogg", "opus": self = .opus
    case "aac": self = .aac
    case "m4a", "mp4": self = .m4a
    default: return nil
    }
  }

  /// The format set by a node's parameters: `format`, or else the path's extension.
  init?(_ values: ParameterValues) {
    guard values.has("format") else {
      self.init(path: values.string("path"))
      return
    }
    self.init(rawValue: values.string("format"))
  }

  /// The name used in messages.
  package var name: String {
    switch self {
    case .wav: "WAV"
    case .flac: "FLAC"
    case .opus: "Ogg Opus"
    case .aac: "AAC"
    case .m4a: "MP4"
    }
  }

  /// True for a lossy format, which has a bit rate.
  var isLossy: Bool { self == .opus || self == .aac || self == .m4a }

  /// Maximum number of channels. AAC's sixth is a bass channel that does not preserve speech (ISO/IEC 14496-3, channel configuration
  /// 6).
  package var mostChannels: Int { self == .aac || self == .m4a ? 5 : AudioLimits.channels.upperBound }

  /// Default bit rate per channel in bit/s: transparent speech.
  package var channelBitrate: Int { self == .opus ? 32_000 : 64_000 }

  /// Supported sample rates in Hz; nil: all.
  package var rates: [Int]? {
    switch self {
    case .wav, .flac: nil
    // RFC 6716, section 2.
    case .opus: [8_000, 12_000, 16_000, 24_000, 48_000]
    // ISO/IEC 14496-3, table 1.18.
    case .aac, .m4a:
      [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000]
    }
  }

  /// Seconds of audio that may be on disk without being readable: the incomplete page or fragment.
  var unfinished: Double {
    switch self {
    case .wav, .flac, .aac: 0
    case .opus: 0.5
    case .m4a: 1.2
    }
  }

  /// FFmpeg's names of encoder and container, and the container's options.
  var library: (encoder: String, container: String, options: [(String, String)]) {
    switch self {
    case .wav: fatalError("WAV is written without a library")
    case .flac: ("flac", "flac", [])
    // Pages of 0.2 s: a killed process loses no more than that.
    case .opus: ("libopus", "ogg", [("page_duration", "200000")])
    case .aac: ("aac", "adts", [])
    // One fragment per second, each readable by itself; the index waits for the first, which states the encoder's delay.
    case .m4a:
      ("aac", "mp4", [("movflags", "+delay_moov+default_base_moof"), ("frag_duration", "1000000")])
    }
  }
}
