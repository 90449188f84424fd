import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: members that misbehave, and what is left of those who go") struct HubHostileTests {
  private let login = #"{"id":1,"op":"login","payload":{"version":1,"user":"ann"}}"#

  private func connected() -> HubRig {
    let rig = HubRig()
    rig.connect(1)
    return rig
  }

  @Test(
    "what is no request gets the push error, and no answer",
    arguments: [
      "", "{", "[]", "null", "\u{FEFF}{}", "{}", #"{"op":"leave"}"#, #"{"id":0,"op":"leave"}"#,
      #"{"id":-1,"op":"leave"}"#, #"{"id":1.5,"op":"leave"}"#, #"{"id":"1","op":"leave"}"#,
      #"{"id":9007199254740992,"op":"leave"}"#, #"{"id":1,"op":"leave"}}"#,
    ])
  func noRequest(text: String) {
    let rig = connected()
    rig.send(1, text)
    let pushes = rig.seen(1)
    if case .error(let error)? = pushes.first {
      #expect(pushes.count == 1 && error.name == .badMessage)
    } else {
      Issue.record("\(pushes)")
    }
    #expect(rig.answer(1, 1) == nil)
    rig.send(1, login)
    #expect(rig.answer(1, 1)?.result != nil)
  }

  @Test(
    "a request with an id is answered, whatever is wrong with it, and its id is used up",
    arguments: [
      (#"{"id":1,"op":"fly"}"#, RoomErrorName.unknownOp), (#"{"id":1}"#, .badMessage),
      (#"{"id":1,"op":"login"}"#, .badPayload), (#"{"id":1,"op":"login","payload":[]}"#, .badPayload),
      (#"{"id":1,"op":"login","payload":{"version":1,"user":"a b"}}"#, .badPayload),
      (#"{"id":1,"op":"login","payload":{"version":2,"user":"ann"}}"#, .unknownVersion),
    ])
  func wrongRequest(text: String, name: RoomErrorName) {
    let rig = connected()
    rig.send(1, text)
    guard case .failure(let error)? = rig.answer(1, 1)?.result else {
      Issue.record("it was not refused")
      return
    }
    #expect(error.name == name)
    #expect(rig.seen(1) == [])
    rig.send(1, login)
    #expect(rig.seen(1).count == 1, "the id is not taken twice")
  }

  @Test("a repeated id does nothing, and has no second answer")
  func repeatedID() {
    let rig = connected()
    rig.send(1, login)
    rig.send(1, #"{"id":1,"op":"logout"}"#)
    rig.send(1, #"{"id":1,"op":"fly"}"#)
    let names = rig.seen(1).map { push in
      if case .error(let error) = push { error.name } else { RoomErrorName.closing }
    }
    #expect(names == [.repeatedID, .repeatedID])
    #expect(rig.hub.counts.users == 1)
    rig.send(1, #"{"id":9007199254740991,"op":"logout"}"#)
    #expect(rig.hub.counts.users == 0)
  }

  @Test("the sixteenth message that is no request ends the connection and its presence")
  func sixteen() {
    let rig = HubRig()
    rig.member(1, "ann")
    rig.member(2, "bob")
    rig.clear()
    for _ in 0..<15 { rig.send(1, "x") }
    #expect(rig.closed == [:] && rig.isDone(1, .message("still here")))
    rig.send(1, "x")
    #expect(rig.closed == [1: 1008])
    #expect(rig.seen(1).count == 16)
    #expect(rig.hub.counts.members == 1 && rig.hub.counts.users == 1)
    rig.send(1, "x")
    let request = rig.request(1, .logout)
    #expect(rig.seen(1) == [] && rig.answer(1, request) == nil)
    rig.disconnect(1)
    #expect(rig.hub.counts.connections == 1)
  }

  @Test("a message above 131,072 bytes ends the connection, one of just that many does not")
  func tooLong() {
    let rig = connected()
    let padding = String(repeating: " ", count: RoomLimits.messageBytes - login.utf8.count)
    rig.send(1, login + padding)
    #expect(rig.closed == [:] && rig.hub.counts.users == 1)
    rig.send(1, login + padding + " ")
    #expect(rig.closed == [1: 1009] && rig.hub.counts.users == 0)
  }

  @Test("what is longest when it is passed on fits into a message")
  func longest() {
    let rig = HubRig()
    rig.member(1, "ann")
    let bob = rig.member(2, "bob")
    let most = RoomLimits.contentBytes - 2
    let texts = [
      String(repeating: "a", count: most), String(repeating: "\u{1}", count: most / 6),
      String(repeating: "\"", count: most / 2), String(repeating: "é", count: most / 2),
    ]
    for text in texts {
      _ = rig.ask(1, .data(RoomData(String(repeating: "\u{1}", count: 64), .text(text))))
      rig.wait(milliseconds: 5_000)
      _ = rig.ask(1, .sdp(RoomDescription(.offer, text), to: bob))
      rig.wait(milliseconds: 5_000)
    }
    #expect(rig.seen(2).count == 2 * texts.count, "the rig checks the size of what is sent")
    #expect(rig.closed == [:])
  }

  @Test("a flood of requests is refused, with a time after which one is done")
  func flood() {
    let rig = connected()
    rig.logIn(1, "ann")
    var refused = 0
    for _ in 0..<1_000 where rig.refusal(1, .leave) == .tooManyRequests { refused += 1 }
    #expect(refused == 1_000 - 199)
    rig.wait(milliseconds: 5)
    #expect(rig.refusal(1, .leave) == .notInRoom)
  }

  @Test("random bytes and requests cut anywhere do no harm")
  func random() {
    let rig = HubRig()
    rig.member(100, "bob")
    let texts =
      (HubSessionTests.roomOperations + HubSessionTests.userOperations)
      .map { RoomRequest(1_000, $0).bytes } + [Array(login.utf8)]
    for (index, bytes) in texts.enumerated() {
      for count in 0...bytes.count {
        let connection = UInt64(1_000 + count)
        rig.connect(connection, address: "\(index)-\(count)")
        rig.send(connection, Array(bytes.prefix(count)))
        var changed = bytes
        if count < bytes.count { changed[count] ^= UInt8.random(in: 1...255) }
        rig.send(connection, changed)
        rig.disconnect(connection)
      }
    }
    #expect(rig.hub.counts.connections == 1 && rig.hub.counts.members == 1)
  }

  // MARK: What is left

  @Test("nothing is left after a thousand members have joined and gone in every way")
  func flatMemory() {
    var settings = HubRig.keyed
    settings.media = .forward
    let rig = HubRig(settings)
    for index in 0..<1_000 {
      let connection = UInt64(index)
      let address = "192.0.2.\(index % 250)"
      rig.connect(connection, address: address)
      let token = HubRig.token("user\(index)", lasts: 50 + index, once: "\(index)")
      #expect(rig.logIn(connection, "user\(index)", token: token))
      #expect(rig.join(connection, "room\(index / 3)") != nil)
      rig.request(connection, .sdp(RoomDescription(.offer, "v=0")))
      _ = rig.ask(connection, .subscribe(RoomSubscription(.audio, isOn: true)))
      _ = rig.ask(connection, .call(RoomCallRequest(to: named("user\(index - index % 2)"))))
      let peer = named("peer\(index + 1)")
      rig.change { $0.speak([RoomLevel(peer, -9)], in: named("room\(index / 3)"), at: rig.time) }
      switch index % 5 {
      case 0: _ = rig.ask(connection, .leave)
      case 1: _ = rig.ask(connection, .logout)
      case 2: for _ in 0..<16 { rig.send(connection, "x") }
      case 3: rig.wait(milliseconds: 10)
      default: break
      }
    }
    for connection: UInt64 in 0..<1_000 { rig.disconnect(connection) }
    rig.wait(milliseconds: 2_000_000)
    #expect(rig.hub.counts == RoomHubCounts())
    #expect(rig.hub.deadline == nil)
  }

  // MARK: The end

  @Test("a hub that stops answers what waits, closes all with 1001 only, and takes nothing more")
  func stop() {
    let rig = HubRig(RoomHubSettings(media: .mix))
    rig.member(1, "ann")
    rig.connect(2)
    rig.logIn(2, "bob")
    _ = rig.ask(2, .call(RoomCallRequest(to: named("ann"))))
    rig.clear()
    let offer = rig.request(1, .sdp(RoomDescription(.offer, "v=0")))
    rig.change { $0.stop() }
    rig.change { $0.stop() }
    #expect(rig.answer(1, offer)?.result == .failure(RoomError(.closing, "the hub stops")))
    #expect(rig.seen(1) == [], "its rooms have not ended for members: they come again")
    let room = named("lobby")
    #expect(rig.actions().suffix(2) == [.left(named("peer1"), room: room), .roomEnded(room)])
    #expect(rig.closed == [1: 1001, 2: 1001])
    #expect(rig.refusal(1, .join(RoomJoin(named("lobby")))) == .closing)
    rig.connect(3)
    #expect(rig.closed[3] == 1001)
    #expect(rig.hub.deadline == nil)
    rig.disconnect(1)
    rig.disconnect(2)
    rig.disconnect(3)
    #expect(rig.hub.counts.connections == 0 && rig.hub.counts.users == 0 && rig.hub.counts.calls == 0)
  }
}
