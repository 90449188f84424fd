internal import MillraceRTCWire

/// A payload format of pictures that this library packs and unpacks.
enum VideoKind: Sendable, Equatable {
  /// RFC 6184, packetization mode 1.
  case h264
  /// RFC 7741.
  case vp8

  /// Nil: a format that is not known here.
  init?(_ codec: RTPCodec) {
    switch codec.name.uppercased() {
    case "H264": self = .h264
    case "VP8": self = .vp8
    default: return nil
    }
  }

  /// True for a payload that begins what a decoder can start with, parameter sets included. An IDR picture whose parameter sets come
  /// another way is not noticed before it is complete.
  func beginsKeyFrame(_ payload: Span<UInt8>) -> Bool {
    switch self {
    case .h264: Self.hasSequenceParameterSet(payload)
    case .vp8: Self.beginsKeyFrame(vp8: payload)
    }
  }

  private static func hasSequenceParameterSet(_ payload: Span<UInt8>) -> Bool {
    guard !payload.isEmpty else { return false }
    let type = H264NALUnitType(header: payload[0])
    guard type == .stapA else { return type == .sps }
    // Units of an aggregate: two bytes of size, then the unit (RFC 6184 section 5.7.1).
    var position = 1
    while position + 2 < payload.count {
      if H264NALUnitType(header: payload[position + 2]) == .sps { return true }
      position += 2 + Int(payload.uint16(at: position))
    }
    return false
  }

  private static func beginsKeyFrame(vp8 payload: Span<UInt8>) -> Bool {
    let head: (descriptor: VP8Descriptor, byteCount: Int)
    do throws(PayloadProblem) { head = try VP8Descriptor.parse(payload) } catch { return false }
    guard head.descriptor.startsFrame, head.byteCount < payload.count else { return false }
    // The lowest bit of a frame is 0 in key frames (RFC 6386 section 9.1).
    return payload[head.byteCount] & 1 == 0
  }
}

/// What a payload type stands for among pictures.
struct VideoFormat: Sendable {
  var kind: VideoKind
  /// The codec of the pictures, also for retransmissions.
  var codec: RTPCodec
  /// Lost packets may be requested.
  var hasNack: Bool
  /// A retransmission of this payload type; nil: pictures.
  var repeats: UInt8?

  /// The formats by payload type, 128 of them; nil: not agreed on.
  static func table(_ media: AgreedMedia) -> [VideoFormat?] {
    var table = [VideoFormat?](repeating: nil, count: 128)
    for (payloadType, codec) in media.receiveCodecs {
      guard let kind = VideoKind(codec) else { continue }
      table[Int(payloadType & 0x7F)] = VideoFormat(
        kind: kind, codec: codec, hasNack: codec.feedback.contains(.nack), repeats: nil)
    }
    for (payloadType, original) in media.receiveRTX {
      guard var format = table[Int(original & 0x7F)], format.repeats == nil else { continue }
      format.repeats = original & 0x7F
      table[Int(payloadType & 0x7F)] = format
    }
    return table
  }
}
