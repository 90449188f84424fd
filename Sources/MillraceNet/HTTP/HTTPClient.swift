internal import NIOCore
internal import Synchronization

/// An HTTP/1.1 client with kept connections: for tokens, for polling a service every second, for long polls, for WHIP and WHEP.
///
/// ```swift
/// var request = HTTPClient.Request("POST", try WebAddress("https://service.example/token"))
/// request.body = .bytes(Array("{}".utf8))
/// request.accepts = "application/json"
/// let response = try await HTTPClient.shared.run(request)
/// ```
///
/// Not done: HTTP/2, cookies, compression, caching, pipelining.
///
/// After a response the connection stays open for the next request to the same host. A server may close it at any time; a request that
/// finds it closed is sent once more on a new connection when its method allows that (RFC 9110 section 9.2.2: GET, HEAD, PUT, DELETE,
/// OPTIONS) and fails with `lost` otherwise. Redirects are followed as far as the request allows: headers with credentials stay with the
/// origin they were given for, a body is sent again with 307 and 308, and no redirect leads from `https:` to `http:`, except between
/// servers on this machine.
///
/// A client works on one loop, where its callbacks run. It is cheap; what it keeps are its connections, which are closed with it.
public final class HTTPClient: Sendable {
  /// The client that most of a process may share: eight connections a host, on the network thread.
  public static let shared = HTTPClient()

  /// Bytes of the head of a response.
  static let largestHead = 65_536
  /// Bytes of a streamed request that may wait to be sent.
  static let uploadBacklog = 1 << 20

  private let limits: Limits
  private let assigned: NetLoop?
  /// Made by the first request.
  private let pool = Mutex<NIOLoopBoundBox<HTTPClientPool?>?>(nil)

  /// Creates a client without connections.
  /// - Parameters:
  ///   - loop: the loop it works on; nil: the network thread, which is started by the first request.
  ///   - limits: limits of its connections.
  public init(on loop: NetLoop? = nil, limits: Limits = Limits()) {
    assigned = loop
    self.limits = limits
  }

  deinit { close() }

  /// Closes connections that have no request, and the others after their request. Further requests use connections of their own.
  public func close() {
    guard let bound = pool.withLock({ $0.take() }) else { return }
    loop.execute { bound.value?.close() }
  }

  /// Connections without a request, of all hosts. For tests.
  func idleConnections() async -> Int {
    guard let bound = pool.withLock({ $0 }) else { return 0 }
    return await withCheckedContinuation { continuation in
      loop.execute { continuation.resume(returning: bound.value?.idleCount ?? 0) }
    }
  }

  private var loop: any EventLoop { (assigned ?? .shared).loop }

  // MARK: Requests

  /// Sends a request and returns the response with its whole body. Any thread. A task that is cancelled cancels the request.
  public func run(_ request: Request) async throws(NetError) -> Response {
    let held = Mutex<Call?>(nil)
    let isCancelled = Atomic<Bool>(false)
    let result: Result<Response, NetError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let call = run(request) { continuation.resume(returning: $0) }
        held.withLock { $0 = call }
        if isCancelled.load(ordering: .sequentiallyConsistent) { call.cancel() }
      }
    } onCancel: {
      isCancelled.store(true, ordering: .sequentiallyConsistent)
      held.withLock { $0 }?.cancel()
    }
    return try result.get()
  }

  /// Sends a request and calls `done` once, with the response and its whole body, on the client's thread, or at once on the caller's when that
  /// thread cannot be started.
  /// - Returns: a handle to cancel the request with; it need not be kept.
  @discardableResult
  public func run(_ request: Request, _ done: @escaping @Sendable (Result<Response, NetError>) -> Void)
    -> Call
  {
    let collector = Collector(request, done)
    let call = stream(request) { collector.take($0) }
    collector.hold(call)
    return call
  }

  /// Sends a request and passes the response on as it comes. Any thread.
  /// - Parameters:
  ///   - request: its `limit` is not applied: the receiver sees how much comes.
  ///   - receive: called on the client's thread, or at once on the caller's with `failed` when that thread cannot be started.
  /// - Returns: a handle to pause and to cancel the request with; it need not be kept.
  @discardableResult
  public func stream(_ request: Request, _ receive: @escaping @Sendable (Event) -> Void) -> Call {
    do throws(NetError) { try NetLoop.begin() } catch {
      receive(.failed(error))
      return Call(on: nil)
    }
    let loop = loop
    let box = pool.withLock { pool in
      let present = pool ?? .makeBoxSendingValue(nil, eventLoop: loop)
      pool = present
      return present
    }
    let handle = Call(on: loop)
    loop.execute { [limits] in
      let pool = box.value ?? HTTPClientPool(limits, on: loop)
      box.value = pool
      let call = HTTPClientCall(request, pool, on: loop) { event in
        switch event {
        case .end, .failed: handle.set(nil)
        case .head, .bytes: break
        }
        receive(event)
      }
      handle.set(call)
      call.begin()
    }
    return handle
  }
}

