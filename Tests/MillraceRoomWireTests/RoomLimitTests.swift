import MillraceJSON
import MillraceRoomWire
import Testing

/// A member with a limit: the operation, the other members of its payload, the member, its limit, and what is counted.
struct Bound: Sendable {
  var op: String
  var rest: JSONValue
  var member: String
  var most: Int
  var unit: String

  init(_ op: String, _ rest: JSONValue, _ member: String, _ most: Int, _ unit: String = "characters") {
    self.op = op
    self.rest = rest
    self.member = member
    self.most = most
    self.unit = unit
  }

  func text(_ value: String) -> String {
    line(op, JSONValue.object((rest.members ?? []) + [JSONValue.Member(member, .string(value))]).text)
  }
}

private let bounds: [Bound] = [
  Bound("login", ["version": 1, "user": "ann"], "name", 64),
  Bound("login", ["version": 1, "user": "ann"], "token", 4_096),
  Bound("join", ["room": "r1"], "token", 4_096), Bound("kick", ["peer": "p1"], "text", 4_096),
  Bound("close", [:], "text", 4_096), Bound("call", ["to": "bob"], "text", 4_096),
  Bound("answerCall", ["call": "c1", "accept": true], "text", 4_096),
  Bound("hangUp", ["call": "c1"], "reason", 4_096), Bound("message", [:], "text", 4_096),
  Bound("file", ["bytes": 1], "name", 255), Bound("file", ["name": "a", "bytes": 1], "type", 127, "bytes"),
  Bound("data", ["text": ""], "label", 64, "bytes"), Bound("candidate", [:], "mid", 64, "bytes"),
]

@Suite("Room wire: limits and hostile input") struct RoomLimitTests {
  @Test("a text may have as many characters as the page says, and not one more", arguments: bounds)
  func texts(bound: Bound) throws {
    // A character is a code point: the accents of one letter count.
    let units = bound.unit == "bytes" ? ["a"] : ["a", "ü", "😀", "\u{301}"]
    for unit in units {
      _ = try request(bound.text(String(repeating: unit, count: bound.most)))
      let found = problem(bound.text(String(repeating: unit, count: bound.most + 1)))
      #expect(
        found?.text == "\"payload.\(bound.member)\" must have at most \(bound.most) \(bound.unit)")
    }
    if bound.unit == "bytes" {
      #expect(problem(bound.text(String(repeating: "ü", count: bound.most / 2 + 1))) != nil)
    }
  }

  @Test("a display name is any text, and stays as it is")
  func displayName() throws {
    let name = "<b>\"\u{0}\u{8}\u{202E}&amp;\u{7F}"
    let written = RoomRequest(1, .login(RoomLogin(ann, name: name)))
    #expect(try request(written.text) == written)
  }

  @Test("a message has at most 131,072 bytes")
  func size() throws {
    let head = #"{"id":1,"op":"leave","x":""#
    func text(_ count: Int) -> String {
      head + String(repeating: "a", count: count - head.utf8.count - 2) + "\"}"
    }
    #expect(try request(text(131_072)).operation == .leave)
    let words = "the message has 131073 bytes; at most 131072 are allowed"
    #expect(problem(text(131_073)) == RoomReadProblem(.badMessage, words))
    #expect(throws: RoomReadProblem(.badMessage, words)) { try push(text(131_073)) }
    #expect(throws: RoomReadProblem(.badMessage, words)) {
      try RoomHubMessage(parsing: bytes(text(131_073)))
    }
  }

  /// What is passed on as it is: the operation of a text, and the push that it becomes.
  private static func passedOn(_ text: String, from name: RoomName) -> [(RoomOperation, RoomPush)] {
    let description = RoomDescription(.offer, text)
    let candidate = RoomCandidate(text, mid: String(repeating: "\u{8}", count: 64))
    let data = RoomData(String(repeating: "\u{8}", count: 64), .text(text))
    return [
      (.sdp(description, to: name), .sdp(description, from: name)),
      (.candidate(candidate, to: name), .candidate(candidate, from: name)),
      (.data(data, to: name), .data(data, from: name)),
    ]
  }

  @Test("what is passed on fits into a push, however long its names are and however it grows when written")
  func passedOn() throws {
    let name = try #require(RoomName(String(repeating: "n", count: 64)))
    let id = RoomLimits.ids.upperBound
    // With its quotes it has the most bytes that are allowed.
    let text = String(repeating: "x", count: RoomLimits.contentBytes - 2)
    for (operation, result) in Self.passedOn(text, from: name) {
      let request = RoomRequest(id, operation)
      #expect(try RoomRequest(parsing: request.bytes) == request)
      #expect(result.bytes.count <= RoomLimits.messageBytes)
      #expect(try RoomPush(parsing: result.bytes) == result)
    }
    for (operation, _) in Self.passedOn(text + "x", from: name) {
      #expect(
        problem(RoomRequest(id, operation).bytes)?.text.hasSuffix("at most 130048 bytes in JSON") == true)
    }
    // Two bytes each on the wire, six when written.
    let growing = String(repeating: #"\b"#, count: 40_000)
    #expect(
      problem(line("data", #"{"label":"l","text":"\#(growing)"}"#))?.text
        == "\"payload.text\" must have at most 130048 bytes in JSON")
    #expect(
      problem(line("control", #"{"to":"p1","command":{"command":"say","text":"\#(growing)"}}"#))?.text
        == "\"payload.command\" must have at most 130048 bytes in JSON")
  }

  @Test("bytes in Base64 are read to the last one that fits")
  func base64() throws {
    let most = (RoomLimits.contentBytes - 2) / 4 * 3
    let data = RoomRequest(1, .data(RoomData("l", .bytes([UInt8](repeating: 7, count: most)))))
    #expect(try RoomRequest(parsing: data.bytes) == data)
    let more = RoomRequest(1, .data(RoomData("l", .bytes([UInt8](repeating: 7, count: most + 3)))))
    #expect(problem(more.bytes)?.text == "\"payload.base64\" must have at most 130048 bytes in JSON")
  }

  @Test("deep nesting is refused, in a member that nobody knows too")
  func depth() {
    let deep = String(repeating: "[", count: 60_000)
    #expect(problem(deep)?.name == .badMessage)
    #expect(
      problem(#"{"id":1,"op":"leave","x":\#(deep)"#)?.text.hasSuffix("nested deeper than 64 levels") == true)
  }

  @Test("a message that is cut anywhere is refused", arguments: operations.map(\.text) + pushes.map(\.text))
  func cut(text: String) {
    let whole = bytes(text)
    for end in 0..<whole.count {
      let part = Array(whole[..<end])
      #expect(problem(part)?.name == .badMessage)
      #expect(throws: RoomReadProblem.self) { try RoomPush(parsing: part) }
      #expect(throws: RoomReadProblem.self) { try RoomHubMessage(parsing: part) }
    }
  }

  @Test(
    "a message with any byte changed is refused, or is the same after it was written again",
    arguments: operations.map(\.text) + pushes.map(\.text))
  func changed(text: String) throws {
    let whole = bytes(text)
    for index in whole.indices {
      for byte in [0, 0x22, 0x2C, 0x30, 0x5C, 0x7B, 0x7D, 0xC3, 0xFF] as [UInt8] {
        var message = whole
        message[index] = byte
        if let read = try? RoomRequest(parsing: message) {
          #expect(try RoomRequest(parsing: read.bytes) == read)
        }
        if let read = try? RoomPush(parsing: message) { #expect(try RoomPush(parsing: read.bytes) == read) }
      }
    }
  }
}
