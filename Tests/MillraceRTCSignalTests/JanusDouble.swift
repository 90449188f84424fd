import MillraceCore
import MillraceJSON
import MillraceNet

@testable import MillraceRTCSignal

/// A Janus of its own on this machine, over HTTP with long polls or over a WebSocket: the core is here, the plugin is the test's closure.
final class JanusDouble: Sendable {
  /// A request of the client.
  struct Request: Sendable {
    var json: JSONValue
    var session: Int?
    var handle: Int?

    var kind: String { json["janus"]?.string ?? "" }
    /// As `message join`.
    var name: String { (json["body"]?["request"]?.string).map { "\(kind) \($0)" } ?? kind }
    var transaction: String { json["transaction"]?.string ?? "" }
  }

  /// What the plugin answers to a message.
  enum Reply: Sendable {
    case event(JSONValue, JanusDescription? = nil)
    /// At once, in the response.
    case success(JSONValue)
    case silence
  }

  private struct State {
    var requests: [Request] = []
    var lastHandle = 200
    /// Events that no poll has taken yet.
    var queue: [JSONValue] = []
    var polls: [HTTPReply] = []
    var pollTargets: [String] = []
    /// Polls are answered at once with this.
    var emptyAnswer: String?
    var sockets: [WebSocket] = []
    var protocols: [String] = []
    /// Refusals by the core, by kind.
    var refusals: [String: (code: Int, reason: String)] = [:]
    /// Kinds that are not answered.
    var silent: Set<String> = []
  }

  static let session = 9_007_199_254_740_991
  private let state = Locked(State())
  private let plugin: @Sendable (Request) -> [Reply]
  private let server = Locked<HTTPServer?>(nil)
  private let isWebSocket: Bool

  /// Starts it.
  init(webSocket: Bool, _ plugin: @escaping @Sendable (Request) -> [Reply]) async throws {
    isWebSocket = webSocket
    self.plugin = plugin
    var limits = HTTPServer.Limits()
    limits.patience = 600_000
    limits.body = 1 << 20
    limits.webSocket.ping = 0
    limits.webSocket.close = 600_000
    let server = try await HTTPServer.listen(port: 0, on: .shared, limits: limits) { [weak self] request in
      self?.decide(request) ?? .refuse(status: 503, "gone")
    }
    self.server.withLock { $0 = server }
  }

  var url: String {
    "\(isWebSocket ? "ws" : "http")://127.0.0.1:\(server.withLock { $0?.port ?? 0 })\(isWebSocket ? "/" : "/janus")"
  }
  /// Names of all requests so far.
  var requests: [String] { state.withLock { $0.requests.map(\.name) } }
  var pollTargets: [String] { state.withLock { $0.pollTargets } }
  var protocols: [String] { state.withLock { $0.protocols } }
  /// A long poll waits for events.
  var isPolled: Bool { state.withLock { !$0.polls.isEmpty } }

  func request(_ name: String) -> Request? { state.withLock { $0.requests.last { $0.name == name } } }
  func refuse(_ kind: String, _ code: Int, _ reason: String) {
    state.withLock { $0.refusals[kind] = (code, reason) }
  }
  func answerPolls(with text: String) { state.withLock { $0.emptyAnswer = text } }
  func silence(_ kind: String) { state.withLock { _ = $0.silent.insert(kind) } }

  /// Vanishes: nothing is accepted, and every connection breaks.
  func vanish() {
    server.withLock { $0 }?.stopListening()
    let (sockets, polls) = state.withLock { state in
      defer {
        state.sockets = []
        state.polls = []
      }
      return (state.sockets, state.polls)
    }
    for socket in sockets { socket.cancel() }
    for poll in polls { poll.drop() }
  }

  func stop() { server.withLock { $0 }?.stopListening() }

  /// Sends bytes as they are.
  func push(raw text: String) {
    let (sockets, poll) = state.withLock { ($0.sockets, $0.polls.isEmpty ? nil : $0.polls.removeFirst()) }
    for socket in sockets { _ = socket.send(text: text) }
    poll?.send(.text(text))
  }

  /// Sends an event of the plugin, unasked.
  func push(_ data: JSONValue, handle: Int = 201) {
    push(message: [
      "janus": "event", "session_id": .integer(Self.session), "sender": .integer(handle),
      "plugindata": ["plugin": "janus.plugin.double", "data": data],
    ])
  }

  func push(message: JSONValue) {
    state.withLock { $0.queue.append(message) }
    flush()
  }

  // MARK: Server

  private func decide(_ request: HTTPServer.Request) -> HTTPServer.Decision {
    if request.asksForWebSocket {
      let asked = request[header: "Sec-WebSocket-Protocol"] ?? ""
      return .webSocket(protocol: "janus-protocol") { [self] socket in
        state.withLock { state in
          state.sockets.append(socket)
          state.protocols.append(asked)
        }
        return { [weak self] event in
          guard case .text(let bytes) = event, let json = try? JSONValue(parsing: bytes) else { return }
          self?.receive(json, socket)
        }
      }
    }
    let path = request.path.split(separator: "/").dropFirst().map { Int($0) }
    if request.method == "GET" {
      let target = request.target
      return .receive { [self] _, reply in
        let empty = state.withLock { state in
          if state.emptyAnswer == nil { state.polls.append(reply) }
          state.pollTargets.append(target)
          return state.emptyAnswer
        }
        if let empty { reply.send(.text(empty)) } else { flush() }
      }
    }
    return .receive { [self] request, reply in
      guard let json = try? JSONValue(parsing: request.body) else { return reply.send(.text("no JSON")) }
      let answer = take(
        Request(json: json, session: path.first ?? nil, handle: path.count > 1 ? path[1] : nil))
      if let answer { reply.send(.text(answer.text)) } else { held.withLock { $0.append(reply) } }
      flush()
    }
  }

