/// A medium that both sides accepted.
public struct NegotiatedMedia: Sendable, Hashable {
  /// The numbers of header extensions in packets; nil: not agreed.
  public struct HeaderExtensions: Sendable, Hashable {
    /// `RTPHeaderExtension.mid`.
    public var mid: UInt8?
    /// `RTPHeaderExtension.audioLevel`.
    public var audioLevel: UInt8?
    /// `RTPHeaderExtension.absoluteSendTime`.
    public var absoluteSendTime: UInt8?
    /// `RTPHeaderExtension.transportCC`.
    public var transportCC: UInt8?
    /// The URIs of all that are agreed.
    public var uris: [UInt8: String] = [:]
  }

  /// Its place among the m-lines, from 0.
  public let index: Int
  /// Its id.
  public let mid: String
  /// What it is.
  public let kind: MediaKind
  /// Seen from this side.
  public let direction: MediaDirection
  /// The codecs that the peer receives, in the order of the answer, with its parameters and payload types; feedback is what both report.
  public let sendCodecs: [RTPCodec]
  /// The codecs that the peer may send, by payload type, with our parameters; telephone events are among them.
  public let receiveCodecs: [UInt8: RTPCodec]
  /// Payload types of retransmissions that the peer may send, and those that they repeat (`apt`).
  public let receiveRTX: [UInt8: UInt8]
  /// The header extensions.
  public let headerExtensions: HeaderExtensions
  /// The peer's sources.
  public let remoteSources: [RTPSource]
  /// The peer's groups of sources.
  public let remoteSourceGroups: [RTPSourceGroup]
  /// The peer takes RTCP without leading reports, and so do we.
  public let hasReducedSizeRTCP: Bool
  /// What the peer wants to receive at most, in bit/s; nil: not said.
  public let maxBitsPerSecond: UInt64?
  /// Milliseconds of sound in a packet that the peer wishes; nil: not said.
  public let packetMilliseconds: Int?

  /// The codec to send, the first that can carry the medium.
  public var sendCodec: RTPCodec? { sendCodecs.first { !$0.isAuxiliary } }

  /// The telephone events that go with the codec to send; nil: the peer takes none. Source: RFC 4733 section 2.1.
  public var telephoneEvent: RTPCodec? {
    let events = sendCodecs.filter { $0.name.isEqualIgnoringCase("telephone-event") }
    return events.first { $0.clockRate == sendCodec?.clockRate }
  }

  /// The source of retransmissions of a source of the peer; nil: none.
  public func rtxSource(of ssrc: UInt32) -> UInt32? {
    remoteSourceGroups.first { $0.semantics == "FID" && $0.ssrcs.count == 2 && $0.ssrcs[0] == ssrc }?.ssrcs[1]
  }

  init(
    _ index: Int, _ local: SessionDescription, _ remote: SessionDescription, _ role: NegotiatedSession.Role
  ) throws(NegotiationProblem) {
    let (ours, theirs) = (local.media[index], remote.media[index])
    self.index = index
    mid = ours.mid ?? theirs.mid ?? ""
    kind = ours.kind
    direction = local.direction(of: ours).intersection(remote.direction(of: theirs).reversed)
    let (offer, answer) = role == .offerer ? (ours, theirs) : (theirs, ours)
    let pairs = try Self.pairs(offer, answer, mid)
    let common = pairs.map { role == .offerer ? (local: $0.0, remote: $0.1) : (local: $0.1, remote: $0.0) }
    sendCodecs = common.map { Self.agreed($0.remote, $0.local) }
    guard sendCodecs.contains(where: { !$0.isAuxiliary }) else { throw .noCommonCodec(medium: mid) }
    let receivable = common.map { Self.agreed($0.local, $0.remote) }
    receiveCodecs = Dictionary(receivable.map { ($0.payloadType, $0) }) { first, _ in first }
    receiveRTX = Dictionary(
      receivable.compactMap { codec in codec.rtxPayloadType.map { ($0, codec.payloadType) } }
    ) { first, _ in first }
    headerExtensions = HeaderExtensions(
      local.headerExtensions(of: ours), remote.headerExtensions(of: theirs))
    remoteSources = theirs.sources
    remoteSourceGroups = theirs.sourceGroups
    hasReducedSizeRTCP = ours.hasReducedSizeRTCP && theirs.hasReducedSizeRTCP
    maxBitsPerSecond = Self.limit(theirs.bandwidths) ?? Self.limit(remote.bandwidths)
    packetMilliseconds = theirs.packetMilliseconds
  }

