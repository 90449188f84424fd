extension SessionDescription {
  /// Checks that a later offer keeps the m-lines of the session: each at its place, of its kind, and others behind them. Where one side has
  /// stopped or refused a medium, with port 0, the place is free. Source: RFC 3264 section 8, RFC 9429 section 5.2.2.
  /// - Parameters:
  ///   - local: this side's description that the offer follows.
  ///   - remote: that of the peer.
  /// - Throws: `mediaLeftOut`, `mediaMoved`.
  public func checkOrder(
    after local: SessionDescription, _ remote: SessionDescription
  ) throws(NegotiationProblem) {
    let places = remote.media.indices
    guard media.count >= places.count else {
      throw .mediaLeftOut(before: places.count, now: media.count)
    }
    // An answer may leave mids out.
    let mids = places.map { remote.media[$0].mid ?? local.media.at($0)?.mid }
    for index in places {
      let isFree = remote.media[index].isRejected || local.media.at(index)?.isRejected ?? false
      guard !isFree else { continue }
      let now = media[index]
      // By another mid it may still be the same medium, if no other one has it.
      guard now.kind == remote.media[index].kind, now.mid == mids[index] || !mids.contains(now.mid) else {
        throw .mediaMoved(medium: mids[index] ?? remote.name(index))
      }
    }
  }
}

extension [MediaDescription] {
  fileprivate func at(_ index: Int) -> MediaDescription? { indices.contains(index) ? self[index] : nil }
}
