import Testing

@testable import MillraceRTCWire

@Suite("Codecs in descriptions")
struct RTPCodecTests {
  @Test("Opus is written as opus/48000/2, with repairs, and with stereo only on request")
  func opus() {
    #expect(RTPMap(RTPCodec.opus).text == "111 opus/48000/2")
    #expect(RTPCodec.opus.parameters["useinbandfec"] == "1" && RTPCodec.opus.parameters["minptime"] == "10")
    #expect(!RTPCodec.opus.wantsStereo && RTPCodec.opus.parameters["sprop-stereo"] == nil)
    #expect(RTPCodec.opus(isStereo: true).wantsStereo)
  }

  @Test("codecs have the payload types and rates of RFC 3551")
  func fixed() {
    #expect(RTPMap(RTPCodec.pcmu).text == "0 PCMU/8000" && RTPMap(RTPCodec.pcma).text == "8 PCMA/8000")
    #expect(RTPMap(RTPCodec.l16(rate: 44_100, channels: 2)).text == "10 L16/44100/2")
    #expect(RTPMap(RTPCodec.l16(rate: 44_100, channels: 1)).text == "11 L16/44100")
    #expect(RTPMap(RTPCodec.l16(rate: 16_000, channels: 1, payloadType: 97)).text == "97 L16/16000")
    #expect(RTPMap(RTPCodec.telephoneEvent(rate: 48_000)).text == "110 telephone-event/48000")
  }

  @Test("payload types of RFC 3551 need no rtpmap, others are left out without one")
  func withoutMaps() {
    let medium = MediaDescription(.audio, port: 9, .rtpAVP, formats: ["8", "0", "96", "8", "x", "200"])
    #expect(medium.codecs.map { $0.name } == ["PCMA", "PCMU"])
  }

  @Test("retransmissions are folded into their codec, and written with apt behind it")
  func rtx() {
    var medium = MediaDescription(.video, port: 9, .dtlsSAVPF)
    medium.codecs = [.vp8, .h264]
    #expect(medium.formats == ["96", "97", "102", "103"])
    #expect(medium.formatParameters[97] == FormatParameters("apt=96"))
    #expect(medium.codecs == [.vp8, .h264])
    // One that repeats nothing that is offered has no effect.
    medium.formatParameters[97] = FormatParameters("apt=99")
    #expect(medium.codecs[0].rtxPayloadType == nil && medium.codecs.count == 2)
  }

  @Test(
    "spellings of the profiles of RFC 6184, table 5",
    arguments: [
      ("42e01f", .constrainedBaseline), ("42C01E", .constrainedBaseline), ("4d801f", .constrainedBaseline),
      ("58c00a", .constrainedBaseline), ("42001f", .baseline), ("42801f", .baseline), ("58801f", .baseline),
      ("4d001f", .main),
      ("4d401f", .main), ("64001f", .high), ("640c1f", .constrainedHigh), ("58001f", .other(0x58, 0)),
      ("42e11f", .other(0x42, 0xE1)),
    ] as [(String, H264Profile.Kind)])
  func profiles(text: String, kind: H264Profile.Kind) throws {
    let profile = try #require(H264Profile(parsing: text))
    #expect(profile.kind == kind && profile.text == text.lowercased())
  }

  @Test("six digits are a profile, nothing else", arguments: ["", "42e01", "42e01ff", "42e0xf", "+2e01f"])
  func badProfile(text: String) { #expect(H264Profile(parsing: text) == nil) }

  @Test(
    "H.264 matches by profile and packetization mode",
    arguments: [
      ("packetization-mode=1;profile-level-id=42e01f", .exact),
      ("Packetization-Mode=1; profile-level-id=42C00A", .exact),
      ("packetization-mode=1;profile-level-id=4d801f", .exact), ("packetization-mode=1", .exact),
      ("packetization-mode=1;profile-level-id=42001f", .near),
      ("packetization-mode=0;profile-level-id=42e01f", .none),
      ("profile-level-id=42e01f", .none), ("packetization-mode=1;profile-level-id=640c1f", .none),
      ("packetization-mode=1;profile-level-id=4d001f", .none),
      ("packetization-mode=1;profile-level-id=nonsense", .none),
    ] as [(String, RTPCodec.Match)])
  func h264(parameters: String, match: RTPCodec.Match) {
    let other = RTPCodec("h264", payloadType: 99, clockRate: 90_000, parameters: parameters)
    #expect(RTPCodec.h264.match(other) == match)
  }

  @Test("other codecs match by name, rate and channels; Opus has no other form")
  func names() {
    #expect(RTPCodec.opus.match(RTPCodec("OPUS", payloadType: 96, clockRate: 48_000)) == .exact)
    #expect(RTPCodec.opus.match(RTPCodec("opus", payloadType: 96, clockRate: 16_000, channels: 2)) == .none)
    #expect(RTPCodec.pcmu.match(.pcma) == .none)
    #expect(RTPCodec.l16(rate: 16_000, channels: 1).match(.l16(rate: 16_000, channels: 2)) == .none)
    #expect(RTPCodec.telephoneEvent(rate: 8000).match(.telephoneEvent(rate: 48_000)) == .none)
  }

  @Test(
    "the level of an H.264 answer is the lower one, or our own where both allow different ones",
    arguments: [
      ("level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42c015", "42c01f", "1"),
      ("packetization-mode=1;profile-level-id=42c015", "42c015", nil),
      ("packetization-mode=1;profile-level-id=42e034", "42e01f", nil),
    ] as [(String, String, String?)])
  func answeredLevel(offered: String, profile: String, asymmetry: String?) {
    let codec = RTPCodec.h264.answering(
      RTPCodec("H264", payloadType: 99, clockRate: 90_000, parameters: offered))
    #expect(codec.parameters["profile-level-id"] == profile)
    #expect(
      codec.parameters["level-asymmetry-allowed"] == asymmetry
        && codec.parameters["packetization-mode"] == "1")
    #expect(codec.payloadType == 99 && codec.rtxPayloadType == nil)
  }

  @Test("parameters are read with spaces, in any case, with keys alone, and can be changed")
  func parameters() {
    var parameters = FormatParameters(" minptime=10; useinbandfec = 1 ;0-15;;=x;a=b=c")
    #expect(parameters.pairs.map { $0.key } == ["minptime", "useinbandfec", "0-15", "a"])
    #expect(parameters["USEINBANDFEC"] == "1" && parameters["0-15"] == nil && parameters["a"] == "b=c")
    parameters["a"] = nil
    parameters["minptime"] = "20"
    parameters["stereo"] = "1"
    #expect(parameters.raw == "minptime=20;useinbandfec=1;0-15;stereo=1")
  }
}
