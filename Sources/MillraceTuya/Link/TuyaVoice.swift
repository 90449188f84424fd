/// How the user's audio is sent: 16 kHz mono, as 16-bit PCM or as Opus packets of one size.
///
/// The cloud cuts a packet into Opus frames by their size alone, so that all frames have `bitRate` × `frame` ÷ 8,000 bytes. Source: the
/// vendor's recorder (48 kbit/s, 40 ms, 200 ms a packet) and its devices (16 kbit/s, 40 ms).
public struct TuyaVoice: Sendable, Hashable {
  /// The coding of a frame.
  public enum Coding: Sendable, Hashable {
    /// 16-bit PCM.
    case pcm
    /// Opus of a constant bit rate, in bit/s.
    case opus(bitRate: Int)
  }

  /// The coding.
  public var coding: Coding
  /// Milliseconds of a frame.
  public var frame: Int
  /// Frames in a packet; the last packet of a stream may have fewer.
  public var framesPerPacket: Int

  /// Creates a format.
  public init(_ coding: Coding, frame: Int = 40, framesPerPacket: Int = 1) {
    self.coding = coding
    self.frame = frame
    self.framesPerPacket = max(1, framesPerPacket)
  }

  /// The sample rate in Hz: speech recognition takes no other.
  public static let rate = 16_000

  /// Bytes of a frame.
  public var frameBytes: Int {
    switch coding {
    case .pcm: Self.rate * frame / 1_000 * 2
    case .opus(let bitRate): bitRate * frame / 8_000
    }
  }
}
