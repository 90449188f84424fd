/// An address at which a peer may be reached: `a=candidate`. Source: RFC 8839 section 5.1, RFC 6544 section 4.5 for TCP.
public struct ICECandidate: Sendable, Hashable {
  /// How the address was found.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// An address of the host.
    case host
    /// An address of a NAT, seen by a STUN server.
    case serverReflexive = "srflx"
    /// An address of a NAT, seen by the peer.
    case peerReflexive = "prflx"
    /// An address of a TURN server.
    case relayed = "relay"
  }

  /// Who connects, with TCP.
  public enum TCPKind: String, Sendable, Hashable, CaseIterable {
    /// This side connects.
    case active
    /// This side accepts.
    case passive
    /// Simultaneous open.
    case simultaneous = "so"
  }

  /// What carries the packets.
  public enum Transport: Sendable, Hashable {
    /// UDP.
    case udp
    /// TCP; nil: without `tcptype`, as in drafts before RFC 6544.
    case tcp(TCPKind?)
    /// Another, in lower case.
    case other(String)
  }

  /// A pair behind the known fields, for example `generation 0`.
  public struct Extension: Sendable, Hashable {
    /// The name.
    public var name: String
    /// The value.
    public var value: String
  }

  /// Candidates of one foundation are checked one after the other: 1 to 32 characters.
  public var foundation: String
  /// 1 for RTP and for everything that shares its port, 2 for RTCP; 1 to 256.
  public var component: UInt16
  /// What carries the packets.
  public var transport: Transport
  /// 1 to 2³¹ − 1; the larger, the better.
  public var priority: UInt32
  /// An IPv4 or IPv6 address, or a name.
  public var address: String
  /// The port; 9 with active TCP.
  public var port: UInt16
  /// How the address was found.
  public var kind: Kind
  /// `raddr`: the address behind it.
  public var relatedAddress: String?
  /// `rport`: the port behind it.
  public var relatedPort: UInt16?
  /// Other pairs, `generation`, `ufrag` and `network-id` among them.
  public var extensions: [Extension] = []

  /// Creates a candidate for UDP.
  public init(
    foundation: String, component: UInt16 = 1, priority: UInt32, address: String, port: UInt16,
    kind: Kind = .host
  ) {
    self.foundation = foundation
    self.component = component
    transport = .udp
    self.priority = priority
    self.address = address
    self.port = port
    self.kind = kind
  }

  /// True for a name of multicast DNS, behind which browsers hide addresses. Source: RFC 8828, draft-ietf-mmusic-mdns-ice-candidates.
  public var isLocalName: Bool {
    let suffix = Array(".local".utf8)
    return address.utf8.count > suffix.count
      && String(decoding: address.utf8.suffix(suffix.count), as: UTF8.self).isEqualIgnoringCase(".local")
  }

  /// True for an IPv6 address.
  public var isIPv6: Bool { address.utf8.contains(UInt8(ascii: ":")) }

  /// True for UDP.
  public var isUDP: Bool { transport == .udp }

  /// The user fragment to which it belongs; nil: not said. Source: RFC 8839 section 5.4, as browsers write it.
  public var userFragment: String? { extensions.first { $0.name == "ufrag" }?.value }
}
