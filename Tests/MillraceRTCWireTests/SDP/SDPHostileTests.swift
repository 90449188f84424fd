import Testing

@testable import MillraceRTCWire

@Suite("Descriptions of hostile peers")
struct SDPHostileTests {
  private static let head = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
  private static let audio = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"

  private static func problem(_ text: String) -> SDPProblem? {
    do throws(SDPProblem) { _ = try SessionDescription(parsing: text) } catch { return error }
    return nil
  }

  @Test(
    "a description that is not valid is refused with the line and the reason",
    arguments: [
      ("", 0, "it is empty"), ("\r\n\r\n", 0, "it is empty"),
      ("<html><body>404</body></html>", 1, "no SDP"), ("{\"sdp\":\"v=0\"}", 1, "no SDP"),
      ("v=1\r\n", 1, "no SDP"),
      ("v=0\r\n", 0, "no o= line"), ("v=0\r\no=- x 1 IN IP4\r\n", 2, "o= is there twice"),
      (head + "o=- 1 1 IN IP4 127.0.0.1\r\n", 5, "o= is there twice"),
      (head + "v=0\r\n", 5, "v= is there twice"),
      (head + "nonsense\r\n", 5, "not a letter"), (head + "=x\r\n", 5, "not a letter"),
      (head + "t=now\r\n", 5, "t= is not"), (head + "c=IN IP4\r\n", 5, "c= is not"),
      (head + "c=IN IP5 a\r\n", 5, "c= is not"), (head + "a=\r\n", 5, "no name"),
      (head + "a=:x\r\n", 5, "no name"),
      (head + "m=\r\n", 5, "the m-line is empty"),
      (head + "m=audio 65536 RTP/AVP 0\r\n", 5, "the port is not"),
      (head + "m=audio -1 RTP/AVP 0\r\n", 5, "the port is not"), (head + "m=audio 9\r\n", 5, "no protocol"),
      (head + "m=audio 9/0 RTP/AVP 0\r\n", 5, "number of ports"),
      (head + audio + "a=mid:\r\n", 6, "not one word"), (head + audio + "a=mid:a b\r\n", 6, "not one word"),
      (head + audio + "a=mid:a\r\na=mid:b\r\n", 7, "two mids"),
      (head + audio + "a=ice-ufrag:abc\r\n", 6, "4 to 256"),
      (head + audio + "a=ice-pwd:secretsecretsecret\r\n", 6, "22 to 256"),
      (head + audio + "a=setup:maybe\r\n", 6, "the setup is none of"),
      (head + audio + "a=fingerprint:sha-256 AB:CD\r\n", 6, "not a digest"),
      (head + "a=fingerprint:sha-1 zz\r\n", 5, "not a digest"),
      (head + audio + "a=sctp-port:0\r\n", 6, "the SCTP port"), (head + "a=x\rb\r\n", 5, "a NUL or a CR"),
      (head + "a=x\u{0}\r\n", 5, "a NUL or a CR"),
    ])
  func refused(text: String, line: Int, words: String) throws {
    let problem = try #require(Self.problem(text))
    #expect(problem.line == line && problem.text.contains(words), "\(problem)")
    // Nothing of a password is quoted.
    #expect(!problem.description.contains("secret"))
  }

  @Test("lengths and numbers are bounded")
  func bounds() {
    let line = "a=x:" + String(repeating: "y", count: SDPLimits.lineBytes - 4)
    #expect(Self.problem(Self.head + line + "\r\n") == nil)
    #expect(Self.problem(Self.head + line + "y\r\n")?.text.contains("8193 bytes") == true)
    let media = String(repeating: Self.audio, count: SDPLimits.media)
    #expect(Self.problem(Self.head + media) == nil)
    #expect(Self.problem(Self.head + media + Self.audio)?.text.contains("more than 64 m-lines") == true)
    let large = Self.head + String(repeating: "a=x\r\n", count: SDPLimits.bytes / 5)
    #expect(Self.problem(large)?.text.contains("at most 262144") == true)
    let formats = String(repeating: " 1", count: 257)
    #expect(Self.problem(Self.head + "m=audio 9 RTP/AVP\(formats)\r\n")?.text.contains("257 formats") == true)
  }

  @Test("of thousands of candidates 1,000 are kept and the others counted; bad ones are skipped")
  func manyCandidates() throws {
    let line = "a=candidate:1 1 udp 1 h 1 typ host\n"
    // As many as fit in the longest description.
    let count = (SDPLimits.bytes - 200) / line.utf8.count
    let full = try SessionDescription(parsing: Self.head + Self.audio + String(repeating: line, count: count))
    #expect(full.media[0].candidates.count == 1000 && full.droppedCandidates == count - 1000)

    let bad = String(repeating: "a=candidate:1\n", count: 10_000)
    let skipped = try SessionDescription(parsing: Self.head + Self.audio + bad + line)
    #expect(skipped.media[0].candidates.count == 1 && skipped.notes.count == SDPLimits.notes)

    let long = "a=candidate:1467250027 1 udp 2122260223 192.0.2.4 46243 typ host\n"
    let tooLarge = Self.problem(Self.head + Self.audio + String(repeating: long, count: 10_000))
    #expect(tooLarge?.text.contains("at most 262144") == true)
  }

