import MillraceJSON
import MillraceRoomWire
import Testing

/// A request that is refused, and what is said of it.
struct Refusal: Sendable {
  var request: String
  var problem: RoomReadProblem

  init(_ request: String, _ name: RoomErrorName, _ text: String, id: Int? = nil) {
    self.request = request
    problem = RoomReadProblem(name, text, id: id)
  }

  /// A payload that is refused.
  init(_ op: String, _ payload: String, _ text: String) {
    self.init(line(op, payload), .badPayload, text, id: 1)
  }
}

private let idText = "\"id\" must be an integer from 1 to 9007199254740991"
private let nameText = "must be 1 to 64 of the letters A to Z, a to z, the digits, - and _"
private let tracksText = "must be one of audio, video, data"

private let messages: [Refusal] = [
  Refusal("", .badMessage, "invalid JSON at byte 0: unexpected end, expected a value"),
  Refusal("secret", .badMessage, "invalid JSON at byte 0: unexpected character, expected a value"),
  Refusal("{}{}", .badMessage, "invalid JSON at byte 2: unexpected content after the value"),
  Refusal("{\"id\u{0}\":1}", .badMessage, "invalid JSON at byte 4: unescaped control character in a string"),
  Refusal(#"{"id":"\ud800"}"#, .badMessage, "invalid JSON at byte 7: unpaired surrogate"),
  Refusal(#"{"id":"\udc00\ud800"}"#, .badMessage, "invalid JSON at byte 7: unpaired surrogate"),
  Refusal("7", .badMessage, "the message must be a JSON object"),
  Refusal("[]", .badMessage, "the message must be a JSON object"),
  Refusal("{}", .badMessage, idText),
  Refusal(#"{"id":null,"op":"leave"}"#, .badMessage, idText),
  Refusal(#"{"id":1}"#, .badMessage, "\"op\" must be a string", id: 1),
  Refusal(#"{"id":1,"op":7}"#, .badMessage, "\"op\" must be a string", id: 1),
  Refusal(#"{"id":1,"op":"secret"}"#, .unknownOp, "\"op\" is no operation of this hub", id: 1),
  Refusal(#"{"id":1,"op":"Leave"}"#, .unknownOp, "\"op\" is no operation of this hub", id: 1),
  Refusal(#"{"id":1,"op":"leave\u0000"}"#, .unknownOp, "\"op\" is no operation of this hub", id: 1),
  Refusal("leave", "7", "\"payload\" must be an object"),
  Refusal("leave", "[]", "\"payload\" must be an object"),
  Refusal(
    line("login", #"{"version":2}"#), .unknownVersion, "\"payload.version\" must be 1", id: 1),
]

private let payloads: [Refusal] = [
  Refusal("login", #"{"user":"ann"}"#, "\"payload.version\" must be an integer"),
  Refusal("login", #"{"version":"1","user":"ann"}"#, "\"payload.version\" must be an integer"),
  Refusal("login", #"{"version":1}"#, "\"payload.user\" must be a string"),
  Refusal("login", #"{"version":1,"user":"a b"}"#, "\"payload.user\" \(nameText)"),
  Refusal("join", #"{"room":""}"#, "\"payload.room\" \(nameText)"),
  Refusal("join", #"{"room":"r1","role":"owner"}"#, "\"payload.role\" must be one of host, viewer"),
  Refusal("file", #"{"name":"","bytes":1}"#, "\"payload.name\" must not be empty"),
  Refusal(
    "file", #"{"name":"a","bytes":-1}"#,
    "\"payload.bytes\" must be an integer from 0 to 9007199254740991"),
  Refusal("role", "{}", "\"payload.role\" must be one of host, viewer"),
  Refusal("publish", #"{"track":"screen","on":true}"#, "\"payload.track\" \(tracksText)"),
  Refusal("publish", #"{"track":"video","on":1}"#, "\"payload.on\" must be true or false"),
  Refusal(
    "publish", #"{"track":"video","on":true,"source":"file"}"#,
    "\"payload.source\" must be one of camera, screen"),
  Refusal(
    "subscribe", #"{"track":"audio","on":true}"#,
    "\"payload\" must have a \"peer\" or \"all\": true, and not both"),
  Refusal(
    "subscribe", #"{"track":"audio","on":true,"all":false}"#,
    "\"payload\" must have a \"peer\" or \"all\": true, and not both"),
  Refusal(
    "subscribe", #"{"track":"audio","on":true,"all":true,"peer":"p1"}"#,
    "\"payload\" must have a \"peer\" or \"all\": true, and not both"),
  Refusal("sdp", #"{"type":"rollback","sdp":""}"#, "\"payload.type\" must be one of offer, answer"),
  Refusal("sdp", #"{"type":"offer"}"#, "\"payload.sdp\" must be a string"),
  Refusal("sdp", #"{"type":"offer","sdp":"","to":"../p"}"#, "\"payload.to\" \(nameText)"),
  Refusal("call", #"{"to":"bob","media":["audio","smell"]}"#, "\"payload.media[1]\" \(tracksText)"),
  Refusal("call", #"{"to":"bob","media":"audio"}"#, "\"payload.media\" must be an array"),
  Refusal("control", #"{"to":"p1","command":"say"}"#, "\"payload.command\" must be an object"),
  Refusal("control", #"{"to":"p1","command":{}}"#, "\"payload.command.command\" must be a string"),
  Refusal(
    "data", #"{"label":"l"}"#, "\"payload\" must have a \"text\" or a \"base64\", and not both"),
  Refusal(
    "data", #"{"label":"l","text":"","base64":""}"#,
    "\"payload\" must have a \"text\" or a \"base64\", and not both"),
  Refusal(
    "data", #"{"label":"l","base64":"AP8"}"#, "\"payload.base64\" must be standard Base64 with padding"),
  Refusal(
    "data", #"{"label":"l","base64":"AP8_"}"#, "\"payload.base64\" must be standard Base64 with padding"),
]

@Suite("Room wire: what is refused") struct RoomProblemTests {
  @Test("a message that is no request, and an operation that is unknown", arguments: messages)
  func message(refusal: Refusal) {
    #expect(problem(refusal.request) == refusal.problem)
  }

  @Test("a payload that is wrong: the member is named, and nothing of its content", arguments: payloads)
  func payload(refusal: Refusal) {
    #expect(problem(refusal.request) == refusal.problem)
  }

  @Test(
    "an id that is none has no answer",
    arguments: [
      "0", "-1", "9007199254740992", "1.5", "\"1\"", "true", "[1]", "1e400", "99999999999999999999",
    ])
  func ids(id: String) {
    #expect(problem(#"{"id":\#(id),"op":"leave"}"#) == RoomReadProblem(.badMessage, idText))
  }

  @Test("an id may be as large as 2^53 - 1, and as small as 1")
  func largestID() throws {
    #expect(try request(#"{"id":9007199254740991,"op":"leave"}"#).id == 9_007_199_254_740_991)
    #expect(try request(#"{"id":1,"op":"leave"}"#).id == 1)
  }

  @Test(
    "what is no name is refused",
    arguments: [
      "", "a b", "ä", "a.b", "a/b", "a\u{0}", "\u{212A}", "a\u{301}", String(repeating: "a", count: 65),
    ])
  func names(text: String) {
    #expect(RoomName(text) == nil)
    let payload: JSONValue = ["room": .string(text)]
    #expect(problem(line("join", payload.text))?.text == "\"payload.room\" \(nameText)")
  }

  @Test("names have up to 64 characters, and are ordered byte by byte")
  func nameOrder() throws {
    #expect(RoomName(String(repeating: "Z", count: 64)) != nil)
    #expect(RoomName("az-09_AZ")?.description == "az-09_AZ")
    let sorted = try ["b", "_", "a", "A", "9", "-", "aa"].map { try #require(RoomName($0)) }.sorted()
    #expect(sorted.map(\.rawValue) == ["-", "9", "A", "_", "a", "aa", "b"])
  }

  @Test("a problem has the text of its error")
  func texts() {
    let problem = RoomReadProblem(.badPayload, "\"payload.user\" must be a string", id: 4)
    #expect(problem.description == "badPayload: \"payload.user\" must be a string")
    #expect(problem.error == RoomError(.badPayload, "\"payload.user\" must be a string"))
    #expect(problem.error.description == problem.description)
  }
}
