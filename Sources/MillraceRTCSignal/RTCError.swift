public import MillraceDialog

/// The errors of WebRTC and RTP, under the vendor `rtc`: what every node of the family reports, whatever its form of signalling.
public enum RTCError: String, Sendable, Hashable, CaseIterable {
  /// The server did not answer in time.
  case signalTimeout
  /// The server refused, with a status that no other error has.
  case signalRefused
  /// The key was refused (401, 403).
  case authFailed
  /// There is nothing at the address (404, 410).
  case notFound
  /// Somebody else is there already (409).
  case duplicate
  /// The server cannot use the offer (400, 406, 415, 422).
  case badOffer
  /// What the server sent is no answer.
  case badAnswer
  /// No codec in common.
  case noCommonCodec
  /// No address of this machine could be used.
  case noCandidates
  /// No pair of addresses works.
  case iceFailed
  /// The handshake of DTLS failed.
  case dtlsFailed
  /// The certificate of the peer is not the one of its description.
  case fingerprintMismatch
  /// The peer does not answer any more.
  case consentLost
  /// Connected, and no media came.
  case mediaTimeout
  /// Data channels could not be used.
  case sctpFailed
  /// Larger than what may be sent.
  case tooLarge
  /// The server asks to try again later (429, 503).
  case tooManyRequests
  /// The network failed before an answer: no such host, refused, not trusted.
  case network
  /// The peer has ended the session.
  case ended
  /// A command that cannot be carried out.
  case command
  /// Anything else within this program or its libraries.
  case failed

  /// The vendor of the errors.
  public static let vendor = "rtc"

  /// What kind of failure it is.
  public var category: DialogError.Category {
    switch self {
    case .authFailed, .fingerprintMismatch: .auth
    case .tooManyRequests: .quota
    case .notFound, .duplicate, .badOffer, .noCommonCodec, .tooLarge, .command: .request
    case .failed, .noCandidates: .internal
    case .signalTimeout, .signalRefused, .badAnswer, .iceFailed, .dtlsFailed, .consentLost, .mediaTimeout,
      .sctpFailed, .network, .ended:
      .network
    }
  }

  /// What is done about it where nothing else is said.
  public var reaction: DialogError.Reaction {
    switch self {
    case .authFailed, .notFound, .badOffer, .badAnswer, .noCommonCodec, .noCandidates, .fingerprintMismatch,
      .signalRefused:
      .refuse
    case .tooLarge, .command: .continue
    case .ended: .ended
    case .tooManyRequests: .retry(afterMilliseconds: 1_000)
    case .signalTimeout, .duplicate, .iceFailed, .dtlsFailed, .consentLost, .mediaTimeout, .sctpFailed,
      .network, .failed:
      .reconnect
    }
  }

  /// The error as a message.
  /// - Parameters:
  ///   - text: what is wrong and the cure, in lower case; no secret.
  ///   - code: a status of HTTP, or a code of the server.
  ///   - reaction: nil: the usual one.
  public func error(
    _ text: String, code: Int? = nil, reaction: DialogError.Reaction? = nil,
    scope: DialogError.Scope = .connection
  ) -> DialogError {
    DialogError(
      vendor: Self.vendor, code: code, name: rawValue, category: category,
      reaction: reaction ?? self.reaction, scope: scope, text: text)
  }
}
