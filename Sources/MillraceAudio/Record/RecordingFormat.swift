internal import MillraceCore

/// The kinds of file a recording may become, and what each of them can hold.
package enum RecordingFormat: String, CaseIterable, Sendable {
  case wav, flac, opus, aac, m4a

  /// The kind that belongs to a path's ending; nil for one this module does not write.
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

  /// The kind a node's parameters choose: `format`, or else the path's ending.
  init?(_ values: ParameterValues) {
    guard values.has("format") else {
      self.init(path: values.string("path"))
      return
    }
    self.init(rawValue: values.string("format"))
  }

  /// The name in texts.
  package var name: String {
    switch self {
    case .wav: "WAV"
    case .flac: "FLAC"
    case .opus: "Ogg Opus"
    case .aac: "AAC"
    case .m4a: "MP4"
    }
  }

  /// True when the encoder leaves out what is not heard, at a bit rate.
  var isLossy: Bool { self == .opus || self == .aac || self == .m4a }

  /// Most channels. AAC's sixth is a bass channel that keeps no voice (ISO/IEC 14496-3, channel configuration 6).
  package var mostChannels: Int { self == .aac || self == .m4a ? 5 : SoundBounds.channels.upperBound }

  /// Bits a second for every channel when the graph names no rate: transparent speech.
  package var channelBitrate: Int { self == .opus ? 32_000 : 64_000 }

  /// Rates it takes in Hz; nil: every rate.
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

  /// Seconds of sound that may be on the disk without being readable there: the page, or the fragment, that is not complete.
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
    // Pages of 0.2 s: what a killed process leaves lacks no more.
    case .opus: ("libopus", "ogg", [("page_duration", "200000")])
    case .aac: ("aac", "adts", [])
    // A fragment a second, each readable by itself; the index waits for the first, which tells the encoder's delay.
    case .m4a:
      ("aac", "mp4", [("movflags", "+delay_moov+default_base_moof"), ("frag_duration", "1000000")])
    }
  }
}
