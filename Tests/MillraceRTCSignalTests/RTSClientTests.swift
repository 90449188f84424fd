import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import Testing

@testable import MillraceRTCSignal

@Suite("RTS and RTD as client", .timeLimit(.minutes(30))) struct RTSClientTests {
  private let session = SignalSessionID(0)

  private func settings(_ url: String, _ direction: RTSDirection = .play) -> RTSSettings {
    var settings = RTSSettings(
      url: url, media: SignalMedia(audio: direction == .play ? .receiveOnly : .sendOnly), direction: direction
    )
    settings.timeout = 600_000
    settings.proxy = .direct
    return settings
  }

  private func start(_ settings: RTSSettings) async throws -> (RTSClient, SignalLog) {
    let (client, log) = (RTSClient(settings), SignalLog())
    client.begin { log.take($0) }
    try await log.wantsOffer()
    client.describe(session, sdp: SDPTexts.offer)
    return (client, log)
  }

  private static func json(_ value: JSONValue, status: Int = 200) -> HTTPServer.Response {
    HTTPServer.Response(
      status: status, headers: [(name: "Content-Type", value: "application/json")], body: value.bytes)
  }

  private static let success: JSONValue = [
    "code": 200, "trace_id": "t-1", "jsep": ["type": "answer", "sdp": .string(SDPTexts.answer)],
  ]

  @Test(
    "an offer goes to the stream's own address, and the answer and the trace are reported",
    arguments: RTSDirection.allCases)
  func aliyun(direction: RTSDirection) async throws {
    let server = try await ScriptedServer { _ in Self.json(Self.success) }
    let url = "http://127.0.0.1:\(server.port)/app/stream?auth_key=1"
    let (client, log) = try await start(settings(url, direction))
    #expect(try await log.answer() == SDPTexts.answer)
    #expect(try await log.extra("trace") == ["id": "t-1"])
    #expect(client.traits == SignalTraits())
    await client.ended()
    let request = try await server.request(0)
    #expect("\(request.method) \(request.target)" == "POST /app/stream?auth_key=1")
    #expect(request[header: "RequestId"] == nil)
    let stream: JSONValue = ["url": .string(url)]
    let name = direction == .play ? "pull_stream" : "push_stream"
    let expected: JSONValue = [
      "version": 2, "sdk_version": "0.0.1", "mode": "live",
      name: stream,
      "jsep": ["type": "offer", "sdp": .string(SDPTexts.offer)],
    ]
    #expect(try JSONValue(parsing: request.body) == expected)
    #expect(server.methods == ["POST"])
    server.stop()
  }

  @Test("NetEase gets its app key and an id of the request at its own address")
  func netease() async throws {
    let server = try await ScriptedServer { _ in Self.json(Self.success) }
    var settings = settings("artc://stream.example/app/stream")
    settings.dialect = .netease
    #expect(settings.problem?.parameter == "endpoint")
    settings.endpoint = try server.url("/v1/live/play")
    #expect(settings.problem?.parameter == "appKey")
    settings.appKey = "key"
    settings.sdkVersion = "1.2"
    let (client, log) = try await start(settings)
    _ = try await log.answer()
    let request = try await server.request(0)
    #expect(request.target == "/v1/live/play")
    #expect(request[header: "RequestId"]?.utf8.count == 32)
    let json = try JSONValue(parsing: request.body)
    #expect(json["version"]?.integer == 1 && json["appkey"]?.string == "key")
    #expect(json["sdk_version"]?.string == "1.2")
    #expect(json["pull_stream"]?["url"]?.string == "artc://stream.example/app/stream")
    await client.ended()
    server.stop()
  }

  @Test(
    "artc: is https:, and other addresses stay as they are",
    arguments: [
      ("artc://a.example/b?c", "https://a.example/b?c"), ("ARTC://a/", "https://a/"),
      ("https://a/", "https://a/"),
      ("", ""), ("http://a:1/b", "http://a:1/b"),
    ])
  func addresses(url: String, expected: String) { #expect(RTSSettings.overHTTP(url) == expected) }

  @Test(
    "a code that is not 200 is an error, although the status is 200",
    arguments: [
      (403, RTCError.authFailed), (404, .notFound), (409, .duplicate), (429, .tooManyRequests),
      (500, .signalRefused), (20_001, .signalRefused), (0, .signalRefused),
    ] as [(Int, RTCError)])
  func codes(code: Int, error: RTCError) async throws {
    let server = try await ScriptedServer { _ in
      Self.json(["code": .integer(code), "trace_id": "t-2", "err_msg": "secret"])
    }
    let (client, log) = try await start(
      settings("http://127.0.0.1:\(server.port)/app/stream?auth_key=hidden"))
    let closed = try await log.closed()
    #expect(closed.name == error.rawValue && closed.code == code)
    #expect(!closed.text.contains("hidden") && !closed.text.contains("secret"))
    #expect(try await log.extra("trace") == ["id": "t-2"])
    await client.ended()
    server.stop()
  }

  @Test(
    "an answer that is none is refused with a message",
    arguments: [
      ("", "other than a JSON object"), ("<html>", "web page"), ("[]", "other than a JSON object"),
      ("{}", "without \"jsep.sdp\""), (#"{"code":"x"}"#, "no number"),
      (#"{"jsep":{"sdp":"hello"}}"#, "no SDP"),
      (#"{"jsep":{"sdp":"v=0","type":"offer"}}"#, "an offer instead"),
      (#"{"jsep":5}"#, "without \"jsep.sdp\""),
    ])
  func badAnswers(body: String, words: String) async throws {
    let server = try await ScriptedServer { _ in HTTPServer.Response(body: Array(body.utf8)) }
    let (client, log) = try await start(settings("http://127.0.0.1:\(server.port)/app/stream"))
    let closed = try await log.closed()
    #expect(closed.name == "badAnswer")
    #expect(closed.text.contains(words), "\(closed.text)")
    await client.ended()
    server.stop()
  }

  @Test(
    "an enormous answer, a status and no answer at all are errors",
    arguments: ["enormous", "status", "silent"])
  func failures(kind: String) async throws {
    let server = try await ScriptedServer { _ in
      switch kind {
      case "enormous": return HTTPServer.Response(body: [UInt8](repeating: 0x20, count: 10_000_000))
      case "status": return .text("", status: 403)
      default: return nil
      }
    }
    var settings = settings("http://127.0.0.1:\(server.port)/app/stream")
    if kind == "silent" { settings.timeout = 50 }
    let (client, log) = try await start(settings)
    let names = ["enormous": "badAnswer", "status": "authFailed", "silent": "signalTimeout"]
    #expect(try await log.closed().name == names[kind])
    await client.ended()
    server.stop()
  }

  @Test("the end cancels the request and reports nothing")
  func end() async throws {
    let server = try await ScriptedServer { _ in nil }
    let (client, log) = try await start(settings("http://127.0.0.1:\(server.port)/app/stream"))
    _ = try await server.request(0)
    await client.ended()
    await client.ended()
    #expect(log.words == ["wantsOffer 0 []"])
    server.stop()
  }

  @Test(
    "plain text beyond this machine and wrong addresses are refused",
    arguments: ["http://192.0.2.1/a/b", "rtmp://a/b", "a b"])
  func wrongAddress(url: String) async throws {
    let (client, log) = (RTSClient(settings(url)), SignalLog())
    #expect(settings(url).problem?.parameter == "url")
    client.begin { log.take($0) }
    #expect(try await log.closed().reaction == .refuse)
    await client.ended()
  }
}
