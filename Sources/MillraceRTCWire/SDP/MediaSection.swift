/// The transport of this side, as it is written into offers and answers.
public struct LocalTransport: Sendable, Hashable {
  /// The ICE credentials.
  public var credentials: ICECredentials
  /// That of this side's certificate.
  public var fingerprint: CertificateFingerprint
  /// Candidates that are known by now.
  public var candidates: [ICECandidate] = []
  /// No others will follow.
  public var hasAllCandidates = false
  /// `a=ice-options`; `trickle`: candidates may follow one by one (RFC 8840 section 4.1).
  public var iceOptions = ["trickle"]
  /// This side is ICE-lite.
  public var isLite = false

  /// Creates a transport.
  public init(credentials: ICECredentials, fingerprint: CertificateFingerprint) {
    self.credentials = credentials
    self.fingerprint = fingerprint
  }
}

/// The source that this side sends in a medium.
public struct LocalSource: Sendable, Hashable {
  /// The number in packets.
  public var ssrc: UInt32
  /// That of retransmissions; nil: none.
  public var rtxSSRC: UInt32?
  /// The same for all media of a session.
  public var cname: String
  /// `a=msid`: the ids of stream and track with a space between; nil: `-` and the mid.
  public var streamID: String?

  /// Creates a source.
  public init(ssrc: UInt32, rtxSSRC: UInt32? = nil, cname: String, streamID: String? = nil) {
    self.ssrc = ssrc
    self.rtxSSRC = rtxSSRC
    self.cname = cname
    self.streamID = streamID
  }
}

/// A medium that this side wants or can do: for an offer what is asked for, for an answer what is accepted.
public struct MediaSection: Sendable, Hashable {
  /// What it is.
  public var kind: MediaKind
  /// The `a=mid`. Nil: in an offer its place from 0; in an answer the next one of its kind.
  public var mid: String?
  /// Seen from this side.
  public var direction: MediaDirection
  /// In the order of preference. Where one has `rtxPayloadType`, retransmissions are offered or accepted.
  public var codecs: [RTPCodec]
  /// The URIs.
  public var headerExtensions: [String]
  /// Written where this side sends.
  public var source: LocalSource?
  /// `b=`: what this side wants to receive at most.
  public var bandwidths: [SDPBandwidth] = []
  /// `a=ptime`.
  public var packetMilliseconds: Int?
  /// The port within SCTP; 5000 is what everybody uses.
  public var sctpPort: UInt16 = 5000
  /// The largest message of a data channel that this side receives, in bytes; 0: any.
  public var maxMessageSize: UInt64 = 262_144

  /// Creates a medium.
  public init(
    _ kind: MediaKind, _ direction: MediaDirection, codecs: [RTPCodec], headerExtensions: [String],
    source: LocalSource? = nil
  ) {
    self.kind = kind
    self.direction = direction
    self.codecs = codecs
    self.headerExtensions = headerExtensions
    self.source = source
  }

  /// Sound.
  public static func audio(
    _ direction: MediaDirection = .sendReceive, codecs: [RTPCodec] = [.opus], source: LocalSource? = nil
  ) -> MediaSection {
    MediaSection(
      .audio, direction, codecs: codecs,
      headerExtensions: [
        RTPHeaderExtension.audioLevel, RTPHeaderExtension.absoluteSendTime, RTPHeaderExtension.transportCC,
        RTPHeaderExtension.mid,
      ], source: source)
  }

  /// Pictures.
  public static func video(
    _ direction: MediaDirection = .sendReceive, codecs: [RTPCodec] = [.h264, .vp8], source: LocalSource? = nil
  ) -> MediaSection {
    MediaSection(
      .video, direction, codecs: codecs,
      headerExtensions: [
        RTPHeaderExtension.absoluteSendTime, RTPHeaderExtension.transportCC, RTPHeaderExtension.mid,
      ], source: source)
  }

  /// Data channels.
  public static func data(sctpPort: UInt16 = 5000, maxMessageSize: UInt64 = 262_144) -> MediaSection {
    var section = MediaSection(.application, .sendReceive, codecs: [], headerExtensions: [])
    section.sctpPort = sctpPort
    section.maxMessageSize = maxMessageSize
    return section
  }

  /// Adds the lines of this side's source where it sends.
  func writeSource(to medium: inout MediaDescription) {
    guard let source, medium.direction?.sends == true else { return }
    let streamID = source.streamID ?? "- \(medium.mid ?? "0")"
    medium.streamIDs = [streamID]
    medium.sources = [RTPSource(ssrc: source.ssrc, cname: source.cname, msid: streamID)]
    guard let rtx = source.rtxSSRC, medium.codecs.contains(where: { $0.rtxPayloadType != nil }) else {
      return
    }
    medium.sources.append(RTPSource(ssrc: rtx, cname: source.cname, msid: streamID))
    medium.sourceGroups = [RTPSourceGroup("FID", [source.ssrc, rtx])]
  }
}

extension LocalTransport {
  /// The attributes of each medium.
  func attributes(_ setup: DTLSSetup) -> SDPTransport {
    var transport = SDPTransport()
    transport.credentials = credentials
    transport.iceOptions = iceOptions
    transport.fingerprints = [fingerprint]
    transport.setup = setup
    return transport
  }

  /// Adds the candidates to the first medium of the bundle. Source: RFC 9143 section 7.1.2.
  func writeCandidates(to medium: inout MediaDescription) {
    medium.candidates = candidates
    medium.hasEndOfCandidates = hasAllCandidates
  }
}

extension MediaDescription {
  /// The port and address of a medium whose candidates say where it is sent. Source: RFC 8840 section 4.1.1.
  static let discardPort: UInt16 = 9
  static let unspecified = SDPConnection("0.0.0.0")
}
