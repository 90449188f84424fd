/// Audio formats of the service.
public enum BailianAudio {
  /// Supported sample rates in Hz.
  public static let rates: Set<Int> = [8_000, 16_000, 24_000, 48_000]
  static let ratesProblem = "must be one of 8000, 16000, 24000, 48000"

  /// Formats of the user's audio. Mono.
  public enum Up: String, Sendable, Hashable, CaseIterable {
    /// 16 bits, little-endian.
    case pcm
    /// Opus packets, one per WebSocket message, without a header.
    case rawOpus = "raw-opus"
    /// Opus in Ogg, one page per WebSocket message: see `OggPages`.
    case opus
  }

  /// Formats of replies. Mono; messages may split samples and frames anywhere, except for `rawOpus`.
  public enum Down: String, Sendable, Hashable, CaseIterable {
    /// 16-bit samples; MP3.
    case pcm, mp3
    /// Opus in Ogg.
    case opus
    /// The first message of a reply is the Opus header, each later one a packet.
    case rawOpus = "raw-opus"
    /// The same without the header.
    case rawOpus2 = "raw-opus2"

    /// Each WebSocket message is an Opus packet.
    var isPackets: Bool { self == .rawOpus || self == .rawOpus2 }
  }
}
