import Foundation
import MillraceNet
import Synchronization
import TestNet
import Testing

/// Reads a CONNECT request and tunnels to a loopback port.
private func tunnel(_ peer: RawConnection, to port: Int) {
  _ = peer.readHead()
  carry(peer, to: port)
}

/// Accepts the tunnel and forwards bytes in both directions until one side closes.
/// - Parameter answer: to the request for the tunnel.
func carry(
  _ peer: RawConnection, to port: Int, answer: String = "HTTP/1.1 200 Connection established\r\n\r\n"
) {
  guard let inner = try? RawConnection(port: port) else { return }
  peer.send(answer)
  let isOver = DispatchSemaphore(value: 0)
  Thread.detachNewThread {
    while let bytes = inner.read() { peer.send(bytes) }
    peer.finish()
    isOver.signal()
  }
  while let bytes = peer.read() { inner.send(bytes) }
  inner.finish()
  isOver.wait()
  inner.close()
}

@Suite("TLS and proxies", .timeLimit(.minutes(30))) struct SecureTests {
  private func ends(_ identity: NetIdentity, host: String = "localhost", _ trust: NetTrust) async throws
    -> NetError?
  {
    let server = try await echo(identity: identity)
    let (socket, events) = try open(server.port, scheme: "wss", host: host) { $0.trust = trust }
    defer { server.stop() }
    if await events.opened() != nil {
      #expect(socket.send(text: "secret"))
      #expect(await events.message()?.bytes == Array("secret".utf8))
      socket.close()
      _ = await events.end()
      return nil
    }
    return NetError(.tls, "ended")
  }

  private func problem(_ identity: NetIdentity?, host: String = "localhost", _ trust: NetTrust) async throws
    -> NetError?
  {
    let server = try await echo(identity: identity)
    let (_, events) = try open(server.port, scheme: "wss", host: host) { $0.trust = trust }
    defer { server.stop() }
    return await events.end().problem
  }

  @Test("a trusted certificate is accepted, by name and by numeric address")
  func good() async throws {
    for host in ["localhost", "127.0.0.1"] {
      #expect(try await ends(Certificates.localhost, host: host, .file(Certificates.authority)) == nil)
    }
    #expect(try await ends(Certificates.other, .anyCertificate) == nil)
  }

  @Test("an untrusted certificate and a host name mismatch fail with messages that say so")
  func bad() async throws {
    let unknown = try #require(try await problem(Certificates.localhost, .system))
    #expect(unknown.kind == .tls && unknown.text.contains("not trusted"), "\(unknown)")
    let other = try #require(try await problem(Certificates.other, .file(Certificates.authority)))
    #expect(other.kind == .tls && other.text.hasPrefix("host name mismatch"), "\(other)")
  }

  @Test("a server without TLS, and a file without certificates, fail with messages that say so")
  func notTLS() async throws {
    let plain = try #require(try await problem(nil, .anyCertificate))
    #expect(plain.text.contains("does not speak TLS"), "\(plain)")
    let file = try #require(try await problem(Certificates.localhost, .file("/dev/null")))
    #expect(file.kind == .tls)
  }

  @Test("verification can be disabled for this machine only")
  func unverifiedRemote() async throws {
    let (_, events) = try open(443, scheme: "wss", host: "service.invalid") { $0.trust = .anyCertificate }
    let problem = try #require(await events.end().problem)
    #expect(
      problem.text
        == "the certificate of \"service.invalid\" must be verified; verification may be disabled only for this machine"
    )
  }

  @Test("a proxy is asked for a tunnel with its credentials, and the socket works through it")
  func proxy() async throws {
    let server = try await echo(identity: Certificates.localhost)
    let proxy = try RawServer { peer in
      let head = peer.readHead()
      #expect(head.hasPrefix("CONNECT localhost:\(server.port) HTTP/1.1\r\n"))
      #expect(head.contains("Proxy-Authorization: Basic dTpw\r\n"))
      carry(peer, to: server.port)
    }
    let (socket, events) = try open(server.port, scheme: "wss", host: "localhost") {
      $0.trust = .file(Certificates.authority)
      $0.proxy = .server(NetProxy.Server(host: "127.0.0.1", port: proxy.port, credentials: "u:p"))
    }
    #expect(await events.opened() == .some(nil))
    #expect(socket.send(text: "through"))
    #expect(await events.message()?.bytes == Array("through".utf8))
    socket.cancel()
    _ = await events.end()
    proxy.stop()
    server.stop()
  }

  @Test(
    "a proxy cannot impersonate a host with a certificate for its own address",
    arguments: ["service.invalid", "192.0.2.7"])
  func proxyInBetween(host: String) async throws {
    // 127.0.0.1 is in this certificate, and is the peer of the TCP connection.
    let server = try await echo(identity: Certificates.localhost)
    let proxy = try RawServer { peer in tunnel(peer, to: server.port) }
    let (_, events) = try open(443, scheme: "wss", host: host) {
      $0.trust = .file(Certificates.authority)
      $0.proxy = .server(NetProxy.Server(host: "127.0.0.1", port: proxy.port))
    }
    let problem = try #require(await events.end().problem)
    #expect(
      problem
        == NetError(.tls, "host name mismatch: the certificate of \(host):443 is not valid for \"\(host)\""))
    proxy.stop()
    server.stop()
  }

  @Test("the connection to a silent proxy is closed on a timeout and on a cancellation")
  func silentProxy() async throws {
    let gone = Atomic<Int>(0)
    let proxy = try RawServer { peer in
      _ = peer.readHead()
      if peer.isClosed() { gone.add(1, ordering: .relaxed) }
    }
    let server = NetProxy.Server(host: "127.0.0.1", port: proxy.port)
    func allConnectionsClosed() async throws {
      while gone.load(ordering: .relaxed) != proxy.count { try await Task.sleep(for: .milliseconds(1)) }
    }
    // On a busy machine the timeout may come before the connection: then try with a longer one.
    var limit = 50
    while proxy.count == 0 {
      let (_, events) = try open(1) {
        $0.proxy = .server(server)
        $0.limits.open = limit
      }
      #expect(await events.end().problem?.kind == .timeout)
      limit *= 2
    }
    try await allConnectionsClosed()
    var seen = proxy.count
    let (socket, given) = try open(1) { $0.proxy = .server(server) }
    while proxy.count == seen { try await Task.sleep(for: .milliseconds(1)) }
    socket.cancel()
    #expect(await given.end().problem?.kind == .cancelled)
    try await allConnectionsClosed()
    seen = proxy.count
    var request = HTTPClient.Request("GET", try WebAddress("http://127.0.0.1:1/"))
    request.proxy = .server(server)
    request.timeouts.whole = 50
    while proxy.count == seen {
      let attempt = request
      await #expect { _ = try await HTTPClient.shared.run(attempt) } throws: {
        ($0 as? NetError)?.kind == .timeout
      }
      request.timeouts.whole *= 2
    }
    try await allConnectionsClosed()
    proxy.stop()
  }

  @Test("over TLS, either side's close frame arrives with its code, and a violation with its own")
  func closes() async throws {
    var limits = WebSocketLimits()
    limits.message = 1000
    // A busy machine may take longer than a user would wait.
    (limits.open, limits.ping, limits.close) = (600_000, 0, 600_000)
    let server = try await WebSocketServer.listen(port: 0, identity: Certificates.localhost, limits: limits) {
      _ in
      .accept { socket in { event in if case .text = event { socket.close(code: 4001, reason: "so") } } }
    }
    func client() async throws -> (WebSocket, EventRecorder) {
      let (socket, events) = try open(server.port, scheme: "wss", host: "localhost") {
        $0.trust = .file(Certificates.authority)
        $0.limits.close = 600_000
      }
      #expect(await events.opened() == .some(nil))
      return (socket, events)
    }
    let (first, its) = try await client()
    #expect(first.send(text: "x"))
    #expect(await its.end() == WebSocketEnd(code: 4001, reason: "so"))
    let (second, events) = try await client()
    second.close(code: 4002)
    #expect(await events.end() == WebSocketEnd(code: 4002, isLocal: true))
    let (third, large) = try await client()
    #expect(third.send(.init(repeating: 0, count: 500_000), isText: false))
    #expect(await large.end().code == 1009)
    server.stop()
  }

  @Test("the error for a proxy that refuses names it and its status")
  func refusingProxy() async throws {
    let proxy = try RawServer { peer in
      _ = peer.readHead()
      peer.send("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    }
    let (_, events) = try open(1, host: "localhost") {
      $0.proxy = .server(NetProxy.Server(host: "127.0.0.1", port: proxy.port))
    }
    let problem = await events.end().problem
    #expect(
      problem
        == NetError(
          .proxy, status: 407, "the proxy 127.0.0.1:\(proxy.port) refused the tunnel with status 407")
    )
    proxy.stop()
  }
}
