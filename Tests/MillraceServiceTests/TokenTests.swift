import Glibc
import MillraceCore
import MillraceService
import Synchronization
import TestSystem
import Testing

/// Gives out tokens as a test says: number 1, 2, 3 …
private final class ScriptedTokens: TokenSource, @unchecked Sendable {
  var requests = 0
  var life: Nanoseconds? = .milliseconds(60_000)
  var delay: Nanoseconds = .milliseconds(100)
  var failure: TokenFailure?

  func fetch(
    _ clock: any ServiceClock, _ done: @escaping @Sendable (Result<ServiceToken, TokenFailure>) -> Void
  ) {
    requests += 1
    let number = requests
    _ = clock.run(after: delay) { [self] in
      done(
        failure.map { .failure($0) }
          ?? .success(ServiceToken("token \(number)", expiry: life.map { clock.now + $0 })))
    }
  }
}

/// What came, in order.
private final class Answers: @unchecked Sendable {
  var texts: [String] = []
  func take(_ result: Result<ServiceToken, TokenFailure>) {
    switch result {
    case .success(let token): texts.append(token.text)
    case .failure(let failure): texts.append("failed: \(failure.text)")
    }
  }
}

@Suite("Tokens") final class TokenTests {
  private let clock = ManualServiceClock()
  private let source = ScriptedTokens()
  private let answers = Answers()
  private lazy var provider = TokenProvider(source, ahead: .milliseconds(10_000), clock: clock)

  private func ask() { provider.token { [answers] in answers.take($0) } }

  @Test("a token is fetched once, however many ask for it at the same time")
  func once() {
    for _ in 0..<10 { ask() }
    #expect(answers.texts.isEmpty)
    clock.advance(by: .milliseconds(100))
    #expect(answers.texts == [String](repeating: "token 1", count: 10) && source.requests == 1)
    ask()
    clock.advance(by: 0)
    #expect(source.requests == 1 && answers.texts.count == 11)
  }

