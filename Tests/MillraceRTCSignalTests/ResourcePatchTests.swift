import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceRTCWire
import TestNet
import Testing

@testable import MillraceRTCSignal

@Suite("Sessions and ports of WHIP and WHEP as server", .timeLimit(.minutes(30))) struct ResourcePatchTests {
  @Test("candidates of a client are reported in order, and their end")
  func candidates() async throws {
    let tested = try await TestedServer.begin()
    let (_, response) = try await tested.open()
    let (path, tag) = (try #require(response["Location"]), response["ETag"])
    #expect(try await tested.patch(path, SDPTexts.fragment(), tag: tag).status == 204)
    #expect(try await tested.patch(path, SDPTexts.fragment(isComplete: true), tag: tag).status == 204)
    let line = "candidate 0 \(SDPTexts.candidate)"
    #expect(Array(tested.log.words.dropFirst(2)) == [line, line, "candidate 0 end"])
    await tested.server.ended()
  }

  @Test(
    "a PATCH without a condition, with an old tag, of another type or without sense is refused",
    arguments: [
      (nil, TrickleFragment.mediaType, "", 428), ("\"old\"", TrickleFragment.mediaType, "", 412),
      ("*", "application/sdp", "", 415), ("*", TrickleFragment.mediaType, "hello", 400),
      ("*", TrickleFragment.mediaType, "large", 413), ("*", TrickleFragment.mediaType, "", 204),
      ("\"*\"", TrickleFragment.mediaType, "", 204),
    ] as [(String?, String, String, Int)])
  func badPatches(tag: String?, type: String, body: String, status: Int) async throws {
    let tested = try await TestedServer.begin()
    let (_, response) = try await tested.open()
    let path = try #require(response["Location"])
    let text = body == "large" ? String(repeating: "a", count: 70_000) : body
    let headers = tag.map { [(name: "If-Match", value: $0)] } ?? []
    #expect(try await tested.send("PATCH", path, type: type, text, headers).status == status)
    if status != 204 { #expect(try await tested.log.extra("refused")["code"]?.integer == status) }
    #expect(tested.log.words.filter { !$0.contains("refused") }.count == 2)
    await tested.server.ended()
  }

  @Test("a session passes on a thousand candidates and no more")
  func manyCandidates() async throws {
    let tested = try await TestedServer.begin()
    let (_, response) = try await tested.open()
    let path = try #require(response["Location"])
    let line = "a=\(SDPTexts.candidate)\r\n"
    let fragment = SDPTexts.fragment() + String(repeating: line, count: 399)
    for _ in 0..<4 { #expect(try await tested.patch(path, fragment, tag: "*").status == 204) }
    #expect(tested.log.words.filter { $0.hasPrefix("candidate") }.count == SDPLimits.candidates)
    await tested.server.ended()
  }

  @Test(
    "a restart is an offer for the known session, answered by a fragment and a new tag",
    arguments: [true, false])
  func restart(hasAnyTag: Bool) async throws {
    let tested = try await TestedServer.begin()
    let (id, response) = try await tested.open()
    let (path, tag) = (try #require(response["Location"]), try #require(response["ETag"]))
    async let restarted = tested.patch(
      path, SDPTexts.fragment("userC", isComplete: true), tag: hasAnyTag ? "*" : tag)
    let offer = try await tested.log.offer(1)
    #expect(offer.id == id)
    let description = try SessionDescription(parsing: offer.sdp)
    #expect(description.bundleCredentials?.fragment == "userC")
    #expect(description.media[0].candidates.map(\.text) == [SDPTexts.candidate])
    #expect(description.media[0].transport.fingerprints.count == 1)
    #expect(description.media[0].transport.setup == .actpass)
    #expect(try await tested.patch(path, SDPTexts.fragment("userE"), tag: "*").status == 409)
    let local = SDPTexts.sound("recvonly", setup: "passive", user: "userD", candidate: SDPTexts.candidate)
    tested.server.describe(id, sdp: local)
    let answer = try await restarted
    #expect(answer.status == 200 && answer["Content-Type"] == TrickleFragment.mediaType)
    let fragment = try TrickleFragment(parsing: answer.body)
    #expect(fragment.credentials(of: fragment.sections[0])?.fragment == "userD")
    #expect(fragment.sections[0].candidates.map(\.text) == [SDPTexts.candidate])
    #expect(answer["ETag"] != tag)
    #expect(try await tested.patch(path, SDPTexts.fragment("userC"), tag: tag).status == 412)
    #expect(try await tested.patch(path, SDPTexts.fragment("userC"), tag: answer["ETag"]).status == 204)
    await tested.server.ended()
  }

  @Test("a restart that this side refuses leaves the session as it was")
  func refusedRestart() async throws {
    let tested = try await TestedServer.begin()
    let (id, response) = try await tested.open()
    let (path, tag) = (try #require(response["Location"]), response["ETag"])
    async let restarted = tested.patch(path, SDPTexts.fragment("userC"), tag: "*")
    _ = try await tested.log.offer(1)
    tested.server.refuse(id, .failed, "not now")
    #expect(try await restarted.status == 503)
    #expect(try await tested.patch(path, SDPTexts.fragment(), tag: tag).status == 204)
    #expect(try await tested.send("DELETE", path).status == 200)
    await tested.server.ended()
  }

  // MARK: Ports

  @Test("nodes share a port by their paths, and the last one closes it")
  func sharedPort() async throws {
    let first = try await TestedServer.begin(path: "/a")
    let port = first.port
    // A server on any free port shares it with nobody: it has to be free before others can name it.
    await first.server.ended()
    let one = try await TestedServer.begin(port: port, path: "/a")
    let two = try await TestedServer.begin(.playback, port: port, path: "/b/c")
    #expect(try await one.open().response["Location"]?.hasPrefix("/a/") == true)
    #expect(
      try await two.open(offer: SDPTexts.sound("recvonly")).response["Location"]?.hasPrefix("/b/c/") == true)
    await one.server.ended()
    #expect(try await one.post(SDPTexts.offer).status == 404)
    #expect(try await two.open(1, offer: SDPTexts.sound("recvonly")).response.status == 201)
    await two.server.ended()
    let again = try await TestedServer.begin(port: port, path: "/a")
    #expect(try await again.open().response.status == 201)
    await again.server.ended()
  }

  @Test("a path that is taken, and other rules for the same port, are refused with a message")
  func disputedPort() async throws {
    let probe = try await TestedServer.begin()
    let port = probe.port
    await probe.server.ended()
    let present = try await TestedServer.begin(port: port)
    func refusal(_ change: (inout ResourceServerSettings) -> Void) async throws -> DialogError {
      var settings = ResourceServerSettings(
        role: .ingest, port: port, path: "/whip", media: SignalMedia(audio: .receiveOnly))
      change(&settings)
      let (server, log) = (ResourceServer(settings), SignalLog())
      server.begin { log.take($0) }
      let error = try await log.closed()
      await server.ended()
      return error
    }
    let taken = try await refusal { _ in }
    #expect(taken.name == "duplicate" && taken.reaction == .refuse)
    let secure = try await refusal { settings in
      settings.path = "/other"
      settings.certificate = Certificates.localhost.certificate
      settings.key = Certificates.localhost.key
    }
    #expect(secure.reaction == .refuse && secure.text.contains("other rules"))
    let other = try await HTTPServer.listen(port: 0, on: .shared) { _ in .answer(.text("")) }
    let busy = try await refusal { $0.port = other.port }
    other.stopListening()
    #expect(busy.reaction == .refuse && busy.text.contains("\(other.port)"))
    #expect(try await present.open().response.status == 201)
    await present.server.ended()
  }

  @Test(
    "wrong settings are refused with a message, with the parameter",
    arguments: [
      ("path", "whip", "is not the path"), ("path", "/whip/", "is not the path"),
      ("path", "/a b", "is not the path"),
      ("path", "/a?b", "is not the path"), ("path", "/../a", "is not the path"),
      ("path", "", "is not the path"),
      ("host", "0.0.0.0", "without TLS"), ("listen", "70000", "does not exist"), ("viewers", "0", "room"),
      ("key", "", "needs its key"), ("bearer", "two words", "printable"), ("origins", "nonsense", "origin"),
    ])
  func wrongSettings(parameter: String, value: String, words: String) async throws {
    var settings = ResourceServerSettings(
      role: .playback, port: 0, path: "/whep", media: SignalMedia(audio: .sendOnly))
    switch parameter {
    case "path": settings.path = value
    case "host": settings.host = value
    case "listen": settings.port = Int(value) ?? 0
    case "viewers": settings.viewers = Int(value) ?? 0
    case "key": settings.certificate = "a.pem"
    case "bearer": settings.bearer = value
    default: settings.origins = [value]
    }
    let problem = try #require(settings.problem)
    #expect("\(problem)".contains(words))
    let (server, log) = (ResourceServer(settings), SignalLog())
    server.begin { log.take($0) }
    #expect(try await log.closed().reaction == .refuse)
    await server.ended()
  }

  // MARK: Client and server

  @Test(
    "client and server agree: over TLS with a key, with candidates, a restart and an end",
    arguments: [false, true])
  func together(isPlayback: Bool) async throws {
    let tested = try await TestedServer.begin(isPlayback ? .playback : .ingest) { settings in
      settings.bearer = "secret"
      settings.certificate = Certificates.localhost.certificate
      settings.key = Certificates.localhost.key
    }
    var settings = WHIPSettings.patient(
      try WebAddress("https://localhost:\(tested.port)/whip"), isPlayback: isPlayback)
    settings.bearer = "secret"
    settings.roots = Certificates.authority
    let (client, log) = (WHIPClient(settings), SignalLog())
    let session = SignalSessionID(0)
    client.begin { log.take($0) }
    try await log.wantsOffer()
    client.describe(session, sdp: SDPTexts.sound(isPlayback ? "recvonly" : "sendonly"))
    let offer = try await tested.log.offer()
    #expect(offer.media.audio == (isPlayback ? .sendOnly : .receiveOnly))
    tested.server.describe(offer.id, sdp: SDPTexts.answer)
    #expect(try await log.answer() == SDPTexts.answer)
    #expect(client.traits == SignalTraits(isTrickle: true, canRestart: true))
    client.add(SDPTexts.candidate, to: session)
    _ = try await awaited([tested.log]) {
      tested.log.words.contains("candidate 0 \(SDPTexts.candidate)") ? true : nil
    }
    client.restart(session, sdp: SDPTexts.sound(isPlayback ? "recvonly" : "sendonly", user: "userC"))
    let restart = try await tested.log.offer(1)
    #expect(try SDPTexts.user(of: restart.sdp) == "userC")
    tested.server.describe(offer.id, sdp: SDPTexts.sound("recvonly", setup: "passive", user: "userD"))
    let restarted = try await log.answer(1)
    #expect(try SDPTexts.user(of: restarted) == "userD")
    await client.ended()
    #expect(try await tested.log.ended() == offer.id)
    await tested.server.ended()
  }
}
