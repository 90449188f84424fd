/// What the head of an Opus packet says (RFC 7587; RFC 6716 sections 3.1 to 3.4).
///
/// One RTP payload is one Opus packet. Its first byte, the TOC, and the lengths behind it are read; the sound is not. A packet that
/// breaks one of the rules of RFC 6716 section 3.4 is refused, because a decoder would refuse it too.
public struct OpusPayload: Sendable, Hashable {
  /// The clock of the RTP timestamps in Hz, whatever the rate of the sound (RFC 7587 section 4.1).
  public static let clockRate = 48_000
  /// The longest packet, 120 ms, in samples at 48 kHz.
  public static let maximumSamples = 5_760
  /// The largest frame in bytes (RFC 6716 section 3.2.1).
  static let maximumFrameBytes = 1_275
  /// Packets of at most so many bytes hold no sound.
  private static let maximumDTXBytes = 2

  /// Number of frames, 1 to 48.
  public let frames: Int
  /// Duration of a frame in samples at 48 kHz: 120 to 2,880.
  public let samplesPerFrame: Int
  /// Channels of the coded sound, 1 or 2. The decoder's output may have another number.
  public let channels: Int
  /// True for a packet of discontinuous transmission: the sender has nothing but silence (RFC 7587 section 3.1.3).
  public let isDTX: Bool

  /// Duration of the packet in samples at 48 kHz, at most 5,760.
  public var samples: Int { frames * samplesPerFrame }

  /// Duration of the packet in nanoseconds, at most 120,000,000.
  public var nanoseconds: Int64 { Int64(samples) * 1_000_000_000 / Int64(Self.clockRate) }

  /// Reads the head of a packet.
  /// - Throws: when it is malformed or longer than 120 ms.
  public init(parsing payload: Span<UInt8>) throws(PayloadProblem) {
    guard payload.count > 0 else { throw .truncated(.opus, bytes: 0, needed: 1) }
    let toc = payload[0]
    samplesPerFrame = Self.samples(configuration: Int(toc >> 3))
    channels = toc & 0x04 == 0 ? 1 : 2
    isDTX = payload.count <= Self.maximumDTXBytes
    switch toc & 0x03 {
    case 0:
      frames = 1
      try Self.check(frame: payload.count - 1)
    case 1:
      frames = 2
      guard payload.count % 2 == 1 else {
        throw .malformed(.opus, "two frames of equal size need an odd number of bytes in all")
      }
      try Self.check(frame: payload.count / 2)
    case 2:
      frames = 2
      try Self.checkSizes(payload, from: 1, to: payload.count, frames: 2)
    default:
      frames = try Self.checkMany(payload, samplesPerFrame)
    }
  }

  /// Duration of a frame in samples at 48 kHz (RFC 6716 table 2).
  private static func samples(configuration: Int) -> Int {
    switch configuration {
    // SILK: 10, 20, 40, 60 ms.
    case ..<12: configuration & 3 == 3 ? 2_880 : 480 << (configuration & 3)
    // Hybrid: 10, 20 ms.
    case ..<16: 480 << (configuration & 1)
    // CELT: 2.5, 5, 10, 20 ms.
    default: 120 << (configuration & 3)
    }
  }

  /// Checks a packet of any number of frames (code 3) and returns the number.
  private static func checkMany(
    _ payload: Span<UInt8>, _ samplesPerFrame: Int
  ) throws(PayloadProblem) -> Int {
    guard payload.count > 1 else { throw .truncated(.opus, bytes: payload.count, needed: 2) }
    let head = payload[1]
    let frames = Int(head & 0x3F)
    guard frames > 0 else { throw .malformed(.opus, "the number of frames is 0") }
    guard frames * samplesPerFrame <= maximumSamples else {
      throw .tooLong(samples: frames * samplesPerFrame)
    }
    var position = 2
    var padding = 0
    if head & 0x40 != 0 {
      // 255 stands for 254 bytes of padding, and for one more byte of its length.
      var value: UInt8 = 255
      while value == 255 {
        guard position < payload.count else {
          throw .truncated(.opus, bytes: payload.count, needed: position + 1)
        }
        value = payload[position]
        padding += min(Int(value), 254)
        position += 1
      }
    }
    let end = payload.count - padding
    guard end >= position else {
      throw .truncated(.opus, bytes: payload.count, needed: position + padding)
    }
    if head & 0x80 != 0 {
      try checkSizes(payload, from: position, to: end, frames: frames)
    } else {
      guard (end - position) % frames == 0 else {
        throw .malformed(.opus, "frames of one size do not fill it")
      }
      try check(frame: (end - position) / frames)
    }
    return frames
  }

  /// Checks frames whose sizes, but for the last, are in front of them.
  private static func checkSizes(
    _ payload: Span<UInt8>, from start: Int, to end: Int, frames: Int
  ) throws(PayloadProblem) {
    var (position, sum) = (start, 0)
    for _ in 1..<frames {
      guard position < end else { throw .truncated(.opus, bytes: end, needed: position + 1) }
      var size = Int(payload[position])
      position += 1
      if size >= 252 {
        guard position < end else { throw .truncated(.opus, bytes: end, needed: position + 1) }
        size += 4 * Int(payload[position])
        position += 1
      }
      sum += size
    }
    guard position + sum <= end else { throw .truncated(.opus, bytes: end, needed: position + sum) }
    try check(frame: end - position - sum)
  }

  private static func check(frame bytes: Int) throws(PayloadProblem) {
    guard bytes <= maximumFrameBytes else {
      throw .malformed(.opus, "a frame has more than 1275 bytes")
    }
  }
}
