import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: calls") struct HubCallTests {
  private let call = named("call1")

  /// Ann (1) and Bob (2, 3), logged in, in no room.
  private func users() -> HubRig {
    let rig = HubRig()
    rig.connect(1, 2, 3, 4)
    rig.logIn(1, "ann")
    rig.logIn(2, "bob")
    rig.logIn(3, "bob")
    rig.logIn(4, "zoe")
    return rig
  }

  /// Ann calls Bob; nothing of it is left.
  private func ringing() -> HubRig {
    let rig = users()
    #expect(rig.isDone(1, .call(RoomCallRequest(to: named("bob")))))
    rig.clear()
    return rig
  }

  private func accepted() -> HubRig {
    let rig = ringing()
    #expect(rig.isDone(2, .answerCall(RoomCallAnswer(call, isAccepted: true))))
    rig.clear()
    return rig
  }

  private func change(
    _ kind: RoomCallChange.Kind, by user: String? = nil, text: String? = nil, reason: String? = nil,
    room: String? = nil
  ) -> RoomPush {
    .call(
      RoomCallChange(
        call, kind, user: user.map(named), name: user?.uppercased(), text: text, reason: reason,
        room: room.map(named)))
  }

  @Test("a call rings at all connections of the user, and the caller hears that it does")
  func rings() throws {
    let rig = users()
    let request = RoomCallRequest(to: named("bob"), media: [.audio, .video], text: "lunch?")
    let answer = rig.ask(1, .call(request))
    #expect(try answer?.payload(RoomCalling.self) == RoomCalling(call))
    let incoming = RoomPush.call(
      RoomCallChange(
        call, .incoming, user: named("ann"), name: "ANN", media: [.audio, .video], text: "lunch?"))
    #expect(rig.seen(2) == [incoming] && rig.seen(3) == [incoming])
    #expect(rig.seen(1) == [.call(RoomCallChange(call, .ringing, user: named("bob")))])
    #expect(rig.seen(4) == [])
  }

  @Test("a call that is accepted names a new room to both, and is over where it rang besides")
  func accept() {
    let rig = ringing()
    #expect(rig.isDone(2, .answerCall(RoomCallAnswer(call, isAccepted: true, text: "yes"))))
    #expect(rig.seen(1) == [change(.accepted, by: "bob", text: "yes", room: "room1")])
    #expect(rig.seen(2) == [change(.accepted, by: "ann", room: "room1")])
    #expect(
      rig.seen(3) == [.call(RoomCallChange(call, .ended, user: named("ann"), reason: "elsewhere"))])
    #expect(rig.join(1, "room1") != nil && rig.join(2, "room1")?.peers.count == 1)
    rig.wait(milliseconds: 100_000)
    #expect(rig.hub.counts.calls == 1, "an accepted call does not end by itself")
  }

  @Test("a call that is rejected at one connection is over everywhere")
  func reject() {
    let rig = ringing()
    #expect(rig.isDone(3, .answerCall(RoomCallAnswer(call, isAccepted: false, text: "later"))))
    #expect(rig.seen(1) == [change(.rejected, by: "bob", text: "later")])
    #expect(
      rig.seen(2) == [.call(RoomCallChange(call, .ended, user: named("ann"), reason: "elsewhere"))])
    #expect(rig.seen(3) == [])
    #expect(rig.hub.counts.calls == 0)
  }

  @Test(
    "a user in a call is busy, from the first ring on, whether called or calling", arguments: ["bob", "ann"])
  func busy(user: String) {
    let rig = ringing()
    #expect(rig.isDone(4, .call(RoomCallRequest(to: named(user)))))
    #expect(rig.seen(4) == [.call(RoomCallChange(named("call2"), .busy, user: named(user)))])
    #expect(rig.seen(1) == [] && rig.seen(2) == [])
    #expect(rig.refusal(4, .hangUp(call: named("call2"))) == .notFound)
    #expect(rig.hub.counts.calls == 1)
  }

  @Test("a user cannot make a second call, nor call itself, nor who is not there")
  func refused() {
    let rig = ringing()
    #expect(rig.refusal(1, .call(RoomCallRequest(to: named("zoe")))) == .forbidden)
    #expect(rig.refusal(2, .call(RoomCallRequest(to: named("zoe")))) == .forbidden)
    #expect(rig.refusal(4, .call(RoomCallRequest(to: named("zoe")))) == .forbidden)
    #expect(rig.refusal(4, .call(RoomCallRequest(to: named("nobody")))) == .notFound)
    #expect(rig.seen(4) == [] && rig.hub.counts.calls == 1)
  }

  @Test("only where a call rings it can be answered, and once")
  func notRinging() {
    let rig = ringing()
    let accept = RoomOperation.answerCall(RoomCallAnswer(call, isAccepted: true))
    #expect(rig.refusal(1, accept) == .notFound)
    #expect(rig.refusal(4, accept) == .notFound)
    #expect(rig.refusal(2, .answerCall(RoomCallAnswer(named("call9"), isAccepted: true))) == .notFound)
    #expect(rig.isDone(2, accept))
    #expect(rig.refusal(2, accept) == .notFound)
    #expect(rig.refusal(3, .answerCall(RoomCallAnswer(call, isAccepted: false))) == .notFound)
  }

  @Test("either end hangs up, with a reason, and then a new call can be made")
  func hangUp() {
    for (connection, user, other) in [(UInt64(1), "ann", UInt64(2)), (2, "bob", 1)] {
      let rig = accepted()
      #expect(rig.refusal(3, .hangUp(call: call)) == .notFound)
      #expect(rig.refusal(4, .hangUp(call: call)) == .notFound)
      #expect(rig.isDone(connection, .hangUp(call: call, reason: "done")))
      #expect(rig.seen(other) == [change(.ended, by: user, reason: "done")])
      #expect(rig.seen(connection) == [] && rig.seen(3) == [])
      #expect(rig.refusal(connection, .hangUp(call: call)) == .notFound)
      #expect(rig.isDone(4, .call(RoomCallRequest(to: named("ann")))))
    }
  }

  @Test("a caller that hangs up before the answer stops the ringing everywhere")
  func cancelled() {
    let rig = ringing()
    #expect(rig.isDone(1, .hangUp(call: call)))
    #expect(rig.seen(2) == [change(.ended, by: "ann")] && rig.seen(3) == [change(.ended, by: "ann")])
    #expect(rig.hub.counts.calls == 0)
  }

  @Test(
    "a caller that vanishes or logs out ends the call", arguments: [RoomLeaveReason.dropped, .quit],
    [false, true])
  func callerGone(reason: RoomLeaveReason, isAccepted: Bool) {
    let rig = isAccepted ? accepted() : ringing()
    if reason == .quit { _ = rig.ask(1, .logout) } else { rig.disconnect(1) }
    #expect(rig.seen(2) == [change(.ended, by: "ann", reason: reason.rawValue)])
    #expect(rig.seen(3).count == (isAccepted ? 0 : 1))
    #expect(rig.hub.counts.calls == 0)
  }

  @Test("a call rings on while one connection of the user is left, and ends with the last")
  func calleeGone() {
    let rig = ringing()
    rig.disconnect(3)
    #expect(rig.seen(1) == [] && rig.hub.counts.calls == 1)
    rig.disconnect(2)
    #expect(rig.seen(1) == [change(.ended, by: "bob", reason: "dropped")])
    #expect(rig.hub.counts.calls == 0)
  }

  @Test("an accepted call ends with the connection that has it, not with another of the same user")
  func answererGone() {
    let rig = accepted()
    rig.disconnect(3)
    #expect(rig.seen(1) == [] && rig.hub.counts.calls == 1)
    rig.disconnect(2)
    #expect(rig.seen(1) == [change(.ended, by: "bob", reason: "dropped")])
  }

  @Test("a call that nobody answers ends after a minute")
  func timeout() {
    let rig = ringing()
    rig.wait(milliseconds: 59_999)
    #expect(rig.seen(1) == [])
    rig.wait(milliseconds: 1)
    for connection: UInt64 in 1...3 { #expect(rig.seen(connection) == [change(.ended, reason: "timeout")]) }
    #expect(rig.refusal(2, .answerCall(RoomCallAnswer(call, isAccepted: true))) == .notFound)
    #expect(rig.hub.counts.calls == 0 && rig.hub.deadline == nil)
  }

  @Test("a caller that rings again and again has to wait, so that the other is not busy all the time")
  func again() {
    let rig = users()
    let call = RoomOperation.call(RoomCallRequest(to: named("bob")))
    for number in 1...3 {
      #expect(rig.isDone(1, call) && rig.isDone(1, .hangUp(call: named("call\(number)"))))
    }
    rig.clear()
    #expect(rig.refusal(1, call) == .tooManyRequests && rig.seen(2) == [])
    #expect(rig.isDone(4, call) && rig.isDone(4, .hangUp(call: named("call5"))))
    rig.wait(milliseconds: 2_000)
    #expect(rig.isDone(1, call))
  }

  @Test("of very many connections of a user the latest ring")
  func manyDevices() {
    let rig = users()
    for connection: UInt64 in 10..<40 {
      rig.connect(connection)
      rig.logIn(connection, "bob")
    }
    _ = rig.ask(1, .call(RoomCallRequest(to: named("bob"))))
    let ringing = (UInt64(2)..<40).filter { !rig.seen($0).isEmpty }
    #expect(ringing == Array(24..<40))
  }
}
