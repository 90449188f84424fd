import MillraceJSON
import MillraceRoomWire
import Testing

/// An answer, and its text on the wire.
struct AnswerSample: Sendable {
  var answer: RoomAnswer
  var text: String

  init(_ answer: RoomAnswer, _ text: String) {
    self.answer = answer
    self.text = text
  }
}

private let joined = RoomJoined(
  peer, room: room, role: .host, rights: [.close, .publish, .kick], peers: [member], media: .forward,
  servers: [RoomServer("stun:s"), RoomServer("turn:t", user: "u", password: "p")])

private let joinedText =
  #"{"peer":"p1","room":"r1","role":"host","rights":["publish","kick","close"],"peers":[{"#
  + memberText
  + #"}],"media":"forward","servers":[{"url":"stun:s"},{"url":"turn:t","user":"u","password":"p"}]}"#

private let bare = RoomJoined(peer, room: room, role: .viewer, rights: [])

private let bareText =
  #"{"peer":"p1","room":"r1","role":"viewer","rights":[],"peers":[],"servers":[]}"#

private let fileTicket = RoomFileTicket(fileID, ticket: "t", path: "/files/f1")

private let answers: [AnswerSample] = [
  AnswerSample(RoomAnswer(1), #"{"answer":1,"ok":true}"#),
  AnswerSample(
    RoomAnswer(1, RoomLoggedIn(ann)), #"{"answer":1,"ok":true,"payload":{"version":1,"user":"ann"}}"#),
  AnswerSample(
    RoomAnswer(2, RoomLoggedIn(ann, expiresInMilliseconds: 60_000)),
    #"{"answer":2,"ok":true,"payload":{"version":1,"user":"ann","expiresMs":60000}}"#),
  AnswerSample(RoomAnswer(3, joined), #"{"answer":3,"ok":true,"payload":\#(joinedText)}"#),
  AnswerSample(RoomAnswer(4, bare), #"{"answer":4,"ok":true,"payload":\#(bareText)}"#),
  AnswerSample(
    RoomAnswer(5, RoomRoleChanged(.viewer)), #"{"answer":5,"ok":true,"payload":{"role":"viewer"}}"#),
  AnswerSample(
    RoomAnswer(6, RoomDescription(.answer, "v=0")),
    #"{"answer":6,"ok":true,"payload":{"type":"answer","sdp":"v=0"}}"#),
  AnswerSample(RoomAnswer(7, RoomCalling(callID)), #"{"answer":7,"ok":true,"payload":{"call":"c1"}}"#),
  AnswerSample(
    RoomAnswer(7, fileTicket),
    #"{"answer":7,"ok":true,"payload":{"id":"f1","ticket":"t","path":"/files/f1"}}"#),
  AnswerSample(
    RoomAnswer(8, RoomError(.tooManyRequests, "slow down", afterMilliseconds: 500)),
    #"{"answer":8,"ok":false,"error":{"name":"tooManyRequests","text":"slow down","afterMs":500}}"#),
]

@Suite("Room wire: answers") struct RoomAnswerTests {
  @Test("every answer is written and read byte for byte", arguments: answers)
  func vectors(sample: AnswerSample) throws {
    #expect(sample.answer.text == sample.text)
    #expect(sample.answer.bytes == bytes(sample.text))
    #expect(try RoomAnswer(parsing: bytes(sample.text)) == sample.answer)
    #expect(try RoomHubMessage(parsing: bytes(sample.text)) == .answer(sample.answer))
  }

  @Test("payloads are read in their form, with unknown members")
  func payloads() throws {
    #expect(try RoomAnswer(1, joined).payload(RoomJoined.self) == joined)
    #expect(try RoomAnswer(1, bare).payload(RoomJoined.self) == bare)
    #expect(try RoomAnswer(1, RoomCalling(callID)).payload(RoomCalling.self) == RoomCalling(callID))
    #expect(try RoomAnswer(1, fileTicket).payload(RoomFileTicket.self) == fileTicket)
    #expect(try RoomAnswer(1, RoomRoleChanged(.host)).payload(RoomRoleChanged.self) == RoomRoleChanged(.host))
    let description = RoomDescription(.offer, "v=0")
    #expect(description.isOffer && !RoomDescription(.answer, "").isOffer)
    #expect(try RoomAnswer(1, description).payload(RoomDescription.self) == description)
    let text = #"{"answer":1,"new":{},"ok":true,"payload":{"x":[],"version":1,"user":"ann","expiresMs":5}}"#
    #expect(
      try RoomAnswer(parsing: bytes(text)).payload(RoomLoggedIn.self)
        == RoomLoggedIn(ann, expiresInMilliseconds: 5))
  }

  private static func refusal<Payload: RoomPayload>(_ answer: RoomAnswer, _ type: Payload.Type) -> RoomError?
  {
    do throws(RoomError) {
      _ = try answer.payload(type)
      return nil
    } catch { return error }
  }

  @Test(
    "a payload that is wrong: the member is named",
    arguments: [
      ("{}", "\"payload.version\" must be an integer"),
      (#"{"version":2,"user":"ann"}"#, "\"payload.version\" must be 1"),
      (#"{"version":1}"#, "\"payload.user\" must be a string"),
      (
        #"{"version":1,"user":"ann","expiresMs":-1}"#,
        "\"payload.expiresMs\" must be an integer from 0 to 9007199254740991"
      ),
    ])
  func wrongPayload(payload: String, text: String) throws {
    let answer = RoomAnswer(1, .success(try JSONValue(parsing: payload)))
    #expect(Self.refusal(answer, RoomLoggedIn.self) == RoomError(.badPayload, text))
  }

  @Test("every member of the answer to a join is checked", arguments: joined.json.members?.map(\.name) ?? [])
  func wrongJoin(name: String) throws {
    let values: [JSONValue?] = [nil, .number("7.5"), .array([7])]
    for value in values {
      let answer = RoomAnswer(1, .success(joined.json.with(name, value)))
      if value == nil, name == "media" { continue }
      let found = Self.refusal(answer, RoomJoined.self)
      #expect(found?.name == .badPayload && found?.text.hasPrefix("\"payload.\(name)") == true)
    }
  }

  @Test("every member of the answer to a file is checked", arguments: ["id", "ticket", "path"])
  func wrongFile(name: String) {
    for value: JSONValue? in [nil, 7] {
      let answer = RoomAnswer(1, .success(fileTicket.json.with(name, value)))
      #expect(Self.refusal(answer, RoomFileTicket.self)?.text == "\"payload.\(name)\" must be a string")
    }
  }

  @Test("every member of a peer and of a server is checked", arguments: ["peers", "servers"])
  func wrongEntry(list: String) throws {
    let entries = try #require(joined.json[list]?.array)
    let entry = try #require(entries.last)
    for name in (entry.members ?? []).map(\.name) {
      let payload = joined.json.with(list, [entry.with(name, 7)])
      let found = Self.refusal(RoomAnswer(1, .success(payload)), RoomJoined.self)
      #expect(found?.text.hasPrefix("\"payload.\(list)[0].\(name)\" must be") == true)
    }
  }

  @Test("the error of a hub is thrown in place of a payload")
  func failed() {
    let error = RoomError(.notInRoom, "join a room first")
    #expect(Self.refusal(RoomAnswer(1, error), RoomJoined.self) == error)
  }

  @Test("every error has the name of the page, on the wire in both directions")
  func errors() throws {
    let names = [
      "badMessage", "repeatedId", "unknownOp", "badPayload", "unknownVersion", "notLoggedIn", "loggedIn",
      "notInRoom", "inRoom", "badToken", "tokenExpired", "tokenUsed", "duplicate", "forbidden", "notFound",
      "roomFull", "tooManyRooms", "tooManyRequests", "badOffer", "noCommonCodec", "noMedia", "closing",
    ]
    #expect(RoomErrorName.allCases.map(\.rawValue) == names)
    for name in RoomErrorName.allCases {
      let answer = RoomAnswer(9, RoomError(name, "<why>"))
      let text = #"{"answer":9,"ok":false,"error":{"name":"\#(name.rawValue)","text":"<why>"}}"#
      #expect(answer.text == text)
      #expect(try RoomAnswer(parsing: bytes(text)) == answer)
    }
  }

  @Test(
    "what is no answer is refused, with its id if it has one",
    arguments: [
      (#"{"ok":true}"#, nil, "\"answer\" must be an integer from 1 to 9007199254740991"),
      (#"{"answer":0,"ok":true}"#, nil, "\"answer\" must be an integer from 1 to 9007199254740991"),
      (#"{"answer":"1","ok":true}"#, nil, "\"answer\" must be an integer from 1 to 9007199254740991"),
      (#"{"answer":1}"#, 1, "\"ok\" must be true or false"),
      (#"{"answer":1,"ok":1}"#, 1, "\"ok\" must be true or false"),
    ] as [(String, Int?, String)])
  func noAnswer(message: String, id: Int?, text: String) {
    #expect(answerProblem(message) == RoomReadProblem(.badMessage, text, id: id))
  }

  @Test(
    "an error or a payload that is wrong is refused",
    arguments: [
      (#"{"answer":1,"ok":false}"#, "\"error\" must be an object"),
      (#"{"answer":1,"ok":false,"error":{"name":"badPayload"}}"#, "\"error.text\" must be a string"),
      (
        #"{"answer":1,"ok":false,"error":{"name":"closing","text":"","afterMs":0.5}}"#,
        "\"error.afterMs\" must be an integer from 0 to 9007199254740991"
      ),
      (#"{"answer":1,"ok":true,"payload":[]}"#, "\"payload\" must be an object"),
    ])
  func wrongAnswer(message: String, text: String) {
    #expect(answerProblem(message) == RoomReadProblem(.badPayload, text, id: 1))
  }

  @Test("an answer whose error has a name that nobody knows has failed too")
  func unknownError() {
    let found = answerProblem(#"{"answer":4,"ok":false,"error":{"name":"secret","text":"x"}}"#)
    #expect(found?.id == 4 && found?.name == .badPayload)
    #expect(found?.text.hasPrefix("\"error.name\" must be one of badMessage, repeatedId, ") == true)
  }

  @Test("an answer that is cut anywhere is refused", arguments: answers)
  func cut(sample: AnswerSample) {
    let whole = bytes(sample.text)
    for end in 0..<whole.count {
      #expect(throws: RoomReadProblem.self) { try RoomAnswer(parsing: Array(whole[..<end])) }
    }
  }
}
