import Foundation
import MillraceNet
import Testing

@Suite("TLS and proxies", .timeLimit(.minutes(10))) struct SecureTests {
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
      guard let inner = try? RawConnection(port: server.port) else { return }
      peer.send("HTTP/1.1 200 Connection established\r\n\r\n")
      Thread.detachNewThread {
        while let bytes = inner.read() { peer.send(bytes) }
      }
      while let bytes = peer.read() { inner.send(bytes) }
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

@Suite("calls over HTTP", .timeLimit(.minutes(10))) struct HTTPCallTests {
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
