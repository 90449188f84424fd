import MillraceJSON
import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: what members do among themselves") struct HubRoomTests {
  private let ann = named("peer1")
  private let bob = named("peer2")
  private let zoe = named("peer3")

  /// Ann (1), Bob (2) and Zoe (3) in one room; nothing of their joining is left.
  private func lobby(_ settings: RoomHubSettings = RoomHubSettings()) -> HubRig {
    let rig = HubRig(settings)
    rig.member(1, "ann")
    rig.member(2, "bob")
    rig.member(3, "zoe")
    rig.clear()
    return rig
  }

  private func member(
    _ peer: RoomName, _ user: String, _ role: RoomRole = .host, _ tracks: Set<RoomTrack> = [],
    isMuted: Bool = false
  ) -> RoomMember {
    RoomMember(
      peer, user: named(user), name: user.uppercased(), role: role, tracks: tracks, isMuted: isMuted)
  }

  // MARK: Messages

  @Test(
    "a message goes to all others, or to one peer, with who has sent it",
    arguments: [
      (RoomOperation.message("hi"), RoomPush.message("hi", from: named("peer1"))),
      (
        .data(RoomData("l", .bytes([0, 255]))), .data(RoomData("l", .bytes([0, 255])), from: named("peer1"))
      ),
    ])
  func messages(operation: RoomOperation, push: RoomPush) {
    let rig = lobby()
    #expect(rig.isDone(1, operation))
    #expect(rig.seen(1) == [] && rig.seen(2) == [push] && rig.seen(3) == [push])
  }

  @Test(
    "what is for one peer reaches that peer only",
    arguments: [
      (RoomOperation.message("hi", to: named("peer2")), RoomPush.message("hi", from: named("peer1"))),
      (
        .data(RoomData("", .text("t")), to: named("peer2")),
        .data(RoomData("", .text("t")), from: named("peer1"))
      ),
      (
        .control(["command": "say", "text": "hi", "x": 2], to: named("peer2")),
        .control(["command": "say", "text": "hi", "x": 2], from: named("peer1"))
      ),
      (
        .sdp(RoomDescription(.offer, "v=0"), to: named("peer2")),
        .sdp(RoomDescription(.offer, "v=0"), from: named("peer1"))
      ),
      (
        .candidate(RoomCandidate("candidate:1", mid: "0"), to: named("peer2")),
        .candidate(RoomCandidate("candidate:1", mid: "0"), from: named("peer1"))
      ),
      (
        .candidate(RoomCandidate(nil), to: named("peer2")),
        .candidate(RoomCandidate(nil), from: named("peer1"))
      ),
    ])
  func direct(operation: RoomOperation, push: RoomPush) {
    let rig = lobby()
    #expect(rig.isDone(1, operation))
    #expect(rig.seen(2) == [push])
    #expect(rig.seen(1) == [] && rig.seen(3) == [] && rig.actions() == [])
  }

  @Test(
    "a peer that is not there, or oneself, is not found",
    arguments: [named("peer9"), named("peer1"), named("ann")])
  func notFound(target: RoomName) {
    let rig = lobby()
    let operations: [RoomOperation] = [
      .message("hi", to: target), .data(RoomData("l", .text("t")), to: target),
      .control(["command": "interrupt"], to: target), .sdp(RoomDescription(.offer, "v=0"), to: target),
      .candidate(RoomCandidate(nil), to: target), .kick(target),
      .subscribe(RoomSubscription(.audio, isOn: true, peer: target)),
    ]
    for operation in operations { #expect(rig.refusal(1, operation) == .notFound) }
    #expect(rig.seen(1) == [] && rig.seen(2) == [] && rig.seen(3) == [] && rig.actions() == [])
  }

  @Test("a name with markup and control characters is passed on as the text that it is")
  func markup() {
    let rig = lobby()
    let name = "<script>alert(\"1\")</script>\u{0}\u{202E}"
    rig.connect(4)
    #expect(rig.isDone(4, .login(RoomLogin(named("eve"), name: name))))
    rig.join(4, "lobby")
    let eve = RoomMember(named("peer4"), user: named("eve"), name: name, role: .host)
    #expect(rig.seen(1) == [.peer(RoomPeerChange(.joined, eve))])
  }

  @Test("a room of the most members with the longest names fits into the answer to a join")
  func fullRoom() {
    var settings = RoomHubSettings()
    settings.membersPerRoom = 150
    settings.connectionsPerAddress = 200
    settings.joinsPerSecond = 200
    let rig = HubRig(settings)
    for index in 1...150 {
      rig.connect(UInt64(index))
      let user = named("user\(index)" + String(repeating: "x", count: 56))
      let name = String(repeating: "\u{1}", count: 64)
      #expect(rig.isDone(UInt64(index), .login(RoomLogin(user, name: name))))
      #expect(rig.join(UInt64(index), "lobby")?.peers.count == index - 1)
    }
  }

  // MARK: Roles and tracks

  @Test("a track that is published is told to the others and to the layer above, once")
  func publish() {
    let rig = lobby()
    let audio = RoomPublication(.audio, isOn: true)
    #expect(rig.isDone(1, .publish(audio)))
    #expect(rig.seen(2) == [.peer(RoomPeerChange(.tracks, member(ann, "ann", .host, [.audio])))])
    #expect(rig.actions() == [.publishing(ann, audio)])
    #expect(rig.isDone(1, .publish(audio)))
    #expect(rig.seen(2) == [] && rig.actions() == [])
    #expect(rig.isDone(1, .publish(RoomPublication(.audio, isOn: false))))
    #expect(rig.seen(3).count == 2)
    #expect(rig.actions() == [.publishing(ann, RoomPublication(.audio, isOn: false))])
  }

  @Test("a video that shows something else is told to the layer above")
  func source() {
    let rig = lobby()
    let screen = RoomPublication(.video, isOn: true, source: .screen)
    #expect(rig.isDone(1, .publish(RoomPublication(.video, isOn: true, source: .camera))))
    rig.clear()
    #expect(rig.isDone(1, .publish(screen)))
    #expect(rig.actions() == [.publishing(ann, screen)] && rig.seen(2) == [])
    #expect(rig.refusal(1, .publish(RoomPublication(.audio, isOn: true, source: .camera))) == .badPayload)
  }

  @Test("a member that becomes a viewer publishes nothing any more, until it is a host again")
  func roles() throws {
    let rig = lobby()
    for track in RoomTrack.allCases { _ = rig.ask(1, .publish(RoomPublication(track, isOn: true))) }
    rig.clear()
    let answer = rig.ask(1, .role(.viewer))
    #expect(try answer?.payload(RoomRoleChanged.self) == RoomRoleChanged(.viewer))
    #expect(rig.seen(2) == [.peer(RoomPeerChange(.role, member(ann, "ann", .viewer)))])
    let withdrawn = RoomTrack.allCases.map {
      RoomAction.publishing(ann, RoomPublication($0, isOn: false))
    }
    #expect(rig.actions() == withdrawn + [.role(ann, .viewer)])
    #expect(rig.refusal(1, .publish(RoomPublication(.audio, isOn: true))) == .forbidden)
    #expect(rig.isDone(1, .role(.viewer)))
    #expect(rig.actions() == [])
    #expect(rig.isDone(1, .role(.host)))
    #expect(rig.actions() == [.role(ann, .host)])
    #expect(rig.isDone(1, .publish(RoomPublication(.audio, isOn: true))))
  }

  @Test("subscriptions are kept for each member, and forget a peer that goes")
  func subscribe() {
    let rig = lobby(RoomHubSettings(media: .forward))
    let toAll = RoomSubscription(.audio, isOn: true)
    let notBob = RoomSubscription(.audio, isOn: false, peer: bob)
    #expect(rig.isDone(1, .subscribe(toAll)) && rig.isDone(1, .subscribe(notBob)))
    #expect(rig.actions() == [.subscription(ann, toAll), .subscription(ann, notBob)])
    #expect(rig.hub.receives(ann, .audio, of: zoe) && !rig.hub.receives(ann, .audio, of: bob))
    #expect(!rig.hub.receives(bob, .audio, of: ann) && !rig.hub.receives(ann, .audio, of: ann))
    let late = rig.member(4, "late")
    #expect(rig.hub.receives(ann, .audio, of: late))
    rig.disconnect(4)
    #expect(!rig.hub.receives(ann, .audio, of: late))
  }

  @Test("a member that is muted is shown so, to those who are there and to those who come")
  func muted() {
    let rig = lobby()
    rig.change { $0.setMuted(true, ann) }
    rig.change { $0.setMuted(true, ann) }
    #expect(rig.seen(2) == [.peer(RoomPeerChange(.tracks, member(ann, "ann", isMuted: true)))])
    #expect(rig.seen(1) == [])
    rig.connect(4)
    rig.logIn(4, "late")
    #expect(rig.join(4, "lobby")?.peers.first?.isMuted == true)
  }

  // MARK: Removing

  @Test("a member that is kicked learns why, and the others that it is gone; its connection stays")
  func kick() {
    let rig = lobby()
    #expect(rig.isDone(1, .kick(bob, text: "noise")))
    #expect(rig.seen(2) == [.kicked(.removed, text: "noise")])
    #expect(rig.seen(3) == [.peer(RoomPeerChange(.left(.kicked), member(bob, "bob")))])
    #expect(rig.actions() == [.left(bob, room: named("lobby"))])
    #expect(rig.closed == [:])
    #expect(rig.join(2, "lobby") != nil)
  }

  @Test("a room that is closed is over for everybody, and can be made again")
  func close() {
    let rig = lobby()
    let request = rig.request(1, .close(text: "bye"))
    #expect(rig.answer(1, request)?.result == .success(.object([])))
    #expect(rig.order(1).suffix(2) == ["answer", "kicked"], "the answer is first")
    for connection: UInt64 in 1...3 {
      #expect(rig.seen(connection) == [.kicked(.ended, text: "bye")])
    }
    let room = named("lobby")
    #expect(
      rig.actions() == [
        .left(ann, room: room), .left(bob, room: room), .left(zoe, room: room), .roomEnded(room),
      ])
    #expect(rig.hub.counts.rooms == 0 && rig.hub.counts.members == 0)
    #expect(rig.join(1, "lobby")?.peers == [])
  }

  @Test("the layer above can end a room; one that is not there is no matter")
  func end() {
    let rig = lobby()
    rig.change { $0.end(named("other")) }
    #expect(rig.actions() == [])
    rig.change { $0.end(named("lobby"), text: "late") }
    #expect(rig.seen(3) == [.kicked(.ended, text: "late")])
  }

  // MARK: Who speaks

  @Test("who speaks is told when it changes, and every 200 ms at most")
  func speaking() {
    let rig = lobby()
    let room = named("lobby")
    func speak(_ levels: RoomLevel...) { rig.change { $0.speak(levels, in: room, at: rig.time) } }
    speak()
    #expect(rig.seen(1) == [])
    speak(RoomLevel(bob, -30), RoomLevel(ann, -20))
    #expect(rig.seen(1) == [.speaking([RoomLevel(ann, -20), RoomLevel(bob, -30)])])
    speak(RoomLevel(ann, -20), RoomLevel(bob, -30))
    rig.wait(milliseconds: 100)
    speak(RoomLevel(ann, -10))
    speak(RoomLevel(ann, -11))
    rig.wait(milliseconds: 99)
    #expect(rig.seen(1) == [])
    rig.wait(milliseconds: 1)
    #expect(rig.seen(1) == [.speaking([RoomLevel(ann, -11)])])
    // What has changed back in time is not told.
    speak()
    speak(RoomLevel(ann, -11))
    rig.wait(milliseconds: 500)
    #expect(rig.seen(1) == [])
    speak()
    #expect(rig.seen(1) == [.speaking([])] && rig.seen(3).last == .speaking([]))
  }

  @Test("who is not in the room does not speak there")
  func speakingElsewhere() {
    let rig = lobby()
    let other = rig.member(4, "eve", in: "other")
    rig.clear()
    rig.change { $0.speak([RoomLevel(other, -1)], in: named("lobby"), at: rig.time) }
    rig.change { $0.speak([RoomLevel(ann, -1)], in: named("nowhere"), at: rig.time) }
    #expect(rig.seen(1) == [] && rig.seen(4) == [])
    rig.change { $0.speak([RoomLevel(bob, -1)], in: named("lobby"), at: rig.time) }
    rig.change { $0.speak([RoomLevel(bob, -2), RoomLevel(zoe, -3)], in: named("lobby"), at: rig.time) }
    rig.disconnect(2)
    rig.clear()
    rig.wait(milliseconds: 200)
    #expect(rig.seen(1) == [.speaking([RoomLevel(zoe, -3)])])
  }
}
