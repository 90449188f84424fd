internal import MillraceRTCWire

/// Times of a session that were told, in milliseconds since its beginning (`CallSession`).
struct CallLatencies: OptionSet {
  let rawValue: UInt8

  /// Both descriptions are there.
  static let signalled = CallLatencies(rawValue: 1)
  static let ice = CallLatencies(rawValue: 2)
  static let dtls = CallLatencies(rawValue: 4)
  static let firstAudio = CallLatencies(rawValue: 8)
  static let firstVideo = CallLatencies(rawValue: 16)

  /// The name of a single one.
  var name: String {
    switch self {
    case .signalled: "signalled"
    case .ice: "ice"
    case .dtls: "dtls"
    case .firstAudio: "firstAudio"
    default: "firstVideo"
    }
  }
}

/// How loud a peer was in an interval.
struct CallLevel {
  /// The least attenuation in dB below full scale; nil: its packets say none.
  private(set) var attenuation: UInt8?
  private(set) var hasSpeech = false
  /// A packet of sound has come.
  private(set) var wasHeard = false

  mutating func note(_ level: RTPAudioLevel?) {
    wasHeard = true
    guard let level else { return }
    attenuation = min(attenuation ?? 127, level.attenuation)
    hasSpeech = hasSpeech || level.hasSpeech
  }
}
