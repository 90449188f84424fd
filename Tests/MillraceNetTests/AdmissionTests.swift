import Foundation
import MillraceCore
@testable import MillraceNet
import TestNet
import Testing

/// Requests a WebSocket with the given headers, and returns the response.
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

/// The status of a response.
private func status(_ answer: String) -> Int? {
  answer.split(separator: " ").dropFirst().first.flatMap { Int($0) }
}

private func admission(_ change: (inout ServerAdmission) -> Void) -> ServerAdmission {
  var admission = ServerAdmission()
  change(&admission)
  return admission
}

private func serve(
  _ admission: ServerAdmission, identity: NetIdentity? = nil, open: Int = 600_000,
  refused: @escaping @Sendable (ServerAdmission.Refusals) -> Void = { _ in }
) async throws -> WebSocketServer {
  var limits = WebSocketLimits()
  limits.open = open
  return try await WebSocketServer.listen(
    port: 0, identity: identity, limits: limits, admission: admission, refused: refused
  ) { _ in .accept { _ in { _ in } } }
}

@Suite("admission rules of a server", .timeLimit(.minutes(30))) struct AdmissionTests {
  @Test("a foreign origin is refused with the reason, before the server's code is asked")
  func foreignOrigin() async throws {
    let asked = Flag()
    let reports = Locked<[ServerAdmission.Refusals]>([])
    let server = try await WebSocketServer.listen(
      port: 0, limits: .patient, refused: { refusals in reports.withLock { $0.append(refusals) } }
    ) { _ in
      asked.set()
      return .accept { _ in { _ in } }
    }
    let answer = try ask(server.port, ["Origin: https://evil.example"])
    #expect(status(answer) == 403)
    #expect(answer.hasSuffix("this origin is not allowed; add it to the server's \"origins\""))
    #expect(!asked.isOn && server.refused == 1)
    let first = try #require(reports.withLock { $0.first })
    #expect(first.count == 1 && first.total == 1 && first.latest.kind == .origin)
    #expect(first.latest.detail == "https://evil.example" && first.peer.contains("127.0.0.1"))
    server.stop()
  }

  @Test(
    "admitted origins: the server's own host, loopback pages, listed origins, and no origin",
    arguments: [
      (nil, true), ("http://127.0.0.1:PORT", true), ("http://localhost:3000", true), ("https://[::1]", true),
      ("https://app.example.org", true), ("https://APP.example.org:443", true), ("app://own", true),
      ("http://app.example.org", false), ("https://app.example.org:444", false), ("null", false),
      ("https://app.example.org.evil.example", false), ("http://127.0.0.1.evil.example", false),
      ("https://evil.example/https://app.example.org", false), ("file://", false), ("", false),
    ] as [(String?, Bool)])
  func origins(origin: String?, isAdmitted: Bool) async throws {
    var admission = ServerAdmission()
    admission.origins = ["https://app.example.org", "app://own"]
    let server = try await serve(admission)
    let header = origin.map { "Origin: " + $0.replacingOccurrences(of: "PORT", with: "\(server.port)") }
    #expect(status(try ask(server.port, header.map { [$0] } ?? [])) == (isAdmitted ? 101 : 403))
    server.stop()
  }

  @Test("a loopback page is admitted from loopback only")
  func loopbackPages() {
    var request = ServerAdmission.Request(hosts: ["10.0.0.1"], origins: ["http://localhost:3000"])
    #expect(ServerAdmission().refusal(of: request) { _ in false }?.kind == .origin)
    request.isFromLoopback = true
    #expect(ServerAdmission().refusal(of: request) { _ in false } == nil)
  }

  @Test(
    "a server that asks for it admits pages of its own host and port only, and over TLS where it has that",
    arguments: [
      ("http://localhost:8080", "localhost:8080", true, false),
      ("http://localhost:3000", "localhost:8080", false, false),
      ("http://localhost", "localhost:8080", false, false),
      ("http://127.0.0.1:8080", "localhost:8080", false, false),
      ("https://LOCALHOST.:8080", "localhost:8080", true, true),
      // TLS ends at a proxy.
      ("https://hub.example", "hub.example", true, true),
      ("https://hub.example:443", "hub.example", true, true),
      ("http://hub.example", "hub.example", true, false),
      ("https://hub.example:444", "hub.example", false, false),
      ("https://hub.example", "hub.example:8443", false, false), ("https://[::1]:1", "[::1]:1", true, true),
      ("https://listed.example", "hub.example", true, true), ("null", "hub.example", false, false),
    ] as [(String, String, Bool, Bool)])
  func ownPages(origin: String, host: String, isAdmitted: Bool, isAdmittedWithTLS: Bool) {
    var admission = ServerAdmission()
    admission.hosts = ["*"]
    admission.origins = ["https://listed.example"]
    var request = ServerAdmission.Request(hosts: [host], origins: [origin])
    request.isFromLoopback = true
    for (isSecure, isExpected) in [(false, isAdmitted), (true, isAdmittedWithTLS)] {
      admission.pages = .ofServer(isSecure: isSecure)
      let refusal = admission.refusal(of: request) { _ in false }
      #expect((refusal == nil) == isExpected, "\(refusal?.text ?? "admitted")")
    }
  }

  @Test("a null origin, or any, is admitted where the rules say so; two origins never are")
  func oddOrigins() async throws {
    var admission = ServerAdmission()
    admission.origins = ["null"]
    let named = try await serve(admission)
    #expect(status(try ask(named.port, ["Origin: null"])) == 101)
    #expect(status(try ask(named.port, ["Origin: null", "Origin: https://evil.example"])) == 403)
    named.stop()
    admission.origins = ["*"]
    let open = try await serve(admission)
    #expect(status(try ask(open.port, ["Origin: https://evil.example"])) == 101)
    open.stop()
  }

  @Test(
    "a name rebound to this machine is refused, whatever the origin; numeric addresses and listed names are not",
    arguments: [
      ("evil.example:PORT", 403), ("evil.example", 403), ("localhost.evil.example", 403), ("", 400),
      ("a b", 400),
      ("evil.example@127.0.0.1", 400), ("127.0.0.1/evil", 400), ("localhost:PORT", 101),
      ("LOCALHOST.:PORT", 101),
      ("[::1]:PORT", 101), ("192.0.2.7", 101), ("bot.example.org", 101), ("Bot.Example.org.:80", 101),
    ])
  func hosts(host: String, expected: Int) async throws {
    var admission = ServerAdmission()
    admission.hosts = ["bot.example.org"]
    let server = try await serve(admission)
    let host = host.replacingOccurrences(of: "PORT", with: "\(server.port)")
    // As sent by a page whose own name resolves to this machine: origin and host agree.
    #expect(status(try ask(server.port, host: host, ["Origin: http://\(host)"])) == expected)
    #expect(status(try ask(server.port, host: host)) == expected)
    server.stop()
  }

  @Test("a request without a Host header, or with two, is refused")
  func manyHosts() {
    for hosts in [[], ["localhost", "localhost"]] {
      let refusal = ServerAdmission().refusal(of: ServerAdmission.Request(hosts: hosts)) { _ in true }
      #expect(refusal?.status == 400)
    }
    // HTTP/1.0 has no Host header, which is enough where every name is admitted.
    var old = ServerAdmission.Request(isHTTP10: true)
    var any = ServerAdmission()
    #expect(any.refusal(of: old) { _ in true }?.status == 400)
    any.hosts = ["*"]
    #expect(any.refusal(of: old) { _ in false } == nil)
    old.origins = ["https://evil.example"]
    #expect(any.refusal(of: old) { _ in false }?.kind == .origin)
    #expect(any.refusal(of: ServerAdmission.Request()) { _ in true }?.status == 400)
  }

  @Test("a server accepts the names in its certificate")
  func certificateNames() throws {
    let certificate = try Certificates.other.context().certificate
    let control = AdmissionControl(
      ServerAdmission(), host: "0.0.0.0", certificate: certificate, figures: ServerCounters(),
      on: NetLoop.shared.loop
    ) { _ in }
    #expect(control.refusal(of: ServerAdmission.Request(hosts: ["example.org"])) == nil)
    #expect(control.refusal(of: ServerAdmission.Request(hosts: ["evil.example"]))?.kind == .host)
  }

  @Test("a token must be sent, in a header or the query, complete and in the right case")
  func tokens() async throws {
    var admission = ServerAdmission()
    admission.token = "s3cret+/="
    let server = try await serve(admission)
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
    #expect(!"\(admission)".contains("s3cret"))
    server.stop()
  }

  @Test("a secret is compared over the whole length of the input")
  func comparing() {
    let secret = Array("abc".utf8)
    for offered in ["abc", "ab", "abd", "abcabc", "", "xbc"] {
      #expect(ServerAdmission.areEqual(secret, Array(offered.utf8)) == (offered == "abc"), "\(offered)")
    }
  }

  @Test("a connection beyond the limit is refused with 503, and admitted after another was closed")
  func full() async throws {
    var admission = ServerAdmission()
    admission.connections = 2
    let server = try await serve(admission)
    let first = try RawConnection(port: server.port)
    #expect(first.handshake().hasPrefix("HTTP/1.1 101"))
    let second = try RawConnection(port: server.port)
    #expect(second.handshake().hasPrefix("HTTP/1.1 101"))
    let third = try ask(server.port)
    #expect(status(third) == 503 && third.contains("\r\nRetry-After: 1\r\n") && server.connections == 2)
    first.close()
    while server.connections == 2 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(status(try ask(server.port)) == 101)
    second.close()
    server.stop()
  }

  @Test("half-open connections are limited in total and by address, and refused with 503")
  func halfOpen() async throws {
    var admission = ServerAdmission()
    admission.halfOpenPerAddress = 3
    let server = try await serve(admission)
    let silent = try (0..<3).map { _ in try RawConnection(port: server.port) }
    while server.halfOpen < 3 { try await Task.sleep(for: .milliseconds(1)) }
    // It sends nothing before it reads: with its bytes unread, the system would discard the answer.
    let other = try RawConnection(port: server.port)
    #expect(other.readHead().hasPrefix("HTTP/1.1 503 "))
    #expect(other.isClosed())
    other.close()
    #expect(server.halfOpen == 3 && server.refused == 1)
    for peer in silent { peer.close() }
    while server.halfOpen > 0 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(status(try ask(server.port)) == 101)
    server.stop()
  }

  @Test(
    "addresses are counted separately, an IPv6 network as one, and closed connections leave nothing behind")
  func counting() {
    var admission = ServerAdmission()
    admission.halfOpen = 3
    admission.halfOpenPerAddress = 2
    var count = AdmissionCount(admission)
    let one = AdmissionCount.address("192.0.2.1")
    #expect(one == AdmissionCount.address("::ffff:192.0.2.1") && one != AdmissionCount.address("192.0.2.2"))
    #expect(AdmissionCount.address("2001:db8::1") == AdmissionCount.address("2001:db8::ffff:1"))
    #expect(AdmissionCount.address("2001:db8::1") != AdmissionCount.address("2001:db8:0:1::1"))
    #expect(count.arrive(from: one) == nil && count.arrive(from: one) == nil)
    #expect(count.arrive(from: one)?.status == 503)
    #expect(count.arrive(from: [2]) == nil)
    #expect(count.arrive(from: [3])?.kind == .halfOpen)
    count.open(from: one)
    #expect(count.halfOpen == 2 && count.connections == 1)
    #expect(count.arrive(from: [3]) == nil)
    count.close(from: one, wasOpen: true)
    for address in [one, [2], [3]] { count.close(from: address, wasOpen: false) }
    #expect(count.halfOpen == 0 && count.connections == 0)
    let (first, second) = (count.awaitBody(from: one), count.awaitBody(from: one))
    #expect(first == nil && second == nil)
    let third = count.awaitBody(from: one)
    #expect(third?.kind == .halfOpen)
    // An address with slow bodies may still connect.
    let other = count.arrive(from: one)
    #expect(other == nil)
    count.close(from: one, wasOpen: false)
    for _ in 0..<2 { count.endBody(from: one) }
    let tables = Mirror(reflecting: count).children.compactMap { $0.value as? [[UInt8]: Int] }
    #expect(tables.count == 2 && tables.allSatisfy(\.isEmpty))
  }

  @Test("an endless request line or header is answered with 431, an endless body with 413")
  func tooLarge() async throws {
    var admission = ServerAdmission()
    admission.maxRequestBytes = 2_000
    let server = try await serve(admission)
    let long = String(repeating: "x", count: 2_000)
    for (text, status) in [
      ("GET /\(long)", 431), ("GET / HTTP/1.1\r\nHost: localhost\r\nX: \(long)", 431),
      (request("/", ["Host: localhost", "Content-Length: 100000"]) + long, 413),
    ] {
      let peer = try RawConnection(port: server.port)
      peer.send(text)
      #expect(peer.readHead().hasPrefix("HTTP/1.1 \(status) "), "\(text.prefix(20))")
      #expect(peer.isClosed())
      peer.close()
    }
    while server.halfOpen > 0 { try await Task.sleep(for: .milliseconds(1)) }
    server.stop()
  }

  @Test("a request that does not arrive in time is answered with 408, at whatever byte it stops")
  func timeout() async throws {
    let server = try await serve(ServerAdmission(), open: 100)
    for text in ["", "G", "GET / HTTP/1.1\r\nHost: localh"] {
      let peer = try RawConnection(port: server.port)
      peer.send(text)
      #expect(peer.readHead().hasPrefix("HTTP/1.1 408 "), "\(text)")
      #expect(peer.isClosed())
      peer.close()
    }
    while server.halfOpen > 0 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(server.refused == 3)
    server.stop()
  }

  @Test("a flood of refusals is reported at once, and then once a second with a count")
  func flood() async throws {
    let reports = Locked<[ServerAdmission.Refusals]>([])
    let server = try await serve(ServerAdmission()) { refusals in reports.withLock { $0.append(refusals) }
    }
    let begin = ContinuousClock.now
    for _ in 0..<200 { _ = try ask(server.port, ["Origin: https://evil.example"]) }
    while reports.withLock({ $0.last?.total ?? 0 }) < 200 { try await Task.sleep(for: .milliseconds(5)) }
    let seconds = Int((ContinuousClock.now - begin) / .seconds(1))
    let all = reports.withLock { $0 }
    #expect(all.first?.count == 1 && all.map(\.count).reduce(0, +) == 200)
    #expect(all.count <= seconds + 2, "\(all.map(\.count))")
    server.stop()
  }

  @Test(
    "invalid rules are refused with a message, and so is plaintext beyond this machine",
    arguments: [
      (
        admission { $0.origins = ["app.example.org"] },
        "an origin must look like https://app.example.org, or be * for any"
      ),
      (
        admission { $0.origins = ["https://app.example.org/a"] },
        "an origin must not have a path or query: https://app.example.org"
      ),
      (admission { $0.hosts = ["https://a"] }, "a host must be a name without scheme and port, or * for any"),
      (admission { $0.token = "" }, "an empty token would admit every client"),
      (admission { $0.token = "a b" }, "a token may contain only printable ASCII without spaces"),
      (admission { $0.halfOpen = 0 }, "connection limits must be at least 1"),
      (
        ServerAdmission(),
        "other machines could reach \"0.0.0.0\" without TLS; set a certificate and its key, or allow plaintext"
      ),
    ])
  func problems(admission: ServerAdmission, message: String) async throws {
    await #expect {
      _ = try await WebSocketServer.listen(host: "0.0.0.0", port: 0, admission: admission) { _ in
        .refuse(status: 404, "")
      }
    } throws: {
      "\($0)" == message
    }
  }

  @Test("beyond this machine a server needs TLS, or rules that allow plaintext")
  func beyond() async throws {
    let secure = try await WebSocketServer.listen(
      host: "0.0.0.0", port: 0, identity: Certificates.localhost
    ) { _ in .refuse(status: 404, "") }
    secure.stop()
    var admission = ServerAdmission()
    admission.allowsPlaintext = true
    let plain = try await WebSocketServer.listen(host: "0.0.0.0", port: 0, admission: admission) { _ in
      .refuse(status: 404, "")
    }
    plain.stop()
  }
}
