import Foundation
import MillraceCore
@testable import MillraceNet
import Testing

/// Asks for a WebSocket with headers of a test's choice, and answers what came back.
private func ask(
  _ port: Int, host: String? = nil, target: String = "/", _ headers: [String] = []
) throws -> String {
  let peer = try RawConnection(port: port)
  defer { peer.close() }
  peer.send(request(target, ["Host: \(host ?? "127.0.0.1:\(port)")"] + headers))
  let head = peer.readHead()
  guard !head.hasPrefix("HTTP/1.1 101") else { return head }
  var body: [UInt8] = []
  while let more = peer.read() { body += more }
  return head + String(decoding: body, as: UTF8.self)
}

private func request(_ target: String, _ headers: [String]) -> String {
  (["GET \(target) HTTP/1.1"] + headers + [
    "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", "",
  ]).joined(separator: "\r\n")
}

/// The status of an answer.
private func status(_ answer: String) -> Int? {
  answer.split(separator: " ").dropFirst().first.flatMap { Int($0) }
}

private func door(_ change: (inout WebSocketDoor) -> Void) -> WebSocketDoor {
  var door = WebSocketDoor()
  change(&door)
  return door
}

private func serve(
  _ door: WebSocketDoor, identity: NetIdentity? = nil, open: Int = 600_000,
  refused: @escaping @Sendable (WebSocketDoor.Refusals) -> Void = { _ in }
) async throws -> WebSocketServer {
  var limits = WebSocketLimits()
  limits.open = open
  return try await WebSocketServer.listen(
    port: 0, identity: identity, limits: limits, door: door, refused: refused
  ) { _ in .accept { _ in { _ in } } }
}