  /// TIAS says it more exactly than AS does (RFC 3890).
  private static func limit(_ list: [SDPBandwidth]) -> UInt64? {
    list.first { $0.kind == "TIAS" }?.bitsPerSecond ?? list.lazy.compactMap { $0.bitsPerSecond }.first
  }

  /// The codecs of the answer, each with that of the offer.
  private static func pairs(
    _ offer: MediaDescription, _ answer: MediaDescription, _ mid: String
  ) throws(NegotiationProblem) -> [(RTPCodec, RTPCodec)] {
    // By their numbers: a format may be written with a leading zero.
    let formats = Set(offer.formats.compactMap { $0[...].payloadType })
    for format in answer.formats {
      guard let payloadType = format[...].payloadType, !formats.contains(payloadType) else { continue }
      throw .payloadTypeNotOffered(medium: mid, payloadType: payloadType)
    }
    let offered = offer.codecs
    var pairs: [(RTPCodec, RTPCodec)] = []
    for codec in answer.codecs {
      guard let own = offered.first(where: { $0.payloadType == codec.payloadType }) else { continue }
      guard own.name.isEqualIgnoringCase(codec.name), own.clockRate == codec.clockRate else {
        throw .payloadTypeNotOffered(medium: mid, payloadType: codec.payloadType)
      }
      if own.match(codec) != .none { pairs.append((own, codec)) }
    }
    return pairs
  }

  /// A codec as the receiver describes it, with what both sides have of retransmissions and reports.
  private static func agreed(_ receiver: RTPCodec, _ sender: RTPCodec) -> RTPCodec {
    var codec = receiver
    if receiver.rtxPayloadType != sender.rtxPayloadType { codec.rtxPayloadType = nil }
    codec.feedback = receiver.feedback.filter { sender.feedback.contains($0) }
    return codec
  }
}

extension NegotiatedMedia.HeaderExtensions {
  init(_ ours: [RTPHeaderExtension], _ theirs: [RTPHeaderExtension]) {
    let numbers = Dictionary(theirs.map { ($0.uri, $0.id) }) { first, _ in first }
    for item in ours where item.id <= RTPHeaderExtension.mostShortID && numbers[item.uri] == item.id {
      let id = UInt8(item.id)
      guard uris[id] == nil else { continue }
      uris[id] = item.uri
      switch item.uri {
      case RTPHeaderExtension.mid: mid = id
      case RTPHeaderExtension.audioLevel: audioLevel = id
      case RTPHeaderExtension.absoluteSendTime: absoluteSendTime = id
      case RTPHeaderExtension.transportCC: transportCC = id
      default: break
      }
    }
  }
}

/// Data channels that both sides accepted.
public struct NegotiatedData: Sendable, Hashable {
  /// Its place among the m-lines, from 0.
  public let index: Int
  /// Its id.
  public let mid: String
  /// Our port within SCTP.
  public let localPort: UInt16
  /// The peer's port within SCTP.
  public let remotePort: UInt16
  /// The largest message that the peer receives, in bytes; 0: any. 65,536 where it says nothing. Source: RFC 8841 section 6.1.
  public let maxMessageSize: UInt64

  /// The port where nothing is said.
  private static let usualPort: UInt16 = 5000

  init(_ index: Int, _ ours: MediaDescription, _ theirs: MediaDescription) {
    self.index = index
    mid = ours.mid ?? theirs.mid ?? ""
    localPort = ours.sctpPort ?? Self.usualPort
    remotePort = theirs.sctpPort ?? Self.usualPort
    maxMessageSize = theirs.maxMessageSize ?? 65_536
  }
}
