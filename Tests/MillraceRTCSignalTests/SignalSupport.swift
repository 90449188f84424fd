import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceRTCWire

@testable import MillraceRTCSignal

/// Descriptions for tests of signalling over HTTP.
enum SDPTexts {
  /// A description with sound and credentials of ICE.
  static func sound(
    _ direction: String = "sendonly", setup: String = "actpass", user: String = "userA",
    candidate: String? = nil
  ) -> String {
    let lines = [
      "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0",
      "m=audio 9 UDP/TLS/RTP/SAVPF 111", "c=IN IP4 0.0.0.0", "a=mid:0", "a=\(direction)", "a=rtcp-mux",
      "a=ice-ufrag:\(user)", "a=ice-pwd:\(password)",
      "a=fingerprint:sha-256 \(digest)",
      "a=setup:\(setup)", "a=rtpmap:111 opus/48000/2",
    ]
    return text(candidate.map { lines + ["a=\($0)"] } ?? lines)
  }

  private static func text(_ lines: [String]) -> String { lines.map { $0 + "\r\n" }.joined() }

  private static let digest = [String](repeating: "AB", count: 32).joined(separator: ":")
  static let password = "0123456789012345678901"
  static let offer = sound()
  static let answer = sound("recvonly", setup: "passive", user: "userB")
  static let candidate = "candidate:1 1 udp 2130706431 192.0.2.1 5000 typ host"

  /// A fragment with candidates.
  static func fragment(_ user: String = "userA", isComplete: Bool = false) -> String {
    let lines = [
      "a=group:BUNDLE 0", "m=audio 9 UDP/TLS/RTP/SAVPF 111", "a=mid:0", "a=ice-ufrag:\(user)",
      "a=ice-pwd:\(password)", "a=\(candidate)",
    ]
    return text(isComplete ? lines + ["a=end-of-candidates"] : lines)
  }

  static func user(of sdp: String) throws -> String? {
    try SessionDescription(parsing: sdp).bundleCredentials?.fragment
  }
}

/// What never came within ten minutes.
struct NeverCame: Error {
  let events: [String]
}

/// Waits until something is there; polls, because what is waited for comes from other threads.
func awaited<Value>(_ log: [SignalLog] = [], _ value: () throws -> Value?) async throws -> Value {
  let end = ContinuousClock.now + .seconds(600)
  while true {
    if let value = try value() { return value }
    guard ContinuousClock.now < end else { throw NeverCame(events: log.flatMap { $0.words }) }
    try await Task.sleep(for: .milliseconds(1))
  }
}

/// What a form of signalling has reported, in order.
final class SignalLog: Sendable {
  private let events = Locked<[SignalEvent]>([])

  func take(_ event: SignalEvent) { events.withLock { $0.append(event) } }

  var all: [SignalEvent] { events.withLock { $0 } }

  /// Each event in a line.
  var words: [String] { all.map { Self.words($0) } }

  private static func words(_ event: SignalEvent) -> String {
    switch event {
    case .wantsOffer(let id, _, let servers): "wantsOffer \(id.number) \(servers.map(\.url))"
    case .offer(let id, _, let media, let peer): "offer \(id.number) \(media.audio.rawValue) \(peer ?? "")"
    case .answer(let id, _): "answer \(id.number)"
    case .candidate(let id, let text): "candidate \(id.number) \(text ?? "end")"
    case .sessionEnded(let id): "ended \(id.number)"
    case .slot(let mid, _, let peer): "slot \(mid) \(peer ?? "")"
    case .ready(let isComplete): isComplete ? "ready" : "ready for others"
    case .wantsKeyFrame: "wantsKeyFrame"
    case .data(let label, _, _, let peer): "data \(label) \(peer)"
    case .event(let event): "event \(event.json.text)"
    case .sessionFailed(let id, let error): "failed \(id.number) \(error.name ?? "")"
    case .closed(let error): "closed \(error.name ?? "")"
    }
  }

  /// The event at a place among those of a kind, when it has come.
  func next<Value>(_ place: Int = 0, _ value: (SignalEvent) -> Value?) async throws -> Value {
    try await awaited([self]) {
      let found = all.compactMap(value)
      return found.count > place ? found[place] : nil
    }
  }

