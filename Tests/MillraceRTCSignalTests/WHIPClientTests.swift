import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceRTCWire
import Testing

@testable import MillraceRTCSignal

/// A client that has asked for an offer and was given one.
private func start(
  _ settings: WHIPSettings, offer: String = SDPTexts.offer
) async throws -> (WHIPClient, SignalLog) {
  let (client, log) = (WHIPClient(settings), SignalLog())
  client.begin { log.take($0) }
  try await log.wantsOffer()
  client.describe(SignalSessionID(0), sdp: offer)
  return (client, log)
}

@Suite("WHIP and WHEP as client", .timeLimit(.minutes(30))) struct WHIPClientTests {
  private let session = SignalSessionID(0)

  @Test("the offer is posted with the key, the answer is reported, and the session is deleted at the end")
  func publishes() async throws {
    let server = try await ScriptedServer { request in
      request.method == "POST"
        ? .created(
          SDPTexts.answer, [(name: "Location", value: "/session/1"), (name: "ETag", value: "\"a\"")])
        : .text("")
    }
    var settings = WHIPSettings.patient(try server.url())
    settings.bearer = "secret"
    settings.headers = [(name: "X-Room", value: "7")]
    let (client, log) = try await start(settings)
    #expect(try await log.answer() == SDPTexts.answer)
    #expect(client.traits == SignalTraits(isTrickle: true, canRestart: true))
    await client.ended()
    let requests = server.requests
    #expect(requests.map { "\($0.method) \($0.target)" } == ["POST /whip", "DELETE /session/1"])
    #expect(requests[0].body == Array(SDPTexts.offer.utf8))
    #expect(requests[0][header: "Content-Type"] == "application/sdp")
    for request in requests {
      #expect(request[header: "Authorization"] == "Bearer secret")
      #expect(request[header: "X-Room"] == "7")
    }
    server.stop()
  }

  @Test("status 200 and a missing Location are tolerated: nothing is patched or deleted")
  func noLocation() async throws {
    let server = try await ScriptedServer { _ in
      .created(SDPTexts.answer, status: 200, [(name: "ETag", value: "\"a\"")])
    }
    let (client, log) = try await start(.patient(try server.url()))
    _ = try await log.answer()
    #expect(client.traits == SignalTraits())
    client.add(SDPTexts.candidate, to: session)
    await client.ended()
    #expect(server.methods == ["POST"])
    server.stop()
  }

  @Test(
    "a status is reported as the error it means",
    arguments: [
      (400, RTCError.badOffer, "refuse"), (401, .authFailed, "refuse"), (403, .authFailed, "refuse"),
      (404, .notFound, "refuse"), (405, .signalRefused, "refuse"), (406, .badOffer, "refuse"),
      (409, .duplicate, "reconnect"), (410, .notFound, "refuse"), (415, .badOffer, "refuse"),
      (418, .signalRefused, "refuse"), (422, .badOffer, "refuse"), (429, .tooManyRequests, "retry"),
      (500, .signalRefused, "reconnect"), (502, .signalRefused, "reconnect"),
      (503, .tooManyRequests, "retry"), (204, .badAnswer, "refuse"), (301, .signalRefused, "refuse"),
      (302, .signalRefused, "refuse"), (307, .signalRefused, "refuse"),
    ] as [(Int, RTCError, String)])
  func statuses(status: Int, error: RTCError, reaction: String) async throws {
    let server = try await ScriptedServer { _ in .text("secret words", status: status) }
    var settings = WHIPSettings.patient(try server.url("/whip?auth_key=hidden"))
    settings.bearer = "secret"
    let (client, log) = try await start(settings)
    let closed = try await log.closed()
    #expect(closed.name == error.rawValue)
    #expect(closed.reaction.name == reaction)
    #expect(closed.code == status)
    #expect(!closed.text.contains("secret") && !closed.text.contains("hidden"))
    await client.ended()
    server.stop()
  }

  @Test(
    "Retry-After says how long to wait, within an hour; where it cannot be read, the back-off does",
    arguments: [
      ("7", 7_000), ("999999999", 3_600_000), ("0", 1), ("Fri, 01 Jan 2100 00:00:00 GMT", 3_600_000),
      ("soon", nil), ("-1", nil),
    ] as [(String, Int?)])
  func retryAfter(header: String, milliseconds: Int?) async throws {
    let server = try await ScriptedServer { _ in
      HTTPServer.Response(status: 503, headers: [(name: "Retry-After", value: header)])
    }
    let (client, log) = try await start(.patient(try server.url()))
    let expected = milliseconds.map { DialogError.Reaction.retry(afterMilliseconds: $0) } ?? .reconnect
    #expect(try await log.closed().reaction == expected)
    await client.ended()
    server.stop()
  }

  @Test(
    "what is no description is refused with a message",
    arguments: [
      ("text/html", "<html>log in</html>", "web page"), ("application/sdp", "", "no description"),
      ("application/sdp", "hello", "no SDP"),
      ("application/sdp", "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\n", "m-lines"),
      ("application/sdp", "10 MB", "larger"),
    ])
  func badAnswers(type: String, text: String, words: String) async throws {
    let body = text == "10 MB" ? String(repeating: "a", count: 10_000_000) : text
    let server = try await ScriptedServer { _ in
      HTTPServer.Response(
        status: 201, headers: [(name: "Content-Type", value: type)], body: Array(body.utf8))
    }
    let (client, log) = try await start(.patient(try server.url()))
    let closed = try await log.closed()
    #expect(closed.name == "badAnswer")
    #expect(closed.text.contains(words))
    await client.ended()
    server.stop()
  }

  @Test("a bad answer that names a session has that session deleted")
  func badAnswerIsDeleted() async throws {
    let server = try await ScriptedServer { $0.method == "POST" ? .created("hello") : .text("") }
    let (client, log) = try await start(.patient(try server.url()))
    _ = try await log.closed()
    await client.ended()
    #expect(server.methods == ["POST", "DELETE"])
    server.stop()
  }

  @Test("a server that never answers is reported as signalTimeout")
  func timeout() async throws {
    let server = try await ScriptedServer { _ in nil }
    var settings = WHIPSettings.patient(try server.url())
    settings.timeout = 50
    let (client, log) = try await start(settings)
    #expect(try await log.closed().name == "signalTimeout")
    await client.ended()
    server.stop()
  }

  @Test("a port where nobody listens is reported as network")
  func refusedConnection() async throws {
    let server = try await HTTPServer.listen(port: 0, on: .shared) { _ in .answer(.text("")) }
    let url = try WebAddress("http://127.0.0.1:\(server.port)/")
    await server.stop()
    let (client, log) = try await start(.patient(url))
    let closed = try await log.closed()
    #expect(closed.name == "network" && closed.reaction == .reconnect)
    await client.ended()
  }

  @Test("a WHEP server's counter-offer is refused with a message, and its session is deleted")
  func counterOffer() async throws {
    let server = try await ScriptedServer {
      $0.method == "POST" ? .created(SDPTexts.offer, status: 406) : .text("")
    }
    let (client, log) = try await start(
      .patient(try server.url(), isPlayback: true), offer: SDPTexts.sound("recvonly"))
    let closed = try await log.closed()
    #expect(closed.name == "badOffer")
    #expect(closed.text.contains("wants to offer itself"))
    await client.ended()
    #expect(server.methods == ["POST", "DELETE"])
    server.stop()
  }

  @Test("servers in Link headers are kept for the next attempt")
  func links() async throws {
    let server = try await ScriptedServer { _ in
      .created(
        SDPTexts.answer,
        [
          (name: "Link", value: "<stun:stun.example>; rel=\"ice-server\", <https://x.example>; rel=\"help\""),
          (
            name: "Link",
            value:
              "<turn:turn.example?transport=udp>; rel=\"ice-server\"; username=\"u\"; credential=\"p,;\\\"q\""
          ),
        ])
    }
    let (client, log) = try await start(.patient(try server.url()))
    _ = try await log.answer()
    #expect(
      client.servers == [
        SignalServer(url: "stun:stun.example"),
        SignalServer(url: "turn:turn.example?transport=udp", user: "u", password: "p,;\"q"),
      ])
    await client.ended()
    var settings = WHIPSettings.patient(try server.url())
    settings.servers = client.servers
    let (next, second) = try await start(settings)
    #expect(
      second.words.first == "wantsOffer 0 [\"stun:stun.example\", \"turn:turn.example?transport=udp\"]")
    await next.ended()
    server.stop()
  }

  @Test("links that name no server are skipped, whatever they contain")
  func badLinks() {
    for text in [
      "", "<", ">", "<>", "<stun:>;", "stun:a; rel=ice-server", "<stun:a b>; rel=ice-server",
      "<http://a>; rel=ice-server", "<stun:a>; rel=\"", "<stun:a>; rel=\\", ";;,,\"", "<turn:a>; rel=next",
    ] {
      #expect(ICEServerLinks.read([text]).isEmpty)
    }
    let many = Array(repeating: 0, count: 100).enumerated().map { "<stun:s\($0.offset)>; rel=ice-server" }
    #expect(ICEServerLinks.read(many).count == ICEServerLinks.most)
    let servers = [SignalServer(url: "turn:a:1", user: "a\"b", password: "c\\d")]
    #expect(ICEServerLinks.read(ICEServerLinks.write(servers)) == servers)
  }

  @Test("the end during the POST waits for its answer and deletes what it made")
  func endWhilePosting() async throws {
    let reply = Locked<HTTPReply?>(nil)
    let methods = Locked<[String]>([])
    let server = try await HTTPServer.listen(port: 0, on: .shared) { _ in
      .receive { request, given in
        methods.withLock { $0.append(request.method) }
        if request.method == "POST" { reply.withLock { $0 = given } } else { given.send(.text("")) }
      }
    }
    let (client, log) = try await start(.patient(try WebAddress("http://127.0.0.1:\(server.port)/whip")))
    let held = try await awaited { reply.withLock { $0.take() } }
    client.end(session)
    held.send(.created())
    _ = try await awaited { methods.withLock { $0 == ["POST", "DELETE"] } ? true : nil }
    #expect(log.words.count == 1)
    await client.ended()
    await client.ended()
    server.stopListening()
  }

  @Test("the end is over although the server answers neither POST nor DELETE", arguments: ["POST", "DELETE"])
  func boundedEnd(silent: String) async throws {
    let server = try await ScriptedServer { $0.method == silent ? nil : .created() }
    let (client, log) = try await start(.patient(try server.url()))
    if silent == "DELETE" { _ = try await log.answer() } else { _ = try await server.request(0) }
    await client.ended()
    server.stop()
  }

  @Test("it can end before it began, and reports nothing then")
  func endFirst() async throws {
    let (client, log) = (WHIPClient(.patient(try WebAddress("http://127.0.0.1:1/"))), SignalLog())
    await client.ended()
    client.begin { log.take($0) }
    client.describe(session, sdp: SDPTexts.offer)
    await client.ended()
    #expect(log.all.isEmpty)
  }
}
