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
/// YUV is that of JPEG files everywhere in a graph: BT.601, full range (JFIF). Sources convert what comes in otherwise. Of an
/// odd width or height the chroma planes have half, rounded up.
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
  /// Pictures in `denominator` seconds.
  public var numerator: Int
  /// Seconds that `numerator` pictures take; 1 for whole rates, 1001 for those of television.
  public var denominator: Int
  /// `FrameRate(25)`, or `FrameRate(30_000, over: 1_001)`. Both above 0; not reduced.
  public init(_ numerator: Int, over denominator: Int = 1) {
    self.numerator = numerator
    self.denominator = denominator
  }
  public var description: String { denominator == 1 ? "\(numerator)" : "\(numerator)/\(denominator)" }

  /// Nanoseconds of so many pictures, rounded down; computed from the count, so that nothing adds up. For counts that 100
  /// years of pictures reach.
  public func time(ofPictures count: Int64) -> Nanoseconds {
    let product = count.multipliedFullWidth(by: Int64(denominator) &* 1_000_000_000)
    return Int64(numerator).dividingFullWidth(product).quotient
  }
}

/// What flows over a link. Decided for every link before anything starts, and fixed while the graph runs.
public enum Format: Sendable, Hashable {
  /// Interleaved samples; rate in Hz.
  case pcm(rate: Int, channels: Int, sample: SampleType)
  /// One Opus packet a packet; the rate is the one positions and durations count in.
  case opus(rate: Int, channels: Int)
  /// A stretch of an MP3 stream, cut anywhere.
  case mp3
  /// A stretch of an Ogg stream with Opus in it, cut anywhere.
  case ogg
  /// One AAC access unit or ADTS frame a packet.
  case aac
  /// One raw picture a packet.
  case video(width: Int, height: Int, pixel: PixelType, rate: FrameRate)
  /// One JPEG picture a packet.
  case jpeg
  /// One PNG picture a packet.
  case png
  /// UTF-8 text.
  case text
  /// One JSON object in UTF-8 a packet: something that happened.
  case event

  /// The kinds of media, as a node's contract names them.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    case pcm, opus, mp3, ogg, aac, video, jpeg, png, text, event
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
    case .text: .text
    case .event: .event
    }
  }

  /// Samples a second, for audio.
  public var rate: Int? {
    switch self {
    case .pcm(let rate, _, _), .opus(let rate, _): rate
    default: nil
    }
  }

  /// Channels, for audio.
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
  /// Nanoseconds of so many milliseconds.
  @inlinable public static func milliseconds(_ count: Int64) -> Nanoseconds { count &* 1_000_000 }

  /// Nanoseconds of so many samples, rounded down. Exact for every position a recording of 100 years can reach.
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
