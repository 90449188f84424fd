import Testing

@testable import MillraceRTCWire

@Suite("ICE restarts and trickled candidates")
struct ICERestartTests {
  private static let fresh = ICECredentials(fragment: "fresh", password: "fresh-password-fresh-password")
  private static let candidate = ICECandidate(foundation: "9", priority: 9, address: "192.0.2.99", port: 99)

  @Test("a restart changes credentials, candidates and version, and nothing else")
  func restart() throws {
    let offer = try SDPTestParts.offer([.audio(), .video(), .data()]).description()
    var again = offer.restartingICE(Self.fresh, candidates: [Self.candidate], hasAllCandidates: true)
    #expect(again.origin.version == 2 && again.restartsICE(after: offer) && !offer.restartsICE(after: offer))
    #expect(again.media.allSatisfy { $0.transport.credentials == Self.fresh })
    #expect(again.media.map { $0.candidates } == [[Self.candidate], [], []])
    #expect(again.media.map { $0.hasEndOfCandidates } == [true, false, false])
    again.origin.version = 1
    for index in again.media.indices {
      again.media[index].transport.credentials = offer.media[index].transport.credentials
      again.media[index].candidates = offer.media[index].candidates
      again.media[index].hasEndOfCandidates = false
    }
    #expect(again == offer)
  }

  @Test("an answer of ours can become a restart; refused media stay refused")
  func fromAnswer() throws {
    let offer = try SDPSamples.parsed(SDPSamples.chromium)
    let answer = try SDPTestParts.answer(offer, [.video(), .data()]).description
    let again = answer.restartingICE(Self.fresh, candidates: [Self.candidate])
    #expect(again.media.map { $0.transport.setup } == [nil, .actpass, .actpass])
    #expect(
      again.media.map { $0.port } == [0, 9, 9] && again.media.map { $0.candidates.count } == [0, 1, 0])
    #expect(again.media.map { $0.formats } == answer.media.map { $0.formats })
  }

  @Test("the fragment of RFC 9725 is read")
  func fragment() throws {
    let text = SDPSamples.wire(
      """
      a=group:BUNDLE 0 1
      m=audio 9 UDP/TLS/RTP/SAVPF 111
      a=mid:0
      a=ice-ufrag:EsAw
      a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1
      a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw network-id 1
      a=candidate:nonsense
      a=candidate:3471623853 1 udp 2122194687 198.51.100.2 61765 typ host generation 0 ufrag EsAw network-id 2
      a=end-of-candidates
      """)
    let fragment = try TrickleFragment(parsing: text)
    #expect(fragment.bundle == ["0", "1"] && fragment.sections.count == 1 && fragment.notes.count == 1)
    let section = fragment.sections[0]
    #expect(section.mid == "0" && section.formats == ["111"] && section.hasEndOfCandidates)
    #expect(section.candidates.map { $0.port } == [61_764, 61_765])
    #expect(fragment.credentials(of: section)?.fragment == "EsAw")
    #expect(try TrickleFragment(parsing: fragment.text).sections == fragment.sections)
  }

  @Test("the answer to a restart has credentials of its own, and those of the session hold for all")
  func sessionLevel() throws {
    let text = SDPSamples.wire(
      """
      a=ice-ufrag:289b31b754eaa438
      a=ice-pwd:0b66f472495ef0ccac7bda653ab6be49ea13114472a5d10a
      a=ice-options:trickle ice2
      a=ice-lite
      a=end-of-candidates
      m=audio 9 RTP/AVP 0
      a=mid:0
      """)
    let fragment = try TrickleFragment(parsing: text)
    #expect(fragment.isICELite && fragment.iceOptions == ["trickle", "ice2"] && fragment.hasEndOfCandidates)
    #expect(fragment.credentials(of: fragment.sections[0])?.fragment == "289b31b754eaa438")
    let again = try TrickleFragment(parsing: fragment.text)
    #expect(again == fragment && again.text == fragment.text)
  }

  @Test("a fragment of a local description names its first medium of the bundle")
  func ours() throws {
    let offer = try SDPTestParts.offer([.audio(), .data()]).description()
    let fragment = TrickleFragment(of: offer, candidates: [Self.candidate], hasEndOfCandidates: true)
    let text = SDPSamples.wire(
      """
      a=group:BUNDLE 0 1
      m=audio 9 UDP/TLS/RTP/SAVPF 111
      a=ice-ufrag:ours
      a=ice-pwd:ours-password-password-password
      a=mid:0
      a=candidate:9 1 udp 9 192.0.2.99 99 typ host
      a=end-of-candidates
      """)
    #expect(fragment.text == text)
  }

  @Test("a fragment that is no SDP is refused", arguments: ["<html>", "m=audio", "a=ice-pwd:short"])
  func refused(text: String) {
    #expect(throws: SDPProblem.self) { _ = try TrickleFragment(parsing: text) }
  }
}
