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
}

/// What the payload types stand for that were agreed on.
struct VideoFormats: Sendable {
  private static let unknown = UInt8.max

  private var list: [VideoFormat] = []
  /// Places in the list by payload type, 128 of them: a table of formats would take 10 KB for the few that there are.
  private var places = [UInt8](repeating: VideoFormats.unknown, count: 128)

  init(_ media: AgreedMedia) {
    for (payloadType, codec) in media.receiveCodecs {
      guard let kind = VideoKind(codec) else { continue }
      put(
        VideoFormat(kind: kind, codec: codec, hasNack: codec.feedback.contains(.nack), repeats: nil),
        payloadType)
    }
    for (payloadType, original) in media.receiveRTX {
      guard var format = self[original], format.repeats == nil else { continue }
      format.repeats = original & 0x7F
      put(format, payloadType)
    }
  }

  private mutating func put(_ format: VideoFormat, _ payloadType: UInt8) {
    guard list.count < Int(Self.unknown) else { return }
    places[Int(payloadType & 0x7F)] = UInt8(list.count)
    list.append(format)
  }

  /// Nil: not agreed on.
  subscript(payloadType: UInt8) -> VideoFormat? {
    let place = places[Int(payloadType & 0x7F)]
    return place == Self.unknown ? nil : list[Int(place)]
  }
}
