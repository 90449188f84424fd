/// What an offer and its answer agree on, seen from this side. Source: RFC 8829 sections 5.10 and 5.11.
public struct NegotiatedSession: Sendable, Hashable {
  /// Which description is ours.
  public enum Role: Sendable, Hashable {
    /// We made the offer.
    case offerer
    /// We made the answer.
    case answerer
  }

  /// Who begins the DTLS handshake.
  public enum DTLSRole: Sendable, Hashable {
    /// This side.
    case client
    /// The peer.
    case server
  }

  /// The media that both accepted, in the order of the m-lines; data channels are not among them.
  public let media: [NegotiatedMedia]
  /// The data channels; nil: none.
  public let data: NegotiatedData?
  /// The media that one side refused, by their mids or places.
  public let rejected: [String]
  /// The bundle's mids, the one with the transport first.
  public let bundle: [String]
  /// This side's role in the handshake.
  public let dtlsRole: DTLSRole
  /// Those of the peer's certificates, SHA-256 first. Its certificate must have one of them: `isAuthentic`.
  public let remoteFingerprints: [CertificateFingerprint]
  /// The peer's ICE credentials.
  public let remoteCredentials: ICECredentials
  /// The peer is ICE-lite.
  public let isRemoteLite: Bool
  /// This side chooses the pair. Source: RFC 8445 section 6.1.1.
  public let isICEControlling: Bool
  /// The peer takes candidates one by one.
  public let isRemoteTrickling: Bool
  /// The peer's candidates by now, those that cannot be used included: TCP and `.local`.
  public let remoteCandidates: [ICECandidate]
  /// No others will follow.
  public let hasAllRemoteCandidates: Bool

  /// Compares both descriptions.
  /// - Throws: the first reason why they make no session.
  public init(
    local: SessionDescription, remote: SessionDescription, role: Role
  ) throws(NegotiationProblem) {
    let (offer, answer) = role == .offerer ? (local, remote) : (remote, local)
    let accepted = try Self.accepted(offer, answer)
    rejected = offer.media.indices.filter { !accepted.contains($0) }.map { offer.name($0) }

    bundle = (answer.bundle?.mids ?? []).filter { mid in accepted.contains { offer.media[$0].mid == mid } }
    let transport = try remote.checkTransport(accepted)
    remoteCredentials = transport.credentials
    remoteFingerprints = transport.fingerprints
    isRemoteTrickling = transport.isTrickling
    let client = try Self.client(
      offer.setup(accepted) ?? .actpass, answer.setup(accepted))
    dtlsRole = client == role ? .client : .server
    isRemoteLite = remote.isICELite
    isICEControlling = remote.isICELite == local.isICELite ? role == .offerer : remote.isICELite
    remoteCandidates = transport.candidates
    hasAllRemoteCandidates = transport.hasAllCandidates

    var media: [NegotiatedMedia] = []
    var data: NegotiatedData?
    for index in accepted {
      if local.media[index].kind == .application {
        data = data ?? NegotiatedData(index, local.media[index], remote.media[index])
      } else {
        media.append(try NegotiatedMedia(index, local, remote, role))
      }
    }
    (self.media, self.data) = (media, data)
  }

  /// The medium with a mid.
  public func medium(_ mid: String) -> NegotiatedMedia? { media.first { $0.mid == mid } }

  /// True where the peer's certificate is one that it has announced. The fingerprint is the one that this side has made of the
  /// certificate of the handshake, with the algorithm of the first of `remoteFingerprints`. Each comparison takes constant time.
  public func isAuthentic(_ fingerprint: CertificateFingerprint) -> Bool {
    remoteFingerprints.reduce(false) { $0 || $1.matches(fingerprint) }
  }

  /// The places of the media that both accept.
  private static func accepted(
    _ offer: SessionDescription, _ answer: SessionDescription
  ) throws(NegotiationProblem) -> [Int] {
    try offer.checkMIDs()
    try answer.checkMIDs()
    guard offer.media.count == answer.media.count else {
      throw .mediaCountMismatch(offered: offer.media.count, answered: answer.media.count)
    }
    var accepted: [Int] = []
    for index in offer.media.indices {
      let (offered, answered) = (offer.media[index], answer.media[index])
      guard offered.kind == answered.kind else { throw .mediaKindMismatch(medium: offer.name(index)) }
      if let mid = answered.mid, mid != offered.mid {
        throw .midMismatch(offered: offer.name(index), answered: mid)
      }
      guard !offered.isRejected, answered.port != 0 else { continue }
      guard offered.profile.isCompatible(with: answered.profile) else {
        throw .mediaKindMismatch(medium: offer.name(index))
      }
      accepted.append(index)
    }
    guard !accepted.isEmpty else { throw .everythingRejected }
    try offer.checkBundle(accepted)
    try answer.checkBundle(accepted)
    return accepted
  }

  /// The side that begins the handshake.
  private static func client(
    _ offer: DTLSSetup, _ answer: DTLSSetup?
  ) throws(NegotiationProblem) -> Role {
    guard let answer else { throw .noSetup }
    switch (offer, answer) {
    case (_, .actpass): throw .actpassInAnswer
    case (.actpass, .active), (.passive, .active): return .answerer
    case (.actpass, .passive), (.active, .passive): return .offerer
    default: throw .invalidSetup(offer: offer, answer: answer)
    }
  }
}
