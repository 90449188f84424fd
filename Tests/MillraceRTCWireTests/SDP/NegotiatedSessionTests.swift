import Testing

@testable import MillraceRTCWire

@Suite("What an offer and its answer agree on")
struct NegotiatedSessionTests {
  private static func session(
    _ local: SessionDescription, _ remote: SessionDescription, _ role: NegotiatedSession.Role = .offerer
  ) throws(NegotiationProblem) -> NegotiatedSession {
    try NegotiatedSession(local: local, remote: remote, role: role)
  }

  @Test("both sides see the same session from their ends")
  func bothSides() throws {
    let offer = try SDPTestParts.offer([
      .audio(source: LocalSource(ssrc: 1, cname: "a")), .video(.sendOnly), .data(),
    ])
    .description()
    let answer = try SDPTestParts.answer(
      offer, [.audio(source: LocalSource(ssrc: 2, cname: "b")), .video(), .data(maxMessageSize: 1000)]
    ).description
    let ours = try Self.session(offer, answer)
    let theirs = try Self.session(answer, offer, .answerer)
    #expect(ours.dtlsRole == .server && theirs.dtlsRole == .client)
    #expect(ours.isICEControlling && !theirs.isICEControlling)
    #expect(ours.remoteCredentials.fragment == "peer" && theirs.remoteCredentials.fragment == "ours")
    #expect(ours.media.map { $0.direction } == [.sendReceive, .sendOnly])
    #expect(theirs.media.map { $0.direction } == [.sendReceive, .receiveOnly])
    #expect(ours.media[0].sendCodec?.payloadType == 111 && theirs.media[0].sendCodec?.payloadType == 111)
    #expect(
      ours.media[0].remoteSources.map { $0.ssrc } == [2]
        && theirs.media[0].remoteSources.map { $0.ssrc } == [1])
    #expect(ours.data?.maxMessageSize == 1000 && theirs.data?.maxMessageSize == 262_144)
    #expect(ours.data?.remotePort == 5000 && ours.data?.mid == "2" && ours.data?.index == 2)
    #expect(ours.media[0].headerExtensions == theirs.media[0].headerExtensions)
    #expect(ours.media[0].headerExtensions.audioLevel == 1 && ours.media[0].headerExtensions.mid == 4)
    #expect(ours.media[1].receiveRTX == [103: 102, 97: 96] && ours.media[1].sendCodec?.rtxPayloadType == 103)
    #expect(ours.media[1].sendCodec?.feedback.contains(.pictureLoss) == true)
    #expect(ours.bundle == ["0", "1", "2"] && ours.rejected.isEmpty && ours.isRemoteTrickling)
    #expect(ours.medium("1")?.kind == .video && ours.medium("2") == nil)
  }

  @Test("an answer of Janus as ICE-lite makes us the controlling server of the handshake")
  func janus() throws {
    let offer = try SDPTestParts.offer([.audio(codecs: [.opus, .pcmu])]).description()
    let session = try Self.session(offer, try SDPSamples.parsed(SDPSamples.janus))
    #expect(session.isRemoteLite && session.isICEControlling && session.dtlsRole == .server)
    #expect(session.remoteFingerprints.count == 1 && session.hasAllRemoteCandidates)
    #expect(session.remoteCandidates.count == 2 && session.remoteCredentials.fragment == "Xh4k")
    #expect(session.media[0].receiveCodecs.keys.sorted() == [111])
    #expect(session.media[0].headerExtensions.uris.keys.sorted() == [1, 4])
    #expect(session.media[0].sendCodec?.feedback == [])
  }

  @Test("ICE-lite on our side makes a full peer the controlling one, in both roles")
  func lite() throws {
    var offer = try SDPTestParts.offer([.audio()]).description()
    offer.isICELite = true
    let answer = try SDPTestParts.answer(offer, [.audio()]).description
    #expect(try !Self.session(offer, answer).isICEControlling)
    #expect(try Self.session(answer, offer, .answerer).isICEControlling)
    var lite = answer
    lite.isICELite = true
    #expect(try Self.session(offer, lite).isICEControlling)
  }

  @Test(
    "offers of Chromium, Firefox and aiortc make sessions with what we answer",
    arguments: [
      (SDPSamples.chromium, 111, 5), (SDPSamples.firefox, 109, 0), (SDPSamples.aiortc, 96, 2),
    ] as [(String, UInt8, Int)])
  func browsers(sample: String, payloadType: UInt8, candidates: Int) throws {
    let offer = try SDPSamples.parsed(sample)
    let answer = try SDPTestParts.answer(offer, [.audio(), .video(), .data()]).description
    let session = try Self.session(answer, offer, .answerer)
    #expect(session.media[0].sendCodec?.payloadType == payloadType && session.dtlsRole == .client)
    #expect(
      session.remoteCandidates.count == candidates && session.remoteFingerprints.first?.algorithm == .sha256)
    #expect(session.media[0].sendCodec?.wantsStereo == (payloadType == 109))
    #expect(session.media[0].receiveCodecs[payloadType]?.wantsStereo == false)
  }

  @Test("the transport is that of the first accepted medium, or of another of the bundle where it has none")
  func tagged() throws {
    let offer = try SDPTestParts.offer([.audio(), .video()]).description()
    var answer = try SDPTestParts.answer(offer, [.audio(), .video()]).description
    answer.media[1].transport = SDPTransport()
    #expect(try Self.session(offer, answer).remoteCredentials.fragment == "peer")
    // A browser that bundles at all cost, and whose first medium we refuse.
    var theirs = offer
    theirs.media[1].transport = SDPTransport()
    let ours = try SDPTestParts.answer(theirs, [.video()]).description
    let session = try Self.session(ours, theirs, .answerer)
    #expect(session.remoteCredentials.fragment == "ours" && session.remoteCandidates.count == 1)
    #expect(session.rejected == ["0"] && session.bundle == ["1"])
  }

  @Test("candidates with other credentials belong to a transport that the bundle does not use")
  func foreignCandidates() throws {
    let offer = try SDPTestParts.offer([.audio(), .video()]).description()
    var answer = try SDPTestParts.answer(offer, [.audio(), .video()]).description
    answer.media[1].candidates = answer.media[0].candidates
    answer.media[0].candidates = []
    #expect(try Self.session(offer, answer).remoteCandidates.count == 1)
    answer.media[1].transport.iceFragment = "other"
    #expect(try Self.session(offer, answer).remoteCandidates.isEmpty)
  }

  @Test("telephone events go with the clock of the codec, and are received beside it")
  func telephoneEvents() throws {
    let codecs: [RTPCodec] = [.telephoneEvent(rate: 8000), .opus, .telephoneEvent(rate: 48_000)]
    let offer = try SDPTestParts.offer([.audio(codecs: codecs)]).description()
    let answer = try SDPTestParts.answer(offer, [.audio(codecs: codecs)]).description
    let medium = try Self.session(offer, answer).media[0]
    #expect(medium.sendCodec?.name == "opus" && medium.telephoneEvent?.payloadType == 110)
    #expect(medium.receiveCodecs[126]?.clockRate == 8000)
  }

  @Test("only a fingerprint of the peer is authentic")
  func authentic() throws {
    let offer = try SDPTestParts.offer([.audio()]).description()
    let session = try Self.session(offer, try SDPSamples.parsed(SDPSamples.janus))
    #expect(session.isAuthentic(session.remoteFingerprints[0]))
    #expect(!session.isAuthentic(SDPTestParts.transport().fingerprint))
  }

  @Test("the peer's retransmissions, limits and packet length are found")
  func details() throws {
    let offer = try SDPSamples.parsed(SDPSamples.chromium)
    var theirs = offer
    theirs.media[1].bandwidths = [SDPBandwidth("AS", 500), SDPBandwidth("TIAS", 450_000)]
    theirs.media[0].packetMilliseconds = 40
    let answer = try SDPTestParts.answer(theirs, [.audio(), .video()]).description
    let session = try Self.session(answer, theirs, .answerer)
    #expect(session.media[1].rtxSource(of: 4_196_226_540) == 1_177_265_563)
    #expect(session.media[1].rtxSource(of: 1_177_265_563) == nil)
    #expect(session.media[1].maxBitsPerSecond == 450_000 && session.media[0].packetMilliseconds == 40)
  }

  @Test("the limit of a medium is its own, and that of the session only where it has none")
  func limits() throws {
    var theirs = try SDPSamples.parsed(SDPSamples.chromium)
    theirs.bandwidths = [SDPBandwidth("TIAS", 2_000_000)]
    theirs.media[0].bandwidths = []
    theirs.media[1].bandwidths = [SDPBandwidth("AS", 300)]
    let answer = try SDPTestParts.answer(theirs, [.audio(), .video()]).description
    let session = try Self.session(answer, theirs, .answerer)
    #expect(session.media[0].maxBitsPerSecond == 2_000_000)
    #expect(try #require(session.media[1].maxBitsPerSecond) <= 300_000)
  }

  @Test(
    "an answer is compared with the offer that it claims to answer",
    arguments: [
      ("a=group:BUNDLE 0 1\r\n", "", .noBundle),
      ("a=group:BUNDLE 0 1", "a=group:BUNDLE 0", .notBundled(medium: "1")),
      ("a=rtcp-mux\r\n", "", .noRTCPMux(medium: "0")), ("a=fingerprint", "a=x", .noFingerprint(medium: "0")),
      ("a=ice-ufrag", "a=x", .noICECredentials(medium: "0")),
      ("a=ice-pwd", "a=x", .noICECredentials(medium: "0")),
      ("a=mid:1", "a=mid:0", .duplicateMID("0")),
      ("a=mid:1", "a=mid:7", .midMismatch(offered: "1", answered: "7")),
      ("m=video", "m=audio", .mediaKindMismatch(medium: "1")),
      ("UDP/TLS/RTP/SAVPF", "RTP/AVP", .mediaKindMismatch(medium: "0")),
      ("SAVPF 111\r\n", "SAVPF 111 77\r\n", .payloadTypeNotOffered(medium: "0", payloadType: 77)),
      ("opus/48000/2", "PCMU/8000", .payloadTypeNotOffered(medium: "0", payloadType: 111)),
      ("SAVPF 111\r\n", "SAVPF\r\n", .noCommonCodec(medium: "0")),
      ("a=setup:active", "a=setup:actpass", .actpassInAnswer),
      ("a=setup:active", "a=setup:holdconn", .invalidSetup(offer: .actpass, answer: .holdconn)),
      ("a=setup:active\r\n", "", .noSetup), ("m=audio 9", "m=audio 0", nil),
    ] as [(String, String, NegotiationProblem?)])
  func mismatch(old: String, new: String, problem: NegotiationProblem?) throws {
    let offer = try SDPTestParts.offer([.audio(), .video()]).description()
    let right = try SDPTestParts.answer(offer, [.audio(), .video()]).description
    let answer = try SDPTestParts.changed(right, old, new)
    let reason = SDPTestParts.reason { () throws(NegotiationProblem) in _ = try Self.session(offer, answer) }
    #expect(reason == problem)
  }

  @Test("a payload type is the same number with a leading zero")
  func leadingZero() throws {
    var offer = try SDPTestParts.offer([.audio()]).description()
    offer.media[0].formats = offer.media[0].formats.map { "0" + $0 }
    let answer = try SDPTestParts.answer(offer, [.audio()]).description
    #expect(try Self.session(answer, offer, .answerer).media.count == 1)
  }

  @Test("data channels need no mux of RTCP, whatever their protocol is called")
  func dataProfile() throws {
    var offer = try SDPTestParts.offer([.data()]).description()
    offer.media[0].profile = TransportProfile("RTP/DTLS/SCTP")
    let answer = try SDPTestParts.answer(offer, [.data()]).description
    #expect(try Self.session(answer, offer, .answerer).data != nil)
  }

  @Test("an answer with another number of media, or none that is accepted, is refused")
  func counts() throws {
    let offer = try SDPTestParts.offer([.audio(), .video()]).description()
    var answer = try SDPTestParts.answer(offer, [.audio(), .video()]).description
    for index in answer.media.indices { answer.media[index].port = 0 }
    #expect(
      SDPTestParts.reason { () throws(NegotiationProblem) in _ = try Self.session(offer, answer) }
        == .everythingRejected)
    answer.media.removeLast()
    #expect(
      SDPTestParts.reason { () throws(NegotiationProblem) in _ = try Self.session(offer, answer) }
        == .mediaCountMismatch(offered: 2, answered: 1))
  }

  @Test("both active or both passive begin no handshake", arguments: [DTLSSetup.active, .passive])
  func sameSetup(setup: DTLSSetup) throws {
    var made = SDPTestParts.offer([.audio()])
    made.setup = setup
    let offer = try made.description()
    var answer = try SDPTestParts.answer(offer, [.audio()]).description
    answer.media[0].transport.setup = setup
    let reason = SDPTestParts.reason { () throws(NegotiationProblem) in _ = try Self.session(offer, answer) }
    #expect(reason == .invalidSetup(offer: setup, answer: setup))
  }

  @Test("every refusal says with a message what is wrong, and names the medium")
  func texts() {
    #expect(
      NegotiationProblem.noRTCPMux(medium: "7").description
        == "the medium 7 has no a=rtcp-mux; RTCP on its own port is not supported")
    #expect(
      NegotiationProblem.payloadTypeNotOffered(medium: "0", payloadType: 77).description
        == "the answer has payload type 77 in the medium 0, which was not offered so")
    #expect(
      NegotiationProblem.actpassInAnswer.description
        == "the answer has a=setup:actpass; it must choose active or passive")
  }
}
