/// What a medium is.
public enum MediaKind: Sendable, Hashable {
  /// Sound.
  case audio
  /// Pictures.
  case video
  /// Data channels, among others.
  case application
  /// Another, as it stands in the text.
  case other(String)

  init(_ word: Substring) {
    self =
      switch word {
      case "audio": .audio
      case "video": .video
      case "application": .application
      default: .other(String(word))
      }
  }

  /// The word of the m-line.
  public var text: String {
    switch self {
    case .audio: "audio"
    case .video: "video"
    case .application: "application"
    case .other(let word): word
    }
  }
}

/// The protocols of a medium: `UDP/TLS/RTP/SAVPF` and others. Source: RFC 8866 section 8.2.2, RFC 5764 section 8, RFC 8841 section 4.
public struct TransportProfile: Sendable, Hashable {
  /// As it stands in the text.
  public var text: String

  /// Creates a profile.
  public init(_ text: String) { self.text = text }

  /// RTP. RFC 3551.
  public static let rtpAVP = TransportProfile("RTP/AVP")
  /// RTP with feedback at once. RFC 4585.
  public static let rtpAVPF = TransportProfile("RTP/AVPF")
  /// SRTP with keys of the description. RFC 3711.
  public static let rtpSAVP = TransportProfile("RTP/SAVP")
  /// SRTP with feedback at once. RFC 5124.
  public static let rtpSAVPF = TransportProfile("RTP/SAVPF")
  /// SRTP with keys of DTLS, and feedback at once.
  public static let dtlsSAVPF = TransportProfile("UDP/TLS/RTP/SAVPF")
  /// Data channels.
  public static let dtlsSCTP = TransportProfile("UDP/DTLS/SCTP")

  private var parts: [Substring] { text[...].parts(at: "/") }

  /// Packets are those of RTP.
  public var isRTP: Bool { parts.contains("RTP") }
  /// RTP is encrypted.
  public var isSRTP: Bool { isRTP && (parts.last == "SAVP" || parts.last == "SAVPF") }
  /// Receivers may report at once.
  public var hasFeedback: Bool { isRTP && (parts.last == "AVPF" || parts.last == "SAVPF") }
  /// Packets of SCTP within DTLS, in the form of RFC 8841 or of the drafts before it (`DTLS/SCTP`).
  public var isSCTP: Bool { parts.contains("DTLS") && parts.last == "SCTP" }
  /// Both of two descriptions may mean the same: WebRTC treats all encrypted ones alike (RFC 8829 section 5.1.2).
  func isCompatible(with other: TransportProfile) -> Bool {
    text == other.text || isSRTP && other.isSRTP || isSCTP && other.isSCTP
  }
}

/// A medium: an m-line and what belongs to it. Source: RFC 8866 section 5.14, and the RFCs named at the members.
public struct MediaDescription: Sendable, Hashable {
  /// What it is.
  public var kind: MediaKind
  /// Where it is sent; 9: the candidates say where; 0: refused, or part of a bundle.
  public var port: UInt16
  /// Consecutive ports.
  public var portCount = 1
  /// The protocols.
  public var profile: TransportProfile
  /// Payload types in the order of preference, or names, with data channels for example.
  public var formats: [String]
  /// `i=`.
  public var information: String?
  /// `c=`; nil: that of the session.
  public var connection: SDPConnection?
  /// `b=`.
  public var bandwidths: [SDPBandwidth] = []
  /// Attributes of ICE and DTLS; where they are missing, those of the session apply.
  public var transport = SDPTransport()
  /// `a=mid`. RFC 5888 section 4.
  public var mid: String?
  /// Nil: that of the session.
  public var direction: MediaDirection?
  /// `a=rtcp-mux`: RTCP on the port of RTP. RFC 5761 section 5.1.3.
  public var hasRTCPMux = false
  /// `a=rtcp-mux-only`: there is no other port. RFC 8858.
  public var isRTCPMuxOnly = false
  /// `a=rtcp-rsize`: RTCP without leading reports. RFC 5506 section 5.
  public var hasReducedSizeRTCP = false
  /// `a=bundle-only`: without a transport of its own. RFC 9143 section 6.
  public var isBundleOnly = false
  /// `a=rtcp`: the port. RFC 3605.
  public var rtcpPort: UInt16?
  /// `a=rtcp`: the address; nil: that of the medium.
  public var rtcpConnection: SDPConnection?
  /// `a=rtpmap`; the first of a payload type.
  public var rtpMaps: [RTPMap] = []
  /// `a=fmtp` by payload type; the first of each.
  public var formatParameters: [UInt8: FormatParameters] = [:]
  /// `a=rtcp-fb`.
  public var feedback: [RTCPFeedback] = []
  /// `a=extmap`.
  public var headerExtensions: [RTPHeaderExtension] = []
  /// `a=msid`: the ids of stream and track. RFC 8830.
  public var streamIDs: [String] = []
  /// `a=ssrc`.
  public var sources: [RTPSource] = []
  /// `a=ssrc-group`.
  public var sourceGroups: [RTPSourceGroup] = []
  /// `a=candidate`.
  public var candidates: [ICECandidate] = []
  /// `a=end-of-candidates`: no others will follow. RFC 8840 section 8.2.
  public var hasEndOfCandidates = false
  /// `a=sctp-port`, or that of the older `a=sctpmap`. RFC 8841 section 5.
  public var sctpPort: UInt16?
  /// `a=max-message-size` in bytes; 0: any. RFC 8841 section 6.
  public var maxMessageSize: UInt64?
  /// `a=ptime`: milliseconds of sound in a packet.
  public var packetMilliseconds: Int?
  /// `a=maxptime`.
  public var maxPacketMilliseconds: Int?
  /// `a=crypto`. RFC 4568.
  public var cryptos: [SDPCrypto] = []
  /// Attributes without a member.
  public var attributes: [SDPAttribute] = []
  /// Lines without a member.
  public var lines: [SDPLine] = []

  /// Creates a medium.
  public init(_ kind: MediaKind, port: UInt16, _ profile: TransportProfile, formats: [String] = []) {
    self.kind = kind
    self.port = port
    self.profile = profile
    self.formats = formats
  }

  /// True where it is refused. Source: RFC 3264 section 6; in offers, `bundle-only` has the port 0 too.
  public var isRejected: Bool { port == 0 && !isBundleOnly }
}
