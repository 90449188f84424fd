internal import MillraceRTCWire

/// A codec of plain RTP as the parameter `codec` names it, and its payload types.
enum PlainCodec: String, CaseIterable, Sendable {
  case opus, pcmu, pcma, l16, h264, vp8

  /// Payload types that every session assigns by itself: RFC 3551 section 6.
  static let dynamic = 96...127
  /// The usual payload type of telephone events beside a telephone's codec, and the one where that is taken.
  private static let tones = (usual: 101, other: 100)

  var isVideo: Bool { self == .h264 || self == .vp8 }

  /// The payload type that RFC 3551 gives it; nil: none.
  func fixedPayloadType(rate: Int, channels: Int) -> Int? {
    switch self {
    case .pcmu: 0
    case .pcma: 8
    case .l16 where rate == 44_100: channels == 2 ? 10 : 11
    case .opus, .l16, .h264, .vp8: nil
    }
  }

  /// The codec in packets and descriptions.
  /// - Parameters:
  ///   - payloadType: nil: the usual one.
  ///   - rate: in Hz; only of `l16`, as are `channels`.
  ///   - isStereo: two channels of Opus are sent.
  ///   - hasFeedback: lost packets and key frames are requested (RFC 4585).
  func codec(
    payloadType: Int?, rate: Int, channels: Int, isStereo: Bool, hasFeedback: Bool
  ) -> RTPCodec {
    var codec: RTPCodec
    switch self {
    case .opus: codec = .opus(isStereo: isStereo)
    case .pcmu: codec = .pcmu
    case .pcma: codec = .pcma
    case .l16: codec = .l16(rate: rate, channels: channels)
    case .h264: codec = .h264(rtx: nil)
    case .vp8: codec = .vp8(rtx: nil)
    }
    if let payloadType { codec.payloadType = UInt8(clamping: payloadType) }
    codec.feedback = isVideo && hasFeedback ? [.nack, .pictureLoss, .fullIntra] : []
    return codec
  }

  /// Telephone events with the clock of a codec; nil: beside pictures there are none.
  func tones(beside codec: RTPCodec, payloadType: Int?) -> RTPCodec? {
    guard !isVideo else { return nil }
    let usual = Int(codec.payloadType) == Self.tones.usual ? Self.tones.other : Self.tones.usual
    return .telephoneEvent(rate: codec.clockRate, payloadType: UInt8(clamping: payloadType ?? usual))
  }
}
