internal import MillraceDialog
internal import MillraceRTC
internal import MillraceRTCSignal
internal import MillraceRTCWire

extension RTCSessionFailure {
  /// The failure as an error of the family.
  /// - Parameters:
  ///   - isOfferer: this side made the offer, so that what does not fit is the answer.
  ///   - hasPair: ICE has found a way: what was too slow then is the handshake.
  ///   - hasCandidates: this side has found addresses of its own.
  func error(isOfferer: Bool, hasPair: Bool, hasCandidates: Bool) -> DialogError {
    switch self {
    case .negotiation(let problem): Self.error(problem, isOfferer: isOfferer)
    case .peer(let failure): Self.error(failure)
    case .timeout where hasPair:
      RTCError.dtlsFailed.error(
        "the handshake of DTLS did not end in time; raise \"connect\" on a slow network"
      )
    case .timeout where hasCandidates:
      RTCError.iceFailed.error(
        "no way to the peer was found in time; let UDP through, or name a TURN server in \"servers\"")
    case .timeout:
      RTCError.noCandidates.error(
        "no address of this machine can be used; check \"interfaces\", \"policy\" and \"servers\"")
    case .lost: RTCError.consentLost.error("the peer does not answer any more")
    case .library(.noAddress(let what)): RTCError.noCandidates.error(what)
    case .library(let problem): RTCError.failed.error(problem.description)
    }
  }

  /// Why an offer for a session that runs is refused, as an error of the family. The call continues.
  var refusal: DialogError {
    var error = self.error(isOfferer: false, hasPair: true, hasCandidates: true)
    if case .peer(.fingerprint) = self {
      error = RTCError.badOffer.error("the certificate is another one; that needs another session")
    }
    error.reaction = .continue
    error.text = "an offer of the other side is refused, and the session continues as before: \(error.text)"
    return error
  }

  private static func error(_ problem: NegotiationProblem, isOfferer: Bool) -> DialogError {
    switch problem {
    case .noCommonCodec, .everythingRejected, .refusedByPeer:
      RTCError.noCommonCodec.error("\(problem)")
    default:
      (isOfferer ? RTCError.badAnswer : RTCError.badOffer).error("\(problem)")
    }
  }

  private static func error(_ failure: PeerFailure) -> DialogError {
    switch failure {
    case .handshake(let reason): RTCError.dtlsFailed.error("the handshake of DTLS failed: \(reason)")
    case .fingerprint:
      RTCError.fingerprintMismatch.error(
        "the certificate of the peer is not the one that its description names; somebody may be between")
    case .noProfile: RTCError.dtlsFailed.error("the peer has no profile of SRTP that this side knows")
    case .library(let problem): RTCError.failed.error(problem.description)
    }
  }
}
