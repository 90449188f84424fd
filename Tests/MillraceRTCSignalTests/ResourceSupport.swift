import MillraceCore
import MillraceNet
import MillraceRTCWire

@testable import MillraceRTCSignal

/// A WHIP or WHEP server on a free port, and what it reports.
struct TestedServer: Sendable {
  let server: ResourceServer
  let log: SignalLog
  let port: Int
  let path: String

  /// Begins a server, and returns when it listens.
  static func begin(
    _ role: ResourceServerSettings.Role = .ingest, port: Int = 0, path: String = "/whip",
    _ change: (inout ResourceServerSettings) -> Void = { _ in }
  ) async throws -> TestedServer {
    var settings = ResourceServerSettings(
      role: role, port: port, path: path,
      media: SignalMedia(audio: role == .ingest ? .receiveOnly : .sendOnly))
    settings.timeout = 600_000
    change(&settings)
    let (server, log) = (ResourceServer(settings), SignalLog())
    server.begin { log.take($0) }
    let listening = try await log.extra("listening")
    return TestedServer(server: server, log: log, port: listening["port"]?.integer ?? 0, path: path)
  }

  func url(_ path: String? = nil) throws -> WebAddress {
    try WebAddress("http://127.0.0.1:\(port)\(path ?? self.path)")
  }

  /// Sends a request.
  func send(
    _ method: String, _ path: String? = nil, type: String? = nil, _ body: String = "",
    _ headers: [(name: String, value: String)] = []
  ) async throws -> HTTPClient.Response {
    var request = HTTPClient.Request(method, try url(path))
    request.headers = headers
    if let type { request.headers.append((name: "Content-Type", value: type)) }
    request.body = .bytes(Array(body.utf8))
    request.timeouts = HTTPClient.Timeouts(connect: 0, answer: 0, whole: 600_000)
    request.proxy = .direct
    return try await HTTPClient().run(request)
  }

  func post(_ offer: String, _ headers: [(name: String, value: String)] = []) async throws
    -> HTTPClient.Response
  {
    try await send("POST", type: "application/sdp", offer, headers)
  }

  /// A PATCH of a session.
  func patch(_ path: String, _ fragment: String, tag: String?) async throws -> HTTPClient.Response {
    try await send(
      "PATCH", path, type: TrickleFragment.mediaType, fragment,
      tag.map { [(name: "If-Match", value: $0)] } ?? [])
  }

  /// Opens a session: offers, and answers the offer at this place of the log.
  func open(
    _ place: Int = 0, offer: String = SDPTexts.offer, _ headers: [(name: String, value: String)] = []
  ) async throws -> (id: SignalSessionID, response: HTTPClient.Response) {
    async let response = post(offer, headers)
    let id = try await log.offer(place).id
    server.describe(id, sdp: SDPTexts.answer)
    return (id, try await response)
  }
}

extension HTTPClient.Response {
  /// The body as text.
  var text: String { String(decoding: body, as: UTF8.self) }
}
