import MillraceCore
import MillraceJSON
import MillraceNet
import MillraceService
import Synchronization
import TestNet
import Testing

/// What no error may show: it stands in the query, in a header, in the body, and in answers.
private let hidden = "hush-hush-1234"

/// A token server of a test.
private func listen(
  identity: NetIdentity? = nil,
  _ decide: @escaping @Sendable (HTTPServer.Request) -> HTTPServer.Decision
) async throws -> HTTPServer {
  var limits = HTTPServer.Limits()
  limits.patience = 600_000
  return try await HTTPServer.listen(
    port: 0, identity: identity, on: .shared, limits: limits, decide: decide)
}

private func answer(
  _ body: String, status: Int = 200, _ headers: [(name: String, value: String)] = []
) -> HTTPServer.Decision {
  .answer(HTTPServer.Response(status: status, headers: headers, body: Array(body.utf8)))
}

/// A request for a token, with time enough for a machine that runs all tests at once.
private func template(
  _ port: Int, scheme: String = "http", method: String = "POST", timeout: Int = 600_000,
  body: HTTPTokenRequest.Body = .json(["key": "{env:KEY}", "user": "{user}"]),
  environment: @escaping @Sendable (String) -> String? = { $0 == "KEY" ? hidden : nil }
) throws(NodeProblem) -> HTTPTokenRequest {
  var request = try HTTPTokenRequest(
    method: method, url: "\(scheme)://127.0.0.1:\(port)/token/{user}?key={env:KEY}",
    headers: [("Authorization", "Bearer {env:KEY}")], body: body, environment: environment)
  request.timeout = timeout
  request.proxy = .direct
  return request
}

private func source(
  _ request: HTTPTokenRequest, token: String = "data.token",
  expiry: HTTPTokenAnswer.Expiry? = .seconds("data.expires_in"), secrets: Secrets = Secrets()
) throws(NodeProblem) -> HTTPTokenSource {
  try HTTPTokenSource(
    request, answer: try HTTPTokenAnswer(token: token, expiry: expiry), values: ["user": "alice"],
    secrets: secrets, unixTime: { .milliseconds(1_700_000_000_000) })
}

/// What a test waited for did not happen.
private struct Missing: Error {}

/// Lets the clock's calls run until something is so, without any time passing on it; for at most ten minutes.
private func until(_ clock: ManualServiceClock, _ isSo: () -> Bool) async throws {
  let end = ContinuousClock.now + .seconds(600)
  while true {
    clock.advance(by: 0)
    if isSo() { return }
    guard ContinuousClock.now < end else { throw Missing() }
    try await Task.sleep(for: .milliseconds(1))
  }
}

private func fetch(
  _ source: HTTPTokenSource, _ clock: ManualServiceClock = ManualServiceClock()
) async throws -> Result<ServiceToken, TokenFailure> {
  let result = Locked<Result<ServiceToken, TokenFailure>?>(nil)
  source.fetch(clock) { value in result.withLock { $0 = value } }
  try await until(clock) { result.withLock { $0 != nil } }
  return try #require(result.withLock { $0 })
}

private func failure(_ result: Result<ServiceToken, TokenFailure>) throws -> TokenFailure {
  guard case .failure(let failure) = result else {
    Issue.record("a token came")
    return TokenFailure("", isFinal: false)
  }
  return failure
}

