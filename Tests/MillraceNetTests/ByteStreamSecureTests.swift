import Foundation
import MillraceCore
import MillraceNet
import TestNet
import TestSystem
import Testing

@Suite("TLS and proxies of a byte stream", .timeLimit(.minutes(30))) struct ByteStreamSecureTests {
  private func problem(
    _ identity: NetIdentity?, host: String = "localhost", _ trust: NetTrust
  ) async throws -> NetError? {
    let server = try await echoStream(identity: identity)
    defer { server.stop() }
    let (_, events) = try connect(server.port, scheme: "tls", host: host) { $0.trust = trust }
    return await events.end().problem
  }

  @Test(
    "an untrusted certificate, one of another host and a server without TLS fail with messages that say so")
  func bad() async throws {
    let unknown = try #require(try await problem(Certificates.localhost, .system))
    #expect(unknown.kind == .tls && unknown.text.contains("not trusted"), "\(unknown)")
    let other = try #require(try await problem(Certificates.other, .file(Certificates.authority)))
    #expect(other.kind == .tls && other.text.hasPrefix("host name mismatch"), "\(other)")
  }

  @Test("a server without TLS, and one that ends in the middle of the handshake, are different errors")
  func notTLS() async throws {
    let plain = try RawServer { peer in
      _ = peer.read()
      peer.send("HTTP/1.1 400 Bad Request\r\n\r\n")
      _ = peer.isClosed()
    }
    let (_, events) = try connectSecurely(plain.port)
    let end = await events.end()
    #expect(end.problem?.kind == .tls && end.description.contains("does not speak TLS"), "\(end)")
    plain.stop()
    let gone = try RawServer { peer in _ = peer.read() }
    let (_, its) = try connectSecurely(gone.port)
    let lost = NetError(.lost, "localhost:\(gone.port) closed the connection during the TLS handshake")
    #expect(await its.end().problem == lost)
    gone.stop()
  }

  @Test("a handshake that stops half-way ends in time with an error that names it, and TCP is closed")
  func stalls() async throws {
    let closed = Locked(0)
    let raw = try RawServer { peer in
      _ = peer.read(1)
      // The beginning of a ServerHello, RFC 8446 section 5.1.
      peer.send([0x16, 0x03, 0x03, 0x00, 0x7A, 0x02])
      if peer.isClosed() { closed.withLock { $0 += 1 } }
    }
    // On a busy machine the time may be up before TCP is connected: then try with more.
    var (limit, text) = (50, "")
    while !text.hasPrefix("localhost:\(raw.port) did not complete the TLS handshake within") {
      limit *= 2
      try #require(limit < 100_000, "\(text)")
      let (_, events) = try connectSecurely(raw.port) { $0.limits.open = limit }
      let problem = try #require(await events.end().problem)
      #expect(problem.kind == .timeout)
      text = problem.text
    }
    #expect(text.hasSuffix("\(limit) ms"))
    while closed.withLock({ $0 }) < raw.count { try await Task.sleep(for: .milliseconds(1)) }
    raw.stop()
  }

  @Test("a proxy is asked for a tunnel, and a stream without TLS goes through it")
  func throughProxy() async throws {
    let proxy = try RawServer { peer in
      let head = peer.readHead()
      #expect(head.hasPrefix("CONNECT 127.0.0.1:1 HTTP/1.1\r\n"))
      peer.send("HTTP/1.1 200 OK\r\n\r\n")
      while let bytes = peer.read() { peer.send(bytes) }
    }
    let (stream, events) = try connect(1) {
      $0.proxy = .server(NetProxy.Server(host: "127.0.0.1", port: proxy.port))
    }
    #expect(await events.opened())
    #expect(stream.send([1, 2]))
    #expect(await events.bytes(2) == [1, 2])
    stream.close()
    #expect(await events.end() == ByteStreamEnd(isLocal: true))
    proxy.stop()
  }

  @Test("a proxy cannot put bytes of its own before the TLS handshake")
  func injectingProxy() async throws {
    let server = try await echoStream(identity: Certificates.localhost)
    let proxy = try RawServer { peer in
      _ = peer.readHead()
      carry(peer, to: server.port, answer: "HTTP/1.1 200 OK\r\n\r\nevil")
    }
    let (stream, events) = try connectSecurely(server.port) {
      $0.proxy = .server(NetProxy.Server(host: "127.0.0.1", port: proxy.port))
    }
    // Either they break the handshake, or nobody sees them.
    if case .opened = await events.next() {
      #expect(stream.send([1]))
      #expect(await events.bytes(1) == [1])
      stream.cancel()
      _ = await events.end()
    }
    #expect(events.received <= 1)
    proxy.stop()
    server.stop()
  }

  @Test("a server's certificate that is renewed is used for the next client, and open streams stay")
  func renewed() async throws {
    let folder = TemporaryFolder()
    let identity = NetIdentity(certificate: folder.file("cert.pem"), key: folder.file("key.pem"))
    func install(_ other: NetIdentity) {
      put(contents(other.certificate), at: identity.certificate)
      put(contents(other.key), at: identity.key)
    }
    install(Certificates.other)
    let server = try await echoStream(identity: identity)
    let (first, its) = try connect(server.port, scheme: "tls", host: "localhost") {
      $0.trust = .anyCertificate
    }
    #expect(await its.opened())
    let (_, mismatch) = try connectSecurely(server.port)
    #expect(await mismatch.end().description.hasPrefix("host name mismatch"))
    install(Certificates.localhost)
    let (second, events) = try connectSecurely(server.port)
    #expect(await events.opened())
    for (stream, recorder) in [(first, its), (second, events)] {
      #expect(stream.send([9]))
      #expect(await recorder.bytes(1) == [9])
      stream.cancel()
    }
    server.stop()
  }
}
