import Glibc
import MillraceCore
import Testing

@testable import MillraceRTC

@Suite("addresses of ICE servers")
struct ICEServerURLTests {
  @Test(
    "addresses are read, and written as they are understood",
    arguments: [
      ("stun:stun.example.org", "stun:stun.example.org:3478"), ("STUN:10.0.0.1:19302", "stun:10.0.0.1:19302"),
      ("stun:[2001:db8::1]:5", "stun:[2001:db8::1]:5"), ("stun:[::1]", "stun:[::1]:3478"),
      ("turn:turn.example.org", "turn:turn.example.org:3478"), ("turn:h?transport=udp", "turn:h:3478"),
      ("turn:h:443?transport=TCP", "turn:h:443?transport=tcp"), ("turn:a_b-c.d", "turn:a_b-c.d:3478"),
    ])
  func reads(text: String, description: String) throws {
    let url = try ICEServerURL(parsing: text)
    #expect(url.description == description)
    #expect(try ICEServerURL(parsing: url.description) == url)
  }

  @Test(
    "others are refused with a message",
    arguments: [
      ("", "is no address"), ("stun", "is no address"), ("stun:", "is no address"),
      ("http:h", "is no address"),
      ("stun:a b", "is no address"), ("stun:ü", "is no address"), ("stun::5", "is no address"),
      ("stun://h", "no \"//\""), ("turns:h", "use a \"turn:\" address"),
      ("stuns:h", "use a \"stun:\" address"),
      ("stun:h:0", "from 1 to 65535"), ("stun:h:65536", "from 1 to 65535"), ("stun:h:", "from 1 to 65535"),
      ("stun:h:+5", "from 1 to 65535"), ("stun:h:99999999999999999999", "from 1 to 65535"),
      ("stun:::1", "in brackets"), ("stun:[::1", "no \"]\""), ("stun:[1.2.3.4]", "in brackets"),
      ("stun:[::1]5", "in brackets"), ("stun:h?transport=udp", "ends with its port"),
      ("turn:h?transport=tls", "\"transport=tcp\""), ("turn:h?", "\"transport=tcp\""),
    ])
  func refuses(text: String, reason: String) {
    let problem = #expect(throws: RTCProblem.self) { try ICEServerURL(parsing: text) }
    #expect(problem?.description.contains(reason) == true)
  }

  @Test("a password in an address is refused, and not repeated")
  func password() {
    let problem = #expect(throws: RTCProblem.self) { try ICEServerURL(parsing: "turn:user:geheim@host") }
    #expect(
      problem?.description == "the address of an ICE server has no user or password; give them beside it")
  }

  @Test("a name longer than any is refused")
  func longName() {
    #expect(throws: RTCProblem.self) {
      try ICEServerURL(parsing: "stun:" + String(repeating: "a", count: 254))
    }
  }
}

@Suite("names of ICE servers", .timeLimit(.minutes(2)))
struct ServerResolutionTests {
  private typealias Answer = Result<ICEServerResolution.Outcome, RTCProblem>

  /// Resolves servers with a table of names.
  private func resolve(
    _ servers: [ICEServerAddress], _ settings: ICESettings = ICESettings(),
    within bound: Nanoseconds = .milliseconds(60_000), _ resolver: @escaping ICEServerResolution.Resolver
  ) async throws -> Answer {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let answers = Locked<[Answer]>([])
    ICEServerResolution.settings(for: servers, into: settings, on: loop, within: bound, resolver: resolver) {
      let answer = $0
      answers.withLock { $0.append(answer) }
    }
    while answers.withLock({ $0.isEmpty }) { try await Task.sleep(for: .milliseconds(2)) }
    return try #require(answers.withLock { $0.first })
  }

  private func turn(_ host: String, user: String? = "u", password: String? = "p") -> ICEServerAddress {
    ICEServerAddress(ICEServerURL(.turn(.tcp), host: host, port: 5), user: user, password: password)
  }

