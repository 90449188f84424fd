/// The transport that the media of a bundle share, as one side describes it.
struct BundledTransport {
  var credentials: ICECredentials
  var fingerprints: [CertificateFingerprint]
  var isTrickling: Bool
  var candidates: [ICECandidate]
  var hasAllCandidates: Bool
}

extension SessionDescription {
  /// The places of the bundle's media, accepted ones first: the first of them carries the transport. Source: RFC 9143 section 7.1.
  ///
  /// The others follow because browsers with the policy max-bundle describe the transport only at their first medium, even where that is
  /// the one that is refused.
  private func bundled(_ accepted: [Int]) -> [Int] {
    let places = (bundle?.mids ?? []).compactMap { mid in media.firstIndex { $0.mid == mid } }
    let usable = Set(accepted)
    return places.filter { usable.contains($0) }
      + places.filter { !usable.contains($0) && !media[$0].isRejected }
  }

  /// - Throws: `noBundle`, `notBundled`.
  func checkBundle(_ accepted: [Int]) throws(NegotiationProblem) {
    guard let bundle else { throw .noBundle }
    let mids = Set(bundle.mids)
    for index in accepted {
      guard let mid = media[index].mid, mids.contains(mid) else {
        throw .notBundled(medium: name(index))
      }
      let medium = media[index]
      guard medium.kind == .application || !medium.profile.isRTP || medium.hasRTCPMux || medium.isRTCPMuxOnly
      else {
        throw .noRTCPMux(medium: name(index))
      }
    }
  }

  /// The setup of the bundle. Media beside the first may leave it out.
  func setup(_ accepted: [Int]) -> DTLSSetup? {
    bundled(accepted).lazy.compactMap { transport(of: media[$0]).setup }.first
  }

  /// The transport of the bundle. What the first medium does not say is taken from the next, for some peers write it at another.
  /// - Throws: `noICECredentials`, `noFingerprint`, `weakFingerprint`, `noBundle`.
  @discardableResult
  func checkTransport(_ accepted: [Int]) throws(NegotiationProblem) -> BundledTransport {
    let places = bundled(accepted)
    guard let first = places.first else { throw .noBundle }
    let transports = places.map { transport(of: media[$0]) }
    guard let credentials = transports.lazy.compactMap({ $0.credentials }).first else {
      throw .noICECredentials(medium: name(first))
    }
    guard let fingerprints = transports.lazy.map({ $0.fingerprints }).first(where: { !$0.isEmpty }) else {
      throw .noFingerprint(medium: name(first))
    }
    let strong = fingerprints.filter { $0.isStrong }
    guard !strong.isEmpty else { throw .weakFingerprint(medium: name(first)) }
    let usual = strong.filter { $0.algorithm == .sha256 }
    // Candidates of other credentials belong to a transport that the bundle does not use.
    let source =
      places.first { place in
        !media[place].candidates.isEmpty
          && transport(of: media[place]).credentials ?? credentials == credentials
      } ?? first
    return BundledTransport(
      credentials: credentials, fingerprints: usual + strong.filter { $0.algorithm != .sha256 },
      isTrickling: transports[0].iceOptions.contains("trickle"), candidates: media[source].candidates,
      hasAllCandidates: media[source].hasEndOfCandidates || media[first].hasEndOfCandidates
        || attributes.contains { $0.name == "end-of-candidates" })
  }
}
