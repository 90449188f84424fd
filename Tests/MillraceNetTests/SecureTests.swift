import Foundation
import MillraceNet
import Synchronization
import Testing

/// Reads a request for a tunnel, and makes one to a port of this machine.
private func tunnel(_ peer: RawConnection, to port: Int) {
  _ = peer.readHead()
  carry(peer, to: port)
}

/// Grants a tunnel and carries bytes both ways until one side hangs up.
private func carry(_ peer: RawConnection, to port: Int) {
  guard let inner = try? RawConnection(port: port) else { return }
  peer.send("HTTP/1.1 200 Connection established\r\n\r\n")
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
    -> NetProblem?
  {
    let server = try await echo(identity: identity)
    let (socket, ear) = try open(server.port, scheme: "wss", host: host) { $0.trust = trust }
    defer { server.stop() }
    if await ear.opened() != nil {
      #expect(socket.send(text: "secret"))
      #expect(await ear.message()?.bytes == Array("secret".utf8))
      socket.close()
      _ = await ear.end()
      return nil
    }
    return NetProblem(.tls, "ended")
  }

  private func problem(_ identity: NetIdentity?, host: String = "localhost", _ trust: NetTrust) async throws
    -> NetProblem?
  {
    let server = try await echo(identity: identity)
    let (_, ear) = try open(server.port, scheme: "wss", host: host) { $0.trust = trust }
    defer { server.stop() }
    return await ear.end().problem
  }

  @Test("a certificate that somebody we believe vouches for opens, by name and by number")
  func good() async throws {
    for host in ["localhost", "127.0.0.1"] {
      #expect(try await ends(Certificates.localhost, host: host, .file(Certificates.authority)) == nil)
    }
    #expect(try await ends(Certificates.other, .anybody) == nil)
  }

  @Test("a certificate nobody vouches for, and one of another host, are errors that say so")
  func bad() async throws {
    let unknown = try #require(try await problem(Certificates.localhost, .system))
    #expect(unknown.kind == .tls && unknown.text.contains("does not verify"), "\(unknown)")
    let other = try #require(try await problem(Certificates.other, .file(Certificates.authority)))
    #expect(other.kind == .tls && other.text.hasSuffix("is not one of \"localhost\""), "\(other)")
  }

  @Test("a server without TLS, and a file that holds no certificates, are errors that say so")
  func notTLS() async throws {
    let plain = try #require(try await problem(nil, .anybody))
    #expect(plain.text.contains("does not speak TLS"), "\(plain)")
    let file = try #require(try await problem(Certificates.localhost, .file("/dev/null")))
    #expect(file.kind == .tls)
  }

  @Test("only this machine's certificate may go unverified")
  func anybodyElse() async throws {
    let (_, ear) = try open(443, scheme: "wss", host: "service.invalid") { $0.trust = .anybody }
    let problem = try #require(await ear.end().problem)
    #expect(
      problem.text
        == "the certificate of \"service.invalid\" has to be verified; only this machine's own need not be")
  }

  @Test("a proxy is asked for a tunnel with its password, and the socket lives in it")
  func proxy() async throws {
    let server = try await echo(identity: Certificates.localhost)
    let proxy = try RawServer { peer in
      let head = peer.readHead()
      #expect(head.hasPrefix("CONNECT localhost:\(server.port) HTTP/1.1\r\n"))
      #expect(head.contains("Proxy-Authorization: Basic dTpw\r\n"))
      carry(peer, to: server.port)
    }
    let (socket, ear) = try open(server.port, scheme: "wss", host: "localhost") {
      $0.trust = .file(Certificates.authority)
      $0.proxy = .at(NetProxy.Place(host: "127.0.0.1", port: proxy.port, credentials: "u:p"))
    }
    #expect(await ear.opened() == .some(nil))
    #expect(socket.send(text: "through"))
    #expect(await ear.message()?.bytes == Array("through".utf8))
    socket.cancel()
    _ = await ear.end()
    proxy.stop()
    server.stop()
  }

  @Test(
    "a proxy cannot answer for a host with a certificate of its own number",
    arguments: ["service.invalid", "192.0.2.7"])
  func proxyInBetween(host: String) async throws {
    // 127.0.0.1 is in this certificate, and is whom TCP talks to.
    let server = try await echo(identity: Certificates.localhost)
    let proxy = try RawServer { peer in tunnel(peer, to: server.port) }
    let (_, ear) = try open(443, scheme: "wss", host: host) {
      $0.trust = .file(Certificates.authority)
      $0.proxy = .at(NetProxy.Place(host: "127.0.0.1", port: proxy.port))
    }
    let problem = try #require(await ear.end().problem)
    #expect(problem == NetProblem(.tls, "the certificate of \(host):443 is not one of \"\(host)\""))
    proxy.stop()
    server.stop()
  }

  @Test("a proxy that does not answer is hung up on when time is up, and when nobody wants to wait any more")
  func silentProxy() async throws {
    let gone = Atomic<Int>(0)
    let proxy = try RawServer { peer in
      _ = peer.readHead()
      if peer.isHungUp() { gone.add(1, ordering: .relaxed) }
    }
    let place = NetProxy.Place(host: "127.0.0.1", port: proxy.port)
    func everybodyHasGone() async throws {
      while gone.load(ordering: .relaxed) != proxy.count { try await Task.sleep(for: .milliseconds(1)) }
    }
    // On a busy machine the time may be up before anybody has come: then with more of it.
    var limit = 50
    while proxy.count == 0 {
      let (_, ear) = try open(1) {
        $0.proxy = .at(place)
        $0.limits.open = limit
      }
      #expect(await ear.end().problem?.kind == .timeout)
      limit *= 2
    }
    try await everybodyHasGone()
    var seen = proxy.count
    let (socket, given) = try open(1) { $0.proxy = .at(place) }
    while proxy.count == seen { try await Task.sleep(for: .milliseconds(1)) }
    socket.cancel()
    #expect(await given.end().problem?.kind == .cancelled)
    try await everybodyHasGone()
    seen = proxy.count
    var call = HTTPCall("GET", try WebAddress("http://127.0.0.1:1/"))
    call.proxy = .at(place)
    call.timeout = 50
    while proxy.count == seen {
      await #expect { _ = try await call.run() } throws: { ($0 as? NetProblem)?.kind == .timeout }
      call.timeout *= 2
    }
    try await everybodyHasGone()
    proxy.stop()
  }

  @Test("over TLS, too, a good-bye comes with its code from either side, and a broken rule with its own")
  func closes() async throws {
    var limits = WebSocketLimits()
    limits.message = 1000
    let server = try await WebSocketServer.listen(port: 0, identity: Certificates.localhost, limits: limits) {
      _ in
      .accept { socket in { event in if case .text = event { socket.close(code: 4001, reason: "so") } } }
    }
    func client() async throws -> (WebSocket, Ear) {
      let (socket, ear) = try open(server.port, scheme: "wss", host: "localhost") {
        $0.trust = .file(Certificates.authority)
      }
      #expect(await ear.opened() == .some(nil))
      return (socket, ear)
    }
    let (first, its) = try await client()
    #expect(first.send(text: "x"))
    #expect(await its.end() == WebSocketEnd(code: 4001, reason: "so"))
    let (second, ear) = try await client()
    second.close(code: 4002)
    #expect(await ear.end() == WebSocketEnd(code: 4002, isOurs: true))
    let (third, large) = try await client()
    #expect(third.send(.init(repeating: 0, count: 500_000), isText: false))
    #expect(await large.end().code == 1009)
    server.stop()
  }

  @Test("a proxy that refuses is named, with its status")
  func refusingProxy() async throws {
    let proxy = try RawServer { peer in
      _ = peer.readHead()
      peer.send("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    }
    let (_, ear) = try open(1, host: "localhost") {
      $0.proxy = .at(NetProxy.Place(host: "127.0.0.1", port: proxy.port))
    }
    let problem = await ear.end().problem
    #expect(
      problem == NetProblem(.proxy, status: 407, "the proxy 127.0.0.1:\(proxy.port) refused, with status 407")
    )
    proxy.stop()
  }
}

