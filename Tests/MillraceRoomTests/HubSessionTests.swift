import MillraceCore
import MillraceJSON
import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: logging in, joining and leaving") struct HubSessionTests {
  /// One request of each kind that needs a room, in a form that a host among others may make.
  static let roomOperations: [RoomOperation] = [
    .leave, .role(.viewer), .publish(RoomPublication(.audio, isOn: true)),
    .subscribe(RoomSubscription(.audio, isOn: true)),
    .sdp(RoomDescription(.answer, "v=0"), to: named("peer2")),
    .candidate(RoomCandidate(nil)), .kick(named("peer2")), .close(),
    .control(["command": "interrupt"], to: named("peer2")), .data(RoomData("l", .text("t"))), .message("hi"),
  ]

  static let userOperations: [RoomOperation] = [
    .logout, .join(RoomJoin(named("lobby"))), .call(RoomCallRequest(to: named("bob"))),
    .answerCall(RoomCallAnswer(named("call1"), isAccepted: true)), .hangUp(call: named("call1")),
  ]

  @Test("before login everything else is refused", arguments: roomOperations + userOperations)
  func notLoggedIn(operation: RoomOperation) {
    let rig = HubRig()
    rig.connect(1)
    #expect(rig.refusal(1, operation) == .notLoggedIn)
    #expect(rig.actions() == [])
  }

  @Test("outside a room what needs one is refused", arguments: roomOperations)
  func notInRoom(operation: RoomOperation) {
    let rig = HubRig()
    rig.connect(1)
    rig.logIn(1, "ann")
    #expect(rig.refusal(1, operation) == .notInRoom)
    #expect(rig.actions() == [])
  }

  @Test("in a room all of it is done", arguments: roomOperations)
  func inRoom(operation: RoomOperation) {
    let rig = HubRig()
    rig.member(1, "ann")
    rig.member(2, "bob")
    #expect(rig.isDone(1, operation))
  }

  @Test("a login is answered with the user, and is done again only for the same user")
  func logIn() throws {
    let rig = HubRig()
    rig.connect(1)
    let answer = try #require(rig.ask(1, .login(RoomLogin(named("ann")))))
    #expect(try answer.payload(RoomLoggedIn.self) == RoomLoggedIn(named("ann")))
    #expect(rig.refusal(1, .login(RoomLogin(named("bob")))) == .loggedIn)
    #expect(rig.logIn(1, "ann"))
    #expect(rig.isDone(1, .logout))
    #expect(rig.refusal(1, .logout) == .notLoggedIn)
    #expect(rig.logIn(1, "bob"))
    #expect(rig.hub.counts.users == 1)
  }

  @Test("a member learns who it is and who is there, and the others learn of it")
  func join() {
    var settings = RoomHubSettings(media: .forward)
    settings.servers = [RoomServer("turn:relay", user: "u", password: "p")]
    let rig = HubRig(settings)
    let ann = rig.member(1, "ann", in: "lobby", .viewer)
    rig.connect(2)
    rig.logIn(2, "bob")
    _ = rig.actions()
    let joined = rig.join(2, "lobby")
    let member = RoomMember(named("peer2"), user: named("bob"), name: "BOB", role: .host)
    #expect(
      joined
        == RoomJoined(
          named("peer2"), room: named("lobby"), role: .host, rights: Set(RoomRight.allCases),
          peers: [RoomMember(ann, user: named("ann"), name: "ANN", role: .viewer)], media: .forward,
          servers: settings.servers))
    #expect(rig.seen(1) == [.peer(RoomPeerChange(.joined, member))])
    #expect(rig.seen(2) == [])
    #expect(rig.actions() == [.joined(member, room: named("lobby"), connection: RoomConnectionID(2))])
    #expect(rig.refusal(2, .join(RoomJoin(named("other")))) == .inRoom)
  }

  @Test("members of another room are told nothing")
  func rooms() {
    let rig = HubRig()
    rig.member(1, "ann", in: "a")
    let bob = rig.member(2, "bob", in: "b")
    _ = rig.ask(2, .message("hi"))
    #expect(rig.seen(1) == [])
    #expect(rig.refusal(1, .kick(bob)) == .notFound)
    #expect(rig.refusal(1, .message("hi", to: bob)) == .notFound)
    #expect(rig.refusal(1, .subscribe(RoomSubscription(.audio, isOn: true, peer: bob))) == .notFound)
  }

  @Test("a member that leaves, logs out or is gone is missed by the others, and its room ends with the last")
  func leaving() {
    let rig = HubRig()
    let lobby = named("lobby")
    rig.member(9, "zoe")
    let leave: [(RoomLeaveReason, (UInt64) -> Void)] = [
      (.quit, { _ = rig.ask($0, .leave) }), (.quit, { _ = rig.ask($0, .logout) }),
      (.quit, { rig.disconnect($0, .quit) }), (.dropped, { rig.disconnect($0, .dropped) }),
    ]
    for (index, (reason, leave)) in leave.enumerated() {
      let peer = rig.member(UInt64(index), "user\(index)")
      rig.clear()
      leave(UInt64(index))
      let member = RoomMember(peer, user: named("user\(index)"), name: "USER\(index)", role: .host)
      #expect(rig.seen(9) == [.peer(RoomPeerChange(.left(reason), member))])
      #expect(rig.actions() == [.left(peer, room: lobby)])
    }
    rig.disconnect(9)
    #expect(rig.actions() == [.left(named("peer1"), room: lobby), .roomEnded(lobby)])
    #expect(rig.hub.counts.rooms == 0)
  }

  // MARK: The same user twice

  @Test("a user who joins from elsewhere replaces the first, and the room goes on")
  func replaced() {
    let rig = HubRig()
    let first = rig.member(1, "ann")
    rig.connect(2)
    rig.logIn(2, "ann")
    rig.clear()
    let joined = rig.join(2, "lobby")
    #expect(joined?.peers == [])
    #expect(rig.seen(1) == [.kicked(.replaced)])
    #expect(rig.seen(2) == [])
    let member = RoomMember(named("peer2"), user: named("ann"), name: "ANN", role: .host)
    #expect(
      rig.actions() == [
        .left(first, room: named("lobby")),
        .joined(member, room: named("lobby"), connection: RoomConnectionID(2)),
      ])
    #expect(rig.refusal(1, .leave) == .notInRoom)
    rig.disconnect(1)
    #expect(rig.hub.member(named("peer2")) == member)
    #expect(rig.isDone(2, .leave))
  }

  @Test("the others see the first go and the second come")
  func replacedForOthers() {
    let rig = HubRig()
    rig.member(1, "ann")
    rig.member(3, "zoe")
    rig.clear()
    rig.member(2, "ann")
    let changes = rig.seen(3).map { push in
      if case .peer(let change) = push { change.kind } else { RoomPeerChange.Kind.role }
    }
    #expect(changes == [.left(.replaced), .joined])
  }

  @Test("a hub that keeps the first refuses the second")
  func duplicate() {
    var settings = RoomHubSettings()
    settings.keepsFirst = true
    let rig = HubRig(settings)
    rig.member(1, "ann")
    rig.connect(2)
    rig.logIn(2, "ann")
    rig.clear()
    #expect(rig.refusal(2, .join(RoomJoin(named("lobby")))) == .duplicate)
    #expect(rig.seen(1) == [] && rig.actions() == [])
    #expect(rig.join(2, "other") != nil)
  }

  // MARK: Limits

  @Test("a full room lets in nobody, except who replaces a member")
  func roomFull() {
    var settings = RoomHubSettings()
    settings.membersPerRoom = 2
    let rig = HubRig(settings)
    rig.member(1, "ann")
    rig.member(2, "bob")
    rig.connect(3, 4)
    rig.logIn(3, "zoe")
    rig.logIn(4, "bob")
    #expect(rig.refusal(3, .join(RoomJoin(named("lobby")))) == .roomFull)
    #expect(rig.join(4, "lobby") != nil)
    #expect(rig.seen(2).last == .kicked(.replaced))
  }

  @Test("a hub has as many rooms as it may have, and room again when one ends")
  func tooManyRooms() {
    var settings = RoomHubSettings()
    settings.rooms = 1
    let rig = HubRig(settings)
    rig.member(1, "ann", in: "a")
    rig.connect(2)
    rig.logIn(2, "bob")
    #expect(rig.refusal(2, .join(RoomJoin(named("b")))) == .tooManyRooms)
    _ = rig.ask(1, .leave)
    #expect(rig.join(2, "b") != nil)
  }

  @Test("a thousand joins of one address in a second: most are refused, with a time after which one is done")
  func joinRate() throws {
    var settings = RoomHubSettings()
    settings.connectionsPerAddress = 2_000
    let rig = HubRig(settings)
    var done = 0
    var last: RoomError?
    for connection in 1...1_000 {
      rig.connect(UInt64(connection))
      rig.logIn(UInt64(connection), "user\(connection)")
      let answer = rig.ask(UInt64(connection), .join(RoomJoin(named("room\(connection)"))))
      if case .failure(let error)? = answer?.result { last = error } else { done += 1 }
    }
    #expect(done == settings.joinsPerSecond)
    let error = try #require(last)
    #expect(
      error.name == .tooManyRequests
        && error.text == "too many joins from this address; try again after 50 ms")
    rig.connect(5_000, address: "192.0.2.2")
    rig.logIn(5_000, "far")
    #expect(rig.join(5_000, "far") != nil, "another address has its own limit")
    rig.wait(milliseconds: try #require(error.afterMilliseconds))
    #expect(rig.join(1_000, "late") != nil)
  }

  @Test("a connection above the limit of its address or of the hub is closed, and nothing is kept of it")
  func connections() {
    var settings = RoomHubSettings()
    settings.connectionsPerAddress = 2
    settings.connections = 3
    let rig = HubRig(settings)
    rig.connect(1, 2, 3)
    #expect(rig.closed == [3: 1013])
    rig.connect(4, 5, address: "192.0.2.2")
    #expect(rig.closed == [3: 1013, 5: 1013])
    rig.disconnect(3)
    #expect(rig.hub.counts.connections == 3)
    rig.disconnect(4)
    rig.connect(6, address: "192.0.2.2")
    #expect(rig.closed.count == 2)
    #expect(rig.request(3, .login(RoomLogin(named("ann")))) == 1)
    #expect(rig.answer(3, 1) == nil)
  }

  @Test("ids that are always taken are given up, and nothing is done")
  func noFreeID() {
    var hub = RoomHub(RoomHubSettings()) { _ in named("same") }
    let time = RoomInstant(0, unixMilliseconds: 0)
    for number: UInt64 in 1...2 {
      let connection = RoomConnectionID(number)
      hub.connect(connection, address: "a", at: time)
      hub.take(RoomRequest(1, .login(RoomLogin(named("user\(number)")))).bytes, from: connection, at: time)
      hub.take(RoomRequest(2, .join(RoomJoin(named("room")))).bytes, from: connection, at: time)
    }
    let last = hub.takeActions().last
    let error = RoomError(.tooManyRequests, "the hub has found no free id", afterMilliseconds: 1_000)
    #expect(last == .send(RoomConnectionID(2), RoomAnswer(2, error).bytes))
    #expect(hub.counts.members == 1)
  }
}
