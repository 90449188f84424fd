/// The format of the frames of a WAV file.
public struct WAVFormat: Sendable, Hashable {
  /// How one sample is stored, little-endian.
  public enum Encoding: String, Sendable, Hashable, CaseIterable {
    /// Unsigned 8-bit integer, silence at 128.
    case u8
    /// Signed 16-bit integer.
    case s16
    /// Signed 24-bit integer in three bytes.
    case s24
    /// Signed 32-bit integer.
    case s32
    /// 32-bit float, full scale 1.0.
    case f32
    /// 64-bit float, full scale 1.0.
    case f64

    /// Bytes of one sample.
    public var byteCount: Int {
      switch self {
      case .u8: 1
      case .s16: 2
      case .s24: 3
      case .s32, .f32: 4
      case .f64: 8
      }
    }

    /// Whether samples are floats.
    public var isFloat: Bool { self == .f32 || self == .f64 }
  }

  /// Frames per second, in Hz.
  public var sampleRate: Int
  /// Interleaved channels.
  public var channels: Int
  /// How one sample is stored.
  public var encoding: Encoding

  /// Makes a format.
  public init(sampleRate: Int, channels: Int, encoding: Encoding) {
    self.sampleRate = sampleRate
    self.channels = channels
    self.encoding = encoding
  }

  /// Bytes of one frame.
  public var frameByteCount: Int { channels * encoding.byteCount }

  /// Supported channel counts.
  public static let channelCounts = 1...64
  /// Supported sample rates in Hz.
  public static let sampleRates = 1...1_000_000
}
