import Testing

@testable import MillraceRTCWire

@Suite("Descriptions of plain RTP")
struct PlainRTPTests {
  @Test("a description for FFmpeg has address, port and codec")
  func write() throws {
    var audio = PlainRTPStream(.audio, address: "127.0.0.1", port: 5004, codecs: [.opus(payloadType: 97)])
    audio.codecs[0].feedback = []
    let video = PlainRTPStream(.video, address: "::1", port: 5006, codecs: [.vp8(payloadType: 98, rtx: nil)])
    audio.packetMilliseconds = 20
    let description = SessionDescription(
      plainRTP: [audio, video], origin: SDPOrigin(sessionID: 3), name: "Talk")
    let head = SDPSamples.wire(
      """
      v=0
      o=- 3 1 IN IP4 127.0.0.1
      s=Talk
      c=IN IP4 127.0.0.1
      t=0 0
      m=audio 5004 RTP/AVP 97
      a=rtpmap:97 opus/48000/2
      a=fmtp:97 minptime=10;useinbandfec=1
      a=ptime:20
      m=video 5006 RTP/AVP 98
      c=IN IP6 ::1
      """)
    #expect(description.text.hasPrefix(head))
    #expect(try SessionDescription(parsing: description.text).plainRTPStreams() == [audio, video])
  }

  @Test("a file of FFmpeg is read into codecs and addresses")
  func ffmpeg() throws {
    let streams = try SDPSamples.parsed(SDPSamples.ffmpeg).plainRTPStreams()
    #expect(streams.map { $0.kind } == [.video, .audio] && streams.map { $0.port } == [5006, 5004])
    #expect(streams.map { $0.address } == ["127.0.0.1", "127.0.0.1"])
    #expect(streams.map { $0.effectiveRTCPPort } == [5007, 5005])
    #expect(streams[0].codecs[0].parameters["profile-level-id"] == "42C01E")
    #expect(streams[1].codecs[0].match(.opus) == .exact && streams[1].codecs[0].payloadType == 97)
  }

  @Test("the port of RTCP is the next one, or what is said")
  func rtcpPort() {
    var stream = PlainRTPStream(.audio, address: "a", port: 65_535, codecs: [.pcmu])
    #expect(stream.effectiveRTCPPort == 65_535)
    stream.port = 5004
    #expect(stream.effectiveRTCPPort == 5005)
    stream.rtcpPort = 6000
    #expect(stream.effectiveRTCPPort == 6000)
    stream.hasRTCPMux = true
    #expect(stream.effectiveRTCPPort == 5004)
  }

  @Test("SRTP has its key in the description")
  func key() throws {
    var stream = PlainRTPStream(.audio, address: "192.0.2.1", port: 5004, codecs: [.pcma])
    stream.profile = .rtpSAVP
    let key = (0..<30).map { UInt8($0) }
    stream.cryptos = [try #require(SDPCrypto(key: key))]
    stream.direction = .sendOnly
    let description = SessionDescription(plainRTP: [stream], origin: SDPOrigin(sessionID: 1))
    let read = try SessionDescription(parsing: description.text).plainRTPStreams()
    #expect(read == [stream] && read[0].crypto?.key == key)
  }

  @Test(
    "streams that cannot be received are refused with the reason",
    arguments: [
      ("c=IN IP4 192.0.2.1\r\n", "", .noAddress(medium: "1")),
      ("RTP/AVP", "UDP/TLS/RTP/SAVPF", .unsupportedProfile(medium: "1", profile: "UDP/TLS/RTP/SAVPF")),
      ("RTP/AVP", "RTP/SAVP", .noUsableKey(medium: "1")),
      ("RTP/AVP 0", "RTP/AVP 96", .noCommonCodec(medium: "1")),
      ("m=audio 5004", "m=audio 0", .noMedia),
    ] as [(String, String, NegotiationProblem)])
  func refused(old: String, new: String, problem: NegotiationProblem) throws {
    var stream = PlainRTPStream(.audio, address: "192.0.2.1", port: 5004, codecs: [.pcmu])
    stream.codecs[0].name = "PCMU"
    var plain = SessionDescription(plainRTP: [stream], origin: SDPOrigin(sessionID: 1))
    plain.media[0].rtpMaps = []
    let changed = try SDPTestParts.changed(plain, old, new)
    // The address of the origin stays.
    let reason = SDPTestParts.reason { () throws(NegotiationProblem) in _ = try changed.plainRTPStreams() }
    #expect(reason == problem)
  }
}
