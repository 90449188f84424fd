/// What the bytes of one picture of an H.264 or VP8 stream tell without decoding it. Never reads beyond the given bytes, whatever they
/// contain. No heap; any thread.
package enum EncodedPicture {
  /// Bytes of the largest picture of a stream that the nodes of WebRTC carry, and that `video.encode` makes by default.
  package static let maxBytes = 1 << 20

  /// True for a picture at which a decoder can start: H.264 with an IDR slice, VP8 with a key frame. False for any other format.
  package static func isKey(_ bytes: Span<UInt8>, of kind: Format.Kind) -> Bool {
    switch kind {
    case .h264: hasIDR(bytes)
    case .vp8: isVP8Key(bytes)
    default: false
    }
  }

  /// ITU-T H.264, table 7-1: the types of NAL units that begin a picture's data, a slice (1), data partition A (2) or an IDR slice (5).
  private static func hasIDR(_ bytes: Span<UInt8>) -> Bool {
    var place = 0
    // Annex B: each NAL unit follows 00 00 01.
    while place + 3 < bytes.count {
      guard bytes[place + 2] <= 1 else {
        place += 3
        continue
      }
      guard bytes[place] == 0, bytes[place + 1] == 0, bytes[place + 2] == 1 else {
        place += 1
        continue
      }
      switch bytes[place + 3] & 31 {
      case 5: return true
      // All slices of a picture are of the same kind: what follows tells nothing more.
      case 1, 2: return false
      default: place += 4
      }
    }
    return false
  }

  /// RFC 6386, 9.1: the lowest bit of a key frame is 0, its head has ten bytes, and the start code 9D 01 2A.
  private static func isVP8Key(_ bytes: Span<UInt8>) -> Bool {
    guard bytes.count >= 10, bytes[0] & 1 == 0 else { return false }
    return (bytes[3], bytes[4], bytes[5]) == (0x9D, 0x01, 0x2A)
  }
}
