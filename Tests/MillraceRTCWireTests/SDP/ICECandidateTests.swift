import Testing

@testable import MillraceRTCWire

@Suite("ICE candidates")
struct ICECandidateTests {
  @Test(
    "a candidate is read with a=, without it, and without its name, and is written as it was",
    arguments: [
      "1 1 udp 2130706431 192.0.2.1 54321 typ host",
      "842163049 1 udp 1686052607 203.0.113.4 54609 typ srflx raddr 192.0.2.4 rport 46243 generation 0 ufrag EsAw network-id 1",
      "Hc0a8 2 udp 4294967295 2001:db8::1 9 typ prflx raddr :: rport 0",
      "2 1 tcp 1518280447 192.0.2.4 9 typ host tcptype active", "2 1 tcp 1 192.0.2.4 9 typ relay tcptype so",
      "2 1 sctp 1 192.0.2.4 9 typ relay",
    ])
  func roundTrip(value: String) throws {
    for prefix in ["a=candidate:", "candidate:", ""] {
      #expect(try ICECandidate(parsing: "\(prefix)\(value)\r\n").text == "candidate:\(value)")
    }
  }

  @Test("the fields of a candidate have their members")
  func members() throws {
    let text =
      "candidate:f00 1 UDP 1686052607 203.0.113.4 54609 typ srflx raddr 10.0.0.1 rport 8 generation 0 ufrag EsAw"
    let candidate = try ICECandidate(parsing: text)
    #expect(candidate.foundation == "f00" && candidate.component == 1 && candidate.transport == .udp)
    #expect(
      candidate.priority == 1_686_052_607 && candidate.address == "203.0.113.4" && candidate.port == 54_609)
    #expect(
      candidate.kind == .serverReflexive && candidate.relatedAddress == "10.0.0.1"
        && candidate.relatedPort == 8)
    #expect(candidate.extensions.count == 2 && candidate.userFragment == "EsAw")
    #expect(candidate.isUDP && !candidate.isIPv6 && !candidate.isLocalName)
  }

  @Test("TCP, IPv6 and names of multicast DNS are recognised")
  func kinds() throws {
    let tcp = try ICECandidate(parsing: "1 1 TCP 1 192.0.2.4 9 typ host tcptype passive")
    #expect(tcp.transport == .tcp(.passive) && !tcp.isUDP)
    #expect(try ICECandidate(parsing: "1 1 tcp 1 192.0.2.4 9 typ host").transport == .tcp(nil))
    #expect(try ICECandidate(parsing: "1 1 udp 1 fe80::1 9 typ host").isIPv6)
    for (name, isLocal) in [
      ("ab-cd.local", true), ("AB.LOCAL", true), (".local", false), ("local", false), ("a.local.de", false),
    ] {
      #expect(try ICECandidate(parsing: "1 1 udp 1 \(name) 9 typ host").isLocalName == isLocal)
    }
  }

  @Test(
    "a candidate that is not valid is refused with the field",
    arguments: [
      ("", "foundation"), ("candidate:", "foundation"),
      (String(repeating: "f", count: 33) + " 1 udp 1 a 1 typ host", "foundation"),
      ("1 0 udp 1 a 1 typ host", "component"), ("1 257 udp 1 a 1 typ host", "component"),
      ("1 x udp 1 a 1 typ host", "component"),
      ("1 1", "transport"), ("1 1 udp 4294967296 a 1 typ host", "priority"),
      ("1 1 udp -1 a 1 typ host", "priority"),
      ("1 1 udp 1", "address"), ("1 1 udp 1 a 65536 typ host", "port"), ("1 1 udp 1 a", "port"),
      ("1 1 udp 1 a 1", "type"), ("1 1 udp 1 a 1 typ", "type"), ("1 1 udp 1 a 1 typ guest", "type"),
      ("1 1 udp 1 a 1 type host", "type"), ("1 1 udp 1 a 1 typ host rport x", "related port"),
      ("1 1 udp 1 a\u{7} 1 typ host", "control"), (String(repeating: "1 ", count: 600), "1024 bytes"),
    ])
  func refused(text: String, word: String) {
    let problem = #expect(throws: SDPProblem.self) { _ = try ICECandidate(parsing: text) }
    #expect(problem?.text.contains(word) == true)
  }

  @Test("a foundation that begins with a combining mark is read back")
  func combiningMark() throws {
    let text = "candidate:\u{301} 1 udp 1 192.0.2.1 1 typ host"
    #expect(try ICECandidate(parsing: text).foundation == "\u{301}")
    #expect(try ICECandidate(parsing: "a=" + text).text == text)
  }

  @Test("a bad candidate does not refuse the description around it")
  func skipped() throws {
    let text = SDPSamples.janus.replacing("20412 typ host", with: "99999 typ host")
    let description = try SDPSamples.parsed(text)
    #expect(description.media[0].candidates.count == 1 && description.media[0].hasEndOfCandidates)
    #expect(description.notes.count == 1 && description.notes[0].text.contains("port"))
  }

  @Test("pairs without end behind a candidate are bounded, and a name without a value ends them")
  func pairs() throws {
    let many = try ICECandidate(parsing: "1 1 udp 1 a 1 typ host" + String(repeating: " x y", count: 100))
    #expect(many.extensions.count == 16)
    #expect(try ICECandidate(parsing: "1 1 udp 1 a 1 typ host generation").extensions.isEmpty)
  }
}
