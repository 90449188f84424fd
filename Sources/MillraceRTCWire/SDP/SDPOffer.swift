/// An offer: what this side wants. Source: RFC 8829 section 5.2.1, RFC 9143 section 7.2.
///
/// All media are in one bundle with one transport; candidates stand at the first medium. RTCP shares the port of RTP.
public struct SDPOffer: Sendable, Hashable {
  /// Who offers; a later offer of the session has a higher version.
  public var origin: SDPOrigin
  /// The transport of this side.
  public var transport: LocalTransport
  /// `actpass` lets the peer choose. Source: RFC 8842 section 5.2.
  public var setup = DTLSSetup.actpass
  /// The media, in the order of the m-lines.
  public var sections: [MediaSection]

  /// Creates an offer.
  public init(origin: SDPOrigin, transport: LocalTransport, sections: [MediaSection]) {
    self.origin = origin
    self.transport = transport
    self.sections = sections
  }

  /// The description.
  /// - Throws: `noMedia`, `duplicateMID`, `duplicatePayloadType`, `noCommonCodec` for a medium without codecs, `tooManyHeaderExtensions`.
  public func description() throws(NegotiationProblem) -> SessionDescription {
    guard !sections.isEmpty else { throw .noMedia }
    let ids = try extensionIDs()
    var description = SessionDescription(origin: origin)
    description.isICELite = transport.isLite
    description.attributes = [
      SDPAttribute("extmap-allow-mixed"), SDPAttribute("msid-semantic", " WMS"),
    ]
    for (index, section) in sections.enumerated() {
      description.media.append(try medium(section, section.mid ?? String(index), ids))
    }
    transport.writeCandidates(to: &description.media[0])
    let mids = description.media.compactMap { $0.mid }
    description.groups = [SDPGroup("BUNDLE", mids)]
    try description.checkMIDs()
    try checkPayloadTypes(description)
    return description
  }

  /// One number for each URI, the same in all media, as a bundle requires. Source: RFC 9143 section 16.1.
  private func extensionIDs() throws(NegotiationProblem) -> [String: UInt16] {
    var ids: [String: UInt16] = [:]
    for uri in sections.flatMap({ $0.headerExtensions }) where ids[uri] == nil {
      ids[uri] = UInt16(ids.count + 1)
    }
    guard ids.count <= Int(RTPHeaderExtension.mostShortID) else { throw .tooManyHeaderExtensions }
    return ids
  }

  private func medium(
    _ section: MediaSection, _ mid: String, _ ids: [String: UInt16]
  ) throws(NegotiationProblem) -> MediaDescription {
    let isData = section.kind == .application
    guard isData || section.codecs.contains(where: { !$0.isAuxiliary }) else {
      throw .noCommonCodec(medium: mid)
    }
    var medium = MediaDescription(
      section.kind, port: MediaDescription.discardPort, isData ? .dtlsSCTP : .dtlsSAVPF)
    medium.connection = MediaDescription.unspecified
    medium.mid = mid
    medium.transport = transport.attributes(setup)
    medium.bandwidths = section.bandwidths
    if isData {
      medium.formats = ["webrtc-datachannel"]
      medium.sctpPort = section.sctpPort
      medium.maxMessageSize = section.maxMessageSize
      return medium
    }
    medium.rtcpPort = MediaDescription.discardPort
    medium.rtcpConnection = MediaDescription.unspecified
    medium.hasRTCPMux = true
    medium.hasReducedSizeRTCP = true
    medium.direction = section.direction
    medium.codecs = section.codecs
    medium.packetMilliseconds = section.packetMilliseconds
    medium.headerExtensions = section.headerExtensions.compactMap { uri in
      ids[uri].map { RTPHeaderExtension(id: $0, uri: uri) }
    }
    section.writeSource(to: &medium)
    return medium
  }

  /// In a bundle a payload type stands for one codec. Source: RFC 9143 section 10.1.1.
  private func checkPayloadTypes(_ description: SessionDescription) throws(NegotiationProblem) {
    var codecs: [UInt8: RTPMap] = [:]
    for medium in description.media {
      var own: Set<UInt8> = []
      for map in medium.rtpMaps {
        let isNew = own.insert(map.payloadType).inserted
        guard isNew, codecs[map.payloadType].map({ $0 == map }) ?? true else {
          throw .duplicatePayloadType(map.payloadType)
        }
        codecs[map.payloadType] = map
      }
    }
  }
}

extension SessionDescription {
  /// How messages name the medium at a place.
  func name(_ index: Int) -> String { media[index].mid ?? "\(index + 1)" }

  /// - Throws: `noMedia`, `noMID`, `duplicateMID`. A refused medium needs none.
  func checkMIDs() throws(NegotiationProblem) {
    guard !media.isEmpty else { throw .noMedia }
    var mids: Set<String> = []
    for index in media.indices {
      guard let mid = media[index].mid else {
        guard media[index].isRejected else { throw .noMID(medium: name(index)) }
        continue
      }
      guard mids.insert(mid).inserted else { throw .duplicateMID(mid) }
    }
  }
}
