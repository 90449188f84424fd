/// Tells apart what arrives at one UDP port (RFC 7983, section 7; RFC 5761, section 4).
public enum RTPDemultiplexer {
  /// The protocol of a datagram.
  public enum Kind: Sendable, Equatable, CaseIterable {
    /// STUN: the first byte is 0 to 3.
    case stun
    /// DTLS: the first byte is 20 to 63.
    case dtls
    /// Data of a TURN channel: the first byte is 64 to 79.
    case turnChannel
    /// RTP: the first byte is 128 to 191.
    case rtp
    /// RTCP: the first byte is 128 to 191, the second 192 to 223.
    case rtcp
    /// None of these, or too short to tell.
    case unknown
  }

  /// The protocol of a datagram by its first two bytes. Nothing else is checked.
  public static func kind(of datagram: Span<UInt8>) -> Kind {
    guard let first = datagram.isEmpty ? nil : datagram[0] else { return .unknown }
    switch first {
    case 0...3: return .stun
    case 20...63: return .dtls
    case 64...79: return .turnChannel
    case 128...191:
      guard datagram.count > 1 else { return .unknown }
      return (192...223).contains(datagram[1]) ? .rtcp : .rtp
    default: return .unknown
    }
  }
}
