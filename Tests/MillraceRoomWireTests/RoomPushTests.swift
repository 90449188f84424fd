import MillraceJSON
import Testing

@testable import MillraceRoomWire

@Suite("Room wire: pushes") struct RoomPushTests {
  @Test("every push is written and read byte for byte", arguments: pushes)
  func vectors(sample: PushSample) throws {
    #expect(sample.push.text == sample.text)
    #expect(sample.push.bytes == bytes(sample.text))
    #expect(try push(sample.text) == sample.push)
    #expect(try RoomHubMessage(parsing: bytes(sample.text)) == .push(sample.push))
  }

  @Test("the samples have every event of the page")
  func coverage() {
    let names = Set(RoomPush.Name.allCases.map(\.rawValue))
    #expect(names.isSubset(of: Set(pushes.map(\.push.name))) && names.count == 14)
  }

  @Test("every word of the page is read and written")
  func words() throws {
    for reason in RoomLeaveReason.allCases {
      let left = RoomPush.peer(RoomPeerChange(.left(reason), member))
      #expect(left.text.contains(#""reason":"\#(reason.rawValue)""#))
      #expect(try push(left.text) == left)
    }
    #expect(RoomLeaveReason.allCases.map(\.rawValue) == ["quit", "dropped", "kicked", "replaced", "expired"])
    for reason in RoomKickReason.allCases {
      #expect(try push(RoomPush.kicked(reason).text) == .kicked(reason))
    }
    #expect(RoomKickReason.allCases.map(\.rawValue) == ["removed", "ended", "replaced", "expired"])
    for kind in RoomCallChange.Kind.allCases {
      let change = RoomPush.call(RoomCallChange(callID, kind, room: room))
      #expect(change.text.contains(#""change":"\#(kind.rawValue)""#))
      #expect(try push(change.text) == change)
    }
    #expect(
      RoomCallChange.Kind.allCases.map(\.rawValue) == [
        "incoming", "ringing", "accepted", "rejected", "busy", "ended",
      ])
  }

  /// The members of each push that may be missing.
  private static let optional: [String: Set<String>] = [
    "slot": ["peer"], "candidate": ["candidate", "mid"], "kicked": ["text"], "error": ["afterMs"],
    "call": ["user", "name", "media", "text", "reason"], "file": ["type"],
  ]

  @Test("a member that is missing or of the wrong type is named", arguments: pushes)
  func wrong(sample: PushSample) throws {
    let message = try JSONValue(parsing: sample.text)
    guard let payload = message["payload"], RoomPush.Name(rawValue: sample.push.name) != nil else { return }
    let optional = Self.optional[sample.push.name] ?? []
    for name in (payload.members ?? []).map(\.name) {
      let missing = pushProblem(message.with("payload", payload.with(name, nil)).text)
      #expect((missing == nil) == optional.contains(name), "\(sample.push.name) without \(name)")
      #expect(missing == nil || missing?.name == .badPayload && missing?.id == nil)
      for value: JSONValue in [.number("7.5"), ["secret": "secret"], .array([7])] {
        let found = pushProblem(message.with("payload", payload.with(name, value)).text)
        #expect(found?.name == .badPayload && found?.text.hasPrefix("\"payload.\(name)") == true)
        #expect(found?.text.contains("secret") == false)
      }
    }
  }

  @Test("unknown members and unknown events are no problem, whatever they carry")
  func tolerance() throws {
    #expect(try push(#"{"x":1,"event":"keyFrame","payload":{"y":[{}]}}"#) == .keyFrame)
    for payload in ["7", "[]", "\"x\"", "null", "{}"] {
      #expect(
        try push(#"{"event":"new","payload":\#(payload)}"#) == .unknown(name: "new", payload: .object([])))
    }
    let nested = #"{"event":"new","payload":{"a":{"b":[1.50,null]}}}"#
    #expect(try push(nested).text == nested)
    #expect(
      try push(#"{"event":"peer","payload":{"change":"joined","reason":"new",\#(memberText)}}"#)
        == .peer(RoomPeerChange(.joined, member)))
  }

  @Test(
    "what is no push is refused",
    arguments: [
      (#"{"event":7}"#, RoomErrorName.badMessage, "\"event\" must be a string"),
      ("{}", .badMessage, "\"event\" must be a string"),
      (#"{"event":"keyFrame","payload":7}"#, .badPayload, "\"payload\" must be an object"),
      (
        #"{"event":"peer","payload":{"change":"left",\#(memberText)}}"#, .badPayload,
        "\"payload.reason\" must be one of quit, dropped, kicked, replaced, expired"
      ),
      (
        #"{"event":"call","payload":{"call":"c1","change":"accepted"}}"#, .badPayload,
        "\"payload.room\" must be a string"
      ),
      (
        #"{"event":"speaking","payload":{"peers":[{"peer":"p1","level":0},{"peer":"p2","level":1}]}}"#,
        .badPayload, "\"payload.peers[1].level\" must be an integer from -127 to 0"
      ),
      (
        #"{"event":"speaking","payload":{"peers":["p1"]}}"#, .badPayload,
        "\"payload.peers[0].peer\" must be a string"
      ),
      (
        #"{"event":"authWillExpire","payload":{"inMs":9007199254740992}}"#, .badPayload,
        "\"payload.inMs\" must be an integer from 0 to 9007199254740991"
      ),
    ] as [(String, RoomErrorName, String)])
  func refused(message: String, name: RoomErrorName, text: String) {
    #expect(pushProblem(message) == RoomReadProblem(name, text))
  }

  @Test("a message of a hub is an answer or a push; a request is neither")
  func hubMessage() throws {
    let words = "the message must have an \"answer\" or an \"event\""
    #expect(throws: RoomReadProblem(.badMessage, words)) {
      try RoomHubMessage(parsing: bytes(#"{"id":1,"op":"leave"}"#))
    }
    #expect(throws: RoomReadProblem(.badMessage, "\"ok\" must be true or false", id: 3)) {
      try RoomHubMessage(parsing: bytes(#"{"answer":3,"event":"keyFrame"}"#))
    }
  }

  @Test("a level outside the scale is limited to it")
  func levels() {
    #expect(RoomLevel(peer, -200).level == -127 && RoomLevel(peer, 5).level == 0)
    #expect(RoomLevel(peer, -30).level == -30)
  }
}
