internal import MillraceRTCWire

/// Candidates of this side that wait to be sent.
struct WaitingCandidates: Sendable {
  /// What is sent at once.
  struct Batch {
    var candidates: [ICECandidate]
    /// No others will follow.
    var isComplete: Bool
  }

  private var candidates: [ICECandidate] = []
  private var isComplete = false

  /// Adds a candidate; nil: no more follow. One that is not valid, or one too many, is left out: ICE finds a way without it, or none.
  mutating func add(_ candidate: String?) {
    guard let candidate else {
      isComplete = true
      return
    }
    guard candidates.count < WHIPClient.mostWaiting, let parsed = try? ICECandidate(parsing: candidate) else {
      return
    }
    candidates.append(parsed)
  }

  /// Takes everything; nil: nothing waits.
  mutating func take() -> Batch? {
    guard !candidates.isEmpty || isComplete else { return nil }
    defer { (candidates, isComplete) = ([], false) }
    return Batch(candidates: candidates, isComplete: isComplete)
  }
}

extension TrickleFragment {
  /// The fragment that restarts ICE as an offer says: its credentials and candidates.
  static func restart(_ offer: SessionDescription) -> TrickleFragment {
    let tagged = offer.bundle?.mids.first.flatMap { offer.medium($0) } ?? offer.media.first
    return TrickleFragment(
      of: offer, candidates: tagged?.candidates ?? [], hasEndOfCandidates: tagged?.hasEndOfCandidates ?? false
    )
  }
}
