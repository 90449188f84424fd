import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: whom a hub with a key lets in, and for how long") struct HubTokenTests {
  private func logInRefusal(_ rig: HubRig, _ connection: UInt64, _ token: String?) -> RoomErrorName? {
    rig.refusal(connection, .login(RoomLogin(named("ann"), token: token)))
  }

  private func joinRefusal(_ rig: HubRig, _ token: String?, role: RoomRole? = nil) -> RoomErrorName? {
    rig.refusal(1, .join(RoomJoin(named("lobby"), role: role, token: token)))
  }

  /// A connection that is logged in with a token.
  private func user(_ token: String, _ settings: RoomHubSettings = HubRig.keyed) -> HubRig {
    let rig = HubRig(settings)
    rig.connect(1)
    #expect(rig.logIn(1, "ann", token: token))
    return rig
  }

  @Test("a login without a token, with another user's, an expired or a forged one is refused")
  func logIn() {
    let rig = HubRig(HubRig.keyed)
    rig.connect(1)
    #expect(logInRefusal(rig, 1, nil) == .badToken)
    #expect(logInRefusal(rig, 1, HubRig.token("bob")) == .badToken)
    #expect(logInRefusal(rig, 1, HubRig.token("ann", lasts: 0)) == .tokenExpired)
    #expect(logInRefusal(rig, 1, HubRig.token("ann") + "A") == .badToken)
    #expect(rig.refusal(1, .join(RoomJoin(named("lobby")))) == .notLoggedIn)
    #expect(logInRefusal(rig, 1, HubRig.token("ann")) == nil)
  }

  @Test("the answer says how long the token lasts")
  func expiry() throws {
    let rig = HubRig(HubRig.keyed)
    rig.connect(1)
    let answer = rig.ask(1, .login(RoomLogin(named("ann"), token: HubRig.token("ann", lasts: 90))))
    #expect(try answer?.payload(RoomLoggedIn.self).expiresInMilliseconds == 90_000)
  }

  @Test("a token opens its room only")
  func room() {
    let rig = user(HubRig.token("ann", room: "other"))
    #expect(joinRefusal(rig, nil) == .badToken)
    #expect(joinRefusal(rig, HubRig.token("ann", room: "third")) == .badToken)
    #expect(joinRefusal(rig, HubRig.token("bob", room: "lobby")) == .badToken)
    #expect(joinRefusal(rig, HubRig.token("ann", room: "lobby", lasts: -1)) == .tokenExpired)
    #expect(joinRefusal(rig, HubRig.token("ann", room: "lobby")) == nil)
  }

  @Test("a token's role is the highest, and what it does not say is what a speaker needs")
  func roles() {
    let rig = user(HubRig.token("ann", role: .viewer, rights: [.publish, .kick]))
    #expect(joinRefusal(rig, nil, role: .host) == .forbidden)
    let joined = rig.join(1, "lobby")
    #expect(joined?.role == .viewer && joined?.rights == [.kick])
    #expect(rig.refusal(1, .role(.host)) == .forbidden)
    let host = user(HubRig.token("ann")).join(1, "lobby")
    #expect(host?.role == .host && host?.rights == [.publish])
  }

  @Test(
    "what the rights do not allow is refused",
    arguments: [
      (RoomRight.publish, RoomOperation.publish(RoomPublication(.audio, isOn: true))),
      (.kick, .kick(named("peer2"))), (.close, .close()),
    ])
  func rights(right: RoomRight, operation: RoomOperation) {
    for isAllowed in [false, true] {
      let all = Set(RoomRight.allCases)
      let rig = user(HubRig.token("ann", rights: isAllowed ? [right] : all.subtracting([right])))
      #expect(rig.join(1, "lobby") != nil)
      rig.connect(2)
      rig.logIn(2, "bob", token: HubRig.token("bob"))
      #expect(rig.join(2, "lobby") != nil)
      _ = rig.seen(2)
      #expect(rig.refusal(1, operation) == (isAllowed ? nil : .forbidden))
      #expect(rig.seen(2).isEmpty == !isAllowed)
    }
  }

  @Test("a value that lets in once lets in one connection, which may show it again")
  func once() {
    let token = HubRig.token("ann", once: "x1")
    let rig = user(token)
    #expect(logInRefusal(rig, 1, token) == nil)
    #expect(joinRefusal(rig, token) == nil)
    rig.connect(2)
    #expect(logInRefusal(rig, 2, token) == .tokenUsed)
    #expect(logInRefusal(rig, 2, HubRig.token("ann", once: "x2")) == nil)
    rig.disconnect(1)
    rig.connect(3)
    #expect(logInRefusal(rig, 3, token) == .tokenUsed)
    #expect(rig.hub.counts.onceValues == 2)
    rig.wait(milliseconds: 3_600_000)
    #expect(rig.hub.counts.onceValues == 0)
    #expect(logInRefusal(rig, 3, token) == .tokenExpired)
  }

  @Test("a join that is refused does not use its token up")
  func onceRefused() {
    let rig = user(HubRig.token("ann"))
    let token = HubRig.token("ann", role: .viewer, once: "x1")
    #expect(joinRefusal(rig, token, role: .host) == .forbidden)
    #expect(rig.hub.counts.onceValues == 0)
    #expect(joinRefusal(rig, token) == nil)
    _ = rig.ask(1, .leave)
    #expect(joinRefusal(rig, token) == .tokenUsed)
  }

  @Test("while no more values can be remembered, tokens with one are not let in")
  func onceFull() {
    var settings = HubRig.keyed
    settings.onceValues = 1
    let rig = user(HubRig.token("ann", lasts: 10, once: "x1"), settings)
    rig.connect(2)
    #expect(logInRefusal(rig, 2, HubRig.token("ann", once: "x2")) == .tooManyRequests)
    #expect(rig.hub.counts.users == 1)
    rig.wait(milliseconds: 10_000)
    #expect(logInRefusal(rig, 2, HubRig.token("ann", once: "x2")) == nil)
  }

  // MARK: The end of a token

  @Test("a member is warned 30 s before its token ends, and is out of the room then")
  func expires() {
    let rig = user(HubRig.token("ann", lasts: 100))
    let ann = rig.join(1, "lobby")?.peer
    rig.connect(2)
    rig.logIn(2, "bob", token: HubRig.token("bob"))
    rig.join(2, "lobby")
    rig.clear()
    rig.wait(milliseconds: 69_999)
    #expect(rig.seen(1) == [])
    rig.wait(milliseconds: 1)
    #expect(rig.seen(1) == [.authWillExpire(inMilliseconds: 30_000)])
    rig.wait(milliseconds: 29_999)
    #expect(rig.seen(1) == [] && rig.seen(2) == [])
    rig.wait(milliseconds: 1)
    #expect(rig.seen(1) == [.kicked(.expired)])
    let left = rig.seen(2)
    if case .peer(let change)? = left.first {
      #expect(change.kind == .left(.expired) && change.member.peer == ann)
    } else {
      Issue.record("the others were told \(left)")
    }
    #expect(joinRefusal(rig, nil) == .tokenExpired)
    #expect(rig.refusal(1, .call(RoomCallRequest(to: named("bob")))) == .tokenExpired)
    #expect(rig.refusal(2, .call(RoomCallRequest(to: named("ann")))) == .notFound)
    #expect(rig.closed == [:])
    #expect(rig.logIn(1, "ann", token: HubRig.token("ann", lasts: 200)))
    #expect(joinRefusal(rig, nil) == nil)
  }

  @Test("a new token keeps a member in its room, and it is warned again")
  func renewal() {
    let rig = user(HubRig.token("ann", lasts: 100))
    rig.join(1, "lobby")
    rig.wait(milliseconds: 80_000)
    #expect(rig.logIn(1, "ann", token: HubRig.token("ann", room: "lobby", lasts: 200)))
    rig.clear()
    rig.wait(milliseconds: 90_000)
    #expect(rig.seen(1) == [.authWillExpire(inMilliseconds: 30_000)])
    #expect(rig.hub.counts.members == 1)
    rig.wait(milliseconds: 30_000)
    #expect(rig.seen(1) == [.kicked(.expired)])
  }

  @Test("a new token that does not allow what the member is and does is refused, and the old one counts")
  func wrongRenewal() {
    let rig = user(HubRig.token("ann", lasts: 100))
    rig.join(1, "lobby")
    _ = rig.ask(1, .publish(RoomPublication(.audio, isOn: true)))
    #expect(logInRefusal(rig, 1, HubRig.token("ann", room: "other")) == .badToken)
    #expect(logInRefusal(rig, 1, HubRig.token("ann", role: .viewer)) == .forbidden)
    #expect(logInRefusal(rig, 1, HubRig.token("ann", rights: [.close])) == .forbidden)
    #expect(logInRefusal(rig, 1, nil) == .badToken)
    rig.clear()
    rig.wait(milliseconds: 100_000)
    #expect(rig.seen(1) == [.authWillExpire(inMilliseconds: 30_000), .kicked(.expired)])
  }

  @Test("in a room the token counts that was shown there, and outside that of the login")
  func entryToken() {
    let rig = user(HubRig.token("ann", lasts: 1_000))
    #expect(joinRefusal(rig, HubRig.token("ann", room: "lobby", rights: [.kick], lasts: 50)) == nil)
    #expect(rig.refusal(1, .publish(RoomPublication(.audio, isOn: true))) == .forbidden)
    rig.wait(milliseconds: 50_000)
    #expect(rig.seen(1) == [.authWillExpire(inMilliseconds: 30_000), .kicked(.expired)])
    #expect(rig.join(1, "lobby")?.rights == [.publish])
  }

  @Test("a token that lasts longer than time is counted is no problem")
  func longToken() {
    let rig = user(HubRig.token("ann", lasts: RoomToken.lastExpiry - HubRig.start))
    #expect(rig.join(1, "lobby") != nil)
    rig.wait(milliseconds: 1_000_000_000)
    #expect(rig.hub.counts.members == 1)
  }

  @Test("a wall clock that is set throws nobody out")
  func wallClock() {
    let rig = user(HubRig.token("ann", lasts: 100))
    rig.join(1, "lobby")
    rig.setClock(seconds: HubRig.start + 1_000_000)
    rig.wait(milliseconds: 60_000)
    #expect(rig.hub.counts.members == 1)
    rig.setClock(seconds: HubRig.start - 1_000_000)
    rig.wait(milliseconds: 40_000)
    #expect(rig.hub.counts.members == 0)
  }

  @Test("a hub without a key needs no token, and looks at none")
  func noKey() {
    let rig = user("nonsense", RoomHubSettings())
    #expect(joinRefusal(rig, "other nonsense") == nil)
    #expect(rig.hub.counts.expiries == 0)
  }
}
