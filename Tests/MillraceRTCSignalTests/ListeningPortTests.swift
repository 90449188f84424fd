import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceRTCWire
import Testing

@testable import MillraceRTCSignal

@Suite("Ports of WHIP and WHEP as server", .timeLimit(.minutes(30))) struct ListeningPortTests {
  private func made(port: Int, hasHadPort: Bool = false) -> ResourceServerSettings {
    var settings = ResourceServerSettings(
      role: .ingest, port: port, path: "/whip", media: SignalMedia(audio: .receiveOnly))
    settings.hasHadPort = hasHadPort
    return settings
  }

  /// Why a server with these settings cannot listen.
  private func failure(_ settings: ResourceServerSettings) async throws -> DialogError {
    let (server, log) = (ResourceServer(settings), SignalLog())
    server.begin { log.take($0) }
    let error = try await log.closed()
    #expect(!server.hasHadPort || settings.hasHadPort)
    await server.ended()
    return error
  }

  /// A server of another kind, which shares its port with nobody.
  private func otherServer() async throws -> HTTPServer {
    try await HTTPServer.listen(port: 0, on: .shared, decide: { _ in .refuse(status: 404, "nothing") })
  }

  @Test("a port that is in use at the start is refused at once, with the port and the cure")
  func inUse() async throws {
    let other = try await otherServer()
    let error = try await failure(made(port: other.port))
    #expect(error.name == "failed" && error.reaction == .refuse && error.category != .network)
    #expect(
      error.text == """
        cannot listen on 127.0.0.1:\(other.port): address in use; end the program or the node that listens \
        there, or set another "listen"
        """)
    other.stopListening()
  }

  @Test("a port that was had before and is in use now is waited for")
  func inUseAgain() async throws {
    let other = try await otherServer()
    let error = try await failure(made(port: other.port, hasHadPort: true))
    #expect(error.name == "network" && error.reaction == .reconnect, "\(error)")
    other.stopListening()
  }

  @Test("an address that this machine does not have is refused at once, with the cure")
  func foreignAddress() async throws {
    var settings = made(port: 0)
    // Of the documentation (RFC 5737).
    settings.host = "203.0.113.7"
    settings.plain = true
    let error = try await failure(settings)
    #expect(error.name == "failed" && error.reaction == .refuse, "\(error)")
    #expect(error.text.contains("203.0.113.7") && error.text.contains("set \"host\" to an address of this"))
  }

  @Test("a server that has listened has had its port, also once it has ended")
  func hadPort() async throws {
    let tested = try await TestedServer.begin()
    #expect(tested.server.hasHadPort)
    await tested.server.ended()
    #expect(tested.server.hasHadPort && tested.server.port == 0)
    #expect(!ResourceServer(made(port: 0)).hasHadPort)
  }

  // MARK: Shared ports

  /// Three servers on one port, in this order.
  private func shared() async throws -> [TestedServer] {
    // A port that was free a moment ago.
    let before = try await TestedServer.begin()
    await before.server.ended()
    var servers: [TestedServer] = []
    for path in ["/a", "/b", "/c"] {
      servers.append(try await TestedServer.begin(port: before.port, path: path))
    }
    return servers
  }

  /// Statuses of the clients that a server has reported as refused, one for each client.
  private func refused(_ tested: TestedServer) -> [Int] {
    tested.log.all.flatMap { event -> [Int] in
      guard case .event(.extra("refused", let payload)) = event else { return [] }
      return [Int](repeating: payload["code"]?.integer ?? 0, count: payload["count"]?.integer ?? 0)
    }
  }

  @Test(
    "who is refused before a path is known is reported once, by the first server of the port",
    arguments: [("Origin", "https://evil.example", 403), ("X-Test", "nobody", 404)])
  func reportedOnce(header: String, value: String, status: Int) async throws {
    let servers = try await shared()
    func request(_ tested: TestedServer) async throws -> Int {
      let path = status == 404 ? "/nowhere/at/all" : tested.path
      return try await tested.send("POST", path, "", [(name: header, value: value)]).status
    }
    #expect(try await request(servers[1]) == status)
    _ = try await servers[0].log.extra("refused")
    #expect(refused(servers[0]) == [status])
    // What comes later at the others shows that nothing came before.
    for other in servers.dropFirst() {
      #expect(try await other.send("PUT").status == 405)
      _ = try await other.log.extra("refused")
      #expect(refused(other) == [405])
    }
    await servers[0].server.ended()
    #expect(try await request(servers[2]) == status)
    _ = try await awaited(servers.map(\.log)) { refused(servers[1]).contains(status) ? true : nil }
    #expect(!refused(servers[2]).contains(status))
    for tested in servers { await tested.server.ended() }
  }
}
