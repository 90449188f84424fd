import Testing

@testable import MillraceRTCWire

@Suite("Descriptions as real peers write them")
struct SDPParsingTests {
  @Test("an offer of Chromium is read into typed members, without a note")
  func chromium() throws {
    let offer = try SDPSamples.parsed(SDPSamples.chromium)
    #expect(offer.notes.isEmpty)
    #expect(offer.origin.sessionID == "4611731400430051336" && offer.origin.version == 2)
    #expect(offer.bundle?.mids == ["0", "1", "2"])
    #expect(offer.media.map { $0.kind } == [.audio, .video, .application])
    #expect(offer.attributes.map { $0.name } == ["extmap-allow-mixed", "msid-semantic"])

    let audio = offer.media[0]
    #expect(audio.port == 54_609 && audio.profile == .dtlsSAVPF && audio.connection?.address == "203.0.113.4")
    #expect(audio.hasRTCPMux && audio.hasReducedSizeRTCP && audio.rtcpPort == 9)
    #expect(audio.codecs.map { $0.name }.first == "opus" && audio.codecs.count == 8)
    #expect(audio.codecs[0].parameters["useinbandfec"] == "1" && audio.codecs[0].feedback == [.transportCC])
    #expect(audio.headerExtensions[0].attributes == "vad=on")
    #expect(audio.candidates.count == 5)
    #expect(audio.candidates.map { $0.isUDP } == [true, false, true, true, true])
    #expect(audio.candidates.map { $0.isLocalName } == [false, false, false, true, false])
    #expect(audio.candidates.map { $0.isIPv6 } == [false, false, false, false, true])
    #expect(audio.sources.map { $0.cname } == ["xDrOBVVPnW8Qp9Gn"])

    let transport = offer.transport(of: audio)
    #expect(transport.credentials == ICECredentials(fragment: "EsAw", password: "P2uYro0UCOQ4zxjKXaWCBui1"))
    #expect(transport.fingerprints.map { $0.digest.count } == [32] && transport.setup == .actpass)

    let video = offer.media[1]
    #expect(video.codecs.first { $0.payloadType == 106 }?.rtxPayloadType == 109)
    #expect(video.codecs[0].feedback == [.remb, .transportCC, .fullIntra, .nack, .pictureLoss])
    #expect(video.sourceGroups == [RTPSourceGroup("FID", [4_196_226_540, 1_177_265_563])])
    #expect(offer.media[2].sctpPort == 5000 && offer.media[2].maxMessageSize == 262_144)
    #expect(offer.media[2].profile.isSCTP && offer.media[2].formats == ["webrtc-datachannel"])
  }

  @Test("what Firefox says once for the session holds for its media, and bundle-only is no refusal")
  func firefox() throws {
    let offer = try SDPSamples.parsed(SDPSamples.firefox)
    #expect(offer.notes.isEmpty && offer.transport.fingerprints.count == 1)
    #expect(offer.transport(of: offer.media[1]).fingerprints == offer.transport.fingerprints)
    #expect(offer.transport(of: offer.media[1]).iceOptions == ["trickle"])
    #expect(offer.media[1].isBundleOnly && !offer.media[1].isRejected)
    #expect(offer.direction(of: offer.media[1]) == .receiveOnly)
    #expect(offer.media[0].headerExtensions[1].direction == .receiveOnly)
    #expect(offer.media[1].codecs.first { $0.name == "VP8" }?.feedback == [.nack, .pictureLoss])
    #expect(offer.media[0].codecs[0].wantsStereo)
  }

  @Test("an offer of aiortc is read: three fingerprints, and the older form of the SCTP port")
  func aiortc() throws {
    let offer = try SDPSamples.parsed(SDPSamples.aiortc)
    #expect(offer.media[0].transport.fingerprints.map { $0.algorithm } == [.sha256, .sha384, .sha512])
    #expect(offer.media[0].hasEndOfCandidates && offer.media[0].candidates.count == 2)
    #expect(offer.media[0].candidates[1].relatedPort == 52_117)
    #expect(offer.media[1].profile.isSCTP && offer.media[1].sctpPort == 5000)
  }

  @Test("an answer of Janus is read: ICE-lite, and the fingerprint of the session")
  func janus() throws {
    let answer = try SDPSamples.parsed(SDPSamples.janus)
    #expect(answer.isICELite && answer.media[0].transport.fingerprints.isEmpty)
    #expect(answer.transport(of: answer.media[0]).fingerprints.count == 1)
    #expect(answer.media[0].candidates.map { $0.isIPv6 } == [false, true])
  }

