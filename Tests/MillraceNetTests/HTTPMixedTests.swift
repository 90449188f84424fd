import Foundation
import MillraceCore
import Synchronization
import TestSystem
import TestNet
import Testing

@testable import MillraceNet

/// A server with a page at `/`, an echo at `/echo`, and a WebSocket that echoes at `/socket`.
private func serveBoth(
  identity: NetIdentity? = nil, on loop: NetLoop? = .shared, _ admission: ServerAdmission = ServerAdmission(),
  asked: @escaping @Sendable (HTTPServer.Request) -> Void = { _ in }
) async throws -> HTTPServer {
  var limits = HTTPServer.Limits()
  limits.patience = 600_000
  limits.webSocket.close = 600_000
  return try await HTTPServer.listen(
    port: 0, identity: identity, on: loop, limits: limits, admission: admission
  ) { request in
    asked(request)
    switch request.path {
    case "/": return .answer(.text("page"))
    case "/echo":
      return .receive { request, reply in
        reply.send(HTTPServer.Response(headers: [("X-Method", request.method)], body: request.body))
      }
    case "/socket":
      return .webSocket { socket in
        { event in if case .text(let bytes) = event { _ = socket.send(bytes, isText: true) } }
      }
    default: return .refuse(status: 404, "not found")
    }
  }
}

/// The headers of a WebSocket handshake, RFC 6455 section 1.3.
private let handshake =
  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

/// Held by what a test expects to be released.
private final class Token: Sendable {
  private let isGone: Flag
  private let socket: WebSocket?
  init(_ isGone: Flag, _ socket: WebSocket? = nil) {
    self.isGone = isGone
    self.socket = socket
  }
  deinit { isGone.set() }
}