@Suite("a server's door", .timeLimit(.minutes(30))) struct DoorTests {
  @Test("a page of another site is refused with its reason, and no decision is asked for")
  func strangers() async throws {
    let asked = Flag()
    let told = Locked<[WebSocketDoor.Refusals]>([])
    let server = try await WebSocketServer.listen(
      port: 0, refused: { refusals in told.withLock { $0.append(refusals) } }
    ) { _ in
      asked.set()
      return .accept { _ in { _ in } }
    }
    let answer = try ask(server.port, ["Origin: https://evil.example"])
    #expect(status(answer) == 403)
    #expect(answer.hasSuffix("pages of that site may not connect; the server's \"origins\" may name it"))
    #expect(!asked.isOn && server.refused == 1)
    let first = try #require(told.withLock { $0.first })
    #expect(first.count == 1 && first.total == 1 && first.latest.kind == .origin)
    #expect(first.latest.detail == "https://evil.example" && first.place.contains("127.0.0.1"))
    server.stop()
  }

  @Test(
    "origins: the own host, pages of this machine, those that are named, and who sends none",
    arguments: [
      (nil, true), ("http://127.0.0.1:PORT", true), ("http://localhost:3000", true), ("https://[::1]", true),
      ("https://app.example.org", true), ("https://APP.example.org:443", true), ("app://own", true),
      ("http://app.example.org", false), ("https://app.example.org:444", false), ("null", false),
      ("https://app.example.org.evil.example", false), ("http://127.0.0.1.evil.example", false),
      ("https://evil.example/https://app.example.org", false), ("file://", false), ("", false),
    ] as [(String?, Bool)])
  func origins(origin: String?, isLetIn: Bool) async throws {
    var door = WebSocketDoor()
    door.origins = ["https://app.example.org", "app://own"]
    let server = try await serve(door)
    let header = origin.map { "Origin: " + $0.replacingOccurrences(of: "PORT", with: "\(server.port)") }
    #expect(status(try ask(server.port, header.map { [$0] } ?? [])) == (isLetIn ? 101 : 403))
    server.stop()
  }

  @Test("a page of this machine is let in from this machine only")
  func loopbackPages() {
    var request = WebSocketDoor.Request(hosts: ["10.0.0.1"], origins: ["http://localhost:3000"])
    #expect(WebSocketDoor().refusal(of: request) { _ in false }?.kind == .origin)
    request.isFromThisMachine = true
    #expect(WebSocketDoor().refusal(of: request) { _ in false } == nil)
  }

  @Test("an origin of null, or any, is let in where the door says so; two origins never are")
  func oddOrigins() async throws {
    var door = WebSocketDoor()
    door.origins = ["null"]
    let named = try await serve(door)
    #expect(status(try ask(named.port, ["Origin: null"])) == 101)
    #expect(status(try ask(named.port, ["Origin: null", "Origin: https://evil.example"])) == 403)
    named.stop()
    door.origins = ["*"]
    let open = try await serve(door)
    #expect(status(try ask(open.port, ["Origin: https://evil.example"])) == 101)
    open.stop()
  }

  @Test(
    "a name that was made to resolve to this machine is refused, whatever the origin says; digits and known names are not",
    arguments: [
      ("evil.example:PORT", 403), ("evil.example", 403), ("localhost.evil.example", 403), ("", 400),
      ("a b", 400),
      ("evil.example@127.0.0.1", 400), ("127.0.0.1/evil", 400), ("localhost:PORT", 101),
      ("LOCALHOST.:PORT", 101),
      ("[::1]:PORT", 101), ("192.0.2.7", 101), ("bot.example.org", 101), ("Bot.Example.org.:80", 101),
    ])
  func hosts(host: String, expected: Int) async throws {
    var door = WebSocketDoor()
    door.hosts = ["bot.example.org"]
    let server = try await serve(door)
    let host = host.replacingOccurrences(of: "PORT", with: "\(server.port)")
    // As a page has it whose own name leads here: origin and host are one.
    #expect(status(try ask(server.port, host: host, ["Origin: http://\(host)"])) == expected)
    #expect(status(try ask(server.port, host: host)) == expected)
    server.stop()
  }

  @Test("a request with two hosts is refused, and one with none")
  func manyHosts() {
    for hosts in [[], ["localhost", "localhost"]] {
      let refusal = WebSocketDoor().refusal(of: WebSocketDoor.Request(hosts: hosts)) { _ in true }
      #expect(refusal?.status == 400)
    }
  }

  @Test("a server goes by the names of its certificate")
  func certificateNames() throws {
    let certificate = try Certificates.other.context().certificate
    let keeper = Doorkeeper(
      WebSocketDoor(), host: "0.0.0.0", certificate: certificate, figures: DoorFigures(),
      on: NetLoop.shared.loop
    ) { _ in }
    #expect(keeper.refusal(of: WebSocketDoor.Request(hosts: ["example.org"])) == nil)
    #expect(keeper.refusal(of: WebSocketDoor.Request(hosts: ["evil.example"]))?.kind == .host)
  }

  @Test("a token is asked for, in a header or the query, whole and in the right case")
  func tokens() async throws {
    var door = WebSocketDoor()
    door.token = "s3cret+/="
    let server = try await serve(door)
    let missing = try ask(server.port)
    #expect(status(missing) == 401 && missing.contains("\r\nWWW-Authenticate: Bearer\r\n"))
    #expect(!missing.contains("s3cret"))
    for wrong in ["s3cret+/", "s3cret+/==", "S3cret+/=", "", "x"] {
      #expect(status(try ask(server.port, ["Authorization: Bearer \(wrong)"])) == 401, "\(wrong)")
    }
    #expect(status(try ask(server.port, ["Authorization: Basic s3cret+/="])) == 401)
    #expect(status(try ask(server.port, target: "/?token=s3cret")) == 401)
    #expect(status(try ask(server.port, ["Authorization: bearer  s3cret+/="])) == 101)
    #expect(status(try ask(server.port, target: "/a?x=1&token=s3cret%2B%2F%3D")) == 101)
    #expect(!"\(door)".contains("s3cret"))
    server.stop()
  }

  @Test("comparing a secret looks at all of what was offered")
  func comparing() {
    let secret = Array("abc".utf8)
    for offered in ["abc", "ab", "abd", "abcabc", "", "xbc"] {
      #expect(WebSocketDoor.areEqual(secret, Array(offered.utf8)) == (offered == "abc"), "\(offered)")
    }
  }

  @Test("one visitor more than may be in is refused with 503, and let in when another has gone")
  func full() async throws {
    var door = WebSocketDoor()
    door.visitors = 2
    let server = try await serve(door)
    let first = try RawConnection(port: server.port)
    #expect(first.handshake().hasPrefix("HTTP/1.1 101"))
    let second = try RawConnection(port: server.port)
    #expect(second.handshake().hasPrefix("HTTP/1.1 101"))
    let third = try ask(server.port)
    #expect(status(third) == 503 && third.contains("\r\nRetry-After: 1\r\n") && server.visitors == 2)
    first.close()
    while server.visitors == 2 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(status(try ask(server.port)) == 101)
    second.close()
    server.stop()
  }

  @Test("half-open visitors are counted, in all and by address, and refused with 503 beyond the limits")
  func halfOpen() async throws {
    var door = WebSocketDoor()
    door.halfOpenPerAddress = 3
    let server = try await serve(door)
    let silent = try (0..<3).map { _ in try RawConnection(port: server.port) }
    while server.halfOpen < 3 { try await Task.sleep(for: .milliseconds(1)) }
    // It says nothing before it reads: what it had said would make the system throw the answer away.
    let other = try RawConnection(port: server.port)
    #expect(other.readHead().hasPrefix("HTTP/1.1 503 "))
    #expect(other.isHungUp())
    other.close()
    #expect(server.halfOpen == 3 && server.refused == 1)
    for peer in silent { peer.close() }
    while server.halfOpen > 0 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(status(try ask(server.port)) == 101)
    server.stop()
  }

  @Test("addresses are counted apart, networks of IPv6 as one, and nothing is kept of those who have gone")
  func counting() {
    var door = WebSocketDoor()
    door.halfOpen = 3
    door.halfOpenPerAddress = 2
    var count = DoorCount(door)
    let one = DoorCount.address("192.0.2.1")
    #expect(one == DoorCount.address("::ffff:192.0.2.1") && one != DoorCount.address("192.0.2.2"))
    #expect(DoorCount.address("2001:db8::1") == DoorCount.address("2001:db8::ffff:1"))
    #expect(DoorCount.address("2001:db8::1") != DoorCount.address("2001:db8:0:1::1"))
    #expect(count.arrive(from: one) == nil && count.arrive(from: one) == nil)
    #expect(count.arrive(from: one)?.status == 503)
    #expect(count.arrive(from: [2]) == nil)
    #expect(count.arrive(from: [3])?.kind == .halfOpen)
    count.enter(from: one)
    #expect(count.halfOpen == 2 && count.visitors == 1)
    #expect(count.arrive(from: [3]) == nil)
    count.leave(from: one, wasIn: true)
    for address in [one, [2], [3]] { count.leave(from: address, wasIn: false) }
    #expect(count.halfOpen == 0 && count.visitors == 0)
    #expect(Mirror(reflecting: count).children.contains { ($0.value as? [[UInt8]: Int])?.isEmpty == true })
  }

  @Test("a request that does not end is answered with 431, in the first line, a header or a body")
  func tooLarge() async throws {
    var door = WebSocketDoor()
    door.handshake = 2_000
    let server = try await serve(door)
    let long = String(repeating: "x", count: 2_000)
    for text in [
      "GET /\(long)", "GET / HTTP/1.1\r\nHost: localhost\r\nX: \(long)",
      request("/", ["Host: localhost", "Content-Length: 100000"]) + long,
    ] {
      let peer = try RawConnection(port: server.port)
      peer.send(text)
      #expect(peer.readHead().hasPrefix("HTTP/1.1 431 "), "\(text.prefix(20))")
      #expect(peer.isHungUp())
      peer.close()
    }
    while server.halfOpen > 0 { try await Task.sleep(for: .milliseconds(1)) }
    server.stop()
  }

  @Test("a request that does not come in time is answered with 408, at whatever byte it stops")
  func tooSlow() async throws {
    let server = try await serve(WebSocketDoor(), open: 100)
    for text in ["", "G", "GET / HTTP/1.1\r\nHost: localh"] {
      let peer = try RawConnection(port: server.port)
      peer.send(text)
      #expect(peer.readHead().hasPrefix("HTTP/1.1 408 "), "\(text)")
      #expect(peer.isHungUp())
      peer.close()
    }
    while server.halfOpen > 0 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(server.refused == 3)
    server.stop()
  }

  @Test("a flood of refusals is told at once, and then once a second with their number")
  func flood() async throws {
    let told = Locked<[WebSocketDoor.Refusals]>([])
    let server = try await serve(WebSocketDoor()) { refusals in told.withLock { $0.append(refusals) } }
    let begin = ContinuousClock.now
    for _ in 0..<200 { _ = try ask(server.port, ["Origin: https://evil.example"]) }
    while told.withLock({ $0.last?.total ?? 0 }) < 200 { try await Task.sleep(for: .milliseconds(5)) }
    let seconds = Int((ContinuousClock.now - begin) / .seconds(1))
    let all = told.withLock { $0 }
    #expect(all.first?.count == 1 && all.map(\.count).reduce(0, +) == 200)
    #expect(all.count <= seconds + 2, "\(all.map(\.count))")
    server.stop()
  }

  @Test(
    "a door that makes no sense is refused in words, and so is a plain one beyond this machine",
    arguments: [
      (
        door { $0.origins = ["app.example.org"] },
        "an origin is written https://app.example.org, or * for any"
      ),
      (
        door { $0.origins = ["https://app.example.org/a"] },
        "an origin has neither path nor query: https://app.example.org"
      ),
      (door { $0.hosts = ["https://a"] }, "a host is a name without scheme and port, or * for any"),
      (door { $0.token = "" }, "an empty token lets anybody in"),
      (door { $0.token = "a b" }, "a token holds only visible characters of ASCII, and no space"),
      (door { $0.halfOpen = 0 }, "limits of a door are at least 1"),
      (
        WebSocketDoor(),
        "other machines could reach \"0.0.0.0\" without TLS; give a certificate and its key, or allow plain"
      ),
    ])
  func problems(door: WebSocketDoor, words: String) async throws {
    await #expect {
      _ = try await WebSocketServer.listen(host: "0.0.0.0", port: 0, door: door) { _ in
        .refuse(status: 404, "")
      }
    } throws: {
      "\($0)" == words
    }
  }

  @Test("beyond this machine a server needs TLS, or a door that says it does not")
  func beyond() async throws {
    let secure = try await WebSocketServer.listen(
      host: "0.0.0.0", port: 0, identity: Certificates.localhost
    ) { _ in .refuse(status: 404, "") }
    secure.stop()
    var door = WebSocketDoor()
    door.plain = true
    let plain = try await WebSocketServer.listen(host: "0.0.0.0", port: 0, door: door) { _ in
      .refuse(status: 404, "")
    }
    plain.stop()
  }
}
