/// An answer to a peer's offer: what both want. Source: RFC 3264 section 6, RFC 8829 section 5.3.1, RFC 9143 section 7.3.
///
/// The order of m-lines, their mids, payload types and extension numbers are those of the offer. A medium that cannot be accepted has the
/// port 0; `rejections` says why.
public struct SDPAnswer: Sendable, Hashable {
  /// A medium that was refused.
  public struct Rejection: Sendable, Hashable {
    /// Its place among the m-lines, from 0.
    public var index: Int
    /// Why.
    public var reason: NegotiationProblem
  }

  /// The description.
  public let description: SessionDescription
  /// The media that were refused.
  public let rejections: [Rejection]
  /// For each m-line, the place of the section of ours that it was answered with; nil: it was refused.
  public let places: [Int?]

  /// Makes an answer. A section of ours is for the medium with its mid, or for the next medium of its kind. `keeping` is the role that
  /// this side has in a handshake that was made before: a later answer must not change it (RFC 8842 section 5.5).
  /// - Throws: what is wrong with the offer as a whole; where no medium can be accepted, why the first was refused that this side wants.
  public init(
    to offer: SessionDescription, origin: SDPOrigin, transport: LocalTransport, sections: [MediaSection],
    keeping role: NegotiatedSession.DTLSRole? = nil
  ) throws(NegotiationProblem) {
    try offer.checkMIDs()
    guard let bundle = offer.bundle else { throw .noBundle }
    var description = SessionDescription(origin: origin)
    description.isICELite = transport.isLite
    description.attributes = [SDPAttribute("msid-semantic", " WMS")]
    var rejections: [Rejection] = []
    var unused = sections.indices.map { (place: $0, section: sections[$0]) }
    var places: [Int?] = []
    for (index, offered) in offer.media.enumerated() {
      let name = offer.name(index)
      do throws(NegotiationProblem) {
        guard !offered.isRejected else { throw .refusedByPeer(medium: name) }
        guard let own = Self.takeSection(for: offered, from: &unused) else {
          throw .notWanted(medium: name)
        }
        let answer = AnsweredMedium(offer: offer, offered: offered, section: own.section, name: name)
        description.media.append(try answer.medium(bundle))
        places.append(own.place)
      } catch {
        places.append(nil)
        rejections.append(Rejection(index: index, reason: error))
        description.media.append(Self.rejected(offered))
      }
    }
    let accepted = description.media.indices.filter { !description.media[$0].isRejected }
    guard !accepted.isEmpty else { throw Self.reason(rejections) }
    try offer.checkTransport(accepted)
    let setup = try offer.answeredSetup(accepted, role)
    for index in accepted { description.media[index].transport = transport.attributes(setup) }
    // The first accepted medium in the offer's order of the bundle carries the transport.
    let mids = Set(accepted.compactMap { description.media[$0].mid })
    var written: Set<String> = []
    let group = bundle.mids.filter { mids.contains($0) && written.insert($0).inserted }
    description.groups = [SDPGroup("BUNDLE", group)]
    if let tagged = description.media.firstIndex(where: { $0.mid == group.first }) {
      transport.writeCandidates(to: &description.media[tagged])
    }
    self.description = description
    self.rejections = rejections
    self.places = places
  }

  private static func takeSection(
    for offered: MediaDescription, from unused: inout [(place: Int, section: MediaSection)]
  ) -> (place: Int, section: MediaSection)? {
    let place =
      unused.firstIndex {
        $0.section.mid != nil && $0.section.mid == offered.mid && $0.section.kind == offered.kind
      } ?? unused.firstIndex { $0.section.mid == nil && $0.section.kind == offered.kind }
    return place.map { unused.remove(at: $0) }
  }

  /// The first reason that tells more than that a medium is not wanted.
  private static func reason(_ rejections: [Rejection]) -> NegotiationProblem {
    for rejection in rejections {
      switch rejection.reason {
      case .notWanted, .refusedByPeer: continue
      default: return rejection.reason
      }
    }
    return .everythingRejected
  }

  private static func rejected(_ offered: MediaDescription) -> MediaDescription {
    var medium = MediaDescription(offered.kind, port: 0, offered.profile, formats: offered.formats)
    medium.connection = MediaDescription.unspecified
    medium.mid = offered.mid
    medium.direction = .inactive
    return medium
  }
}

