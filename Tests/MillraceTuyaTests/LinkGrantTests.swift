import MillraceCore
import MillraceCrypto
import MillraceJSON
import MillraceNet
import MillraceService
import Testing

@testable import MillraceTuya

/// The parameters of a node.
private let given = TuyaGrant(token: TuyaSecret("given"), terms: TuyaTerms(bizCode: 1, bizTag: 2))

@Suite("Tuya: the answer of a token server") struct LinkGrantTests {
  @Test("a flat answer has address, client, token and terms")
  func flat() throws {
    let grant = try TuyaGrant(
      parsing: """
        {"host": "ai.example", "port": 8883, "clientId": "c", "localKey": "k", "agentToken": "t", "bizCode": 65537,
         "bizTag": "119", "sendData": ["audio", "text"], "revData": ["audio"], "expire": 86400}
        """, given: given)
    #expect(grant.access.address == (try WebAddress("tls://ai.example:8883")))
    #expect(grant.access.client == "c")
    #expect(grant.access.localKey == SecretKey(utf8: "k"))
    #expect(grant.access.expiry == 86_400)
    #expect(grant.token.text == "t")
    #expect(
      grant.terms == TuyaTerms(bizCode: 65_537, bizTag: 119, sends: [.audio, .text], receives: [.audio]))
  }

  @Test("the cloud's answer is the same in Base64, as an object, and alone", arguments: 0..<3)
  func cloud(_ form: Int) throws {
    let inner: JSONValue = [
      "connect_conf": [
        "domains": ["a.example"], "hosts": ["10.0.0.1"], "ecc_tls_port": 443, "tcpport": 1_883,
        "derived_client_id": "derived",
      ],
      "session_conf": [
        "agentToken": "t",
        "bizConfig": ["bizCode": 65_537, "sendData": ["audio", "image"], "revData": ["text"]],
      ],
    ]
    let text =
      switch form {
      case 0: JSONValue.object(["success": true, "result": .string(Base64.encode(inner.bytes))]).text
      case 1: JSONValue.object(["result": inner]).text
      default: inner.text
      }
    let grant = try TuyaGrant(parsing: text, given: given)
    #expect(grant.access.address == (try WebAddress("tls://a.example:443")))
    #expect(grant.access.client == "derived")
    #expect(grant.token.text == "t")
    #expect(grant.terms == TuyaTerms(bizCode: 65_537, bizTag: 2, sends: [.audio, .image], receives: [.text]))
  }

  @Test("without a domain, the host is connected to without TLS, with the credentials of v1")
  func plain() throws {
    let grant = try TuyaGrant(
      parsing: """
        {"connect_conf": {"hosts": ["10.0.0.1"], "tcpport": 1883, "username": "u", "credential": "p",
         "derivedAlgorithm": "hkdf", "derivedIv": "iv"}, "session_conf": {"agentToken": "t"}}
        """, given: given)
    #expect(grant.access.address == (try WebAddress("tcp://10.0.0.1:1883")))
    #expect(grant.access.user == "u")
    #expect(grant.access.password?.text == "p")
    #expect(grant.access.derivation == TuyaAccess.Derivation(algorithm: "hkdf", vector: "iv"))
  }

  @Test("what a parameter says takes precedence over the answer")
  func parameters() throws {
    var mine = given
    mine.access.address = try WebAddress("tls://mine.example:1")
    mine.access.client = "mine"
    let grant = try TuyaGrant(
      parsing: #"{"host": "ai.example", "port": 2, "clientId": "c", "agentToken": "t"}"#, given: mine)
    #expect(grant.access.address == mine.access.address)
    #expect(grant.access.client == "mine")
  }

  @Test("a text that is no JSON is the agent token")
  func bare() throws {
    let grant = try TuyaGrant(parsing: "a-token", given: given)
    #expect(grant.token.text == "a-token")
    #expect(grant.terms == given.terms)
  }

  @Test(
    "an answer that is not valid is an error without its content",
    arguments: [
      "", "  ", "{", #"{"x-secret": 1}"#, #"{"agentToken": ""}"#, #"{"agentToken": 5}"#,
      #"{"result": "x-secret"}"#, #"{"result": "eC1zZWNyZXQ="}"#, #"{"result": 5}"#,
      #"{"agentToken": "x-secret", "bizCode": -1}"#, #"{"agentToken": "x-secret", "sendData": "audio"}"#,
      #"{"agentToken": "x-secret", "sendData": ["smell"]}"#,
      #"{"agentToken": "x-secret", "host": "a b", "port": 1}"#,
      #"{"agentToken": "x-secret", "host": "a", "port": 99999}"#,
      #"{"success": false, "errorMsg": "x-secret"}"#,
    ])
  func invalid(_ text: String) {
    let problem = #expect(throws: TuyaTokenProblem.self) { try TuyaGrant(parsing: text, given: given) }
    #expect(problem?.text.contains("x-secret") == false)
    #expect(problem?.text.contains("token") == true)
  }

  @Test("neither key, token nor password is printed")
  func secrets() throws {
    var grant = try TuyaGrant(
      parsing: """
        {"host": "ai.example", "port": 1, "clientId": "c", "localKey": "x-secret-key", "agentToken": "x-secret-token",
         "user": "u", "password": "x-secret-password"}
        """, given: given)
    grant.access.expiry = 1
    var texts = ["\(grant)", "\(grant.access)", "\(TuyaTarget(grant.access))", String(reflecting: grant)]
    for value in [grant, grant.access, TuyaTarget(grant.access), grant.token] as [Any] {
      var text = ""
      dump(value, to: &text)
      texts.append(text)
    }
    for text in texts { #expect(!text.contains("x-secret")) }
  }
}

/// Tokens that a test hands out, one after the other.
private final class ListedTokens: TokenSource {
  private let next = Locked(0)
  private let tokens: [Result<String, TokenFailure>]

  init(_ tokens: [Result<String, TokenFailure>]) { self.tokens = tokens }

  var count: Int { next.withLock { $0 } }

  func fetch(
    _ clock: any ServiceClock, _ done: @escaping @Sendable (Result<ServiceToken, TokenFailure>) -> Void
  ) {
    let index = next.withLock { next in
      defer { next += 1 }
      return next
    }
    let result = tokens[min(index, tokens.count - 1)].map { ServiceToken($0) }
    clock.run { done(result) }
  }
}

@Suite("Tuya: the grants of an agent") struct LinkTokenTests {
  /// Asks, and waits for the answer.
  private func ask(
    _ tokens: TuyaTokens, _ clock: ManualServiceClock, refused: TuyaGivenGrant? = nil
  ) async -> Result<TuyaGivenGrant, TuyaTokenProblem> {
    await withCheckedContinuation { continuation in
      tokens.grant(on: .shared, refused: refused) { continuation.resume(returning: $0) }
      clock.advance(by: 0)
    }
  }

  @Test("parameters give the same grant each time, and no other after a refusal")
  func parameters() async throws {
    let (tokens, clock) = (TuyaTokens(given: given), ManualServiceClock())
    let grant = try await ask(tokens, clock).get()
    #expect(grant.grant == given)
    #expect(!tokens.refuse(grant))
    #expect(try await ask(tokens, clock).get().grant == given)
    guard case .failure(let problem) = await ask(tokens, clock, refused: grant) else {
      Issue.record("a grant was renewed that cannot be")
      return
    }
    #expect(problem.isFinal)
  }

  @Test("a grant that was refused is renewed once; the next refusal in a row is the last")
  func renewal() async throws {
    let (source, clock) = (ListedTokens([.success("a"), .success("b"), .success("c")]), ManualServiceClock())
    let tokens = TuyaTokens(TokenProvider(source, ahead: 0, clock: clock), given: given)
    let first = try await ask(tokens, clock).get()
    #expect(first.grant.token.text == "a")
    #expect(tokens.refuse(first))
    let second = try await ask(tokens, clock).get()
    #expect(second.grant.token.text == "b")
    #expect(!tokens.refuse(second))
    let third = try await ask(tokens, clock).get()
    #expect(third.grant.token.text == "c")
    tokens.accept(third)
    #expect(tokens.refuse(third))
  }

  @Test(
    "a grant with which a session was refused is not given out again, and a connection still has its second try"
  )
  func discarded() async throws {
    let (source, clock) = (ListedTokens([.success("a"), .success("b"), .success("c")]), ManualServiceClock())
    let tokens = TuyaTokens(TokenProvider(source, ahead: 0, clock: clock), given: given)
    tokens.discard(try await ask(tokens, clock).get())
    let second = try await ask(tokens, clock).get()
    #expect(second.grant.token.text == "b")
    #expect(tokens.refuse(second))
    #expect(try await ask(tokens, clock).get().grant.token.text == "c")
    #expect(source.count == 3)
  }

  @Test("a provider is stopped with the grants that it belongs to")
  func released() async throws {
    let (source, clock) = (ListedTokens([.success("a"), .success("b")]), ManualServiceClock())
    let provider = TokenProvider(source, ahead: 0, clock: clock)
    var tokens: TuyaTokens? = TuyaTokens(provider, given: given)
    withExtendedLifetime(tokens) {}
    tokens = nil
    let results = Locked<[Result<ServiceToken, TokenFailure>]>([])
    provider.token { result in results.withLock { $0.append(result) } }
    clock.advance(by: 0)
    guard case .failure(let failure)? = results.withLock({ $0.first }) else {
      Issue.record("the provider gives out tokens that nobody needs")
      return
    }
    #expect(failure.isFinal && source.count == 0)
  }

  @Test("several sessions share the request for a token")
  func shared() async throws {
    let (source, clock) = (ListedTokens([.success("a")]), ManualServiceClock())
    let tokens = TuyaTokens(TokenProvider(source, ahead: 0, clock: clock), given: given)
    let (results, stream) = AsyncStream.makeStream(of: Bool.self)
    for _ in 0..<5 {
      tokens.grant(on: .shared) { result in
        if case .success = result { stream.yield(true) } else { stream.yield(false) }
      }
    }
    clock.advance(by: 0)
    var count = 0
    for await isThere in results {
      #expect(isThere)
      count += 1
      if count == 5 { break }
    }
    #expect(source.count == 1)
  }

  @Test("a failure says whether asking again would help")
  func failures() async throws {
    let source = ListedTokens([
      .failure(TokenFailure("later", isFinal: false)), .failure(TokenFailure("never", isFinal: true)),
      .success("{"),
    ])
    let clock = ManualServiceClock()
    let tokens = TuyaTokens(TokenProvider(source, ahead: 0, clock: clock), given: given)
    var found: [Bool] = []
    for _ in 0..<3 {
      if case .failure(let problem) = await ask(tokens, clock) { found.append(problem.isFinal) }
    }
    #expect(found == [false, true, true])
  }
}
