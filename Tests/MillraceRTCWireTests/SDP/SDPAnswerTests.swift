import Testing

@testable import MillraceRTCWire

@Suite("Answers")
struct SDPAnswerTests {
  private static let source = LocalSource(ssrc: 21, rtxSSRC: 22, cname: "me")

  @Test("an answer to Chromium keeps its order, mids, payload types and extension numbers")
  func chromium() throws {
    let offer = try SDPSamples.parsed(SDPSamples.chromium)
    let made = try SDPTestParts.answer(
      offer,
      [
        .video(source: Self.source), .data(),
        .audio(
          codecs: [.opus(payloadType: 96), .telephoneEvent(rate: 48_000, payloadType: 97)],
          source: Self.source),
      ])
    #expect(made.rejections.isEmpty)
    let answer = made.description
    #expect(
      answer.media.map { $0.header } == [
        "audio 9 UDP/TLS/RTP/SAVPF 111 110", "video 9 UDP/TLS/RTP/SAVPF 96 97 106 109",
        "application 9 UDP/DTLS/SCTP webrtc-datachannel",
      ])
    #expect(answer.media.map { $0.mid } == ["0", "1", "2"] && answer.bundle?.mids == ["0", "1", "2"])
    #expect(answer.media.map { $0.transport.setup } == [.active, .active, .active])
    #expect(answer.media[0].headerExtensions.map { $0.id } == [1, 2, 3, 4])
    #expect(answer.media[0].headerExtensions[0].attributes == nil)
    #expect(answer.media[1].headerExtensions.map { $0.id } == [2, 3, 4])
    #expect(answer.media[1].codecs[0].feedback == [.remb, .transportCC, .fullIntra, .nack, .pictureLoss])
    #expect(answer.media[1].sourceGroups == [RTPSourceGroup("FID", [21, 22])])
    #expect(answer.media[0].candidates.count == 1 && answer.media[1].candidates.isEmpty)
    #expect(answer.media.map { $0.hasRTCPMux } == [true, true, false])
    #expect(
      answer.media[0].direction == .sendReceive && answer.media[0].codecs[0].parameters["minptime"] == "10")
    #expect(try SessionDescription(parsing: answer.text) == answer)
  }

  @Test("constrained baseline is preferred to baseline, which does where nothing else is offered")
  func baseline() throws {
    let offer = try SDPSamples.parsed(SDPSamples.chromium)
    let only = try SDPTestParts.answer(offer, [.video(codecs: [.h264])]).description
    #expect(only.media[1].codecs.map { $0.payloadType } == [106])
    let without = try SDPSamples.parsed(SDPSamples.chromium.replacing("42e01f", with: "640c1f"))
    let near = try SDPTestParts.answer(without, [.video(codecs: [.h264])]).description
    #expect(near.media[1].codecs.map { $0.payloadType } == [102])
    #expect(near.media[1].codecs[0].parameters["profile-level-id"] == "42001f")
  }

  @Test("media that this side does not want have the port 0, keep their mid, and leave the bundle")
  func rejected() throws {
    let offer = try SDPSamples.parsed(SDPSamples.chromium)
    let made = try SDPTestParts.answer(offer, [.audio()])
    #expect(made.rejections.map { $0.index } == [1, 2])
    #expect(made.rejections.map { $0.reason } == [.notWanted(medium: "1"), .notWanted(medium: "2")])
    let answer = made.description
    #expect(answer.media.map { $0.port } == [9, 0, 0] && answer.media.map { $0.mid } == ["0", "1", "2"])
    #expect(answer.media[1].formats == offer.media[1].formats && answer.bundle?.mids == ["0"])
    #expect(answer.media[1].transport == SDPTransport())
  }

  @Test("where the first medium is refused, the next carries the candidates")
  func tagged() throws {
    let answer = try SDPTestParts.answer(try SDPSamples.parsed(SDPSamples.chromium), [.data()]).description
    #expect(answer.bundle?.mids == ["2"] && answer.media[2].candidates.count == 1)
    #expect(answer.media[0].candidates.isEmpty)
  }

  @Test(
    "the direction is that of the offer, reversed, as far as this side wants it",
    arguments: [
      (.sendReceive, .sendReceive, .sendReceive), (.sendOnly, .sendReceive, .receiveOnly),
      (.receiveOnly, .sendReceive, .sendOnly),
      (.receiveOnly, .receiveOnly, .inactive), (.sendReceive, .sendOnly, .sendOnly),
      (.inactive, .sendReceive, .inactive),
    ] as [(MediaDirection, MediaDirection, MediaDirection)])
  func direction(offered: MediaDirection, wanted: MediaDirection, answered: MediaDirection) throws {
    let offer = try SDPTestParts.offer([.audio(offered)]).description()
    let answer = try SDPTestParts.answer(offer, [.audio(wanted, source: Self.source)]).description
    #expect(answer.media[0].direction == answered)
    #expect(answer.media[0].sources.isEmpty == !answered.sends)
  }

  @Test(
    "the setup answers that of the offer, and a handshake made before keeps its roles",
    arguments: [
      (.actpass, nil, .active), (.active, nil, .passive), (.passive, nil, .active),
      (.actpass, .server, .passive),
      (.actpass, .client, .active),
    ] as [(DTLSSetup, NegotiatedSession.DTLSRole?, DTLSSetup)])
  func setup(offered: DTLSSetup, role: NegotiatedSession.DTLSRole?, answered: DTLSSetup) throws {
    var offer = SDPTestParts.offer([.audio()])
    offer.setup = offered
    let answer = try SDPTestParts.answer(try offer.description(), [.audio()], keeping: role).description
    #expect(answer.media[0].transport.setup == answered)
  }

  @Test("sections with a mid go to their medium, others to the next of their kind")
  func sections() throws {
    let offer = try SDPTestParts.offer([.audio(), .audio(), .audio()]).description()
    var third = MediaSection.audio(.sendOnly)
    third.mid = "2"
    let answer = try SDPTestParts.answer(offer, [third, .audio(.receiveOnly)])
    #expect(answer.description.media.map { $0.direction } == [.receiveOnly, .inactive, .sendOnly])
    #expect(answer.rejections.map { $0.index } == [1])
  }

  @Test("the form of the SCTP port is that of the offer")
  func olderForm() throws {
    let answer = try SDPTestParts.answer(try SDPSamples.parsed(SDPSamples.aiortc), [.audio(), .data()])
      .description
    #expect(answer.media[1].header == "application 9 DTLS/SCTP 5000")
    #expect(
      answer.text.contains("a=sctpmap:5000 webrtc-datachannel 1024") && !answer.text.contains("sctp-port"))
  }

  @Test("an extension whose number needs a head of two bytes is not accepted, nor one twice")
  func longExtensions() throws {
    var offer = try SDPTestParts.offer([.audio()]).description()
    offer.media[0].headerExtensions = [
      RTPHeaderExtension(id: 16, uri: RTPHeaderExtension.mid),
      RTPHeaderExtension(id: 5, uri: RTPHeaderExtension.audioLevel),
      RTPHeaderExtension(id: 6, uri: RTPHeaderExtension.audioLevel),
    ]
    let answer = try SDPTestParts.answer(offer, [.audio()]).description
    #expect(answer.media[0].headerExtensions.map { $0.id } == [5])
  }

  @Test("reduced-size RTCP and retransmissions are accepted only where they were offered")
  func notOffered() throws {
    var offer = try SDPTestParts.offer([.video(codecs: [.vp8(payloadType: 96, rtx: nil)])]).description()
    offer.media[0].hasReducedSizeRTCP = false
    let answer = try SDPTestParts.answer(offer, [.video(source: Self.source)]).description
    #expect(!answer.media[0].hasReducedSizeRTCP && answer.media[0].formats == ["96"])
    #expect(answer.media[0].sources.map { $0.ssrc } == [21])
  }

  @Test(
    "an offer that cannot be answered is refused with the reason",
    arguments: [
      ("a=group:BUNDLE 0\r\n", "", .noBundle), ("a=group:BUNDLE 0", "a=group:LS 0", .noBundle),
      ("a=group:BUNDLE 0", "a=group:BUNDLE 9", .notBundled(medium: "0")),
      ("a=mid:0\r\n", "", .noMID(medium: "1")),
      ("a=rtcp-mux\r\n", "", .noRTCPMux(medium: "0")),
      ("a=ice-pwd:ours-password-password-password\r\n", "", .noICECredentials(medium: "0")),
      ("a=ice-ufrag:ours\r\n", "", .noICECredentials(medium: "0")),
      ("a=fingerprint", "a=x", .noFingerprint(medium: "0")),
      ("a=setup:actpass", "a=setup:holdconn", .invalidSetup(offer: .holdconn, answer: .active)),
      ("opus/48000/2", "x/48000/2", .noCommonCodec(medium: "0")),
      ("m=audio 9", "m=audio 0", .everythingRejected),
      ("m=audio", "m=video", .everythingRejected),
      ("UDP/TLS/RTP/SAVPF", "RTP/AVP", .unsupportedProfile(medium: "0", profile: "RTP/AVP")),
    ] as [(String, String, NegotiationProblem)])
  func refused(old: String, new: String, problem: NegotiationProblem) throws {
    let offer = try SDPTestParts.changed(try SDPTestParts.offer([.audio()]).description(), old, new)
    let reason = SDPTestParts.reason { () throws(NegotiationProblem) in
      _ = try SDPTestParts.answer(offer, [.audio()])
    }
    #expect(reason == problem && !problem.description.isEmpty)
  }

  @Test("two media of one mid are refused, a medium without mux does not take the others with it")
  func single() throws {
    let offer = try SDPTestParts.offer([.audio(), .video()]).description()
    let twice = try SDPTestParts.changed(offer, "a=mid:1", "a=mid:0")
    let reason = SDPTestParts.reason { () throws(NegotiationProblem) in
      _ = try SDPTestParts.answer(twice, [.audio(), .video()])
    }
    #expect(reason == .duplicateMID("0"))
    var withoutMux = offer
    withoutMux.media[1].hasRTCPMux = false
    let made = try SDPTestParts.answer(withoutMux, [.audio(), .video()])
    #expect(
      made.rejections.map { $0.reason } == [.noRTCPMux(medium: "1")] && made.description.media[1].port == 0)
  }

  @Test("a fingerprint weaker than SHA-256 does not do alone, and does no harm beside a strong one")
  func weak() throws {
    var offer = try SDPTestParts.offer([.audio()]).description()
    let weak = try #require(CertificateFingerprint(.sha1, digest: Array(repeating: 1, count: 20)))
    offer.media[0].transport.fingerprints.insert(weak, at: 0)
    #expect(try SDPTestParts.answer(offer, [.audio()]).rejections.isEmpty)
    offer.media[0].transport.fingerprints = [weak]
    let reason = SDPTestParts.reason { () throws(NegotiationProblem) in
      _ = try SDPTestParts.answer(offer, [.audio()])
    }
    #expect(reason == .weakFingerprint(medium: "0"))
  }
}