  /// Requests that are never answered.
  private let held = Locked<[HTTPReply]>([])

  private func receive(_ json: JSONValue, _ socket: WebSocket) {
    let answer = take(
      Request(json: json, session: json["session_id"]?.integer, handle: json["handle_id"]?.integer))
    if let answer { _ = socket.send(text: answer.text) }
    flush()
  }

  private func flush() {
    let (sockets, queue, poll) = state.withLock { state -> ([WebSocket], [JSONValue], HTTPReply?) in
      guard !state.queue.isEmpty, !state.sockets.isEmpty || !state.polls.isEmpty else { return ([], [], nil) }
      defer { state.queue = [] }
      return (state.sockets, state.queue, state.polls.isEmpty ? nil : state.polls.removeFirst())
    }
    for message in queue { for socket in sockets { _ = socket.send(text: message.text) } }
    poll?.send(.text(JSONValue.array(queue).text))
  }

  // MARK: Core

  /// The answer that comes at once; nil: none.
  private func take(_ request: Request) -> JSONValue? {
    let (refusal, isSilent) = state.withLock { state in
      state.requests.append(request)
      return (state.refusals[request.kind], state.silent.contains(request.kind))
    }
    if isSilent { return nil }
    if let refusal {
      return answer(
        "error", request,
        [
          "error": ["code": .integer(refusal.code), "reason": .string(refusal.reason)]
        ])
    }
    switch request.kind {
    case "create": return answer("success", request, ["data": ["id": .integer(Self.session)]])
    case "attach":
      let id = state.withLock { state in
        state.lastHandle += 1
        return state.lastHandle
      }
      return answer("success", request, ["data": ["id": .integer(id)]])
    case "message": return message(request)
    case "keepalive", "trickle": return answer("ack", request, [:])
    case "hangup", "detach", "destroy": return answer("success", request, [:])
    default: return answer("error", request, ["error": ["code": 453, "reason": "Unknown request"]])
    }
  }

  private func message(_ request: Request) -> JSONValue? {
    for reply in plugin(request) {
      switch reply {
      case .silence: return nil
      case .success(let data): return answer("success", request, ["plugindata": ["data": data]])
      case .event(let data, let description):
        let event = answer(
          "event", request,
          [
            "sender": .integer(request.handle ?? 0), "plugindata": ["plugin": "p", "data": data],
            "jsep": description?.json,
          ])
        state.withLock { $0.queue.append(event) }
      }
    }
    return answer("ack", request, [:])
  }

  private func answer(
    _ kind: String, _ request: Request, _ members: KeyValuePairs<String, JSONValue?>
  ) -> JSONValue {
    let head: [JSONValue.Member] = [
      JSONValue.Member("janus", .string(kind)), JSONValue.Member("transaction", .string(request.transaction)),
      JSONValue.Member("session_id", .integer(Self.session)),
    ]
    return .object(head + (JSONValue.object(members).members ?? []))
  }
}

/// A client of Janus in a test, and what it reported.
final class JanusListener: Sendable {
  /// Something did not come.
  struct Missing: Error, CustomStringConvertible { let description: String }

  let client: JanusClient
  private let heard = Locked<[String]>([])
  private let last = Locked("")
  private let isOver = Locked(false)

  init(_ settings: JanusSettings) { client = JanusClient(settings) }

  /// Everything so far, as text.
  var words: [String] { heard.withLock { $0 } }
  /// The text of the close.
  var closeText: String { last.withLock { $0 } }

  /// - Parameter answers: describes every session that is asked for or offered.
  func begin(answers: Bool = true) {
    client.begin { [self] event in
      heard.withLock { $0.append(JanusTexts.words(event)) }
      switch event {
      case .wantsOffer(let id, _, _) where answers: client.describe(id, sdp: JanusTexts.sdp("sendrecv"))
      case .offer(let id, _, _, _) where answers: client.describe(id, sdp: JanusTexts.sdp("recvonly"))
      case .closed(let error): last.withLock { $0 = error.text }
      default: break
      }
    }
  }

  /// Waits for something, five minutes at most.
  static func wait(_ what: String, _ isSo: @Sendable () -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(300)
    while !isSo() {
      guard ContinuousClock.now < end else { throw Missing(description: what) }
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  /// Waits until a word was heard.
  func wait(for word: String) async throws {
    try await Self.wait(word) { self.words.contains { $0.hasPrefix(word) } }
  }

  /// Ends it, and returns when it is over.
  func end() async throws {
    client.end { [self] in isOver.withLock { $0 = true } }
    try await Self.wait("the end") { self.isOver.withLock { $0 } }
  }
}