  func wantsOffer() async throws {
    _ = try await next { event -> Bool? in
      if case .wantsOffer = event { return true }
      return nil
    }
  }

  func answer(_ place: Int = 0) async throws -> String {
    try await next(place) { event -> String? in
      if case .answer(_, let sdp) = event { return sdp }
      return nil
    }
  }

  func offer(_ place: Int = 0) async throws -> (id: SignalSessionID, sdp: String, media: SignalMedia) {
    try await next(place) { event -> (id: SignalSessionID, sdp: String, media: SignalMedia)? in
      if case .offer(let id, let sdp, let media, _) = event { return (id, sdp, media) }
      return nil
    }
  }

  func closed() async throws -> DialogError {
    try await next { event -> DialogError? in
      if case .closed(let error) = event { return error }
      return nil
    }
  }

  func failed() async throws -> DialogError {
    try await next { event -> DialogError? in
      if case .sessionFailed(_, let error) = event { return error }
      return nil
    }
  }

  func ended(_ place: Int = 0) async throws -> SignalSessionID {
    try await next(place) { event -> SignalSessionID? in
      if case .sessionEnded(let id) = event { return id }
      return nil
    }
  }

  /// The payload of an event `extra` of this name.
  func extra(_ name: String) async throws -> JSONValue {
    try await next { event -> JSONValue? in
      if case .event(.extra(let other, let payload)) = event, other == name { return payload }
      return nil
    }
  }
}

extension Signalling {
  /// Ends it and waits for that.
  func ended() async {
    await withCheckedContinuation { continuation in end { continuation.resume() } }
  }
}

/// A server whose answers a test gives.
final class ScriptedServer: Sendable {
  private let seen = Locked<[HTTPServer.Request]>([])
  /// Replies that are never given.
  private let held = Locked<[HTTPReply]>([])
  private let respond: @Sendable (HTTPServer.Request) -> HTTPServer.Response?
  private let server = Locked<HTTPServer?>(nil)

  /// - Parameter respond: nil: the request is never answered.
  init(_ respond: @escaping @Sendable (HTTPServer.Request) -> HTTPServer.Response?) async throws {
    self.respond = respond
    var limits = HTTPServer.Limits()
    limits.patience = 600_000
    let made = try await HTTPServer.listen(port: 0, on: .shared, limits: limits) { [self] _ in
      .receive(limit: 1 << 20) { [self] request, reply in
        seen.withLock { $0.append(request) }
        if let response = self.respond(request) {
          reply.send(response)
        } else {
          held.withLock { $0.append(reply) }
        }
      }
    }
    server.withLock { $0 = made }
  }

  var port: Int { server.withLock { $0?.port ?? 0 } }
  var requests: [HTTPServer.Request] { seen.withLock { $0 } }
  var methods: [String] { requests.map(\.method) }

  func url(_ path: String = "/whip", host: String = "127.0.0.1") throws -> WebAddress {
    try WebAddress("http://\(host):\(port)\(path)")
  }

  /// The request at a place, when it has come.
  func request(_ place: Int) async throws -> HTTPServer.Request {
    try await awaited { requests.count > place ? requests[place] : nil }
  }

  func stop() {
    held.withLock { $0 = [] }
    server.withLock { $0 }?.stopListening()
  }
}

extension HTTPServer.Response {
  /// The answer of a WHIP server.
  static func created(
    _ sdp: String = SDPTexts.answer, status: Int = 201,
    _ headers: [(name: String, value: String)] = [(name: "Location", value: "/session/1")]
  ) -> HTTPServer.Response {
    HTTPServer.Response(
      status: status, headers: headers + [(name: "Content-Type", value: "application/sdp")],
      body: Array(sdp.utf8))
  }
}

extension WHIPSettings {
  /// Settings that wait as long as a loaded machine needs.
  static func patient(_ url: WebAddress, isPlayback: Bool = false) -> WHIPSettings {
    var settings = WHIPSettings(
      url: url, media: SignalMedia(audio: isPlayback ? .receiveOnly : .sendOnly), isPlayback: isPlayback)
    settings.timeout = 600_000
    settings.proxy = .direct
    return settings
  }
}