@Suite("calls over HTTP", .timeLimit(.minutes(30))) struct HTTPCallTests {
  private func call(_ port: Int, _ change: (inout HTTPCall) -> Void = { _ in }) async throws
    -> HTTPCall.Answer
  {
    var call = HTTPCall("POST", try WebAddress("http://127.0.0.1:\(port)/v1?x=1"))
    call.body = Array(#"{"a":1}"#.utf8)
    change(&call)
    return try await call.run()
  }

  @Test("a call sends what it should, and any status is an answer")
  func good() async throws {
    let raw = try RawServer { peer in
      let head = peer.readHead()
      #expect(head.hasPrefix("POST /v1?x=1 HTTP/1.1\r\n"))
      for line in ["Content-Length: 7", "Connection: close", "Authorization: Bearer k"] {
        #expect(head.contains(line + "\r\n"))
      }
      #expect(peer.read(exactly: 7) == Array(#"{"a":1}"#.utf8))
      peer.send(
        "HTTP/1.1 404 Not Found\r\nX-Id: 7\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
      )
      #expect(peer.isHungUp())
    }
    let answer = try await call(raw.port) { $0.headers = [("Authorization", "Bearer k")] }
    #expect(answer.status == 404 && answer.body == Array("abcde".utf8) && answer["x-id"] == "7")
    raw.stop()
  }

  @Test(
    "an answer that is too large, none, garbled or too late is an error",
    arguments: [
      (
        "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + String(repeating: "x", count: 100_000),
        NetProblem.Kind.tooLarge
      ),
      ("", .lost), ("nonsense\r\n\r\n", .garbled),
      ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", .lost),
    ])
  func bad(answer: String, kind: NetProblem.Kind) async throws {
    let raw = try RawServer { peer in
      _ = peer.readHead()
      peer.send(answer)
    }
    await #expect { _ = try await call(raw.port) { $0.limit = 1000 } } throws: {
      ($0 as? NetProblem)?.kind == kind
    }
    raw.stop()
  }

  @Test("a server that never answers is left after the time for it")
  func slow() async throws {
    let raw = try RawServer { peer in _ = peer.isHungUp() }
    await #expect { _ = try await call(raw.port) { $0.timeout = 50 } } throws: {
      ($0 as? NetProblem)?.text == "127.0.0.1:\(raw.port) did not answer within 50 ms"
    }
    raw.stop()
  }
}
