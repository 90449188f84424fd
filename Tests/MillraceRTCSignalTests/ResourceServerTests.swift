import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceRTCWire
import Testing

@testable import MillraceRTCSignal

@Suite("WHIP and WHEP as server", .timeLimit(.minutes(30))) struct ResourceServerTests {
  @Test("an offer is reported, its answer is created as a session, and DELETE ends that")
  func publish() async throws {
    let tested = try await TestedServer.begin { settings in
      settings.servers = [SignalServer(url: "stun:stun.example")]
    }
    #expect(tested.server.port == tested.port && tested.port != 0)
    #expect(tested.server.traits == SignalTraits(isServer: true))
    let (id, response) = try await tested.open()
    let offer = try await tested.log.offer()
    #expect(offer.sdp == SDPTexts.offer && offer.media == SignalMedia(audio: .receiveOnly))
    #expect(response.status == 201 && response.text == SDPTexts.answer)
    #expect(response["Content-Type"] == "application/sdp")
    #expect(response["Accept-Patch"] == TrickleFragment.mediaType)
    #expect(response["Link"] == "<stun:stun.example>; rel=\"ice-server\"")
    #expect(response["ETag"]?.isEmpty == false)
    let path = try #require(response["Location"])
    #expect(path.hasPrefix("/whip/") && path.utf8.count == "/whip/".utf8.count + 32)
    #expect(try await tested.send("DELETE", path).status == 200)
    #expect(try await tested.log.ended() == id)
    #expect(try await tested.send("DELETE", path).status == 404)
    await tested.server.ended()
  }

  @Test("a second publisher is refused until the first has gone")
  func onePublisher() async throws {
    let tested = try await TestedServer.begin()
    let (id, _) = try await tested.open()
    let refused = try await tested.post(SDPTexts.offer)
    #expect(refused.status == 409 && refused["Retry-After"] == "1")
    tested.server.end(id)
    #expect(try await tested.open(1).response.status == 201)
    await tested.server.ended()
  }

  @Test("viewers are let in up to their number, each with a session of its own")
  func viewers() async throws {
    let tested = try await TestedServer.begin(.playback, path: "/") { $0.viewers = 2 }
    let offer = SDPTexts.sound("recvonly")
    let (first, _) = try await tested.open(0, offer: offer)
    let (second, response) = try await tested.open(1, offer: offer)
    #expect(first != second)
    #expect(try await tested.log.offer(1).media == SignalMedia(audio: .sendOnly))
    let refused = try await tested.post(offer)
    #expect(refused.status == 503 && refused["Retry-After"] == "1")
    #expect(try await tested.send("DELETE", response["Location"]).status == 200)
    #expect(try await tested.open(2, offer: offer).response.status == 201)
    await tested.server.ended()
  }

  @Test(
    "what cannot be understood is refused with the status that says why",
    arguments: [
      ("GET", nil, "", 405, "OPTIONS, POST"), ("PUT", nil, "", 405, "only"), ("DELETE", nil, "", 405, "only"),
      ("GET", "/other", "", 404, "nothing at this path"), ("POST", "/whip/", "", 404, "no such session"),
      ("PATCH", "/whip/0123", "", 404, "no such session"), ("POST", "/", "", 404, "nothing at this path"),
      ("POST", nil, "text/plain", 415, "application/sdp"), ("POST", nil, "", 415, "application/sdp"),
    ] as [(String, String?, String, Int, String)])
  func misunderstood(method: String, path: String?, type: String, status: Int, words: String) async throws {
    let tested = try await TestedServer.begin()
    let response = try await tested.send(
      method, path, type: type.isEmpty ? nil : type, method == "POST" ? SDPTexts.offer : "")
    #expect(response.status == status)
    #expect(response.text.contains(words), "\(response.text)")
    #expect((response["Allow"] != nil) == (status == 405))
    #expect(try await tested.log.extra("refused")["code"]?.integer == status)
    await tested.server.ended()
  }

  @Test(
    "an offer that cannot be used is refused with a message, and reported as no offer",
    arguments: [
      ("", 400, "empty"), ("hello", 400, "SDP line 1"),
      ("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\n", 400, "user fragment"),
      (SDPTexts.offer.replacing("a=ice-ufrag:userA\r\n", with: ""), 400, "user fragment"),
      (SDPTexts.offer.replacing("a=ice-ufrag:userA", with: "a=ice-ufrag:u"), 400, "SDP line"),
      (SDPTexts.sound("recvonly"), 422, "a=sendonly"), (SDPTexts.sound("inactive"), 422, "nothing in common"),
      ("large", 413, "at most"),
    ])
  func badOffers(offer: String, status: Int, words: String) async throws {
    let tested = try await TestedServer.begin()
    let body = offer == "large" ? String(repeating: "a", count: SDPLimits.bytes + 1) : offer
    let response = try await tested.post(body)
    #expect(response.status == status)
    #expect(response.text.contains(words), "\(response.text)")
    #expect(try await tested.log.extra("refused")["code"]?.integer == status)
    #expect(!tested.log.words.contains { $0.hasPrefix("offer") })
    await tested.server.ended()
  }

  @Test("the bearer is asked for before anything is reported, but not by a preflight")
  func bearer() async throws {
    let tested = try await TestedServer.begin { $0.bearer = "secret" }
    let wrong: [[(name: String, value: String)]] = [
      [], [(name: "Authorization", value: "Bearer secre")], [(name: "Authorization", value: "secret")],
    ]
    for (path, method) in [(nil, "POST"), (nil, "GET"), ("/whip/0123", "DELETE")] as [(String?, String)] {
      for headers in wrong {
        let response = try await tested.send(method, path, type: "application/sdp", "", headers)
        #expect(response.status == 401)
        #expect(response["WWW-Authenticate"] == "Bearer")
      }
    }
    #expect(try await tested.send("OPTIONS").status == 204)
    let key = [(name: "Authorization", value: "bearer secret")]
    let (_, response) = try await tested.open(0, key)
    #expect(response.status == 201)
    #expect(try await tested.send("DELETE", response["Location"]).status == 401)
    #expect(try await tested.send("DELETE", response["Location"], "", key).status == 200)
    let refused = try await tested.log.extra("refused")
    #expect(refused["code"]?.integer == 401)
    await tested.server.ended()
  }

  @Test("a page of an admitted origin may read what it is answered")
  func pages() async throws {
    let tested = try await TestedServer.begin { settings in
      settings.origins = ["https://app.example"]
      settings.bearer = "secret"
    }
    let origin = [(name: "Origin", value: "https://app.example")]
    let preflight = try await tested.send("OPTIONS", nil, "", origin)
    #expect(preflight.status == 204)
    #expect(preflight["Access-Control-Allow-Origin"] == "https://app.example")
    #expect(preflight["Access-Control-Allow-Methods"] == "OPTIONS, POST")
    #expect(preflight["Access-Control-Allow-Headers"]?.contains("Authorization") == true)
    #expect(preflight["Accept-Post"] == "application/sdp")
    let refused = try await tested.post(SDPTexts.offer, origin)
    #expect(refused.status == 401 && refused["Access-Control-Allow-Origin"] == "https://app.example")
    let (_, response) = try await tested.open(0, origin + [(name: "Authorization", value: "Bearer secret")])
    #expect(response["Access-Control-Allow-Origin"] == "https://app.example")
    #expect(response["Access-Control-Expose-Headers"]?.contains("Location") == true)
    await tested.server.ended()
  }

  @Test(
    "a page of another origin and a name that was rebound to this machine are refused",
    arguments: [("Origin", "https://evil.example"), ("Host", "evil.example")])
  func strangers(header: String, value: String) async throws {
    let tested = try await TestedServer.begin()
    #expect(try await tested.post(SDPTexts.offer, [(name: header, value: value)]).status == 403)
    #expect(try await tested.log.extra("refused")["code"]?.integer == 403)
    await tested.server.ended()
  }

  @Test("an offer that is not answered in time is refused, and its place is free again")
  func unanswered() async throws {
    let tested = try await TestedServer.begin { $0.timeout = 20 }
    let response = try await tested.post(SDPTexts.offer)
    #expect(response.status == 503 && response["Retry-After"] == "1")
    #expect(try await tested.log.failed().name == "signalTimeout")
    let late = try await tested.log.offer().id
    tested.server.describe(late, sdp: SDPTexts.answer)
    #expect(try await tested.post(SDPTexts.offer).status == 503)
    await tested.server.ended()
  }

  @Test(
    "what this side refuses has a status and a text, and its place is free again",
    arguments: [
      (RTCError.badOffer, 400), (.noCommonCodec, 406), (.authFailed, 403), (.duplicate, 409), (.failed, 503),
    ] as [(RTCError, Int)])
  func refusal(error: RTCError, status: Int) async throws {
    let tested = try await TestedServer.begin()
    async let response = tested.post(SDPTexts.offer)
    tested.server.refuse(try await tested.log.offer().id, error, "no codec in common; offer Opus")
    let refused = try await response
    #expect(refused.status == status && refused.text == "no codec in common; offer Opus\n")
    #expect(try await tested.open(1).response.status == 201)
    await tested.server.ended()
  }

  @Test("a client that goes before it is answered leaves its place")
  func goneEarly() async throws {
    let tested = try await TestedServer.begin()
    var request = HTTPClient.Request("POST", try tested.url())
    request.headers = [(name: "Content-Type", value: "application/sdp")]
    request.body = .bytes(Array(SDPTexts.offer.utf8))
    request.timeouts = HTTPClient.Timeouts(connect: 0, answer: 0, whole: 600_000)
    request.proxy = .direct
    let call = HTTPClient.shared.run(request) { _ in }
    let id = try await tested.log.offer().id
    call.cancel()
    #expect(try await tested.log.ended() == id)
    #expect(try await tested.open(1).response.status == 201)
    await tested.server.ended()
  }

  @Test("the end answers who waits, and closes the port")
  func end() async throws {
    let tested = try await TestedServer.begin()
    async let response = tested.post(SDPTexts.offer)
    _ = try await tested.log.offer()
    await tested.server.ended()
    #expect(try await response.status == 503)
    await #expect(throws: NetError.self) { try await tested.post(SDPTexts.offer) }
    await tested.server.ended()
    #expect(tested.log.words.count == 2)
  }
}
