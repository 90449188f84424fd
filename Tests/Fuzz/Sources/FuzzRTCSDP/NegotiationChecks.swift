@testable import MillraceRTCWire

/// The media of this side.
private let sections: [MediaSection] = [
  .audio(
    codecs: [.opus, .pcmu, .telephoneEvent(rate: 48_000)], source: LocalSource(ssrc: 1, cname: "fuzzer")),
  .video(source: LocalSource(ssrc: 2, rtxSSRC: 3, cname: "fuzzer")),
  .data(),
]

private let offer = makeOffer()

private func transport(_ name: String) -> LocalTransport {
  guard let fingerprint = CertificateFingerprint(digest: (0..<32).map { UInt8($0) }) else {
    fatalError("32 bytes are a digest")
  }
  let credentials = ICECredentials(fragment: name, password: "\(name)-password-password")
  var transport = LocalTransport(credentials: credentials, fingerprint: fingerprint)
  transport.candidates = [
    ICECandidate(foundation: "1", priority: 2_130_706_431, address: "192.0.2.77", port: 5000)
  ]
  return transport
}

private func makeOffer() -> SessionDescription {
  do throws(NegotiationProblem) {
    return try SDPOffer(
      origin: SDPOrigin(sessionID: 7), transport: transport("ours"), sections: sections
    ).description()
  } catch {
    fatalError("no offer: \(error)")
  }
}

/// Takes a description of the peer for an offer, for an answer, and for one without ICE.
func checkNegotiation(_ remote: SessionDescription) {
  for role in [nil, .client, .server] as [NegotiatedSession.DTLSRole?] { checkAnswer(to: remote, role) }
  do throws(NegotiationProblem) {
    let session = try NegotiatedSession(local: offer, remote: remote, role: .offerer)
    check(session)
  } catch { checkText(error.description) }
  do throws(NegotiationProblem) {
    let streams = try remote.plainRTPStreams()
    for stream in streams { _ = (stream.effectiveRTCPPort, stream.crypto?.key) }
    checkText(SessionDescription(plainRTP: streams, origin: SDPOrigin(sessionID: 9)).text)
  } catch { checkText(error.description) }
}

/// What this side answers has the media of the offer, and is a session.
private func checkAnswer(to remote: SessionDescription, _ role: NegotiatedSession.DTLSRole?) {
  let answer: SDPAnswer
  do throws(NegotiationProblem) {
    answer = try SDPAnswer(
      to: remote, origin: SDPOrigin(sessionID: 8), transport: transport("peer"), sections: sections,
      keeping: role)
  } catch {
    return checkText(error.description)
  }
  for rejection in answer.rejections { checkText(rejection.reason.description) }
  if answer.description.media.map(\.kind) != remote.media.map(\.kind) { fatalError("other media") }
  do throws(NegotiationProblem) {
    let session = try NegotiatedSession(local: answer.description, remote: remote, role: .answerer)
    check(session)
  } catch {
    fatalError("the answer is no session: \(error): \(answer.description.text)")
  }
  do throws(SDPProblem) { _ = try SessionDescription(parsing: answer.description.text) } catch {
    fatalError("an answer of this side is refused: \(error)")
  }
}

private func check(_ session: NegotiatedSession) {
  if session.remoteFingerprints.isEmpty || !session.remoteFingerprints.allSatisfy({ $0.isStrong }) {
    fatalError("a peer without a strong fingerprint")
  }
  if !session.isAuthentic(session.remoteFingerprints[0]) { fatalError("its own fingerprint is refused") }
  if session.media.isEmpty && session.data == nil { fatalError("a session without media") }
  for medium in session.media {
    if medium.sendCodec == nil { fatalError("a medium without a codec") }
    _ = (medium.telephoneEvent, medium.rtxSource(of: 1), session.medium(medium.mid)?.index)
    for (payloadType, codec) in medium.receiveCodecs {
      if payloadType != codec.payloadType || payloadType > 127 { fatalError("\(payloadType) for \(codec)") }
    }
    for (repeated, original) in medium.receiveRTX where medium.receiveCodecs[original] == nil {
      fatalError("payload type \(repeated) repeats \(original), which is not there")
    }
  }
}
