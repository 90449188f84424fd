import Foundation
import MillraceCore
import Synchronization
import TestSystem
import Testing

@testable import MillraceNet

/// The request after one redirect.
private func next(
  _ status: Int, from: String, to: String, method: String = "POST",
  _ change: (inout HTTPClient.Request) -> Void = { _ in }
) throws -> HTTPClient.Request {
  var request = HTTPClient.Request(method, try WebAddress(from))
  request.body = .bytes([1])
  request.headers = [
    ("Authorization", "secret"), ("Cookie", "secret"), ("X-Api-Key", "secret"), ("Host", "a.example"),
    ("Content-Type", "application/sdp"), ("X-Other", "kept"),
  ]
  change(&request)
  var redirects = HTTPRedirect(from: request.address)
  let response = HTTPClient.Response(status: status, headers: [("Location", to)], address: request.address)
  return try redirects.next(request, response)
}

@Suite("HTTP redirects", .timeLimit(.minutes(30))) struct HTTPRedirectTests {
  @Test(
    "the method and the body are kept or replaced as the status says",
    arguments: [
      (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (303, "PUT", "GET"),
      (303, "HEAD", "HEAD"),
      (307, "POST", "POST"), (308, "PATCH", "PATCH"), (301, "PUT", "PUT"), (302, "DELETE", "DELETE"),
    ])
  func methods(status: Int, method: String, expected: String) throws {
    let request = try next(status, from: "https://a.example/x", to: "/y", method: method)
    #expect(request.method == expected && request.address.target == "/y")
    guard case .bytes(let body) = request.body else { return }
    #expect(body == (method == expected ? [1] : []))
    #expect(request.headers.contains { $0.name == "Content-Type" } == (method == expected))
  }

  @Test(
    "credentials and the host name stay with their origin",
    arguments: [
      ("https://a.example/x", "/y", true), ("https://a.example/x", "https://a.example:443/y", true),
      ("https://a.example/x", "https://b.example/", false),
      ("https://a.example/x", "//a.example.evil/", false),
      ("https://a.example/x", "https://a.example:8443/", false),
      ("http://localhost/x", "https://localhost/", false),
      ("http://localhost/x", "http://localhost:81/", false),
    ])
  func credentials(from: String, to: String, areKept: Bool) throws {
    let names = try next(307, from: from, to: to).headers.map(\.name)
    #expect(
      names
        == (areKept
          ? ["Authorization", "Cookie", "X-Api-Key", "Host", "Content-Type", "X-Other"]
          : ["Content-Type", "X-Other"]))
  }

  @Test(
    "what must not be followed is refused, with the hosts and without the paths",
    arguments: [
      (
        "http://b.example/secret",
        "a.example:443 redirects from https: to http: at b.example:80, where nothing is sent in plain text"
      ),
      (
        "http://127.0.0.1:8080/secret",
        "a.example:443 redirects from https: to http: at 127.0.0.1:8080, where nothing is sent in plain text"
      ),
      (
        "ftp://b.example/secret",
        "a.example:443 redirects to an invalid address: an address must begin with one of ws, wss, http, https, tcp, tls"
      ),
      ("wss://b.example/secret", "a.example:443 redirects to something other than HTTP"),
      ("tls://b.example:8883", "a.example:443 redirects to something other than HTTP"),
      (
        "https://user:secret@b.example/",
        "a.example:443 redirects to an invalid address: an address must not contain a user or password; send them in a header"
      ),
      ("https://a.example/x#f", "a.example:443 redirects in a loop: a.example:443 → a.example:443"),
    ])
  func refused(to: String, message: String) throws {
    #expect {
      _ = try next(307, from: "https://a.example/x", to: to)
    } throws: {
      ($0 as? NetError) == NetError(.refused, status: 307, message)
    }
  }

  @Test(
    "a request that stays at its origin is not sent to another one",
    arguments: [
      ("/y", nil), ("https://a.example:443/y", nil),
      ("https://b.example/secret", "b.example:443"), ("https://a.example:8443/secret", "a.example:8443"),
    ] as [(String, String?)])
  func stays(to: String, other: String?) throws {
    func follow() throws -> HTTPClient.Request {
      try next(307, from: "https://a.example/x", to: to) { $0.staysAtOrigin = true }
    }
    guard let other else {
      #expect(try follow().address.target == "/y")
      return
    }
    #expect {
      _ = try follow()
    } throws: {
      ($0 as? NetError)
        == NetError(
          .refused, status: 307,
          "a.example:443 redirects to another origin, \(other), which must not get the request")
    }
  }

  @Test(
    "a request whose answer is a credential is not redirected to another machine in plain text",
    arguments: [
      ("http://localhost/x", "http://b.example/secret", "b.example:80"),
      ("http://127.0.0.1:8080/x", "//b.example:81/secret", "b.example:81"),
      ("http://localhost/x", "http://[::1]:82/y", nil), ("http://localhost/x", "https://b.example/y", nil),
      ("https://localhost/x", "http://localhost/y", nil),
    ] as [(String, String, String?)])
  func plaintext(from: String, to: String, other: String?) throws {
    func follow(_ isRefused: Bool) throws -> HTTPClient.Request {
      try next(307, from: from, to: to) { $0.refusesPlaintextRedirects = isRefused }
    }
    _ = try follow(false)
    guard let other else {
      #expect(try follow(true).address.target == "/y")
      return
    }
    let first = try WebAddress(from).authority
    #expect {
      _ = try follow(true)
    } throws: {
      ($0 as? NetError)
        == NetError(
          .refused, status: 307,
          "\(first) redirects to http: at \(other), from where the answer would come in plain text")
    }
  }

  @Test("a server on this machine may redirect from https: to http: on this machine")
  func loopback() throws {
    let request = try next(307, from: "https://localhost/x", to: "http://127.0.0.1:8080/y")
    #expect(request.address.authority == "127.0.0.1:8080" && request.address.target == "/y")
    #expect(throws: NetError.self) { _ = try next(307, from: "https://localhost/x", to: "http://a.example/") }
  }

  @Test("a streamed request is not sent a second time")
  func streamed() throws {
    #expect {
      _ = try next(308, from: "https://a.example/x", to: "/y") { $0.body = .stream { _ in { _ in } } }
    } throws: {
      ($0 as? NetError)?.text == "a.example:443 redirects a streamed request, which cannot be sent again"
    }
  }

  @Test(
    "a reference is resolved as RFC 3986 section 5.4 says",
    arguments: [
      ("g", "/b/c/g"), ("./g", "/b/c/g"), ("g/", "/b/c/g/"), ("/g", "/g"), ("?y", "/b/c/d;p?y"),
      ("g?y", "/b/c/g?y"),
      ("#s", "/b/c/d;p?q"), ("g#s", "/b/c/g"), ("g?y#s", "/b/c/g?y"), (";x", "/b/c/;x"), ("g;x", "/b/c/g;x"),
      ("", "/b/c/d;p?q"), (".", "/b/c/"), ("./", "/b/c/"), ("..", "/b/"), ("../", "/b/"), ("../g", "/b/g"),
      ("../..", "/"), ("../../", "/"), ("../../g", "/g"), ("../../../g", "/g"), ("/./g", "/g"),
      ("/../g", "/g"),
      ("g.", "/b/c/g."), (".g", "/b/c/.g"), ("g..", "/b/c/g.."), ("./../g", "/b/g"), ("./g/.", "/b/c/g/"),
      ("g/./h", "/b/c/g/h"), ("g/../h", "/b/c/h"), ("g;x=1/../y", "/b/c/y"), ("g?y/../x", "/b/c/g?y/../x"),
    ])
  func references(reference: String, expected: String) throws {
    let base = try WebAddress("http://a:81/b/c/d;p?q")
    #expect(try base.resolving(reference).target == expected)
    #expect(try base.resolving(reference).authority == "a:81")
    #expect(try base.resolving("//g:82/x").authority == "g:82")
    #expect(try base.resolving("https://g/x").isSecure)
  }

  @Test("redirects are followed over kept connections, and the response has the last address")
  func followed() async throws {
    let first = Locked<[String]>([])
    let second = try await listen { request in
      first.withLock { $0.append(request[header: "Authorization"] ?? "none") }
      return .receive { request, reply in
        reply.send(
          HTTPServer.Response(status: 201, headers: [("Location", "../resource/7?x")], body: request.body))
      }
    }
    let target = "http://localhost:\(second.port)/whip/endpoint"
    let server = try await listen { request in
      first.withLock { $0.append(request[header: "Authorization"] ?? "none") }
      let to = request.path == "/a" ? "b" : target
      return .answer(
        HTTPServer.Response(status: 307, headers: [("Location", to)], body: [UInt8](repeating: 1, count: 500))
      )
    }
    let client = HTTPClient.patient
    var request = HTTPClient.Request("POST", try WebAddress("http://localhost:\(server.port)/a"))
    request.timeouts = HTTPClient.Timeouts(connect: 0, answer: 0, whole: 600_000)
    request.headers = [("Authorization", "Bearer t")]
    request.body = .bytes(Array("offer".utf8))
    let response = try await client.run(request)
    #expect(response.status == 201 && response.body == Array("offer".utf8))
    #expect(response.address.port == second.port && response.address.target == "/whip/endpoint")
    #expect(response.location?.target == "/resource/7?x")
    #expect(first.withLock { $0 } == ["Bearer t", "Bearer t", "none"])
    request.redirects = 0
    #expect(try await client.run(request).status == 307)
    client.close()
    await server.stop()
    await second.stop()
  }

  @Test("redirects without an end are bounded, and the error names the hosts")
  func endless() async throws {
    let server = try await listen { request in
      let number = Int(request.path.dropFirst()) ?? 0
      return .answer(HTTPServer.Response(status: 302, headers: [("Location", "/\(number + 1)")]))
    }
    var request = HTTPClient.Request("GET", try WebAddress("http://localhost:\(server.port)/0"))
    request.timeouts = HTTPClient.Timeouts(connect: 600_000, answer: 600_000, whole: 600_000)
    request.redirects = 2
    let place = "localhost:\(server.port)"
    let endless = request
    await #expect {
      _ = try await HTTPClient.shared.run(endless)
    } throws: {
      ($0 as? NetError)?.text
        == "\(place) redirects more than 2 times: \(place) → \(place) → \(place) → \(place)"
    }
    await server.stop()
  }

  private func listen(
    _ decide: @escaping @Sendable (HTTPServer.Request) -> HTTPServer.Decision
  ) async throws -> HTTPServer {
    var limits = HTTPServer.Limits()
    limits.patience = 600_000
    return try await HTTPServer.listen(port: 0, on: .shared, limits: limits, decide: decide)
  }
}

