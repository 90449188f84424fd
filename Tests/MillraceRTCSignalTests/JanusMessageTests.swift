import MillraceDialog
import MillraceJSON
import MillraceNet
import TestSystem
import Testing

@testable import MillraceRTCSignal

@Suite("Janus: messages, ids, settings") struct JanusMessageTests {
  private static let event =
    #"{"janus":"event","session_id":9007199254740992,"sender":5,"transaction":"t","plugindata":{"plugin":"p","data":{"a":1}},"jsep":{"type":"offer","sdp":"v=0"}}"#

  @Test("a message is read with all its parts, ids of up to 2^53 among them")
  func parts() throws {
    let message = try JanusMessage(parsing: Array(Self.event.utf8))
    #expect(message.kind == .event && message.transaction == "t" && message.sender == 5)
    #expect(message.session == 1 << 53)
    #expect(message.data.line == #"{"a":1}"# && message.description == JanusDescription(.offer, "v=0"))
  }

  @Test("no bytes whatever stop the parser: every cut, and every byte changed")
  func anyBytes() {
    let bytes = Array(Self.event.utf8)
    var dice = Dice(seed: 5)
    for end in 0..<bytes.count {
      #expect(throws: JanusMessageProblem.self) { try JanusMessage(parsing: Array(bytes[..<end])) }
      var changed = bytes
      changed[end] = UInt8(dice.below(256))
      _ = try? JanusMessage.list(parsing: changed)
    }
    for _ in 0..<500 {
      _ = try? JanusMessage.list(parsing: (0..<dice.below(200)).map { _ in UInt8(dice.below(256)) })
    }
  }

  @Test(
    "what is no message is refused with a message that quotes nothing of it",
    arguments: [
      ("", "invalid JSON at byte 0: unexpected end, expected a value"), ("7", "it is no JSON object"),
      ("{}", "it has no member \"janus\""), (#"{"janus":7}"#, "it has no member \"janus\""),
      (#"{"janus":"event","jsep":{"type":"rollback","sdp":"x"}}"#, "its \"jsep\" is no offer and no answer"),
      (#"{"janus":"event","jsep":"secret"}"#, "its \"jsep\" is no offer and no answer"),
    ])
  func refused(text: String, words: String) {
    #expect(throws: JanusMessageProblem(text: words)) { try JanusMessage(parsing: Array(text.utf8)) }
  }

  @Test("an enormous message is refused before it is read")
  func enormous() {
    let bytes = [UInt8](repeating: UInt8(ascii: " "), count: JanusMessage.mostBytes + 1)
    #expect(throws: JanusMessageProblem.self) { try JanusMessage(parsing: bytes) }
    let deep = [UInt8](repeating: UInt8(ascii: "["), count: 100_000)
    #expect(throws: JanusMessageProblem.self) { try JanusMessage.list(parsing: deep) }
  }

  @Test("a long poll returns one message or several; those that are not valid are counted, not fatal")
  func lists() throws {
    let list = try JanusMessage.list(parsing: Array(#"[{"janus":"keepalive"},7,{"janus":"ack"}]"#.utf8))
    #expect(list.messages.map(\.kind) == [.keepalive, .ack] && list.invalid == 1)
    #expect(try JanusMessage.list(parsing: Array(#"{"janus":"keepalive"}"#.utf8)).messages.count == 1)
    #expect(try JanusMessage.list(parsing: Array("[]".utf8)).messages.isEmpty)
    let many = "[" + Array(repeating: #"{"janus":"ack"}"#, count: 65).joined(separator: ",") + "]"
    #expect(throws: JanusMessageProblem.self) { try JanusMessage.list(parsing: Array(many.utf8)) }
  }

  @Test(
    "numbers outside the range of ids are none",
    arguments: ["-1", "9007199254740993", "1.5", "1e400", "\"5\"", "null", "true"])
  func ids(number: String) throws {
    let message = try JanusMessage(parsing: Array(#"{"janus":"ack","sender":\#(number)}"#.utf8))
    #expect(message.sender == nil)
  }

  @Test("candidates in all their forms; those with control characters or without end are left out")
  func candidates() throws {
    func read(_ candidate: String) throws -> [String?] {
      try JanusMessage(parsing: Array(#"{"janus":"trickle",\#(candidate)}"#.utf8)).candidates
    }
    #expect(try read(#""candidate":{"candidate":"candidate:1"}"#) == ["candidate:1"])
    #expect(try read(#""candidate":{"candidate":"a=candidate:1"}"#) == ["candidate:1"])
    #expect(try read(#""candidate":{"candidate":"1 1 udp"}"#) == ["candidate:1 1 udp"])
    #expect(try read(#""candidate":{"completed":true}"#) == [nil])
    #expect(try read(#""candidate":null"#) == [nil])
    #expect(
      try read(#""candidates":[{"candidate":"candidate:1"},{"completed":true}]"#) == ["candidate:1", nil])
    #expect(try read(#""candidate":{"candidate":"candidate:1\r\nm=x"}"#) == [])
    #expect(try read(#""candidate":{"candidate":"\#(String(repeating: "x", count: 2_000))"}"#) == [])
    #expect(try read(#""candidate":7"#) == [])
  }

  @Test("ids that a user writes: numbers, texts, and numbers as texts")
  func writtenIDs() {
    #expect(JanusID(parsing: "1234") == .number(1_234))
    #expect(JanusID(parsing: "lobby") == .text("lobby"))
    #expect(JanusID(parsing: "\"1234\"") == .text("1234"))
    #expect(JanusID(parsing: "-5") == .text("-5") && JanusID(parsing: "+5") == .text("+5"))
    #expect(JanusID(parsing: "9007199254740993") == .text("9007199254740993"))
    #expect(JanusID(.string("")) == nil && JanusID(.null) == nil && JanusID(["a"]) == nil)
  }

  @Test("settings that cannot work are refused with a message")
  func settings() throws {
    var room = try JanusTexts.settings(.audiobridge)
    #expect(room.problem == nil)
    room.room = nil
    #expect(room.problem == "the plugin audiobridge needs a room; set \"room\"")
    var stream = try JanusTexts.settings(.streaming)
    stream.stream = nil
    #expect(stream.problem == "the plugin streaming needs a mountpoint; set \"stream\" to its id")
    let stranger = try JanusTexts.settings(.echotest, "tcp://example.org:1")
    #expect(stranger.problem == "the address of Janus must begin with http:, https:, ws: or wss:")
  }

  @Test("a secret goes to another machine only over TLS, or where that is allowed")
  func plainSecrets() throws {
    var settings = try JanusTexts.settings(.audiobridge, "ws://janus.example.org:8188")
    #expect(settings.problem == nil)
    settings.pin = "hush"
    #expect(
      settings.problem
        == "\"pin\" would go to janus.example.org:8188 in plain text; use wss:, or allow it with \"plain\"")
    settings.plain = true
    #expect(settings.problem == nil && !"\(settings)".contains("hush"))
  }

  @Test("texts of the server are cut, and are one line")
  func serverTexts() {
    let error = JanusErrors.error(
      of: .audiobridge, code: 485, reason: "a\r\nb" + String(repeating: "x", count: 10_000))
    #expect(error.text.hasPrefix("Janus refused: a  b") && error.text.utf8.count < 300)
    #expect(error.text.hasSuffix("; check \"room\"") && error.vendor == "rtc" && error.code == 485)
  }
}
