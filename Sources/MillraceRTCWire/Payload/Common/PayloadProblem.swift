/// The RTP payload formats of this library.
public enum PayloadFormat: String, Sendable, Hashable, CustomStringConvertible {
  /// RFC 7587.
  case opus = "Opus"
  /// RFC 6184.
  case h264 = "H.264"
  /// RFC 7741.
  case vp8 = "VP8"
  /// RFC 4733.
  case telephoneEvent = "telephone-event"

  /// The name.
  public var description: String { rawValue }
}

/// Why a payload was refused, or why none could be written.
public enum PayloadProblem: Error, Sendable, Equatable, CustomStringConvertible {
  /// The payload ends before what it announces; at least `needed` bytes would have to be there.
  case truncated(PayloadFormat, bytes: Int, needed: Int)
  /// The payload breaks a rule of its format, which the text names.
  case malformed(PayloadFormat, String)
  /// An Opus packet of more than 120 ms.
  case tooLong(samples: Int)
  /// An H.264 packet or NAL unit of a type that has no place here.
  case unsupportedType(H264NALUnitType)
  /// The target has less room than a payload may need.
  case noRoom(bytes: Int, needed: Int)

  /// What is wrong and, where there is one, the cure.
  public var description: String {
    switch self {
    case .truncated(let format, let bytes, let needed):
      "the \(format) payload has \(bytes) bytes, at least \(needed) are needed"
    case .malformed(let format, let reason):
      "the \(format) payload is malformed: \(reason)"
    case .tooLong(let samples):
      "the Opus packet lasts \(samples) samples at 48 kHz, at most \(OpusPayload.maximumSamples) are allowed"
    case .unsupportedType(let type) where type.isInterleaved:
      "\(type) packets are not supported; negotiate packetization-mode=1"
    case .unsupportedType(let type):
      "an H.264 NAL unit of type \(type) has no place here"
    case .noRoom(let bytes, let needed):
      "the target has room for \(bytes) bytes, \(needed) are needed"
    }
  }
}
