/// A codec as a medium names it.
public struct RTPCodec: Sendable, Hashable {
  /// The encoding, for example `opus`; its case has no meaning.
  public var name: String
  /// Ticks per second of the timestamp.
  public var clockRate: Int
  /// Channels of sound; 1 for pictures.
  public var channels: Int
  /// 0 to 127.
  public var payloadType: UInt8
  /// What the receiver wants.
  public var parameters: FormatParameters
  /// What the receiver reports.
  public var feedback: [RTCPFeedback.Kind]
  /// The payload type of its retransmissions; nil: none. Source: RFC 4588.
  public var rtxPayloadType: UInt8?

  /// Creates a codec.
  public init(
    _ name: String, payloadType: UInt8, clockRate: Int, channels: Int = 1, parameters: String = "",
    feedback: [RTCPFeedback.Kind] = []
  ) {
    self.name = name
    self.payloadType = payloadType
    self.clockRate = clockRate
    self.channels = channels
    self.parameters = FormatParameters(parameters)
    self.feedback = feedback
  }

  /// Opus with the payload type that browsers use.
  public static let opus = opus()

  /// Opus: always `opus/48000/2`, with in-band FEC; two channels are sent where `isStereo`. Source: RFC 7587 section 7.
  public static func opus(payloadType: UInt8 = 111, isStereo: Bool = false) -> RTPCodec {
    let stereo = isStereo ? ";stereo=1;sprop-stereo=1" : ""
    return RTPCodec(
      "opus", payloadType: payloadType, clockRate: 48_000, channels: 2,
      parameters: "minptime=10;useinbandfec=1\(stereo)", feedback: [.transportCC])
  }

  /// G.711, mu-law. Source: RFC 3551 section 6.
  public static let pcmu = RTPCodec("PCMU", payloadType: 0, clockRate: 8000)
  /// G.711, A-law. Source: RFC 3551 section 6.
  public static let pcma = RTPCodec("PCMA", payloadType: 8, clockRate: 8000)

  /// Samples of 16 bits. 44.1 kHz has the fixed types 10 (two channels) and 11 (one). Source: RFC 3551 sections 4.5.11 and 6.
  public static func l16(rate: Int, channels: Int, payloadType: UInt8 = 98) -> RTPCodec {
    let fixed: UInt8? = rate == 44_100 ? (channels == 2 ? 10 : channels == 1 ? 11 : nil) : nil
    return RTPCodec("L16", payloadType: fixed ?? payloadType, clockRate: rate, channels: channels)
  }

  /// H.264, constrained baseline at level 3.1, in mode 1, with retransmissions.
  public static let h264 = h264()

  /// H.264, constrained baseline at level 3.1, in mode 1. Source: RFC 6184 section 8.1, RFC 7742 section 6.2.
  public static func h264(payloadType: UInt8 = 102, rtx: UInt8? = 103) -> RTPCodec {
    var codec = RTPCodec(
      "H264", payloadType: payloadType, clockRate: 90_000,
      parameters: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
      feedback: videoFeedback)
    codec.rtxPayloadType = rtx
    return codec
  }

  /// VP8, with retransmissions.
  public static let vp8 = vp8()

  /// VP8. Source: RFC 7741.
  public static func vp8(payloadType: UInt8 = 96, rtx: UInt8? = 97) -> RTPCodec {
    var codec = RTPCodec(
      "VP8", payloadType: payloadType, clockRate: 90_000, feedback: videoFeedback)
    codec.rtxPayloadType = rtx
    return codec
  }

  /// Keys of a telephone, 0 to 15. Source: RFC 4733 section 7.1.1. The payload types are those of browsers: 110 at 48 kHz, 126 at 8 kHz.
  public static func telephoneEvent(rate: Int, payloadType: UInt8? = nil) -> RTPCodec {
    RTPCodec(
      "telephone-event", payloadType: payloadType ?? (rate == 48_000 ? 110 : 126), clockRate: rate,
      parameters: "0-15")
  }

  private static let videoFeedback: [RTCPFeedback.Kind] = [
    .remb, .transportCC, .fullIntra, .nack, .pictureLoss,
  ]

  /// True for what cannot carry a medium alone: retransmissions, redundancy, error correction, noise and telephone events.
  public var isAuxiliary: Bool {
    Self.auxiliary.contains { name.isEqualIgnoringCase($0) }
  }

  private static let auxiliary = ["rtx", "red", "ulpfec", "flexfec-03", "flexfec", "telephone-event", "CN"]

  /// True where the receiver of an Opus stream wants two channels. Source: RFC 7587 section 6.1.
  public var wantsStereo: Bool { parameters["stereo"] == "1" }
}