@Suite("HTTP with Python's server", .timeLimit(.minutes(30))) struct HTTPClientPeerTests {
  @Test("a file, a redirect to a folder, and a missing page come over one connection")
  func python() async throws {
    let folder = TemporaryFolder()
    let content = pattern(300_000)
    let log = TemporaryFolder()
    #expect(mkdir(folder.file("sub"), 0o700) == 0)
    put(content, at: folder.file("file.bin"))
    put(Array("in".utf8), at: folder.file("sub") + "/index.html")
    let program = try TestProgram(
      try #require(TestProgram.path(of: "python3")),
      [
        "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--protocol", "HTTP/1.1", "--directory",
        folder.path,
      ],
      output: .file(log.file("out")))
    defer { program.send(SIGTERM) }
    var port = 0
    while port == 0 {
      try await Task.sleep(for: .milliseconds(5))
      let words = String(decoding: contents(log.file("out")), as: UTF8.self).split(separator: " ")
      if let place = words.firstIndex(of: "port"), place + 1 < words.count {
        port = Int(words[place + 1]) ?? 0
      }
    }
    let client = HTTPClient.patient
    func get(_ path: String, method: String = "GET") async throws -> HTTPClient.Response {
      var request = HTTPClient.Request(method, try WebAddress("http://127.0.0.1:\(port)\(path)"))
      request.timeouts = HTTPClient.Timeouts(connect: 0, answer: 0, whole: 600_000)
      return try await client.run(request)
    }
    #expect(try await get("/file.bin").body == content)
    let head = try await get("/file.bin", method: "HEAD")
    #expect(head.body.isEmpty && head["Content-Length"] == "300000")
    let moved = try await get("/sub")
    #expect(moved.body == Array("in".utf8) && moved.address.target == "/sub/")
    #expect(try await get("/none").status == 404)
    #expect(try await get("/file.bin").body == content)
  }
}
