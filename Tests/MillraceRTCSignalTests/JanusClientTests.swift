import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import Testing

@testable import MillraceRTCSignal

@Suite("Janus: the client over HTTP and WebSocket", .timeLimit(.minutes(10))) struct JanusClientTests {
  private func settings(
    _ plugin: JanusPluginName, _ double: JanusDouble, _ change: (inout JanusSettings) -> Void = { _ in }
  ) throws -> JanusSettings {
    var settings = try JanusTexts.settings(plugin, double.url)
    settings.timeout = 300_000
    change(&settings)
    return settings
  }

  private static let answer = JanusDescription(.answer, "ANSWER")

  /// A plugin that answers as the real ones do.
  @Sendable private static func plugin(_ request: JanusDouble.Request) -> [JanusDouble.Reply] {
    let body = request.json["body"]
    switch (body?["request"]?.string, body?["ptype"]?.string) {
    case (nil, _): return [.event(["echotest": "event", "result": "ok"], answer)]
    case ("join", nil): return [.event(["audiobridge": "joined", "id": 7, "participants": []])]
    case ("join", "publisher"):
      let feed: JSONValue = ["id": 8, "streams": [["type": "audio", "mid": "0"]]]
      return [.event(["videoroom": "joined", "id": 7, "private_id": 77, "publishers": [feed]])]
    case ("join", _):
      return [.event(["videoroom": "attached"], JanusDescription(.offer, JanusTexts.sdp()))]
    case ("configure", _), ("publish", _): return [.event(["result": "ok"], answer)]
    case ("watch", _), ("setup", _):
      return [
        .event(["result": ["status": "preparing"]], JanusDescription(.offer, JanusTexts.sdp()))
      ]
    case ("start", _), ("ack", _): return [.event(["result": ["status": "starting"]])]
    default: return [.success([:])]
    }
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var plugin: JanusPluginName
    var webSocket: Bool
    /// What is heard in the end.
    var words: [String]
    /// What Janus was asked.
    var requests: [String]
    var testDescription: String { "\(plugin.rawValue) over \(webSocket ? "WebSocket" : "HTTP")" }

    static var all: [Case] {
      [true, false].flatMap { socket in
        [
          Case(
            plugin: .echotest, webSocket: socket, words: ["wantsOffer 0", "answer 0"], requests: ["message"]),
          Case(
            plugin: .audiobridge, webSocket: socket, words: ["wantsOffer 0", "answer 0"],
            requests: ["message join", "message configure"]),
          Case(
            plugin: .videoroom, webSocket: socket, words: ["wantsOffer 0", "answer 0", "offer 1"],
            requests: ["message join", "message publish", "message start"]),
          Case(
            plugin: .streaming, webSocket: socket, words: ["offer 0"],
            requests: ["message watch", "message start"]),
          Case(
            plugin: .textroom, webSocket: socket, words: ["offer 0"],
            requests: ["message setup", "message ack"]),
        ]
      }
    }
  }

  @Test(
    "every plugin is signalled over both links, with candidates both ways, and released at the end",
    arguments: Case.all)
  func plugins(item: Case) async throws {
    let double = try await JanusDouble(webSocket: item.webSocket, Self.plugin)
    let listener = JanusListener(try settings(item.plugin, double))
    listener.begin()
    for word in item.words { try await listener.wait(for: word) }
    for name in item.requests {
      try await JanusListener.wait(name) { double.request(name) != nil }
    }
    listener.client.add("candidate:1 1 udp 1 127.0.0.1 9 typ host", to: SignalSessionID(0))
    listener.client.add(nil, to: SignalSessionID(0))
    try await JanusListener.wait("trickle") {
      double.request("trickle")?.json["candidate"]?["completed"]?.bool == true
    }
    double.push(message: [
      "janus": "trickle", "session_id": .integer(JanusDouble.session), "sender": 201,
      "candidate": ["candidate": "candidate:2"],
    ])
    try await listener.wait(for: "candidate 0 candidate:2")
    let count = listener.words.count
    try await listener.end()
    #expect(listener.words.count == count)
    #expect(double.requests.last == "destroy")
    #expect(double.requests.contains("detach"))
    #expect(double.request("destroy")?.session == JanusDouble.session)
    #expect(double.protocols == (item.webSocket ? ["janus-protocol"] : []))
    double.stop()
  }

  @Test("long polls ask for several events at once, with the secrets of the server", arguments: [false])
  func polls(webSocket: Bool) async throws {
    let double = try await JanusDouble(webSocket: webSocket, Self.plugin)
    let listener = JanusListener(
      try settings(.echotest, double) {
        $0.apiSecret = "a b"
        $0.token = "t/k"
      })
    listener.begin()
    try await listener.wait(for: "answer 0")
    let target = "/janus/\(JanusDouble.session)?maxev=10&apisecret=a%20b&token=t%2Fk"
    #expect(double.pollTargets.allSatisfy { $0 == target } && !double.pollTargets.isEmpty)
    #expect(double.request("create")?.json["apisecret"]?.string == "a b")
    try await listener.end()
    double.stop()
  }

  @Test(
    "a server that answers polls at once with nothing is asked ten times a second at most",
    arguments: ["[]", #"{"janus":"keepalive"}"#])
  func emptyPolls(answer: String) async throws {
    let double = try await JanusDouble(webSocket: false, Self.plugin)
    double.answerPolls(with: answer)
    let clock = Clock(.realtime)
    let listener = JanusListener(try settings(.echotest, double) { $0.timeout = 600_000 })
    let start = clock.now
    listener.begin()
    while double.pollTargets.count < 8 { try await Task.sleep(for: .milliseconds(5)) }
    // Each but the first after a pause of 100 ms.
    #expect(clock.now - start >= .milliseconds(690))
    try await listener.end()
    double.stop()
  }

  @Test("an error of the plugin inside a response of status 200 is a failure", arguments: [true, false])
  func errorInside(webSocket: Bool) async throws {
    let double = try await JanusDouble(webSocket: webSocket) { _ in
      [.event(["audiobridge": "event", "error_code": 489, "error": "Unauthorized (wrong pin)"])]
    }
    let listener = JanusListener(try settings(.audiobridge, double) { $0.pin = "hush-1" })
    listener.begin()
    try await listener.wait(for: "closed authFailed refuse")
    #expect(listener.closeText.contains("check \"pin\"") && !listener.closeText.contains("hush-1"))
    try await listener.end()
    #expect(double.requests.last == "destroy")
    double.stop()
  }

  @Test("a refusal by the core is a failure with its code's meaning", arguments: [true, false])
  func refusedByCore(webSocket: Bool) async throws {
    let double = try await JanusDouble(webSocket: webSocket, Self.plugin)
    double.refuse("create", 403, "Unauthorized request (wrong or missing secret/token)")
    let listener = JanusListener(try settings(.echotest, double))
    listener.begin()
    try await listener.wait(for: "closed authFailed refuse")
    try await listener.end()
    double.stop()
  }

  @Test("a server that vanishes ends the signalling for another attempt", arguments: [true, false])
  func vanishes(webSocket: Bool) async throws {
    let double = try await JanusDouble(webSocket: webSocket, Self.plugin)
    let listener = JanusListener(try settings(.echotest, double))
    listener.begin()
    try await listener.wait(for: "answer 0")
    // Again and again: a poll may just have been on its way.
    try await JanusListener.wait("the close") {
      double.vanish()
      return listener.words.last?.hasPrefix("closed") == true
    }
    #expect(listener.words.last?.hasSuffix("reconnect") == true)
    try await listener.end()
    #expect(listener.words.filter { $0.hasPrefix("closed") }.count == 1)
  }

  @Test("a server that answers nothing ends the signalling after the timeout", arguments: [true, false])
  func silent(webSocket: Bool) async throws {
    let double = try await JanusDouble(webSocket: webSocket, Self.plugin)
    double.silence("create")
    let listener = JanusListener(try settings(.echotest, double) { $0.timeout = 1_000 })
    listener.begin()
    try await listener.wait(for: "closed signalTimeout reconnect")
    try await listener.end()
    double.stop()
  }

  @Test("the end is over in bounded time although Janus does not answer", arguments: [true, false])
  func endUnanswered(webSocket: Bool) async throws {
    let double = try await JanusDouble(webSocket: webSocket, Self.plugin)
    double.silence("destroy")
    let listener = JanusListener(try settings(.echotest, double))
    listener.begin()
    try await listener.wait(for: "answer 0")
    try await listener.end()
    // A second end is answered too, and nothing begins again.
    try await listener.end()
    listener.begin()
    listener.client.describe(SignalSessionID(0), sdp: "X")
    try await listener.end()
    double.stop()
  }

  @Test("bytes that are no message are reported, and the signalling continues", arguments: [true, false])
  func garbage(webSocket: Bool) async throws {
    let double = try await JanusDouble(webSocket: webSocket, Self.plugin)
    let listener = JanusListener(try settings(.audiobridge, double))
    listener.begin()
    try await listener.wait(for: "answer 0")
    if !webSocket { try await JanusListener.wait("a poll") { double.isPolled } }
    double.push(raw: "<html>hush</html>")
    try await JanusListener.wait("the error") { listener.words.contains { $0.contains("\"badAnswer\"") } }
    #expect(!listener.words.contains { $0.contains("hush") })
    double.push(["audiobridge": "joined", "participants": [["id": 8]]])
    try await listener.wait(for: #"{"event":"peer","id":"8""#)
    try await listener.end()
    double.stop()
  }

  @Test("an enormous message ends the link and not the program", arguments: [true, false])
  func enormous(webSocket: Bool) async throws {
    let double = try await JanusDouble(webSocket: webSocket, Self.plugin)
    let listener = JanusListener(try settings(.echotest, double))
    listener.begin()
    try await listener.wait(for: "answer 0")
    if !webSocket { try await JanusListener.wait("a poll") { double.isPolled } }
    double.push(raw: String(repeating: " ", count: JanusMessage.mostBytes + 10))
    try await listener.wait(for: "closed badAnswer reconnect")
    try await listener.end()
    double.stop()
  }

  @Test("commands are answered once; what the plugin has not is not taken", arguments: [true, false])
  func commands(webSocket: Bool) async throws {
    let double = try await JanusDouble(webSocket: webSocket, Self.plugin)
    let listener = JanusListener(try settings(.audiobridge, double))
    let answers = Locked<[String]>([])
    let note: @Sendable (DialogError?) -> Void = { error in
      answers.withLock { $0.append(error?.name ?? "ok") }
    }
    #expect(listener.client.perform(.mute(.audio, isOn: true), note))
    try await JanusListener.wait("an answer") { answers.withLock { $0 == ["command"] } }
    listener.begin()
    try await listener.wait(for: "answer 0")
    #expect(listener.client.perform(.mute(.audio, isOn: true), note))
    #expect(!listener.client.perform(.mute(.video, isOn: true), note))
    #expect(!listener.client.perform(.subscribe(.all, .audio, isOn: true), note))
    #expect(!listener.client.perform(.refreshAuth(token: nil), note))
    try await JanusListener.wait("an answer") { answers.withLock { $0 == ["command", "ok"] } }
    try await listener.end()
    double.stop()
  }

  @Test(
    "what is not Janus at all is an error with a message",
    arguments: [
      (404, "nothing here", "closed notFound refuse"), (401, "", "closed authFailed refuse"),
      (503, "", "closed tooManyRequests retry"), (500, "", "closed signalRefused refuse"),
    ])
  func notJanus(status: Int, text: String, words: String) async throws {
    let server = try await HTTPServer.listen(port: 0, on: .shared) { _ in .answer(.text(text, status: status))
    }
    var settings = try JanusTexts.settings(.echotest, "http://127.0.0.1:\(server.port)")
    settings.timeout = 300_000
    let listener = JanusListener(settings)
    listener.begin()
    try await listener.wait(for: words)
    try await listener.end()
    await server.stop()
  }

  @Test("an address where nobody listens, and settings that cannot work, are errors at once")
  func nobody() async throws {
    let listener = JanusListener(try JanusTexts.settings(.echotest, "ws://127.0.0.1:1"))
    listener.begin()
    try await listener.wait(for: "closed network reconnect")
    var settings = try JanusTexts.settings(.audiobridge)
    settings.room = nil
    let other = JanusListener(settings)
    other.begin()
    try await other.wait(for: "closed failed refuse")
    #expect(other.closeText == "the plugin audiobridge needs a room; set \"room\"")
    try await other.end()
    try await listener.end()
  }
}