  @Test("a token is renewed ahead of its expiry, and the old one is given out meanwhile")
  func renewal() {
    let seen = Locked<[TokenProvider.Change]>([])
    _ = provider.observe { change in seen.withLock { $0.append(change) } }
    source.delay = .milliseconds(5_000)
    ask()
    clock.advance(by: .milliseconds(5_000))
    clock.advance(by: .milliseconds(52_000))
    ask()
    clock.advance(by: 0)
    #expect(source.requests == 2 && answers.texts == ["token 1", "token 1"])
    clock.advance(by: .milliseconds(5_000))
    ask()
    clock.advance(by: 0)
    #expect(answers.texts.last == "token 2")
    let changes = seen.withLock { $0 }
    #expect(changes.first == .willExpire(in: .milliseconds(10_000)))
    if case .renewed(let token)? = changes.last { #expect(token.text == "token 2") } else { Issue.record() }
    #expect(changes.count == 2)
  }

  @Test("a token that lives shorter than twice the lead is renewed at half its life, not at once and again")
  func shortLife() {
    source.life = .milliseconds(4_000)
    source.delay = 0
    ask()
    clock.advance(by: .milliseconds(20_000))
    #expect(source.requests == 11)
  }

  @Test("a token that never expires is fetched once")
  func everlasting() {
    source.life = nil
    ask()
    clock.advance(by: .milliseconds(100_000_000))
    #expect(source.requests == 1 && answers.texts == ["token 1"])
  }

  @Test("a rejected token is not given out again")
  func rejected() {
    ask()
    clock.advance(by: .milliseconds(100))
    provider.reject(ServiceToken("another"))
    ask()
    clock.advance(by: 0)
    #expect(answers.texts.last == "token 1")
    provider.reject(ServiceToken("token 1"))
    ask()
    clock.advance(by: .milliseconds(100))
    #expect(answers.texts == ["token 1", "token 1", "token 2"])
  }

  @Test("a failure is reported to every pending request, and the next request tries again")
  func failure() {
    source.failure = TokenFailure("no", isFinal: true)
    ask()
    ask()
    clock.advance(by: .milliseconds(100))
    #expect(answers.texts == ["failed: no", "failed: no"])
    source.failure = nil
    ask()
    clock.advance(by: .milliseconds(100))
    #expect(answers.texts.last == "token 2")
  }

  @Test("a renewal that fails is repeated with growing delays, while the token is still valid")
  func failedRenewal() {
    ask()
    clock.advance(by: .milliseconds(100))
    source.failure = TokenFailure("down", isFinal: false)
    clock.advance(by: .milliseconds(55_000))
    let tries = source.requests
    #expect(tries > 2 && tries < 10)
    ask()
    clock.advance(by: 0)
    #expect(answers.texts.last == "token 1")
    source.failure = nil
    clock.advance(by: .milliseconds(60_000))
    ask()
    clock.advance(by: .milliseconds(200))
    #expect(answers.texts.last?.hasPrefix("token ") == true && answers.texts.last != "token 1")
  }

  @Test("a renewal that fails waits as long as the server asks for")
  func askedToWait() {
    ask()
    clock.advance(by: .milliseconds(100))
    source.failure = TokenFailure("busy", isFinal: false, retryAfter: .milliseconds(5_000))
    clock.advance(by: .milliseconds(50_100))
    #expect(source.requests == 2)
    clock.advance(by: .milliseconds(4_900))
    #expect(source.requests == 2)
    clock.advance(by: .milliseconds(200))
    #expect(source.requests == 3)
  }

  private func watch() -> Locked<[TokenProvider.Change]> {
    let seen = Locked<[TokenProvider.Change]>([])
    _ = provider.observe { change in seen.withLock { $0.append(change) } }
    return seen
  }

  @Test("an expiry is reported at its time, however long the server asks to wait with the renewal")
  func expires() {
    let seen = watch()
    ask()
    clock.advance(by: .milliseconds(100))
    source.failure = TokenFailure("busy", isFinal: false, retryAfter: .milliseconds(3_600_000))
    clock.advance(by: .milliseconds(59_999))
    #expect(!seen.withLock { $0 }.contains(.expired))
    ask()
    clock.advance(by: 0)
    #expect(answers.texts == ["token 1", "token 1"])
    clock.advance(by: .milliseconds(1))
    #expect(seen.withLock { $0.last } == .expired)
    #expect(source.requests == 2)
    clock.advance(by: .milliseconds(3_600_000))
    #expect(seen.withLock { $0.filter { $0 == .expired }.count } == 1)
  }

  @Test("after the expiry the attempts continue with nobody asking, and the new token is reported")
  func expiredRenewal() {
    let seen = watch()
    source.delay = 0
    ask()
    clock.advance(by: .milliseconds(100))
    source.failure = TokenFailure("down", isFinal: false)
    clock.advance(by: .milliseconds(300_000))
    let tries = source.requests
    #expect(tries > 5 && tries < 20)
    source.failure = nil
    source.life = .milliseconds(1_000_000)
    clock.advance(by: .milliseconds(61_000))
    #expect(source.requests == tries + 1)
    let changes = seen.withLock { $0 }
    #expect(changes.filter { $0 == .expired }.count == 1)
    if case .renewed(let token)? = changes.last {
      #expect(token.text == "token \(tries + 1)")
    } else {
      Issue.record("\(changes)")
    }
    ask()
    clock.advance(by: 0)
    #expect(source.requests == tries + 1)
  }

  @Test("a request during the wait tries at once, and its failure does not end the attempts")
  func impatience() {
    let seen = watch()
    ask()
    clock.advance(by: .milliseconds(100))
    source.failure = TokenFailure("down", isFinal: false, retryAfter: .milliseconds(120_000))
    clock.advance(by: .milliseconds(70_000))
    #expect(source.requests == 2)
    ask()
    clock.advance(by: .milliseconds(100))
    #expect(source.requests == 3 && answers.texts == ["token 1", "failed: down"])
    source.failure = nil
    clock.advance(by: .milliseconds(121_000))
    #expect(source.requests == 4)
    if case .renewed(let token)? = seen.withLock({ $0.last }) {
      #expect(token.text == "token 4")
    } else {
      Issue.record("no new token was reported")
    }
  }

  @Test("a first token that does not come is not fetched again before somebody asks")
  func neverThere() {
    source.failure = TokenFailure("down", isFinal: false)
    ask()
    clock.advance(by: .milliseconds(1_000_000))
    #expect(source.requests == 1 && answers.texts == ["failed: down"])
  }

  @Test("pending requests fail when the provider stops, later ones too, and nothing is fetched after that")
  func stop() {
    ask()
    clock.advance(by: 0)
    provider.stop()
    clock.advance(by: 0)
    #expect(answers.texts == ["failed: the token is no longer needed"])
    ask()
    clock.advance(by: .milliseconds(1_000_000))
    #expect(answers.texts == [String](repeating: "failed: the token is no longer needed", count: 2))
    #expect(source.requests == 1)
  }

  @Test("a provider that is stopped has no token, even if it was valid a moment before")
  func stopFresh() {
    ask()
    clock.advance(by: .milliseconds(100))
    provider.stop()
    ask()
    clock.advance(by: 0)
    #expect(answers.texts == ["token 1", "failed: the token is no longer needed"])
  }

  @Test("a call from any thread is carried out on the thread of the provider's clock")
  func threads() async {
    let provider = provider
    let answers = answers
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<50 { provider.token { answers.take($0) } }
        }
      }
    }
    // This thread is the clock's: nothing was done before it advances.
    #expect(source.requests == 0 && answers.texts.isEmpty)
    clock.advance(by: .milliseconds(100))
    #expect(source.requests == 1)
    #expect(answers.texts == [String](repeating: "token 1", count: 400))
  }

  @Test("a token does not show itself")
  func secrecy() {
    let token = ServiceToken("geheim", expiry: 5)
    for text in ["\(token)", String(reflecting: token), String(describing: [token])] {
      #expect(!text.contains("geheim"), "\(text)")
    }
    var dumped = ""
    dump(token, to: &dumped)
    #expect(!dumped.contains("geheim"))
  }

  // MARK: Sources

  private func fetch(_ source: any TokenSource) async -> Result<ServiceToken, TokenFailure> {
    let result = Locked<Result<ServiceToken, TokenFailure>?>(nil)
    source.fetch(clock) { value in result.withLock { $0 = value } }
    while true {
      clock.advance(by: 0)
      if let value = result.withLock({ $0 }) { return value }
      await Task.yield()
    }
  }

  @Test("a token comes from the environment, and a missing variable is named")
  func environment() async {
    setenv("MILLRACE_TEST_TOKEN", "abc", 1)
    #expect(await fetch(EnvironmentToken("MILLRACE_TEST_TOKEN")) == .success(ServiceToken("abc")))
    let missing = await fetch(EnvironmentToken("MILLRACE_TEST_NO_TOKEN"))
    #expect(
      missing
        == .failure(
          TokenFailure(
            "the environment variable MILLRACE_TEST_NO_TOKEN is not set; set it to the token", isFinal: true))
    )
  }

  @Test(
    "a file holds the token alone, with white space around it at most",
    arguments: [
      ("abc\n", "abc", ""), ("  abc \r\n\n", "abc", ""), ("", nil, "is empty"), ("\n", nil, "is empty"),
      ("a\nb", nil, "has several lines"), ("\u{FEFF}", "\u{FEFF}", ""),
      (String(repeating: "x", count: 16_385), nil, "larger than 16384 bytes"),
    ] as [(String, String?, String)])
  func file(content: String, token: String?, problem: String) async {
    let folder = TemporaryFolder()
    let path = folder.file("token")
    put(content.utf8, at: path)
    switch await fetch(FileToken(path, life: .milliseconds(5))) {
    case .success(let read):
      #expect(read.text == token)
      #expect(read.expiry == clock.now + .milliseconds(5))
    case .failure(let failure): #expect(token == nil && failure.text.contains(problem), "\(failure)")
    }
  }

  @Test("a file that is missing or no text says so")
  func unreadable() async {
    let folder = TemporaryFolder()
    let missing = await fetch(FileToken(folder.file("none")))
    if case .failure(let failure) = missing {
      #expect(failure.text.hasSuffix("no such file or directory") && !failure.isFinal)
    } else {
      Issue.record("\(missing)")
    }
    put([0xFF, 0xFE, 0x00], at: folder.file("binary"))
    let binary = await fetch(FileToken(folder.file("binary")))
    if case .failure(let failure) = binary {
      #expect(failure.text.hasSuffix("is not text: it is no token"))
    } else {
      Issue.record("\(binary)")
    }
  }
}