  @Test("the addresses of all families are used for TURN, and the first for STUN")
  func resolves() async throws {
    let stun = ICEServerAddress(ICEServerURL(.stun, host: "s"))
    let outcome = try await resolve([stun, turn("t")]) { host in
      .success(host == "s" ? ["192.0.2.1", "2001:db8::1"] : ["192.0.2.2", "2001:db8::2"])
    }.get()
    #expect(outcome.problems.isEmpty)
    #expect(outcome.settings.stun?.address == "192.0.2.1" && outcome.settings.stun?.port == 3_478)
    let relays = ["192.0.2.2", "2001:db8::2"].map {
      ICESettings.Relay(address: $0, port: 5, user: "u", password: "p", kind: .tcp)
    }
    #expect(outcome.settings.relays == relays)
  }

  @Test("literal addresses are not asked for")
  func literals() async throws {
    let outcome = try await resolve([turn("192.0.2.3"), turn("2001:db8::3")]) { _ in
      Issue.record("asked for an address")
      return .success([])
    }.get()
    #expect(outcome.settings.relays.map(\.address) == ["192.0.2.3", "2001:db8::3"])
  }

  @Test("a name that is not known, has no address or is answered too late is left out, and said")
  func leavesOut() async throws {
    // Until the test is over.
    let gate = Locked(false)
    defer { gate.withLock { $0 = true } }
    let servers = ["unknown", "empty", "late", "good"].map { turn($0) }
    let outcome = try await resolve(servers, within: .milliseconds(300)) { host in
      switch host {
      case "unknown": return .failure(.value("Name or service not known"))
      case "empty": return .success([])
      case "good": return .success(["192.0.2.4"])
      default:
        while !gate.withLock({ $0 }) { waitAMoment() }
        return .success(["192.0.2.9"])
      }
    }.get()
    #expect(outcome.settings.relays.map(\.address).allSatisfy { $0 == "192.0.2.4" })
    #expect(outcome.problems.contains { $0.contains("turn:unknown:5") })
    #expect(outcome.problems.contains { $0.contains("turn:late:5") && $0.contains("in time") })
    #expect(outcome.problems.contains { $0.contains("turn:empty:5") })
  }

  @Test(
    "a TURN server without a user or a password is left out, and no password is said",
    arguments: [true, false])
  func credentials(hasUser: Bool) async throws {
    let server = turn("t", user: hasUser ? "u" : nil, password: hasUser ? nil : "geheim")
    let outcome = try await resolve([server]) { _ in .success(["192.0.2.5"]) }.get()
    #expect(outcome.settings.relays.isEmpty)
    #expect(outcome.problems == ["\"turn:t:5?transport=tcp\" needs a user and a password"])
  }

  @Test("where a relay has to be used and none is left, it is a failure")
  func noRelay() async throws {
    var settings = ICESettings()
    settings.isRelayOnly = true
    let answer = try await resolve([turn("t")], settings) { _ in .failure(.value("not known")) }
    #expect(throws: RTCProblem.self) { try answer.get() }
    let found = try await resolve([turn("t")], settings) { _ in .success(["192.0.2.6"]) }.get()
    #expect(found.settings.relays.count == 1)
  }

  @Test("more servers than may be are not used, and that is said; without servers nothing is asked")
  func limits() async throws {
    let many = (0..<20).map { turn("t\($0)") }
    let outcome = try await resolve(many) { _ in .success(["192.0.2.7"]) }.get()
    #expect(outcome.settings.relays.count == 16)
    #expect(outcome.problems == ["20 ICE servers; the first 16 are used"])
    let none = try await resolve([]) { _ in .success([]) }.get()
    #expect(none == ICEServerResolution.Outcome(settings: ICESettings(), problems: []))
  }

  @Test("the system knows the names of this machine, and not those that cannot exist")
  func system() throws {
    #expect(try ICEServerResolution.system("localhost").get().contains { $0 == "127.0.0.1" || $0 == "::1" })
    #expect(throws: RTCProblem.self) { try ICEServerResolution.system("does-not-exist.invalid").get() }
  }
}

/// Gives other threads a turn.
private func waitAMoment() {
  var time = timespec(tv_sec: 0, tv_nsec: 2_000_000)
  nanosleep(&time, nil)
}