extension HTTPClient {
  /// A request in progress. Any thread.
  public final class Call: Sendable {
    private let core: (loop: any EventLoop, call: NIOLoopBoundBox<HTTPClientCall?>)?

    /// - Parameter loop: nil: there is none, because the request failed at once.
    init(on loop: (any EventLoop)?) {
      core = loop.map { ($0, .makeBoxSendingValue(nil, eventLoop: $0)) }
    }

    /// Ends the request: it fails with `cancelled`, unless it is over.
    public func cancel() { onLoop { $0.cancel() } }

    /// Stops reading a streamed response: the server has to wait. Unless this is called from within an event, a few bytes that were read
    /// already may still arrive. The time limit of the whole request still applies.
    public func pause() { onLoop { $0.setPaused(true) } }

    /// Continues reading.
    public func resume() { onLoop { $0.setPaused(false) } }

    /// On the loop.
    func set(_ call: HTTPClientCall?) { core?.call.value = call }

    private func onLoop(_ body: @escaping @Sendable (HTTPClientCall) -> Void) {
      guard let (loop, call) = core else { return }
      let run: @Sendable () -> Void = { if let call = call.value { body(call) } }
      // A request that was made a moment ago on this loop has not begun: then this is done behind it.
      if loop.inEventLoop, call.value != nil { run() } else { loop.execute(run) }
    }
  }
}

/// Collects the parts of a response that is wanted as a whole.
private final class Collector: Sendable {
  private struct State {
    var response: HTTPClient.Response?
    var call: HTTPClient.Call?
    /// It was given its result.
    var isOver = false
  }

  private let limit: Int
  /// A redirect does not change that.
  private let isHEAD: Bool
  private let done: @Sendable (Result<HTTPClient.Response, NetError>) -> Void
  private let state = Mutex(State())

  init(
    _ request: HTTPClient.Request, _ done: @escaping @Sendable (Result<HTTPClient.Response, NetError>) -> Void
  ) {
    limit = request.limit
    isHEAD = request.method == "HEAD"
    self.done = done
  }

  /// The call to cancel when the response is too large.
  func hold(_ call: HTTPClient.Call) {
    let isOver = state.withLock { state in
      if !state.isOver { state.call = call }
      return state.isOver
    }
    if isOver { call.cancel() }
  }

  func take(_ event: HTTPClient.Event) {
    let result = state.withLock { state -> Result<HTTPClient.Response, NetError>? in
      guard !state.isOver else { return nil }
      let result = take(event, &state.response)
      state.isOver = result != nil
      return result
    }
    guard let result else { return }
    // Behind a response that is too large, the rest is of no interest.
    state.withLock { $0.call.take() }?.cancel()
    done(result)
  }

  /// Returns the result when there is one.
  private func take(
    _ event: HTTPClient.Event, _ response: inout HTTPClient.Response?
  ) -> Result<HTTPClient.Response, NetError>? {
    switch event {
    case .head(let head):
      response = head
      // The length of a body that does not come, RFC 9110 section 8.6.
      if isHEAD || head.status == 304 { return nil }
      guard let length = head["Content-Length"].flatMap({ Int($0) }), length > limit else { return nil }
    case .bytes(let bytes):
      guard (response?.body.count ?? 0) + bytes.count > limit else {
        response?.body += bytes
        return nil
      }
    case .end: return response.map { .success($0) }
    case .failed(let problem): return .failure(problem)
    }
    let peer = response?.address.authority ?? ""
    return .failure(NetError(.tooLarge, "the response of \(peer) is larger than \(limit) bytes"))
  }
}
