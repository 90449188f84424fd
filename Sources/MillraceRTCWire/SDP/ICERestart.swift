extension SessionDescription {
  /// A new offer that restarts ICE: the same m-lines, mids, payload types and certificate; new credentials, and a higher version.
  /// From an answer of ours too: `a=setup` becomes `actpass`. Source: RFC 8839 section 4.4.1.1, RFC 8842 section 5.5.
  public func restartingICE(
    _ credentials: ICECredentials, candidates: [ICECandidate] = [], hasAllCandidates: Bool = false
  ) -> SessionDescription {
    var offer = self
    offer.origin.version += offer.origin.version < .max ? 1 : 0
    offer.transport.credentials = nil
    if offer.transport.setup != nil { offer.transport.setup = .actpass }
    let tagged = bundle?.mids.first { medium($0).map { !$0.isRejected } ?? false }
    for index in offer.media.indices where !offer.media[index].isRejected {
      offer.media[index].transport.credentials = credentials
      if offer.media[index].transport.setup != nil { offer.media[index].transport.setup = .actpass }
      let isTagged = offer.media[index].mid == tagged
      offer.media[index].candidates = isTagged ? candidates : []
      offer.media[index].hasEndOfCandidates = isTagged && hasAllCandidates
    }
    return offer
  }

  /// True where the peer restarts ICE: credentials differ from those of its previous description. Source: RFC 8839 section 4.4.3.
  public func restartsICE(after previous: SessionDescription) -> Bool {
    zip(media, previous.media).contains { now, before in
      guard !now.isRejected, !before.isRejected, let credentials = transport(of: now).credentials else {
        return false
      }
      return credentials != previous.transport(of: before).credentials
    }
  }
}