  @Test(
    "a bad attribute that can be missed is kept as text, with a note",
    arguments: [
      "rtpmap:200 opus/48000", "rtpmap:96 opus", "rtpmap:96 opus/0", "rtpmap:96 opus/48000/0", "rtcp-fb:96",
      "rtcp-fb:x nack", "extmap:0 urn:a", "extmap:1", "extmap:1/both urn:a", "ssrc:4294967296 cname:a",
      "ssrc-group:FID",
      "ssrc-group:FID x", "crypto:1", "ptime:x", "max-message-size:-1", "rtcp:x", "fingerprint:md5 AB:CD",
    ])
  func noted(attribute: String) throws {
    let text = Self.head + Self.audio + "a=\(attribute)\r\n"
    let description = try SessionDescription(parsing: text)
    #expect(description.notes.map { $0.line } == [6])
    #expect(description.media[0].attributes.map { $0.text } == [attribute])
    #expect(description.text == text)
  }

  @Test("the first rtpmap and fmtp of a payload type count")
  func repeated() throws {
    let text =
      Self.head + Self.audio + "a=rtpmap:111 opus/48000/2\r\na=fmtp:111 stereo=1\r\n"
      + "a=rtpmap:111 VP8/90000\r\na=fmtp:111 stereo=0\r\n"
    let description = try SessionDescription(parsing: text)
    #expect(
      description.media[0].codecs.map { $0.name } == ["opus"] && description.media[0].codecs[0].wantsStereo)
    #expect(description.notes.count == 2)
  }

  @Test("lists that a peer fills without end stay bounded")
  func floods() throws {
    let floods = [
      "a=ssrc:%d cname:x", "a=rtcp-fb:* x%d", "a=fingerprint:sha-1 \(SDPSamples.digest.prefix(59))",
    ]
    for line in floods {
      var text = Self.head + Self.audio
      var index = 0
      while text.utf8.count + line.utf8.count + 8 < SDPLimits.bytes {
        text += line.replacing("%d", with: String(index)) + "\n"
        index += 1
      }
      let medium = try SessionDescription(parsing: text).media[0]
      #expect(medium.sources.count <= 256 && medium.feedback.count <= 512)
      #expect(medium.transport.fingerprints.count <= 16)
      #expect(medium.codecs.isEmpty)
    }
  }

  @Test("random bytes never crash a parser or a writer")
  func randomBytes() throws {
    var random = SeededRandom(seed: 8866)
    let head = Array(Self.head.utf8)
    let samples = [SDPSamples.chromium, SDPSamples.firefox, SDPSamples.aiortc, SDPSamples.janus].map {
      Array($0.utf8)
    }
    var (accepted, differing) = (0, 0)
    for round in 0..<20_000 {
      var bytes: [UInt8]
      if round % 4 == 0 {
        bytes = (0..<random.below(60)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      } else {
        let sample = samples[random.below(samples.count)]
        let start = random.below(sample.count)
        bytes = Array(sample[start..<min(start + 100, sample.count)])
        for _ in 0..<random.below(4) {
          bytes[random.below(bytes.count)] = UInt8(truncatingIfNeeded: random.next())
        }
        // Part of a line would refuse everything behind it.
        bytes = head + Array("a=x".utf8) + bytes
      }
      if round % 8 == 0 { _ = try? TrickleFragment(parsing: bytes) }
      if round % 8 == 1 { _ = try? ICECandidate(parsing: String(decoding: bytes.suffix(100), as: UTF8.self)) }
      guard let description = try? SessionDescription(parsing: bytes) else { continue }
      accepted += 1
      guard round % 4 == 1 else { continue }
      let again = try SessionDescription(parsing: description.text)
      if again.text != description.text { differing += 1 }
    }
    #expect(accepted > 5000 && differing == 0)
  }

  @Test("offers and answers with lines lost, repeated, moved and changed never crash a negotiation")
  func randomLines() throws {
    var random = SeededRandom(seed: 3264)
    let sections: [MediaSection] = [.audio(), .video(), .data()]
    let offer = try SDPTestParts.offer(sections).description()
    let answer = try SDPTestParts.answer(offer, sections).description
    let lines = answer.text.utf8.split(separator: 10).map { Array($0) }
    let others = SDPSamples.chromium.utf8.split(separator: 10).map { Array($0) }
    var (sessions, answers, refusals) = (0, 0, 0)
    for _ in 0..<800 {
      var changed = lines
      for _ in 0..<1 + random.below(4) {
        let place = random.below(changed.count)
        switch random.below(5) {
        case 0: changed.remove(at: place)
        case 1: changed.insert(changed[random.below(changed.count)], at: place)
        case 2: changed.insert(others[random.below(others.count)], at: place)
        case 3: changed.swapAt(place, random.below(changed.count))
        default: changed[place][random.below(changed[place].count)] = UInt8(32 + random.below(95))
        }
      }
      let bytes = Array(changed.joined(separator: [10]))
      guard let remote = try? SessionDescription(parsing: bytes) else { continue }
      do {
        _ = try NegotiatedSession(local: offer, remote: remote, role: .offerer)
        sessions += 1
      } catch { refusals += 1 }
      guard let made = try? SDPTestParts.answer(remote, sections) else { continue }
      // What this side answers is always a session.
      _ = try NegotiatedSession(local: made.description, remote: remote, role: .answerer)
      answers += 1
    }
    #expect(sessions > 50 && answers > 50 && refusals > 50)
  }
}