  @Test(
    "what was read and is written again says the same, with CRLF",
    arguments: [
      SDPSamples.chromium, SDPSamples.firefox, SDPSamples.aiortc, SDPSamples.janus, SDPSamples.ffmpeg,
    ])
  func roundTrip(sample: String) throws {
    let first = try SDPSamples.parsed(sample)
    let second = try SessionDescription(parsing: first.text)
    #expect(first == second)
    // No line is lost or added; only their order may differ.
    let lines = SDPSamples.wire(sample).utf8.split(separator: 10).map { String(Substring($0)) }.sorted()
    let written = first.text.utf8.split(separator: 10).map { String(Substring($0)) }.sorted()
    #expect(written.allSatisfy { $0.utf8.last == 13 })
    let tidy = { (line: String) in line.replacing("; ", with: ";").replacing("G722/8000/1", with: "G722/8000")
    }
    #expect(Set(written.map(tidy)) == Set(lines.map(tidy)))
  }

  @Test("lines may end in LF, blank lines and spaces at the end have no effect")
  func lineEnds() throws {
    let text = "v=0\no=- 1 1 IN IP4 127.0.0.1\ns=-\nt=0 0\n\nm=audio 9 RTP/AVP 0 \na=mid:x \n\n"
    let description = try SessionDescription(parsing: text)
    #expect(description.media[0].formats == ["0"] && description.media[0].mid == "x")
  }

  @Test("lines and attributes without a member are kept where they stood")
  func unknown() throws {
    let text = SDPSamples.wire(
      """
      v=0
      o=- 1 1 IN IP6 ::1
      s=Talk
      i=About it
      u=https://example.com
      e=a@example.com
      c=IN IP4 224.2.36.42/127
      b=CT:1000
      t=1 2
      r=7d 1h 0 25h
      k=prompt
      a=recvonly
      a=x-session:1:2
      m=audio 49170/2 RTP/AVP 0
      i=Title
      a=x-flag
      m=x-thing 5 X/Y z
      """)
    let description = try SessionDescription(parsing: text)
    #expect(description.text == text)
    #expect(description.lines.count == 4 && description.connection?.suffix == "127")
    #expect(description.media[0].portCount == 2 && description.media[1].kind == .other("x-thing"))
    #expect(description.direction(of: description.media[0]) == .receiveOnly)
  }

  @Test("a value with CR or LF in it adds no line to what is written")
  func injection() throws {
    var description = SessionDescription(origin: SDPOrigin(sessionID: 1))
    description.name = "a\r\na=ice-lite\u{0}"
    description.attributes = [SDPAttribute("x", "1\nm=audio 9 RTP/AVP 0")]
    let read = try SessionDescription(parsing: description.text)
    #expect(read.media.isEmpty && !read.isICELite && read.name == "aa=ice-lite")
  }

  @Test("values of a medium hide those of the session")
  func inheritance() throws {
    let description = try SDPSamples.parsed(
      """
      v=0
      o=- 1 1 IN IP4 127.0.0.1
      s=-
      c=IN IP4 192.0.2.1
      t=0 0
      a=ice-ufrag:session
      a=ice-pwd:sessionsessionsessionsession
      a=setup:passive
      a=extmap:1 urn:a
      m=audio 9 RTP/AVP 0
      m=audio 9 RTP/AVP 0
      c=IN IP6 2001:db8::1
      a=ice-ufrag:medium
      a=ice-pwd:mediummediummediummedium
      a=setup:active
      a=extmap:2 urn:b
      """)
    let transports = description.media.map { description.transport(of: $0) }
    #expect(transports.map { $0.iceFragment } == ["session", "medium"])
    #expect(transports.map { $0.setup } == [.passive, .active])
    #expect(description.media.map { description.connection(of: $0)?.isIPv6 } == [false, true])
    #expect(description.media.map { description.headerExtensions(of: $0).count } == [1, 2])
  }

  @Test("half of the credentials at a medium is not completed by the session")
  func halfCredentials() {
    var session = SDPTransport()
    session.credentials = ICECredentials(fragment: "abcd", password: "p")
    var medium = SDPTransport()
    medium.iceFragment = "efgh"
    #expect(medium.inheriting(session).credentials == nil)
  }

  @Test("bandwidth, ptime and RTCP address have members")
  func numbers() throws {
    let description = try SDPSamples.parsed(
      """
      v=0
      o=- 1 1 IN IP4 127.0.0.1
      s=-
      t=0 0
      m=audio 5004 RTP/AVP 0
      b=AS:64
      b=TIAS:50000
      a=ptime:20
      a=maxptime:60
      a=rtcp:5010 IN IP4 192.0.2.9
      """)
    let medium = description.media[0]
    #expect(medium.bandwidths.map { $0.bitsPerSecond } == [64_000, 50_000])
    #expect(medium.packetMilliseconds == 20 && medium.maxPacketMilliseconds == 60)
    #expect(medium.rtcpPort == 5010 && medium.rtcpConnection?.address == "192.0.2.9")
  }
}
