import MillraceCore
import MillraceCrypto
import MillraceJSON
import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: how much of one member reaches the hub and the others") struct HubLimitTests {
  /// A message that is nearly as long as any may be.
  private static let large = RoomOperation.data(RoomData("x", .text(String(repeating: "x", count: 129_000))))

  /// What waits for a member that takes nothing, as its backlog counts it.
  private func waiting(_ pushes: [RoomPush]) -> Int {
    pushes.reduce(0) { $0 + $1.bytes.count + PassingLimits.overhead }
  }

  private func pauses(_ rig: HubRig) -> [(connection: UInt64, time: Nanoseconds)] {
    rig.actions().compactMap { action -> (connection: UInt64, time: Nanoseconds)? in
      guard case .pause(let connection, let time) = action else { return nil }
      return (connection.number, time)
    }
  }

  // MARK: What is passed on

  @Test("one that sends as much as it can fills nobody's backlog, whether to all or to one")
  func oneFlood() throws {
    let rig = HubRig()
    rig.member(1, "eve", .viewer)
    let bob = rig.member(2, "bob")
    rig.member(3, "zoe")
    rig.clear()
    let text = String(repeating: "x", count: 129_000)
    let direct: [RoomOperation] = [
      .data(RoomData("x", .text(text)), to: bob), .sdp(RoomDescription(.offer, text), to: bob),
      .candidate(RoomCandidate(text), to: bob),
      .control(["command": .string(text)], to: bob),
    ]
    var refused = 0
    for _ in 0..<10 {
      for operation in [Self.large] + direct where rig.refusal(1, operation) == .tooManyRequests {
        refused += 1
      }
    }
    #expect(refused == 49, "one passes at once")
    #expect(waiting(rig.seen(2)) < RoomServerSettings(port: 0).backlog / 2)
    // The time that the answer says is the one.
    guard case .failure(let error)? = rig.ask(1, Self.large)?.result else {
      Issue.record("it was done")
      return
    }
    #expect(error.text.hasPrefix("too many bytes of messages from this member; try again after "))
    let wait = try #require(error.afterMilliseconds)
    rig.wait(milliseconds: wait - 1)
    #expect(rig.refusal(1, Self.large) == .tooManyRequests)
    rig.wait(milliseconds: 1)
    #expect(rig.isDone(1, Self.large) && rig.seen(3).count == 2)
  }

  @Test("many that send as much as they can, to all and to one, do not fill its backlog at once")
  func manyFlood() {
    let rig = HubRig()
    let bob = rig.member(1, "bob")
    for connection: UInt64 in 2..<12 { rig.member(connection, "user\(connection)") }
    rig.clear()
    let text = String(repeating: "x", count: 60_000)
    var refusals: Set<String> = []
    for connection: UInt64 in 2..<12 {
      for operation in [RoomOperation.data(RoomData("x", .text(text))), .message("to", to: bob)] {
        _ = rig.ask(connection, operation)
      }
      let request = rig.request(connection, .data(RoomData("x", .text(text)), to: bob))
      if case .failure(let error)? = rig.answer(connection, request)?.result {
        refusals.insert(String(error.text.prefix { $0 != ";" }))
      }
    }
    #expect(waiting(rig.seen(1)) < RoomServerSettings(port: 0).backlog)
    #expect(refusals == ["too many bytes of messages for this peer"])
    #expect(rig.refusal(1, Self.large) == .tooManyRequests, "the room has its share")
    rig.wait(milliseconds: 3_000)
    #expect(rig.isDone(1, Self.large))
  }

  @Test("small messages count with what they cost besides their bytes")
  func smallMessages() {
    var settings = RoomHubSettings()
    settings.requestsPerSecond = 100_000
    let rig = HubRig(settings)
    rig.member(1, "eve")
    rig.member(2, "bob")
    rig.clear()
    for _ in 0..<2_000 { _ = rig.ask(1, .message("m")) }
    #expect(waiting(rig.seen(2)) <= 147_456)
  }

  @Test("150 members of a room that all write are not refused")
  func fullRoom() {
    var settings = RoomHubSettings()
    settings.membersPerRoom = 150
    settings.connectionsPerAddress = 200
    settings.joinsPerSecond = 200
    let rig = HubRig(settings)
    for connection: UInt64 in 1...150 { rig.member(connection, "user\(connection)") }
    let text = String(repeating: "m", count: 200)
    for _ in 0..<2 {
      for connection: UInt64 in 1...150 { #expect(rig.isDone(connection, .message(text))) }
      rig.wait(milliseconds: 1_000)
    }
    #expect(pauses(rig).isEmpty)
  }

  @Test("what members change for all to see has a limit, but to give something up is always done")
  func changes() {
    let rig = HubRig()
    rig.member(1, "eve")
    rig.member(2, "bob")
    rig.clear()
    for index in 0..<30 {
      let isDone = rig.isDone(1, .publish(RoomPublication(.audio, isOn: true)))
      #expect(isDone == (index < 20))
      #expect(rig.isDone(1, .publish(RoomPublication(.audio, isOn: false))))
    }
    #expect(rig.seen(2).count == 40)
    #expect(rig.isDone(1, .role(.viewer)) && rig.refusal(1, .role(.host)) == .tooManyRequests)
    rig.wait(milliseconds: 200)
    #expect(rig.isDone(1, .role(.host)))
    let camera = RoomPublication(.video, isOn: true, source: .camera)
    #expect(rig.refusal(1, .publish(camera)) == .tooManyRequests)
    #expect(rig.isDone(2, .publish(camera)), "another member has its own limit")
  }

  // MARK: What is read

  @Test("a flood of messages is read no further, one within the limits is never paused")
  func pace() {
    let rig = HubRig()
    rig.member(1, "ann")
    rig.clear()
    for _ in 0..<5 {
      for _ in 0..<200 { _ = rig.ask(1, .hangUp(call: named("none"))) }
      rig.wait(milliseconds: 1_000)
    }
    #expect(pauses(rig).isEmpty)
    rig.member(2, "eve")
    rig.clear()
    for _ in 0..<500 { _ = rig.ask(2, .hangUp(call: named("none"))) }
    let floods = pauses(rig)
    #expect(floods.allSatisfy { $0.connection == 2 })
    // Beyond 400 at once, each message is one of 400 a second.
    #expect((98...104).contains(floods.count))
    #expect((240_000_000...260_000_000).contains(floods.map { $0.time }.max() ?? 0))
  }

  @Test("large messages count by their bytes")
  func largeMessages() {
    let rig = HubRig()
    rig.member(1, "eve")
    rig.clear()
    let padded = Array(#"{"id":1,"op":"leave"}"#.utf8) + [UInt8](repeating: 0x20, count: 130_000)
    var sent = 0
    while pauses(rig).isEmpty, sent < 15 {
      rig.send(1, padded)
      sent += 1
    }
    #expect(sent == 7)
  }

  @Test("the connections of an address have a limit together")
  func address() {
    let rig = HubRig()
    for connection: UInt64 in 1...10 { rig.connect(connection) }
    rig.connect(11, address: "192.0.2.2")
    for connection: UInt64 in 1...10 {
      for _ in 0..<190 { _ = rig.ask(connection, .leave) }
    }
    #expect(pauses(rig).count > 200, "1,600 of 1,900 are read at once")
    for _ in 0..<190 { _ = rig.ask(11, .leave) }
    #expect(pauses(rig).isEmpty)
  }

  @Test("a connection that is closed is not paused: its close frame has to be read")
  func closed() {
    let rig = HubRig()
    rig.member(1, "eve")
    rig.clear()
    // With the login and the join, the last three are beyond 399.
    for _ in 0..<384 { _ = rig.ask(1, .hangUp(call: named("none"))) }
    for _ in 0..<16 { rig.send(1, "x") }
    #expect(rig.closed == [1: 1008] && pauses(rig).count == 2, "not for the message that closes it")
  }
}

@Suite("Room: users that are part of the hub's own program") struct HubReservedTests {
  private let own = SecretKey(utf8: "own key")

  private func settings(_ key: SecretKey? = nil) -> RoomHubSettings {
    var settings = RoomHubSettings(key: key)
    settings.reserved = [named("bot"): own]
    return settings
  }

  private func token(_ user: String, _ key: SecretKey) -> String {
    RoomToken(named(user), rights: [.publish, .kick, .close], expiry: RoomToken.lastExpiry).signed(with: key)
  }

  @Test("nobody else gets in by such a name, whether the hub has a key or not", arguments: [false, true])
  func others(hasKey: Bool) {
    let rig = HubRig(settings(hasKey ? HubRig.key : nil))
    rig.connect(1, 2)
    for wrong in [nil, "x", token("bot", HubRig.key), token("ann", own)] {
      let refusal = rig.refusal(1, .login(RoomLogin(named("bot"), token: wrong)))
      #expect(refusal == .forbidden || refusal == .badToken)
    }
    #expect(rig.hub.counts.users == 0)
    #expect(rig.logIn(1, "bot", token: token("bot", own)))
    #expect(rig.join(1, "lobby")?.rights == [.publish, .kick, .close])
    #expect(rig.logIn(2, "ann", token: hasKey ? HubRig.token("ann") : nil))
    #expect(rig.hub.counts.users == 2)
  }

  @Test("nobody removes or replaces them; the others can be removed as ever")
  func kick() {
    let rig = HubRig(settings())
    rig.connect(1)
    rig.logIn(1, "bot", token: token("bot", own))
    let bot = rig.join(1, "lobby")?.peer ?? named("nobody")
    let bob = rig.member(2, "bob")
    rig.clear()
    #expect(rig.refusal(2, .kick(bot)) == .forbidden && rig.seen(1) == [])
    rig.connect(3)
    #expect(rig.refusal(3, .login(RoomLogin(named("bot")))) == .forbidden)
    #expect(rig.isDone(1, .kick(bob)))
    #expect(rig.hub.counts.members == 1)
  }
}

@Suite("Room: what is printed of settings") struct HubDescriptionTests {
  @Test("settings of a hub print neither keys nor the passwords of their servers")
  func settings() {
    var settings = RoomHubSettings(key: SecretKey(utf8: "room-key"), media: .forward)
    settings.servers = [RoomServer("turn:relay", user: "turn-user", password: "turn-password")]
    #expect("\(settings)" == "media forward, a key, up to 1000 rooms of 100 members")
    #expect("\(RoomHubSettings(media: nil))" == "no media, no key, up to 1000 rooms of 100 members")
    #expect("\(settings.servers)" == "[turn:relay]")
  }
}