@Suite("HTTP and WebSockets on one port", .timeLimit(.minutes(30))) struct HTTPMixedTests {
  @Test("a page and a WebSocket are served on one port, plain and over TLS", arguments: [false, true])
  func both(isSecure: Bool) async throws {
    let server = try await serveBoth(identity: isSecure ? Certificates.localhost : nil)
    let page = try await output(
      of: "curl",
      [
        "--silent", "--noproxy", "*", "--cacert", Certificates.authority,
        "\(isSecure ? "https" : "http")://localhost:\(server.port)/",
      ])
    #expect(page == "page")
    var request = WebSocketRequest(
      try WebAddress("\(isSecure ? "wss" : "ws")://localhost:\(server.port)/socket"))
    request.trust = .file(Certificates.authority)
    request.limits.open = 600_000
    let events = EventRecorder()
    let socket = WebSocket.open(request, events: events.receive)
    #expect(await events.opened() == .some(nil))
    #expect(socket.send(text: "here"))
    #expect(await events.message()?.bytes == Array("here".utf8))
    socket.close()
    _ = await events.end()
    await server.stop()
  }

  @Test("a connection that has carried requests becomes a WebSocket, with frames right behind the handshake")
  func laterUpgrade() async throws {
    let server = try await serveBoth()
    let echoed = try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      // All at once: a page, a handshake, a frame.
      connection.send(
        Array((request() + request("/socket", handshake)).utf8) + frame(1, [65], isMasked: true))
      #expect(response(connection).body == "page")
      let head = connection.readHead()
      #expect(head.hasPrefix("HTTP/1.1 101 ") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
      return connection.readFrame()?.payload
    }
    #expect(echoed == [65])
    await server.stop()
  }

  @Test("a plain request for a WebSocket gets 426 and the version, and a handshake for a page gets the page")
  func crossed() async throws {
    let server = try await serveBoth()
    try await blocking { [port = server.port] in
      let plain = try RawConnection(port: port)
      plain.send(request("/socket"))
      let refusal = response(plain).head
      #expect(refusal.contains(" 426 ") && refusal.contains("Sec-WebSocket-Version: 13\r\n"))
      let other = try RawConnection(port: port)
      other.send(request("/", "Upgrade: h2c\r\nConnection: Upgrade\r\n"))
      let page = response(other)
      // What follows an upgrade that is not made cannot be read.
      #expect(page.body == "page" && page.head.contains("Connection: close\r\n"))
      #expect(other.isClosed())
    }
    await server.stop()
  }

  @Test("the admission rules hold for requests as for WebSockets, before the server's code is asked")
  func rules() async throws {
    var admission = ServerAdmission()
    admission.token = "secret"
    let asked = Atomic<Int>(0)
    let server = try await serveBoth(admission) { _ in asked.add(1, ordering: .relaxed) }
    let bearer = "Authorization: Bearer secret\r\n"
    let statuses = try await blocking { [port = server.port] in
      try [
        "", "Authorization: Bearer wrong\r\n", bearer + "Origin: https://evil.example\r\n",
        bearer + "Host: localhost\r\n", bearer,
      ].map { headers in
        let connection = try RawConnection(port: port)
        connection.send(request("/", headers))
        let answer = response(connection)
        #expect(!answer.head.contains("secret") && !answer.body.contains("secret"))
        return Int(answer.head.dropFirst(9).prefix(3))
      }
    }
    #expect(statuses == [401, 401, 403, 400, 200])
    #expect(asked.load(ordering: .relaxed) == 1 && server.refused == 4)
    await server.stop()
  }

  @Test("each request of a connection is admitted on its own")
  func laterRequest() async throws {
    let server = try await serveBoth()
    try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request())
      #expect(response(connection).body == "page")
      connection.send("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
      #expect(response(connection).head.contains(" 403 "))
      #expect(connection.isClosed())
    }
    await server.stop()
  }

  @Test("headers of a megabyte are answered with 431, whether one is long or there are many")
  func largeHeaders() async throws {
    let server = try await serveBoth()
    try await blocking { [port = server.port] in
      let long = "X: \(String(repeating: "a", count: 1_000_000))\r\n"
      let many = (0..<50_000).map { "X\($0): \(String(repeating: "a", count: 12))\r\n" }.joined()
      for headers in [long, many] {
        let connection = try RawConnection(port: port)
        Thread.detachNewThread { connection.send(request("/", headers)) }
        #expect(connection.readHead().contains(" 431 "))
        #expect(connection.isClosed())
      }
      let target = try RawConnection(port: port)
      Thread.detachNewThread { target.send(request("/" + String(repeating: "a", count: 1_000_000))) }
      #expect(target.readHead().contains(" 431 "))
    }
    await server.stop()
  }

  @Test("on a loop the server's code runs there; on a thread of its own it stops with its WebSockets")
  func loops() async throws {
    let isThere = Flag()
    let shared = try await serveBoth { _ in if NetLoop.shared.isCurrent { isThere.set() } }
    #expect(
      try await output(of: "curl", ["--silent", "--noproxy", "*", "http://127.0.0.1:\(shared.port)/"])
        == "page")
    #expect(isThere.isOn)
    await shared.stop()
    let own = try await serveBoth(on: nil)
    let events = EventRecorder()
    var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(own.port)/socket"))
    request.limits.open = 600_000
    request.limits.ping = 0
    let socket = WebSocket.open(request, events: events.receive)
    #expect(await events.opened() == .some(nil))
    await own.stop()
    #expect(await events.end().code == 1001)
    socket.cancel()
  }

  @Test("a handshake that is completed while the server stops is answered with 503")
  func lateHandshake() async throws {
    let asked = Atomic<Int>(0)
    let server = try await serveBoth(on: nil) { _ in asked.add(1, ordering: .relaxed) }
    let (idle, late) = try await blocking { [port = server.port] in
      let idle = try RawConnection(port: port)
      idle.send(request())
      #expect(response(idle).body == "page")
      let late = try RawConnection(port: port)
      // The server's code decides when the head is there; the empty body is still to come.
      late.send(request("/socket", handshake + "Transfer-Encoding: chunked\r\n"))
      while asked.load(ordering: .relaxed) < 2 { usleep(1_000) }
      return (idle, late)
    }
    let stopping = Task { await server.stop() }
    try await blocking {
      // The server has closed its idle connections: it is stopping.
      _ = idle.isClosed()
      late.send("0\r\n\r\n")
      #expect(late.readHead().hasPrefix("HTTP/1.1 503 "))
      #expect(late.isClosed())
    }
    await stopping.value
    idle.close()
    late.close()
  }

  @Test("a WebSocket that is closed as soon as it is there ends for its receiver, which is released")
  func closedAtOnce() async throws {
    let ends = Locked<[Int]>([])
    let isGone = Flag()
    var limits = HTTPServer.Limits()
    limits.patience = 600_000
    let server = try await HTTPServer.listen(port: 0, on: .shared, limits: limits) { _ in
      .webSocket { socket in
        socket.close()
        // The receiver of a socket's events usually holds the socket.
        let token = Token(isGone, socket)
        return { event in
          withExtendedLifetime(token) {
            if case .closed(let end) = event { ends.withLock { $0.append(end.code) } }
          }
        }
      }
    }
    try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      #expect(connection.handshake().hasPrefix("HTTP/1.1 101 "))
      #expect(connection.isClosed())
      connection.close()
    }
    #expect(try await becomes { isGone.isOn })
    #expect(ends.withLock { $0 } == [1006])
    await server.stop()
  }

  @Test(
    "a server that has stopped releases its owner's code, though the owner holds the server",
    arguments: [false, true])
  func released(isOnLoop: Bool) async throws {
    let isGone = Flag()
    let server = Locked<HTTPServer?>(nil)
    try await Self.serveAndStop(Token(isGone), on: isOnLoop ? .shared : nil) { made in
      server.withLock { $0 = made }
    }
    #expect(try await becomes { isGone.isOn })
    // It was held all the time.
    #expect(server.withLock { $0 != nil })
  }

  private static func serveAndStop(
    _ token: Token, on loop: NetLoop?, _ keep: @Sendable (HTTPServer) -> Void
  ) async throws {
    var limits = HTTPServer.Limits()
    limits.patience = 600_000
    let server = try await HTTPServer.listen(
      port: 0, on: loop, limits: limits, refused: { _ in withExtendedLifetime(token) {} }
    ) { _ in
      withExtendedLifetime(token) { .answer(.text("page")) }
    }
    keep(server)
    try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request())
      #expect(response(connection).body == "page")
      connection.close()
    }
    await server.stop()
  }

  @Test("curl: uploads, several requests on one connection, methods")
  func curl() async throws {
    let server = try await serveBoth()
    let url = "http://127.0.0.1:\(server.port)"
    let common = ["--silent", "--show-error", "--noproxy", "*"]
    let folder = TemporaryFolder()
    let body = folder.file("body")
    put([UInt8](repeating: 120, count: 50_000), at: body)
    for more in [["--header", "Expect: 100-continue"], ["--header", "Transfer-Encoding: chunked"], []] {
      let echoed = try await output(
        of: "curl", common + more + ["--data-binary", "@\(body)", url + "/echo"])
      #expect(echoed.count == 50_000, "\(more)")
    }
    let many = try await output(
      of: "curl",
      common + ["--write-out", "%{num_connects} ", url + "/", url + "/", url + "/"])
    #expect(many == "page1 page0 page0 ")
    for method in ["PATCH", "DELETE", "OPTIONS", "PUT"] {
      let head = try await output(
        of: "curl", common + ["--include", "--request", method, "--data", "a", url + "/echo"])
      #expect(head.contains("X-Method: \(method)\r\n") && head.hasSuffix("\r\n\r\na"), "\(method)")
    }
    await server.stop()
  }

  @Test("Python's http.client: one connection, a body in chunks, a HEAD between others")
  func python() async throws {
    let server = try await serveBoth()
    let script = """
      import http.client, sys
      c = http.client.HTTPConnection("127.0.0.1", \(server.port), timeout=600)
      c.request("GET", "/"); r = c.getresponse(); first = r.read(); s = c.sock
      c.request("POST", "/echo", iter([b"ab", b"cd"]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
      second = c.getresponse().read()
      c.request("HEAD", "/"); r = c.getresponse(); third = (r.status, r.getheader("Content-Length"), r.read())
      c.request("GET", "/none"); r = c.getresponse(); fourth = r.status
      print(first, second, third, fourth, c.sock is None and s is not None)
      """
    let printed = try await output(of: "python3", ["-"], input: script)
    #expect(printed == "b'page' b'abcd' (200, '4', b'') 404 True\n")
    await server.stop()
  }
}
