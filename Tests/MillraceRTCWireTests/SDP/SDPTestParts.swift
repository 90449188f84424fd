import Testing

@testable import MillraceRTCWire

/// Parts from which tests make offers and answers.
enum SDPTestParts {
  static func transport(_ name: String = "ours") -> LocalTransport {
    let digest = (0..<32).map { UInt8($0) }
    guard let fingerprint = CertificateFingerprint(digest: digest) else {
      fatalError("32 bytes are a digest")
    }
    let credentials = ICECredentials(fragment: name, password: "\(name)-password-password-password")
    var transport = LocalTransport(credentials: credentials, fingerprint: fingerprint)
    transport.candidates = [
      ICECandidate(foundation: "1", priority: 2_130_706_431, address: "192.0.2.77", port: 5000)
    ]
    return transport
  }

  static func offer(_ sections: [MediaSection]) -> SDPOffer {
    SDPOffer(origin: SDPOrigin(sessionID: 7), transport: transport(), sections: sections)
  }

  static func answer(
    _ offer: SessionDescription, _ sections: [MediaSection], keeping role: NegotiatedSession.DTLSRole? = nil
  ) throws(NegotiationProblem) -> SDPAnswer {
    try SDPAnswer(
      to: offer, origin: SDPOrigin(sessionID: 8), transport: transport("peer"), sections: sections,
      keeping: role)
  }

  /// The text of an offer with a line changed in every place.
  static func changed(
    _ description: SessionDescription, _ old: String, _ new: String
  ) throws -> SessionDescription {
    let text = description.text
    try #require(text.contains(old))
    return try SessionDescription(parsing: text.replacing(old, with: new))
  }

  /// The reason why a call fails.
  static func reason(_ body: () throws(NegotiationProblem) -> Void) -> NegotiationProblem? {
    do throws(NegotiationProblem) { try body() } catch { return error }
    return nil
  }
}