/// A medium of an answer, while it is made.
private struct AnsweredMedium {
  let offer: SessionDescription
  let offered: MediaDescription
  let section: MediaSection
  let name: String

  func medium(_ bundle: SDPGroup) throws(NegotiationProblem) -> MediaDescription {
    guard let mid = offered.mid, bundle.mids.contains(mid) else { throw .notBundled(medium: name) }
    var medium = MediaDescription(
      offered.kind, port: MediaDescription.discardPort, offered.profile)
    medium.connection = MediaDescription.unspecified
    medium.mid = mid
    medium.bandwidths = section.bandwidths
    if offered.kind == .application {
      try writeData(to: &medium)
    } else {
      try writeRTP(to: &medium)
    }
    return medium
  }

  private func writeData(to medium: inout MediaDescription) throws(NegotiationProblem) {
    guard offered.profile.isSCTP else {
      throw .unsupportedProfile(medium: name, profile: offered.profile.text)
    }
    medium.formats = offered.formats
    medium.sctpPort = section.sctpPort
    medium.maxMessageSize = section.maxMessageSize
    // The form of the drafts before RFC 8841: the format is the port, and 1024 the number of streams.
    if offered.attributes.contains(where: { $0.name == "sctpmap" }) {
      medium.formats = [String(section.sctpPort)]
      medium.attributes = [SDPAttribute("sctpmap", "\(section.sctpPort) webrtc-datachannel 1024")]
    }
  }

  private func writeRTP(to medium: inout MediaDescription) throws(NegotiationProblem) {
    guard offered.profile.isSRTP else {
      throw .unsupportedProfile(medium: name, profile: offered.profile.text)
    }
    guard offered.hasRTCPMux || offered.isRTCPMuxOnly else { throw .noRTCPMux(medium: name) }
    let codecs = commonCodecs()
    guard codecs.contains(where: { !$0.isAuxiliary }) else { throw .noCommonCodec(medium: name) }
    medium.codecs = codecs
    medium.rtcpPort = MediaDescription.discardPort
    medium.rtcpConnection = MediaDescription.unspecified
    medium.hasRTCPMux = true
    medium.hasReducedSizeRTCP = offered.hasReducedSizeRTCP
    medium.direction = offer.direction(of: offered).reversed.intersection(section.direction)
    medium.packetMilliseconds = section.packetMilliseconds
    medium.headerExtensions = commonExtensions()
    section.writeSource(to: &medium)
  }

  /// The offer's codecs that this side has too, in the offer's order. Of several that fit equally the first is taken.
  private func commonCodecs() -> [RTPCodec] {
    let theirs = offered.codecs
    var chosen: [Int: RTPCodec] = [:]
    for codec in section.codecs {
      let ranked = theirs.indices.filter { chosen[$0] == nil }.map { ($0, codec.match(theirs[$0])) }
      guard let best = ranked.max(by: { $0.1 < $1.1 || $0.1 == $1.1 && $0.0 > $1.0 }), best.1 != .none else {
        continue
      }
      chosen[best.0] = codec.answering(theirs[best.0])
    }
    return theirs.indices.compactMap { chosen[$0] }
  }

  /// Only those with numbers for heads of one byte: this side writes no others.
  private func commonExtensions() -> [RTPHeaderExtension] {
    var uris = Set(section.headerExtensions)
    return offer.headerExtensions(of: offered).compactMap { item in
      guard item.id <= RTPHeaderExtension.mostShortID, uris.remove(item.uri) != nil else { return nil }
      var item = item
      item.direction = item.direction?.reversed
      item.attributes = nil
      return item
    }
  }
}

extension SessionDescription {
  /// What an answer says to the setup of this offer; without one, the peer may be either. Active is recommended where there is a choice:
  /// it saves half a round trip. Source: RFC 8842 section 5.3.
  fileprivate func answeredSetup(
    _ accepted: [Int], _ role: NegotiatedSession.DTLSRole?
  ) throws(NegotiationProblem) -> DTLSSetup {
    switch setup(accepted) ?? .actpass {
    case .actpass: return role == .server ? .passive : .active
    case .passive: return .active
    case .active: return .passive
    case .holdconn: throw .invalidSetup(offer: .holdconn, answer: .active)
    }
  }
}
