import MillraceCore
import MillraceCrypto
import MillraceNet
import MillraceRoomWire
import TestNet
import Testing

@testable import MillraceRoom

@Suite("Room server: where it listens, and how it stops", .timeLimit(.minutes(30))) struct ServerSettingsTests
{
  @Test(
    "a hub without a key listens on this machine only, also where plaintext is allowed",
    arguments: [
      "0.0.0.0", "::", "hub.example", "127.0.0.1#x.example", "127.0.0.1/x", "127.0.0.1:80", "127.1",
      "127.0.0.1?x", "localhost.x.example",
    ])
  func noKey(host: String) async {
    let problem = await ServerRig.refusal {
      $0.host = host
      $0.admission.allowsPlaintext = true
    }
    #expect(
      problem
        == NetError(
          .address,
          "other machines could reach \"\(host)\", and without a key the hub lets anybody in with all rights; "
            + "set a key, or listen on 127.0.0.1"))
  }

  @Test(
    "this machine's own addresses need no key", arguments: ["127.0.0.1", "localhost", "LOCALHOST", "::1"])
  func local(host: String) {
    let settings = ServerRig.settings { $0.host = host }
    #expect(settings.problem == nil)
    #expect(["127.0.0.1", "::1"].contains(settings.boundHost), "no resolver is asked")
  }

  @Test("other settings that cannot work are refused, with the cure")
  func problems() async {
    let plain = await ServerRig.refusal {
      $0.host = "0.0.0.0"
      $0.hub.key = HubRig.key
    }
    #expect(plain?.text.contains("without TLS; set a certificate") == true)
    let rooms = await ServerRig.refusal { $0.hub.rooms = 0 }
    #expect(rooms?.text.contains("choose 1 to") == true)
    let backlog = await ServerRig.refusal { $0.backlog = 1 }
    #expect(backlog?.text == "a backlog of 1 bytes is not possible; choose 262144 to 1073741824")
    let origin = await ServerRig.refusal { $0.admission.origins = ["example.org/x"] }
    #expect(origin?.kind == .address)
    let port = await ServerRig.refusal { $0.port = 65_536 }
    #expect(port?.kind == .address)
  }

  @Test("a port that is taken is an error")
  func taken() async throws {
    let rig = try await ServerRig.begin()
    let port = rig.server.port
    let problem = await ServerRig.refusal { $0.port = port }
    #expect(problem?.kind == .connect && problem?.text.contains(":\(port)") == true)
    await rig.server.stop()
  }

  @Test("settings do not print what is secret")
  func description() {
    let settings = ServerRig.settings {
      $0.hub.key = SecretKey(utf8: "room-key")
      $0.admission.token = "bearer"
      $0.port = 8080
    }
    #expect("\(settings)" == "hub at 127.0.0.1:8080")
  }

  @Test("members connect over TLS")
  func secure() async throws {
    let rig = try await ServerRig.begin { $0.identity = Certificates.localhost }
    let client = try ServerMember(
      rig.server.port,
      {
        $0.protocols = [RoomWire.subprotocol]
        $0.trust = .file(Certificates.authority)
      }, scheme: "wss", host: "localhost")
    try await client.opened()
    #expect(try await client.isAlive())
    await rig.server.stop()
  }

  @Test("the hub has room for its own connections, whatever the rules of the port say")
  func connections() {
    let settings = ServerRig.settings {
      $0.admission.connections = 10
      $0.hub.connections = 5_000
    }
    #expect(settings.rules(within: nil).connections > 5_000)
    #expect(settings.rules(within: 20_000).connections > 5_000)
    // Not more than the process can open, with some left for media.
    #expect(settings.rules(within: 1_024).connections == 768)
    #expect(settings.rules(within: 1).connections == 1)
  }

  @Test("messages count in the backlog with what they cost besides their bytes")
  func messageCost() {
    #expect(RoomServerSettings(port: 0).limits.webSocket.messageCost == PassingLimits.overhead)
  }

  @Test("a hub that stops sends what it has, closes with 1001, and is empty")
  func stop() async throws {
    let rig = try await ServerRig.begin()
    let (ann, annJoined) = try await rig.member("ann")
    let (bob, _) = try await rig.member("bob")
    let idle = try await rig.connect()
    try await ann.ask(.message("good night"))
    let port = rig.server.port
    async let first: Void = rig.server.stop()
    async let second: Void = rig.server.stop()
    _ = await (first, second)
    for member in [ann, bob, idle] {
      let end = try await member.closed()
      #expect(end.code == 1001 && !end.isLocal && end.problem == nil)
    }
    #expect(bob.pushes.last == .message("good night", from: annJoined.peer))
    let counts = rig.server.counts
    #expect(counts.connections == 0 && counts.members == 0 && counts.rooms == 0)
    #expect(rig.events.suffix(3).contains(.roomEnded(annJoined.room)))
    let late = try ServerMember(port)
    #expect(try await late.closed().problem != nil)
    await rig.server.stop()
  }

  @Test("it stops also when a member does not answer, and without a task")
  func stopUnanswered() async throws {
    let rig = try await ServerRig.begin { $0.socket.close = 50 }
    let (ann, _) = try await rig.member("ann")
    ann.socket.pause()
    let isOver = Locked(false)
    rig.server.stop { isOver.withLock { $0 = true } }
    try await serverWaits(until: "the end") { isOver.withLock { $0 } }
    #expect(rig.server.counts.connections == 0)
    ann.socket.cancel()
    // Again, when it is over.
    let isOverAgain = Locked(false)
    rig.server.stop { isOverAgain.withLock { $0 = true } }
    try await serverWaits(until: "the end again") { isOverAgain.withLock { $0 } }
  }
}