/// An answer that is no token, and what is said about it.
private struct BadAnswer: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var decide: @Sendable (HTTPServer.Request) -> HTTPServer.Decision
  /// Without the server, which comes before it.
  var text: String
  var isFinal: Bool

  init(
    _ name: String, _ text: String, isFinal: Bool = true,
    _ decide: @escaping @Sendable (HTTPServer.Request) -> HTTPServer.Decision
  ) {
    testDescription = name
    self.text = text
    self.isFinal = isFinal
    self.decide = decide
  }

  init(
    _ name: String, body: String, status: Int = 200, type: String = "application/json", _ text: String,
    isFinal: Bool = true
  ) {
    self.init(name, text, isFinal: isFinal) { _ in answer(body, status: status, [("Content-Type", type)]) }
  }

  /// A JSON answer that lacks something.
  init(_ body: String, _ text: String) {
    self.init(body, body: body, "gave an unexpected answer: \(text)")
  }

  static let forms: [BadAnswer] = [
    BadAnswer(
      "a page by its type", body: "\(hidden)", type: "Text/HTML; charset=utf-8",
      "answered with a web page instead of JSON; check the URL, and whether a login page or a proxy answers for it",
      isFinal: false),
    BadAnswer(
      "a page by its content", body: "\r\n <!DOCTYPE html>\(hidden)",
      "answered with a web page instead of JSON; check the URL, and whether a login page or a proxy answers for it",
      isFinal: false),
    BadAnswer(
      "no JSON", body: "key=\(hidden)",
      "answered with invalid JSON at byte 0: unexpected character, expected a value; check the URL"),
    BadAnswer(
      "an array", body: "[\"\(hidden)\"]", "answered with JSON that is not an object; check the URL"),
    BadAnswer("nothing", body: " ", "answered without content; check the URL and the method"),
    BadAnswer("status 204", "answered without content; check the URL and the method") { _ in
      answer("", status: 204)
    },
  ]

  static let members: [BadAnswer] = [
    BadAnswer(
      #"{"data":{"other":"hush-hush-1234"}}"#,
      #""data.token" is missing; name the member that holds the token"#),
    BadAnswer(#"{"data":null}"#, #""data.token" is missing; name the member that holds the token"#),
    BadAnswer(
      #"{"data":"hush-hush-1234"}"#, #""data" must be an object; name the member that holds the token"#),
    BadAnswer(
      #"{"data":{"token":7}}"#,
      #""data.token" must be a string; name the member that holds the token"#),
    BadAnswer(
      #"{"data":{"token":""}}"#,
      #""data.token" is empty; the server has to fill it, its log may say why it does not"#),
    BadAnswer(
      #"{"data":{"token":"hush-hush-1234\n"}}"#,
      #""data.token" contains a line break or another control character; name the member that holds the token"#
    ),
    BadAnswer(
      "a token of 16 KiB and a byte",
      body: "{\"data\":{\"token\":\"\(String(repeating: "x", count: 16_385))\"}}",
      "gave an unexpected answer: \"data.token\" is larger than 16384 bytes; name the member that holds the token"
    ),
    BadAnswer(
      #"{"data":{"token":"hush-hush-1234"}}"#,
      #""data.expires_in" is missing; name the member that holds the expiry, or give a lifetime"#),
    BadAnswer(
      #"{"data":{"token":"hush-hush-1234","expires_in":"1 h"}}"#,
      #""data.expires_in" must be a number; name the member that holds the expiry"#),
    BadAnswer(
      #"{"data":{"token":"hush-hush-1234","expires_in":0}}"#,
      #""data.expires_in" is less than a second; the server must give out tokens that are still valid"#),
    BadAnswer(
      #"{"data":{"token":"hush-hush-1234","expires_in":1700003600}}"#,
      #""data.expires_in" is more than 30 years; it may be a Unix time, or milliseconds"#),
  ]

  static let statuses: [BadAnswer] = [
    (
      401, true, "does not accept the request's credential (status 401); check KEY in the environment"
    ),
    (
      403, true,
      "does not allow this (status 403); check the rights of the credential in KEY"
    ),
    (404, true, "has nothing at this path (status 404); check the URL"),
    (400, true, "refused the request (status 400); check the method, the headers and the body"),
    (408, false, "did not get the request in time (status 408); check the network"),
    (429, false, "got too many requests (status 429); let sessions share a token, or raise its limit"),
    (500, false, "failed (status 500); its log may say why"),
    (503, false, "failed (status 503); its log may say why"),
  ].map { (status: Int, isFinal: Bool, text: String) in
    BadAnswer(
      "status \(status)", body: #"{"data":{"token":"hush-hush-1234","expires_in":60}}"#, status: status, text,
      isFinal: isFinal)
  }
}

/// A connection that does not give an answer, and what is said about it.
private struct BadConnection: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var text: String
  var isFinal: Bool
  var timeout = 600_000
  var decide: @Sendable (HTTPServer.Request) -> HTTPServer.Decision

  static let all: [BadConnection] = [
    BadConnection(
      testDescription: "a body without end",
      text: "the response of HOST is larger than 65536 bytes; check the URL: no token is that large",
      isFinal: true
    ) { _ in
      .answer(
        HTTPServer.Response(
          content: .stream { stream in
            for _ in 0..<8 { _ = stream.send([UInt8](repeating: 0x20, count: 16_384)) }
            return { _ in }
          }))
    },
    BadConnection(
      testDescription: "a body of the announced size",
      text: "the response of HOST is larger than 65536 bytes; check the URL: no token is that large",
      isFinal: true
    ) { _ in answer(String(repeating: " ", count: 65_537)) },
    BadConnection(
      testDescription: "a redirect loop",
      text: "HOST redirects in a loop: HOST → HOST; use the URL that gives out tokens", isFinal: true
    ) { answer("", status: 307, [("Location", $0.target)]) },
    BadConnection(
      testDescription: "a redirect to elsewhere",
      text:
        "HOST redirects to another origin, service.invalid:443, which must not get the request; use the URL that gives out tokens",
      isFinal: true
    ) { _ in answer("", status: 308, [("Location", "https://service.invalid/\(hidden)")]) },
    BadConnection(
      testDescription: "a body that stands still", text: "within 300 ms", isFinal: false, timeout: 300
    ) { _ in
      .answer(
        HTTPServer.Response(
          content: .stream { stream in
            _ = stream.send(Array("{".utf8))
            return { _ in }
          }))
    },
  ]
}

@Suite("Tokens over HTTP", .timeLimit(.minutes(30))) struct HTTPTokenSourceTests {
  @Test("a token comes with its expiry, and the request is what the template says", arguments: [false, true])
  func token(isSecure: Bool) async throws {
    let seen = Locked<[String]>([])
    let server = try await listen(identity: isSecure ? Certificates.localhost : nil) { _ in
      .receive { request, reply in
        seen.withLock {
          $0 += [
            request.method, request.target, request[header: "Authorization"] ?? "",
            request[header: "Content-Type"] ?? "", String(decoding: request.body, as: UTF8.self),
          ]
        }
        reply.send(
          HTTPServer.Response(body: Array(#"{"data":{"token":"tok-5678","expires_in":60}}"#.utf8)))
      }
    }
    var request = try template(server.port, scheme: isSecure ? "https" : "http")
    request.trust = .file(Certificates.authority)
    let secrets = Secrets()
    let clock = ManualServiceClock()
    clock.advance(by: .milliseconds(5_000))
    let result = try await fetch(try source(request, secrets: secrets), clock)
    #expect(result == .success(ServiceToken("tok-5678", expiry: .milliseconds(65_000))))
    #expect(
      seen.withLock { $0 } == [
        "POST", "/token/alice?key=\(hidden)", "Bearer \(hidden)", "application/json",
        #"{"key":"hush-hush-1234","user":"alice"}"#,
      ])
    #expect(secrets.redacting("a tok-5678 and \(hidden)") == "a ••• and •••")
    await server.stop()
  }

  @Test("a certificate that is not trusted is a final failure that names the server")
  func untrusted() async throws {
    let server = try await listen(identity: Certificates.other) { _ in answer("{}") }
    var request = try template(server.port, scheme: "https")
    request.trust = .file(Certificates.authority)
    let failure = try failure(try await fetch(try source(request)))
    #expect(failure.text.hasPrefix("no token from 127.0.0.1:\(server.port)/token/{user}: host name mismatch"))
    #expect(failure.text.hasSuffix("; check the URL, or trust the authority of its certificate"))
    #expect(failure.isFinal && !failure.text.contains(hidden))
    await server.stop()
  }

  @Test(
    "an answer that is no token says which server gave it, what is wrong, and the cure",
    arguments: BadAnswer.forms + BadAnswer.members + BadAnswer.statuses)
  fileprivate func badAnswer(bad: BadAnswer) async throws {
    let server = try await listen(bad.decide)
    let failure = try failure(try await fetch(try source(try template(server.port))))
    #expect(failure.text == "the token server 127.0.0.1:\(server.port)/token/{user} \(bad.text)")
    #expect(failure.isFinal == bad.isFinal && !failure.text.contains(hidden))
    await server.stop()
  }

  @Test("a connection without a usable answer says which server and the cure", arguments: BadConnection.all)
  fileprivate func badConnection(bad: BadConnection) async throws {
    let server = try await listen(bad.decide)
    let host = "127.0.0.1:\(server.port)"
    let failure = try failure(
      try await fetch(try source(try template(server.port, timeout: bad.timeout))))
    #expect(
      failure.text.hasPrefix("no token from \(host)/token/{user}: \(host) ")
        || failure.text.hasPrefix("no token from \(host)/token/{user}: the response of \(host) "))
    #expect(failure.text.contains(bad.text.replacing("HOST", with: host)), "\(failure)")
    #expect(failure.isFinal == bad.isFinal && !failure.text.contains(hidden))
    await server.stop()
  }

  @Test(
    "a server that closes the connection or speaks something else is not a final failure",
    arguments: [
      ("", "closed the connection before it answered; the server's log may say why"),
      ("220 ready\r\n\r\n", "sent an invalid HTTP response; check whether the URL leads to an HTTP server"),
    ])
  func noHTTP(text: String, message: String) async throws {
    let server = try RawServer { peer in
      _ = peer.readHead()
      peer.send(text)
    }
    let failure = try failure(
      try await fetch(try source(try template(server.port, method: "GET", body: .none))))
    let host = "127.0.0.1:\(server.port)"
    #expect(failure.text == "no token from \(host)/token/{user}: \(host) \(message)")
    #expect(!failure.isFinal)
    server.stop()
  }

  @Test("an error that has its cure is given no second one")
  func oneCure() async throws {
    // Port 1 belongs to TCPMUX (RFC 1078), which no system runs.
    let refused = try failure(try await fetch(try source(try template(1))))
    #expect(
      refused.text
        == "no token from 127.0.0.1:1/token/{user}: connection refused by 127.0.0.1:1; start the server, or correct the address"
    )
    #expect(!refused.isFinal)
  }

  @Test("a request without a secret follows a redirect to another origin, whose host is named in errors")
  func redirected() async throws {
    let isGood = Locked(true)
    let second = try await listen { _ in
      isGood.withLock { $0 } ? answer(#"{"t":"tok-5678"}"#) : answer(#"{"other":"tok-5678"}"#)
    }
    let target = "http://127.0.0.1:\(second.port)/\(hidden)"
    let first = try await listen { _ in answer("", status: 307, [("Location", target)]) }
    var request = try HTTPTokenRequest(
      url: "http://127.0.0.1:\(first.port)/", body: .json(["user": "{user}"]))
    request.timeout = 600_000
    request.proxy = .direct
    let tokens = try source(request, token: "t", expiry: nil)
    #expect(try await fetch(tokens) == .success(ServiceToken("tok-5678")))
    isGood.withLock { $0 = false }
    let failure = try failure(try await fetch(tokens))
    #expect(
      failure.text
        == "the token server 127.0.0.1:\(first.port)/, redirected to 127.0.0.1:\(second.port), gave an unexpected answer: \"t\" is missing; name the member that holds the token"
    )
    await first.stop()
    await second.stop()
  }

  @Test("an expiry in the past is an answer like any other bad one, in either unit")
  func past() async throws {
    let server = try await listen { _ in answer(#"{"t":"tok-5678","exp":1700000000}"#) }
    for expiry in [HTTPTokenAnswer.Expiry.unixSeconds("exp"), .unixMilliseconds("exp")] {
      let failure = try failure(
        try await fetch(try source(try template(server.port), token: "t", expiry: expiry)))
      #expect(
        failure.text.hasSuffix(
          "gave an unexpected answer: \"exp\" is in the past; compare the clocks of both machines, and the unit (seconds or milliseconds)"
        ))
    }
    await server.stop()
    let other = try await listen { _ in answer(#"{"t":"tok-5678","exp":1700000060000}"#) }
    let failure = try failure(
      try await fetch(try source(try template(other.port), token: "t", expiry: .unixSeconds("exp"))))
    #expect(failure.text.hasSuffix("\"exp\" is no Unix time in seconds; it may be in milliseconds"))
    await other.stop()
  }

  @Test("a variable that is gone when a token is due is named, and nothing is sent")
  func unset() async throws {
    let requests = Locked(0)
    let server = try await listen { _ in
      requests.withLock { $0 += 1 }
      return answer("{}")
    }
    let isSet = Locked(true)
    let tokens = try source(
      try template(server.port, environment: { _ in isSet.withLock { $0 } ? hidden : nil }))
    isSet.withLock { $0 = false }
    let failure = try failure(try await fetch(tokens))
    #expect(
      failure
        == TokenFailure(
          "no token from 127.0.0.1:\(server.port)/token/{user}: the environment variable KEY is not set; set it, or take {env:KEY} out of the template",
          isFinal: true))
    #expect(requests.withLock { $0 } == 0)
    await server.stop()
  }

  @Test("while the server asks to wait, a request fails at once and nothing is sent")
  func retryAfter() async throws {
    let requests = Locked(0)
    let server = try await listen { _ in
      requests.withLock { $0 += 1 }
      return answer("", status: 503, [("Retry-After", "20")])
    }
    let tokens = try source(try template(server.port))
    let clock = ManualServiceClock()
    let first = try failure(try await fetch(tokens, clock))
    #expect(first.text.hasSuffix("failed (status 503); the server asks to wait 20 s; its log may say why"))
    #expect(first.retryAfter == .milliseconds(20_000) && !first.isFinal)
    clock.advance(by: .milliseconds(18_500))
    let second = try failure(try await fetch(tokens, clock))
    #expect(second.text.hasSuffix("/token/{user} accepts no request for another 2 s"))
    #expect(second.retryAfter == .milliseconds(1_500) && !second.isFinal)
    #expect(requests.withLock { $0 } == 1)
    clock.advance(by: .milliseconds(1_500))
    #expect(try failure(try await fetch(tokens, clock)) == first)
    #expect(requests.withLock { $0 } == 2)
    await server.stop()
  }
}

/// A server that gives out tokens 1, 2, 3 … when the test says.
private final class HeldTokens: Sendable {
  private struct State {
    var requests = 0
    var held: [HTTPReply] = []
  }

  private let state = Locked(State())

  var requests: Int { state.withLock { $0.requests } }

  func decide(_ request: HTTPServer.Request) -> HTTPServer.Decision {
    .receive { [self] _, reply in
      state.withLock {
        $0.requests += 1
        $0.held.append(reply)
      }
    }
  }

  /// Answers every request that waits.
  func release(_ response: HTTPServer.Response? = nil) {
    let (held, number) = state.withLock { state in
      let held = state.held
      state.held = []
      return (held, state.requests)
    }
    let body = "{\"data\":{\"token\":\"tok-\(number)\",\"expires_in\":100}}"
    for reply in held { reply.send(response ?? HTTPServer.Response(body: Array(body.utf8))) }
  }
}

@Suite("A token provider with a token server", .timeLimit(.minutes(30))) struct HTTPTokenProviderTests {
  private let clock = ManualServiceClock()
  private let tokens = HeldTokens()
  private let answers = Locked<[String]>([])
  private let failures = Locked(0)

  private func ask(_ provider: TokenProvider, times: Int = 1) {
    for _ in 0..<times {
      provider.token { [answers] result in
        answers.withLock { $0.append((try? result.get().text) ?? "failed") }
      }
    }
  }

  private func begin() async throws -> (HTTPServer, TokenProvider) {
    let server = try await listen { [tokens] in tokens.decide($0) }
    let provider = TokenProvider(
      try source(try template(server.port)), ahead: .milliseconds(30_000), clock: clock)
    _ = provider.observe { [failures] change in
      if case .failed = change { failures.withLock { $0 += 1 } }
    }
    return (server, provider)
  }

  @Test("many who ask at once share one request, also while it is renewed")
  func shared() async throws {
    let (server, provider) = try await begin()
    ask(provider, times: 5)
    try await until(clock) { tokens.requests == 1 }
    ask(provider, times: 5)
    // The life of a token counts from the request.
    clock.advance(by: .milliseconds(10_000))
    tokens.release()
    try await until(clock) { answers.withLock(\.count) == 10 }
    #expect(answers.withLock { Set($0) } == ["tok-1"] && tokens.requests == 1)

    clock.advance(by: .milliseconds(59_999))
    #expect(tokens.requests == 1)
    clock.advance(by: .milliseconds(1))
    try await until(clock) { tokens.requests == 2 }
    ask(provider, times: 5)
    try await until(clock) { answers.withLock(\.count) == 15 }
    #expect(answers.withLock { Set($0) } == ["tok-1"])
    tokens.release()
    try await until(clock) {
      ask(provider)
      return answers.withLock { $0.last } == "tok-2"
    }
    #expect(tokens.requests == 2 && failures.withLock { $0 } == 0)
    provider.stop()
    await server.stop()
  }

  @Test("a renewal waits as long as the server asks for, and the old token is given out meanwhile")
  func patience() async throws {
    let (server, provider) = try await begin()
    ask(provider)
    try await until(clock) { tokens.requests == 1 }
    tokens.release()
    try await until(clock) { answers.withLock(\.count) == 1 }
    clock.advance(by: .milliseconds(70_000))
    try await until(clock) { tokens.requests == 2 }
    tokens.release(HTTPServer.Response(status: 429, headers: [("Retry-After", "20")]))
    try await until(clock) { failures.withLock { $0 } == 1 }

    clock.advance(by: .milliseconds(19_999))
    ask(provider)
    clock.advance(by: 0)
    #expect(answers.withLock { $0 } == ["tok-1", "tok-1"])
    #expect(tokens.requests == 2 && failures.withLock { $0 } == 1)
    clock.advance(by: .milliseconds(1))
    try await until(clock) { tokens.requests == 3 }
    tokens.release()
    try await until(clock) {
      ask(provider)
      return answers.withLock { $0.last } == "tok-3"
    }
    #expect(failures.withLock { $0 } == 1)
    provider.stop()
    await server.stop()
  }
}
