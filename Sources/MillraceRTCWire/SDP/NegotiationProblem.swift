/// Why an offer and an answer make no session. Media are named by their `a=mid`, or by their place among the m-lines, from 1.
public enum NegotiationProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// There is no m-line.
  case noMedia
  /// There is no `a=group:BUNDLE`.
  case noBundle
  /// A medium is not in the bundle.
  case notBundled(medium: String)
  /// A medium has no `a=mid`.
  case noMID(medium: String)
  /// Two media have one `a=mid`.
  case duplicateMID(String)
  /// A medium has no `a=rtcp-mux`.
  case noRTCPMux(medium: String)
  /// The transport has no `a=fingerprint` of a known algorithm.
  case noFingerprint(medium: String)
  /// All fingerprints are weaker than SHA-256.
  case weakFingerprint(medium: String)
  /// The transport lacks `a=ice-ufrag` or `a=ice-pwd`.
  case noICECredentials(medium: String)
  /// No codec is known to both.
  case noCommonCodec(medium: String)
  /// The protocol of a medium is not supported.
  case unsupportedProfile(medium: String, profile: String)
  /// This side has no use for the medium.
  case notWanted(medium: String)
  /// The peer has refused the medium.
  case refusedByPeer(medium: String)
  /// No medium is left.
  case everythingRejected
  /// The answer has another number of m-lines.
  case mediaCountMismatch(offered: Int, answered: Int)
  /// An m-line of the answer is of another kind or protocol.
  case mediaKindMismatch(medium: String)
  /// An m-line of the answer has another `a=mid`.
  case midMismatch(offered: String, answered: String)
  /// The answer has a payload type that was not offered, or that stands for another codec.
  case payloadTypeNotOffered(medium: String, payloadType: UInt8)
  /// An answer with `a=setup:actpass`.
  case actpassInAnswer
  /// An answer without `a=setup`.
  case noSetup
  /// Both sides or none would begin the handshake.
  case invalidSetup(offer: DTLSSetup, answer: DTLSSetup)
  /// Two codecs of an offer have one payload type.
  case duplicatePayloadType(UInt8)
  /// More extensions than heads of one byte can number.
  case tooManyHeaderExtensions
  /// A medium says nowhere where it is sent.
  case noAddress(medium: String)
  /// A medium with keys in the description has none that can be used.
  case noUsableKey(medium: String)
  /// A later offer has fewer m-lines than the session.
  case mediaLeftOut(before: Int, now: Int)
  /// In a later offer the m-line of a medium is another medium's, or of another kind.
  case mediaMoved(medium: String)

  /// What is wrong, and the cure.
  public var description: String {
    switch self {
    case .noMedia: "the description has no m-line; offer at least one medium"
    case .noBundle: "the description has no BUNDLE group; all media must share one transport"
    case .notBundled(let medium): "the medium \(medium) is not in the BUNDLE group; add its mid there"
    case .noMID(let medium): "the medium \(medium) has no mid; add a=mid"
    case .duplicateMID(let mid): "two media have the mid \(mid); each must have its own"
    case .noRTCPMux(let medium):
      "the medium \(medium) has no a=rtcp-mux; RTCP on its own port is not supported"
    case .noFingerprint(let medium):
      "the medium \(medium) has no fingerprint, so the peer cannot be authenticated; add a=fingerprint:sha-256"
    case .weakFingerprint(let medium):
      "the medium \(medium) has only fingerprints weaker than SHA-256; add a=fingerprint:sha-256"
    case .noICECredentials(let medium):
      "the medium \(medium) has no ICE credentials; add a=ice-ufrag and a=ice-pwd"
    case .noCommonCodec(let medium): "no codec of the medium \(medium) is known to both sides"
    case .unsupportedProfile(let medium, let profile):
      "the protocol \(profile) of the medium \(medium) is not supported"
    case .notWanted(let medium): "the medium \(medium) is not wanted"
    case .refusedByPeer(let medium): "the peer refused the medium \(medium)"
    case .everythingRejected: "every medium was refused"
    case .mediaCountMismatch(let offered, let answered):
      "the offer has \(offered) m-lines and the answer \(answered); it answers another offer"
    case .mediaKindMismatch(let medium):
      "the medium \(medium) is of another kind or protocol in the answer; it answers another offer"
    case .midMismatch(let offered, let answered):
      "the medium \(offered) has the mid \(answered) in the answer; it answers another offer"
    case .payloadTypeNotOffered(let medium, let payloadType):
      "the answer has payload type \(payloadType) in the medium \(medium), which was not offered so"
    case .actpassInAnswer: "the answer has a=setup:actpass; it must choose active or passive"
    case .noSetup: "the answer has no a=setup; it must choose active or passive"
    case .invalidSetup(let offer, let answer):
      "the setup \(offer.rawValue) in the offer does not go with \(answer.rawValue) in the answer"
    case .duplicatePayloadType(let payloadType):
      "two codecs have the payload type \(payloadType); each needs its own"
    case .tooManyHeaderExtensions: "there are more than 14 header extensions; leave some out"
    case .noAddress(let medium): "the medium \(medium) has no address; add c=IN IP4 or c=IN IP6"
    case .noUsableKey(let medium):
      "the medium \(medium) has no a=crypto with a known suite and a key of its length"
    case .mediaLeftOut(let before, let now):
      "the offer has \(now) m-lines and the session \(before); keep those that are stopped, with port 0"
    case .mediaMoved(let medium):
      "the m-line of the medium \(medium) has become another one; keep the order, and add media at the end"
    }
  }
}
