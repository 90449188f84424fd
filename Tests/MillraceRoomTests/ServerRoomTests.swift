import MillraceCore
import MillraceCrypto
import MillraceNet
import MillraceRoomWire
import TestNet
import Testing

@testable import MillraceRoom

@Suite("Room server: members over sockets", .timeLimit(.minutes(30))) struct ServerRoomTests {
  @Test("two members meet, write to each other, and leave; whoever runs the hub is told")
  func meeting() async throws {
    let rig = try await ServerRig.begin()
    let (ann, annJoined) = try await rig.member("ann", name: "Ann")
    #expect(ann.subprotocol == RoomWire.subprotocol)
    let (bob, bobJoined) = try await rig.member("bob")
    #expect(annJoined.peers == [] && bobJoined.peers.map(\.name) == ["Ann"])
    #expect(annJoined.media == nil && annJoined.peer != bobJoined.peer)
    // The pushes of a member come in the order in which the hub sent them.
    let lines = (0..<50).map { "line \($0)" }
    for line in lines { bob.request(.data(RoomData("chat", .text(line)), to: annJoined.peer)) }
    try await serverWaits(until: "the last line") { ann.pushes.count > lines.count }
    let expected = lines.map { RoomPush.data(RoomData("chat", .text($0)), from: bobJoined.peer) }
    #expect(Array(ann.pushes.dropFirst()) == expected)
    var counts = RoomServerCounts()
    (counts.connections, counts.members, counts.rooms) = (2, 2, 1)
    #expect(rig.server.counts == counts)
    bob.socket.close()
    #expect(try await ann.left("bob") == .quit)
    ann.request(.leave)
    try await serverWaits(until: "the end of the room") { rig.events.count >= 6 }
    #expect(rig.server.counts.rooms == 0)
    let room = annJoined.room
    let names = rig.events.map { event in
      switch event {
      case .roomBegan(room): "began"
      case .joined(let member, room): "joined \(member.user)"
      case .left(annJoined.peer, room): "left ann"
      case .left(bobJoined.peer, room): "left bob"
      case .roomEnded(room): "ended"
      default: "\(event)"
      }
    }
    #expect(names == ["began", "joined ann", "joined bob", "left bob", "left ann", "ended"])
    #expect(ann.problems == [] && bob.problems == [])
    await rig.server.stop()
  }

  @Test("a display name with markup arrives as it was sent")
  func markup() async throws {
    let rig = try await ServerRig.begin()
    let name = #"<img src=x onerror="alert(1)">&amp;</script>'"#
    let (ann, _) = try await rig.member("ann")
    let (bob, _) = try await rig.member("bob", name: name)
    let seen = try await ann.push("that bob has joined") { push -> String? in
      if case .peer(let change) = push { change.member.name } else { nil }
    }
    #expect(seen == name)
    let (_, joined) = try await rig.member("eve")
    #expect(joined.peers.map(\.name) == ["ann", name])
    #expect(bob.problems == [])
    await rig.server.stop()
  }

  @Test("a page that vanishes has been dropped, and the room goes on")
  func vanishes() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let (bob, _) = try await rig.member("bob")
    bob.socket.cancel()
    #expect(try await ann.left("bob") == .dropped)
    #expect(try await ann.isAlive())
    await rig.server.stop()
  }

  @Test("a member that is not heard any more is gone")
  func unheard() async throws {
    // By default, a ping every 10 s and 30 s in all.
    let wire = RoomServerSettings(port: 0).limits.webSocket
    #expect(wire.ping == 10_000 && wire.ping + wire.pong == 30_000)
    let rig = try await ServerRig.begin {
      $0.socket.ping = 1_000
      $0.socket.pong = 20_000
    }
    let (bob, _) = try await rig.member("bob")
    // It reads nothing more, and so answers no ping.
    bob.socket.pause()
    try await serverWaits(until: "bob to be gone") { rig.server.counts.connections == 0 }
    bob.socket.cancel()
    await rig.server.stop()
  }

  @Test("a member that reads nothing is dropped when its backlog is full, and the others miss nothing")
  func slowReader() async throws {
    let rig = try await ServerRig.begin {
      $0.backlog = 2 * RoomLimits.messageBytes
      $0.hub.requestsPerSecond = 100_000
      $0.hub.messageBytesPerSecond = 1_000_000_000
    }
    let (ann, _) = try await rig.member("ann")
    let (bob, _) = try await rig.member("bob")
    let (eve, _) = try await rig.member("eve")
    bob.socket.pause()
    let text = String(repeating: "x", count: 100_000)
    var sent = 0
    // The buffers of the system take some megabytes before anything waits.
    while !ann.pushes.contains(where: { Self.isLeaving($0) }), sent < 2_000 {
      let refusal = try await ann.refusal(.data(RoomData("\(sent)", .text(text))))
      #expect(refusal == nil)
      sent += 1
    }
    #expect(try await ann.left("bob") == .dropped)
    #expect(rig.events.contains(.stalled(address: "127.0.0.1")) && rig.server.counts.stalled == 1)
    let labels = (0..<sent).map { "\($0)" }
    try await serverWaits(until: "all messages") { Self.labels(eve) == labels }
    bob.socket.cancel()
    await rig.server.stop()
  }

  @Test("drops of slow members are reported at once, and then once a second")
  func stallReports() {
    var reports = StallReports()
    let second: Nanoseconds = 1_000_000_000
    let steps = [0, 1, 2].map { reports.take("\($0)", at: 5 + $0) }
    #expect(steps == [.report, .wait(second - 1), .nothing])
    let waiting = reports.takeWaiting(at: second + 5)
    #expect(waiting == "2" && reports.count == 3)
    let none = reports.takeWaiting(at: second + 5)
    let next = reports.take("x", at: second + 6)
    #expect(none == nil && next == .wait(second - 1))
    _ = reports.takeWaiting(at: 2 * second + 6)
    let later = reports.take("y", at: 4 * second)
    #expect(later == .report && reports.count == 5)
  }

  private static func isLeaving(_ push: RoomPush) -> Bool {
    if case .peer(let change) = push { change.kind == .left(.dropped) } else { false }
  }

  /// The labels of the data that a member has received.
  private static func labels(_ member: ServerMember) -> [String] {
    member.pushes.compactMap { push -> String? in
      if case .data(let data, _) = push { data.label } else { nil }
    }
  }

  @Test("a token opens what it says, as long as it lasts")
  func tokens() async throws {
    let key = HubRig.key
    let rig = try await ServerRig.begin { $0.hub.key = key }
    let end = UnixTime.seconds + 3_600
    func login(_ token: RoomToken?, key: SecretKey = HubRig.key) -> RoomOperation {
      .login(RoomLogin(named("ann"), token: token?.signed(with: key)))
    }
    let ann = try await rig.connect()
    #expect(try await ann.refusal(login(nil)) == .badToken)
    let good = RoomToken(named("ann"), room: named("r1"), expiry: end, once: "x")
    #expect(try await ann.refusal(login(good, key: SecretKey(utf8: "other"))) == .badToken)
    #expect(try await ann.refusal(login(RoomToken(named("bob"), expiry: end))) == .badToken)
    #expect(try await ann.refusal(login(RoomToken(named("ann"), expiry: HubRig.start))) == .tokenExpired)
    #expect(try await ann.refusal(login(good)) == nil)
    #expect(try await ann.refusal(.join(RoomJoin(named("r2")))) == .badToken)
    #expect(try await ann.refusal(.join(RoomJoin(named("r1")))) == nil)
    let other = try await rig.connect()
    #expect(try await other.refusal(login(good)) == .tokenUsed)
    #expect(rig.events.allSatisfy { !"\($0)".contains(good.signed(with: key)) })
    await rig.server.stop()
  }

  @Test("ids of peers are random, and no two are the same")
  func ids() {
    let ids = (0..<1_000).map { _ in RoomID.random() }
    #expect(Set(ids).count == ids.count)
    #expect(ids.allSatisfy { $0.rawValue.utf8.count == 22 })
  }

  @Test(
    "the limits of an address are those of a customer",
    arguments: [
      ("192.0.2.1:46146", "192.0.2.1"), ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
      ("[2001:db8:1:2:3:4:5:6]:80", "2001:db8:1:2::/64"), ("[::1]:80", "0:0:0:0::/64"),
      ("[x]:80", "x"), ("unknown address", "unknown address"), ("", ""),
    ])
  func addresses(peer: String, counted: String) {
    #expect(ClientAddress.counted(peer) == counted)
  }
}
