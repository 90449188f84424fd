internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet

/// A link to Janus over HTTP: each request is a POST, one after the other so that they arrive in their order; events come in a GET that
/// Janus answers when there are some, or after 30 s.
final class JanusLongPoll: JanusLink {
  /// Janus answers a poll after 30 s at the latest. Source: Janus, transport HTTP.
  private static let pollMilliseconds = 45_000
  /// Events in one response at most: `maxev`.
  private static let mostEvents = 10
  /// Requests that wait at most; with more, Janus has stopped answering.
  private static let mostWaiting = 1_024

  private struct State {
    var receive: (@Sendable (JanusLinkEvent) -> Void)?
    /// Requests that wait for the one before them.
    var waiting: [JanusRequest] = []
    var isPosting = false
    var post: HTTPClient.Call?
    var poll: HTTPClient.Call?
  }

  /// Between two questions where the server answers at once that there is nothing, in nanoseconds.
  private static let pause: Int64 = 100_000_000
  /// Bytes of an empty list or of `keepalive`, and less than those of any event.
  private static let mostEmptyBytes = 40

  private let settings: JanusSettings
  private let loop: NetLoop
  private let client: HTTPClient
  /// The path of Janus, without a slash at its end.
  private let base: String
  private let state = Locked(State())

  init(_ settings: JanusSettings, on loop: NetLoop) {
    self.settings = settings
    self.loop = loop
    var limits = HTTPClient.Limits()
    // A POST on a connection that the server has closed meanwhile is not repeated: none is kept for long.
    limits.idle = 2_000
    client = HTTPClient(on: loop, limits: limits)
    base = Self.base(settings.url)
  }

  /// Without a path it is Janus' usual one.
  private static func base(_ url: WebAddress) -> String {
    var path = url.target.prefix { $0 != "?" }
    while path.hasSuffix("/") { path = path.dropLast() }
    return path.isEmpty ? "/janus" : String(path)
  }

  func open(_ receive: @escaping @Sendable (JanusLinkEvent) -> Void) {
    state.withLock { $0.receive = receive }
    loop.run { [self] in report(.opened) }
  }

  func close() {
    let (post, poll) = state.withLock { state in
      state.receive = nil
      state.waiting = []
      return (state.post.take(), state.poll.take())
    }
    post?.cancel()
    poll?.cancel()
    client.close()
  }

  // MARK: Requests

  func send(_ request: JanusRequest) {
    let isTooMany = state.withLock { state in
      guard state.waiting.count < Self.mostWaiting else { return true }
      state.waiting.append(request)
      return false
    }
    if isTooMany {
      fail(RTCError.network.error("Janus does not answer: \(Self.mostWaiting) requests wait"))
    } else {
      postNext()
    }
  }

  private func postNext() {
    let next = state.withLock { state -> JanusRequest? in
      guard !state.isPosting, state.receive != nil, !state.waiting.isEmpty else { return nil }
      state.isPosting = true
      return state.waiting.removeFirst()
    }
    guard let next else { return }
    let path = [next.session, next.handle].compactMap { $0 }.map { "/\($0)" }.joined()
    guard var request = request("POST", path, answer: settings.timeout) else { return }
    request.headers = [("Content-Type", "application/json")]
    request.body = .bytes(next.json.bytes)
    let call = client.run(request) { [self] result in
      loop.run { [self] in
        state.withLock { state in
          state.isPosting = false
          state.post = nil
        }
        take(result)
        postNext()
      }
    }
    state.withLock { state in
      guard state.isPosting else { return }
      state.post = call
    }
  }

  /// Nil: the path does not become an address, and the link has failed.
  private func request(_ method: String, _ path: String, answer: Int) -> HTTPClient.Request? {
    let address: WebAddress
    do throws(NetError) { address = try settings.url.resolving(base + path) } catch {
      fail(JanusErrors.error(error))
      return nil
    }
    var request = HTTPClient.Request(method, address)
    request.limit = JanusMessage.mostBytes
    // The body holds secrets.
    request.staysAtOrigin = true
    request.timeouts = HTTPClient.Timeouts(connect: settings.timeout, answer: answer, whole: answer + 15_000)
    request.proxy = settings.proxy
    request.trust = settings.trust
    request.allowsPlainCredentials = settings.plain
    return request
  }

  private func take(_ result: Result<HTTPClient.Response, NetError>) {
    switch result {
    case .failure(let problem): fail(JanusErrors.error(problem))
    case .success(let response):
      // Janus reports its own errors with 200, and a message with any other status says more than that.
      if (200..<300).contains(response.status) || response.body.first == UInt8(ascii: "{") {
        report(.bytes(response.body))
      } else {
        fail(JanusErrors.error(status: response.status))
      }
    }
  }

  // MARK: Events

  func listen(to session: Int) { poll(session) }

  private func poll(_ session: Int) {
    guard state.withLock({ $0.receive != nil }) else { return }
    var query = "?maxev=\(Self.mostEvents)"
    if let secret = settings.apiSecret { query += "&apisecret=\(PercentEncoding.encode(secret))" }
    if let token = settings.token { query += "&token=\(PercentEncoding.encode(token))" }
    guard let request = request("GET", "/\(session)\(query)", answer: Self.pollMilliseconds) else { return }
    let began = Clock(.realtime).now
    let call = client.run(request) { [self] result in
      loop.run { [self] in
        state.withLock { $0.poll = nil }
        take(result)
        // Janus answers when something has happened, or after 30 s. What answers at once that nothing has is not asked without a pause.
        let isIdle = Clock(.realtime).now &- began < Self.pause && Self.isEmpty(result)
        guard isIdle else { return poll(session) }
        _ = loop.run(after: Self.pause) { [weak self] in self?.poll(session) }
      }
    }
    state.withLock { state in
      guard state.receive != nil else { return }
      state.poll = call
    }
  }

  /// An answer that is at most an empty list, or `keepalive`.
  private static func isEmpty(_ result: Result<HTTPClient.Response, NetError>) -> Bool {
    guard case .success(let response) = result else { return false }
    return response.body.count <= mostEmptyBytes
  }

  private func report(_ event: JanusLinkEvent) {
    state.withLock { $0.receive }?(event)
  }

  private func fail(_ error: DialogError) {
    let receive = state.withLock { state in
      state.waiting = []
      return state.receive.take()
    }
    // Not within a call to `send`.
    if let receive { loop.run { receive(.failed(error)) } }
  }
}
