import MillraceJSON
import Testing

@testable import MillraceRoomWire

@Suite("Room wire: requests") struct RoomRequestTests {
  @Test("every operation is written and read byte for byte", arguments: operations)
  func vectors(sample: OperationSample) throws {
    let request = RoomRequest(7, sample.operation)
    #expect(request.text == sample.text)
    #expect(request.bytes == bytes(sample.text))
    #expect(try RoomRequest(parsing: bytes(sample.text)) == request)
  }

  @Test("the samples have every operation of the page")
  func coverage() {
    #expect(Set(operations.map(\.operation.name)) == Set(RoomOperation.Name.allCases.map(\.rawValue)))
  }

  @Test("the first message of the page")
  func page() throws {
    let text = #"{"id":1,"op":"login","payload":{"version":1,"user":"ann","name":"Ann"}}"#
    #expect(try request(text) == RoomRequest(1, .login(RoomLogin(ann, name: "Ann"))))
    #expect(RoomRequest(1, .login(RoomLogin(ann, name: "Ann"))).text == text)
  }

  /// The members of each operation without which it is refused.
  private static let required: [String: Set<String>] = [
    "login": ["version", "user"], "join": ["room"], "role": ["role"], "publish": ["track", "on"],
    "subscribe": ["track", "on", "peer", "all"], "sdp": ["type", "sdp"], "candidate": [], "kick": ["peer"],
    "close": [], "call": ["to"], "answerCall": ["call", "accept"], "hangUp": ["call"],
    "control": ["to", "command"], "data": ["label", "text", "base64"], "message": ["text"],
    "file": ["name", "bytes"],
  ]

  @Test("a member is missing or null: it is named, unless it may be", arguments: operations)
  func missing(sample: OperationSample) throws {
    let message = try JSONValue(parsing: sample.text)
    guard let payload = message["payload"] else { return }
    let required = try #require(Self.required[sample.operation.name])
    for name in (payload.members ?? []).map(\.name) {
      let isRequired = required.contains(name)
      for value in [nil, JSONValue.null] {
        let found = problem(message.with("payload", payload.with(name, value)).bytes)
        #expect((found != nil) == isRequired, "\(sample.operation.name) without \(name)")
        guard let found else { continue }
        #expect(found.name == .badPayload && found.id == 7 && found.text.contains("\(name)\""))
      }
    }
  }

  @Test("a member of the wrong type is named, also one that may be missing", arguments: operations)
  func wrongTypes(sample: OperationSample) throws {
    let message = try JSONValue(parsing: sample.text)
    guard let payload = message["payload"] else { return }
    for name in (payload.members ?? []).map(\.name) {
      for value: JSONValue in [.number("7.5"), ["secret": "secret"], .array([7])] {
        let found = problem(message.with("payload", payload.with(name, value)).bytes)
        #expect(
          found?.name == .badPayload && found?.id == 7, "\(sample.operation.name) with \(name) \(value)")
        #expect(found?.text.hasPrefix("\"payload.\(name)") == true)
        #expect(found?.text.contains("secret") == false)
      }
    }
  }

  @Test("unknown members are ignored, of two with one name the last counts, and an empty payload is none")
  func tolerance() throws {
    #expect(
      try request(#" {"new":[{}],"payload":{"role":"host","x":{"y":1}},"op":"role","id":1.0} "#)
        == RoomRequest(1, .role(.host)))
    #expect(try request(#"{"id":1,"id":2,"op":"leave"}"#).id == 2)
    for payload in ["{}", "null", #"{"x":1}"#] {
      #expect(try request(line("leave", payload)) == RoomRequest(1, .leave))
    }
  }

  @Test("lists count each word once, in any order")
  func lists() throws {
    #expect(
      try request(line("call", #"{"to":"bob","media":["data","audio","data"]}"#)).operation
        == .call(RoomCallRequest(to: bob, media: [.audio, .data])))
    #expect(
      try request(line("call", #"{"to":"bob","media":[]}"#)).operation == .call(RoomCallRequest(to: bob)))
  }

  private static func refusal(of id: Int, _ ids: inout RoomSequence) -> RoomError? {
    do throws(RoomError) {
      try ids.take(id)
      return nil
    } catch { return error }
  }

  @Test("ids rise, and one that does not changes nothing")
  func sequence() throws {
    var ids = RoomSequence()
    try ids.take(1)
    try ids.take(5)
    for id in [5, 4, 1, 0, -1] {
      #expect(
        Self.refusal(of: id, &ids)
          == RoomError(.repeatedID, "\"id\" must be larger than 5, the last one of this connection"))
    }
    #expect(ids.last == 5)
    try ids.take(RoomLimits.ids.upperBound)
    var made = RoomSequence()
    #expect([made.next(), made.next(), made.next()] == [1, 2, 3])
  }
}
