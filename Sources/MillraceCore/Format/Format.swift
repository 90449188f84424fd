/// How one audio sample is stored, in the machine's byte order.
public enum SampleType: String, Sendable, Hashable, CaseIterable {
  /// Signed 16-bit integer.
  case s16
  /// 32-bit float; full scale is -1 to 1.
  case f32

  /// Bytes of one sample.
  @inlinable public var byteCount: Int { self == .s16 ? 2 : 4 }
}

/// How the pixels of a raw picture are stored: rows from the top, without gaps between rows or planes.
///
/// YUV in a graph is always that of JPEG files: BT.601, full range (JFIF). Sources convert other input. With an odd width or
/// height, the chroma planes have half of it, rounded up.
public enum PixelType: String, Sendable, Hashable, CaseIterable {
  /// Planar YUV 4:2:0: all of Y, then U, then V.
  case i420
  /// Y plane, then interleaved UV, 4:2:0.
  case nv12
  /// Packed red, green, blue, 8 bits each.
  case rgb24
  /// Packed blue, green, red, unused, 8 bits each.
  case bgrx

  /// Bytes of one picture.
  public func byteCount(width: Int, height: Int) -> Int {
    switch self {
    case .i420, .nv12: width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2)
    case .rgb24: 3 * width * height
    case .bgrx: 4 * width * height
    }
  }
}

/// Pictures a second as an exact fraction.
public struct FrameRate: Sendable, Hashable, CustomStringConvertible {
  /// Number of pictures in `denominator` seconds.
  public var numerator: Int
  /// Seconds that `numerator` pictures take; 1 for whole rates, 1001 for NTSC rates.
  public var denominator: Int
  /// Creates a rate, such as `FrameRate(25)` or `FrameRate(30_000, over: 1_001)`. Both above 0; not reduced.
  public init(_ numerator: Int, over denominator: Int = 1) {
    self.numerator = numerator
    self.denominator = denominator
  }
  public var description: String { denominator == 1 ? "\(numerator)" : "\(numerator)/\(denominator)" }

  /// Duration of `count` pictures in nanoseconds, rounded down. It is computed from the count, so rounding errors do not accumulate.
  /// Valid for 100 years of pictures.
  public func time(ofPictures count: Int64) -> Nanoseconds {
    let product = count.multipliedFullWidth(by: Int64(denominator) &* 1_000_000_000)
    return Int64(numerator).dividingFullWidth(product).quotient
  }
}

/// The format of the media on a link. Resolved for every link before the graph starts, and fixed while it runs.
public enum Format: Sendable, Hashable {
  /// Interleaved samples; rate in Hz.
  case pcm(rate: Int, channels: Int, sample: SampleType)
  /// One Opus packet per packet; positions and durations count in samples at `rate`.
  case opus(rate: Int, channels: Int)
  /// A chunk of an MP3 stream, cut anywhere.
  case mp3
  /// A chunk of an Ogg Opus stream, cut anywhere.
  case ogg
  /// One AAC access unit or ADTS frame per packet.
  case aac
  /// One raw picture per packet.
  case video(width: Int, height: Int, pixel: PixelType, rate: FrameRate)
  /// One JPEG picture per packet.
  case jpeg
  /// One PNG picture per packet.
  case png
  /// One picture of an H.264 stream per packet: an access unit in the byte stream format (ITU-T H.264, Annex B), with the parameter sets in
  /// front of every key frame. No picture references a later one. A key frame (IDR) has the flag `key`; a packet that follows a loss has
  /// `discontinuity`. Positions count pictures. Width and height are in the stream, and may change at a key frame.
  case h264
  /// One picture of a VP8 stream per packet: a frame (RFC 6386). Flags, positions and sizes are as for `h264`.
  case vp8
  /// UTF-8 text.
  case text
  /// One event per packet: a JSON object in UTF-8.
  case event

  /// The kinds of media, as a node's contract names them.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Interleaved samples.
    case pcm
    /// Opus packets.
    case opus
    /// A stretch of an MP3 stream.
    case mp3
    /// A stretch of an Ogg stream with Opus in it.
    case ogg
    /// AAC access units or ADTS frames.
    case aac
    /// Raw pictures, one a packet.
    case video
    /// JPEG files, one a packet.
    case jpeg
    /// PNG files, one a packet.
    case png
    /// Pictures of an H.264 stream, one a packet.
    case h264
    /// Pictures of a VP8 stream, one a packet.
    case vp8
    /// UTF-8 text.
    case text
    /// Events: one JSON object in UTF-8 a packet.
    case event
  }

  /// The kind of media.
  public var kind: Kind {
    switch self {
    case .pcm: .pcm
    case .opus: .opus
    case .mp3: .mp3
    case .ogg: .ogg
    case .aac: .aac
    case .video: .video
    case .jpeg: .jpeg
    case .png: .png
    case .h264: .h264
    case .vp8: .vp8
    case .text: .text
    case .event: .event
    }
  }

  /// Sample rate in Hz, for audio.
  public var rate: Int? {
    switch self {
    case .pcm(let rate, _, _), .opus(let rate, _): rate
    default: nil
    }
  }

  /// Channel count, for audio.
  public var channels: Int? {
    switch self {
    case .pcm(_, let channels, _), .opus(_, let channels): channels
    default: nil
    }
  }

  /// How a sample is stored, for PCM.
  public var sample: SampleType? {
    if case .pcm(_, _, let sample) = self { sample } else { nil }
  }

  /// How the pixels are stored, for raw pictures.
  public var pixel: PixelType? {
    if case .video(_, _, let pixel, _) = self { pixel } else { nil }
  }

  /// Bytes of one sample of every channel, for PCM.
  public var frameBytes: Int? {
    if case .pcm(_, let channels, let sample) = self { channels * sample.byteCount } else { nil }
  }
}

extension Format: CustomStringConvertible {
  /// As errors, drawings and listings show it: `s16 48000 Hz 1 ch`, `opus 16000 Hz 1 ch`, `i420 1280x720 30 fps`.
  public var description: String {
    switch self {
    case .pcm(let rate, let channels, let sample): "\(sample) \(rate) Hz \(channels) ch"
    case .opus(let rate, let channels): "opus \(rate) Hz \(channels) ch"
    case .video(let width, let height, let pixel, let rate): "\(pixel) \(width)x\(height) \(rate) fps"
    default: kind.rawValue
    }
  }
}

/// Nanoseconds, the unit of every time inside a graph.
public typealias Nanoseconds = Int64

extension Nanoseconds {
  /// `count` milliseconds in nanoseconds.
  @inlinable public static func milliseconds(_ count: Int64) -> Nanoseconds { count &* 1_000_000 }

  /// Duration of `count` samples in nanoseconds, rounded down. Exact for any position in 100 years of audio.
  @inlinable public static func samples(_ count: Int64, rate: Int) -> Nanoseconds {
    let rate = Int64(rate)
    var whole = count / rate
    var rest = count % rate
    if rest < 0 {
      whole &-= 1
      rest &+= rate
    }
    return whole &* 1_000_000_000 &+ rest &* 1_000_000_000 / rate
  }
}
