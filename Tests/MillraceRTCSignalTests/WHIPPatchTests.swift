import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceRTCWire
import Testing

@testable import MillraceRTCSignal

@Suite("Candidates, restarts and redirects of WHIP as client", .timeLimit(.minutes(30))) struct WHIPPatchTests
{
  private let session = SignalSessionID(0)
  private static let created: [(name: String, value: String)] = [
    (name: "Location", value: "session/1?a=b"), (name: "ETag", value: "\"a\""),
  ]

  private func start(_ settings: WHIPSettings) async throws -> (WHIPClient, SignalLog) {
    let (client, log) = (WHIPClient(settings), SignalLog())
    client.begin { log.take($0) }
    try await log.wantsOffer()
    client.describe(session, sdp: SDPTexts.offer)
    return (client, log)
  }

  @Test("candidates wait for the answer, and are sent with the tag of the session")
  func trickle() async throws {
    let server = try await ScriptedServer { request in
      request.method == "POST" ? .created(SDPTexts.answer, Self.created) : HTTPServer.Response(status: 204)
    }
    let (client, log) = try await start(.patient(try server.url("/live/whip")))
    client.add(SDPTexts.candidate, to: session)
    client.add("no candidate", to: session)
    client.add(nil, to: session)
    _ = try await log.answer()
    let patch = try await server.request(1)
    #expect("\(patch.method) \(patch.target)" == "PATCH /live/session/1?a=b")
    #expect(patch[header: "Content-Type"] == TrickleFragment.mediaType)
    #expect(patch[header: "If-Match"] == "\"a\"")
    let fragment = try TrickleFragment(parsing: patch.body)
    let section = try #require(fragment.sections.first)
    #expect(section.mid == "0")
    #expect(fragment.credentials(of: section)?.fragment == "userA")
    #expect(section.candidates.map(\.text) == [SDPTexts.candidate])
    #expect(section.hasEndOfCandidates)
    await client.ended()
    server.stop()
  }

  @Test("a server that refuses a PATCH for good is not asked again", arguments: [405, 501])
  func refusedPatch(status: Int) async throws {
    let server = try await ScriptedServer { request in
      request.method == "POST"
        ? .created(SDPTexts.answer, Self.created)
        : .text("", status: request.method == "PATCH" ? status : 200)
    }
    let (client, log) = try await start(.patient(try server.url()))
    _ = try await log.answer()
    client.add(SDPTexts.candidate, to: session)
    _ = try await awaited { client.traits == SignalTraits() ? true : nil }
    client.add(SDPTexts.candidate, to: session)
    client.restart(session, sdp: SDPTexts.sound(user: "userC"))
    #expect(try await log.failed().reaction == .reconnect)
    await client.ended()
    #expect(server.methods == ["POST", "PATCH", "DELETE"])
    server.stop()
  }

  @Test(
    "nothing is patched where the server has not allowed it",
    arguments: [nil, "text/plain"] as [String?])
  func noPatch(accepted: String?) async throws {
    let server = try await ScriptedServer { request in
      guard request.method == "POST" else { return .text("") }
      var headers = [(name: "Location", value: "/session/1")]
      if let accepted {
        headers += [(name: "Accept-Patch", value: accepted), (name: "ETag", value: "\"a\"")]
      }
      return .created(SDPTexts.answer, headers)
    }
    let (client, log) = try await start(.patient(try server.url()))
    client.add(SDPTexts.candidate, to: session)
    _ = try await log.answer()
    client.add(SDPTexts.candidate, to: session)
    await client.ended()
    #expect(server.methods == ["POST", "DELETE"])
    server.stop()
  }

  @Test(
    "a restart sends new credentials for any tag, in quotes or not, and its answer has those of the fragment",
    arguments: ["\"*\"", "*"])
  func restart(tag: String) async throws {
    let server = try await ScriptedServer { request in
      switch request.method {
      case "POST": return .created(SDPTexts.answer, Self.created)
      case "PATCH" where request[header: "If-Match"] == "\"*\"" && tag == "*":
        return .text("", status: 412)
      case "PATCH" where request[header: "If-Match"] == tag:
        return HTTPServer.Response(
          status: 200, headers: [(name: "ETag", value: "\"b\"")],
          body: Array(SDPTexts.fragment("userD", isComplete: true).utf8))
      default: return HTTPServer.Response(status: 204)
      }
    }
    let (client, log) = try await start(.patient(try server.url()))
    _ = try await log.answer()
    client.restart(session, sdp: SDPTexts.sound(user: "userC", candidate: SDPTexts.candidate))
    let answer = try SessionDescription(parsing: try await log.answer(1))
    #expect(answer.bundleCredentials?.fragment == "userD")
    #expect(answer.media[0].candidates.map(\.text) == [SDPTexts.candidate])
    #expect(answer.media[0].transport.fingerprints.count == 1)
    #expect(answer.media[0].transport.setup == .passive)
    let place = tag == "*" ? 2 : 1
    let sent = try TrickleFragment(parsing: try await server.request(place).body)
    #expect(sent.credentials(of: sent.sections[0])?.fragment == "userC")
    #expect(sent.sections[0].candidates.map(\.text) == [SDPTexts.candidate])
    client.add(SDPTexts.candidate, to: session)
    let next = try await server.request(place + 1)
    #expect(next[header: "If-Match"] == "\"b\"")
    let later = try TrickleFragment(parsing: next.body)
    #expect(later.credentials(of: later.sections[0])?.fragment == "userC")
    await client.ended()
    server.stop()
  }

  @Test(
    "a restart that fails leaves the session, and says so",
    arguments: [(500, ""), (200, ""), (200, "hello"), (412, "")])
  func failedRestart(status: Int, body: String) async throws {
    let server = try await ScriptedServer { request in
      request.method == "POST"
        ? .created(SDPTexts.answer, Self.created)
        : .text(body, status: request.method == "PATCH" ? status : 200)
    }
    let (client, log) = try await start(.patient(try server.url()))
    _ = try await log.answer()
    client.restart(session, sdp: SDPTexts.sound(user: "userC"))
    #expect(try await log.failed().reaction == .reconnect)
    await client.ended()
    #expect(server.methods == (status == 412 ? ["POST", "PATCH"] : ["POST"]) + ["PATCH", "DELETE"])
    server.stop()
  }

  @Test("a session that the server does not know any more is over", arguments: [404, 410])
  func gone(status: Int) async throws {
    let server = try await ScriptedServer { request in
      request.method == "POST" ? .created(SDPTexts.answer, Self.created) : .text("", status: status)
    }
    let (client, log) = try await start(.patient(try server.url()))
    _ = try await log.answer()
    client.add(SDPTexts.candidate, to: session)
    let closed = try await log.closed()
    #expect(closed.name == "ended" && closed.reaction == .reconnect)
    await client.ended()
    server.stop()
  }

  // MARK: Redirects

  @Test(
    "a redirect keeps the key on its host, and loses it on another",
    arguments: [("127.0.0.1", 307), ("localhost", 308)])
  func redirect(host: String, status: Int) async throws {
    let target = try await ScriptedServer { _ in .created() }
    let location = "http://\(host):\(target.port)/other"
    let server = try await ScriptedServer { _ in
      HTTPServer.Response(status: status, headers: [(name: "Location", value: location)])
    }
    var settings = WHIPSettings.patient(try server.url())
    settings.bearer = "secret"
    settings.headers = [(name: "X-Room", value: "7")]
    let (client, log) = try await start(settings)
    _ = try await log.answer()
    await client.ended()
    #expect(target.requests.map { "\($0.method) \($0.target)" } == ["POST /other", "DELETE /session/1"])
    #expect(target.requests[0].body == Array(SDPTexts.offer.utf8))
    for request in target.requests {
      #expect(request[header: "Authorization"] == (host == "127.0.0.1" ? "Bearer secret" : nil))
      #expect(request[header: "X-Room"] == (host == "127.0.0.1" ? "7" : nil))
    }
    server.stop()
    target.stop()
  }

  @Test(
    "redirects in a loop, without end, to plain text or to nowhere are refused",
    arguments: [
      ("/whip", "in a loop"), ("next", "more than 5 times"), ("http://192.0.2.1/", "in plain text"),
      ("ftp://a/", "no valid address"), ("ws://127.0.0.1/", "in plain text"),
    ])
  func badRedirects(location: String, words: String) async throws {
    let server = try await ScriptedServer { request in
      let next = location == "next" ? request.path + "x" : location
      return HTTPServer.Response(status: 307, headers: [(name: "Location", value: next)])
    }
    let (client, log) = try await start(.patient(try server.url()))
    let closed = try await log.closed()
    #expect(closed.name == "signalRefused")
    #expect(closed.text.contains(words), "\(closed.text)")
    await client.ended()
    server.stop()
  }

  @Test(
    "no way leads from https: to http:, nor to plain text beyond this machine",
    arguments: [
      ("https://a.example/", "https://b.example/", true), ("https://a.example/", "http://a.example/", false),
      ("https://a.example/", "http://127.0.0.1/", false), ("https://localhost/", "http://localhost/", true),
      ("http://127.0.0.1/", "http://b.example/", false), ("http://127.0.0.1/", "https://b.example/", true),
    ])
  func ways(from: String, to: String, isAllowed: Bool) throws {
    let access = WHIPSettings.patient(try WebAddress(from)).access
    #expect(access.mayGo(from: try WebAddress(from), to: try WebAddress(to)) == isAllowed)
  }

  // MARK: Settings

  @Test(
    "wrong settings are refused with a message, with the parameter and without the secret",
    arguments: [
      ("ws://127.0.0.1/", "url", "must begin with https: or http:"),
      ("http://192.0.2.1/", "url", "in plain text"),
      ("https://a.example/", "verify", "only for this machine"),
      ("http://127.0.0.1/bearer", "bearer", "a line break"),
      ("http://127.0.0.1/own", "headers", "is set by the node"),
      ("http://127.0.0.1/twice", "headers", "both set Authorization"),
      ("http://127.0.0.1/break", "headers", "line break"),
      ("http://127.0.0.1/time", "signal", "at least 1 ms"),
    ])
  func wrongSettings(url: String, parameter: String, words: String) async throws {
    var settings = WHIPSettings.patient(try WebAddress(url))
    settings.verify = parameter != "verify"
    switch settings.url.target {
    case "/bearer": settings.bearer = "secret\n"
    case "/own": settings.headers = [(name: "Content-Type", value: "secret")]
    case "/twice":
      settings.bearer = "secret"
      settings.headers = [(name: "authorization", value: "secret")]
    case "/break": settings.headers = [(name: "X-Key", value: "secret\r\n")]
    case "/time": settings.timeout = 0
    default: break
    }
    let problem = try #require(settings.problem)
    #expect(problem.parameter == parameter)
    #expect("\(problem)".contains(words))
    #expect(!"\(problem)".contains("secret"))
    let (client, log) = (WHIPClient(settings), SignalLog())
    client.begin { log.take($0) }
    #expect(try await log.closed().reaction == .refuse)
    await client.ended()
  }

  @Test("plain text beyond this machine is allowed where the user says so, and an empty bearer is none")
  func plain() throws {
    var settings = WHIPSettings.patient(try WebAddress("http://192.0.2.1/"))
    settings.plain = true
    settings.bearer = ""
    #expect(settings.problem == nil)
    #expect(settings.access.credentials(for: settings.url).isEmpty)
  }
}
