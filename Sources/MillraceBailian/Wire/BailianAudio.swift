/// Forms of sound on the wire.
public enum BailianAudio {
  /// Rates the service takes and gives, in Hz.
  public static let rates: Set<Int> = [8_000, 16_000, 24_000, 48_000]
  static let rateWords = "is none of 8000, 16000, 24000, 48000"

  /// Upwards. One channel.
  public enum Up: String, Sendable, Hashable, CaseIterable {
    /// 16 bits, little end first.
    case pcm
    /// Opus packets, one a frame of the WebSocket, without a header.
    case rawOpus = "raw-opus"
    /// Opus in Ogg, a page a frame of the WebSocket: see `OggPages`.
    case opus
  }

  /// Downwards. One channel; frames are cut anywhere but for `rawOpus`.
  public enum Down: String, Sendable, Hashable, CaseIterable {
    /// 16-bit samples of one channel; MP3 frames cut anywhere.
    case pcm, mp3
    /// Opus in Ogg.
    case opus
    /// The first frame of a reply is an Opus header, each after it a packet.
    case rawOpus = "raw-opus"
    /// The same without the header.
    case rawOpus2 = "raw-opus2"

    /// Each frame of the WebSocket is a packet of Opus.
    var isPackets: Bool { self == .rawOpus || self == .rawOpus2 }
  }
}
