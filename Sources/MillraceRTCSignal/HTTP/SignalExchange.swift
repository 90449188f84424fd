internal import MillraceCore
internal import MillraceNet
internal import MillraceRTCWire

/// One request of a form of signalling, over all its redirects. On the network thread; `cancel` may be called from any.
///
/// 307 and 308 are followed, at most five times (RFC 9725 section 4.5 has 307 for spreading load). Other redirects would turn a POST into a
/// GET, and are errors. Credentials stay with their host; see `SignalAccess`.
final class SignalExchange: Sendable {
  /// What is asked.
  struct Ask: Sendable {
    var method: String
    var address: WebAddress
    /// Beside those of `SignalAccess`.
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []
    /// Milliseconds for everything; nil: those of `SignalAccess`.
    var timeout: Int?
  }

  /// The most redirects that are followed.
  static let mostRedirects = 5

  private static let clock = Clock(.realtime)

  private struct State {
    var call: HTTPClient.Call?
    var isCancelled = false
    var visited: [WebAddress] = []
  }

  private let ask: Ask
  private let access: SignalAccess
  private let client: HTTPClient
  private let deadline: Nanoseconds
  private let done: @Sendable (Result<HTTPClient.Response, NetError>) -> Void
  private let state = Locked(State())

  private init(
    _ ask: Ask, _ access: SignalAccess, _ client: HTTPClient,
    _ done: @escaping @Sendable (Result<HTTPClient.Response, NetError>) -> Void
  ) {
    self.ask = ask
    self.access = access
    self.client = client
    self.done = done
    deadline = Self.clock.now + Nanoseconds.milliseconds(Int64(ask.timeout ?? access.timeout))
  }

  /// Sends the request. On the network thread, which must run.
  /// - Parameter done: called once, on that thread, after this call has returned.
  static func begin(
    _ ask: Ask, _ access: SignalAccess, _ client: HTTPClient,
    _ done: @escaping @Sendable (Result<HTTPClient.Response, NetError>) -> Void
  ) -> SignalExchange {
    let exchange = SignalExchange(ask, access, client, done)
    exchange.send(to: ask.address)
    return exchange
  }

  /// Ends the request: it fails with `cancelled`, unless it is over.
  func cancel() {
    let call = state.withLock { state in
      state.isCancelled = true
      return state.call.take()
    }
    call?.cancel()
  }

  private func send(to address: WebAddress) {
    let left = Int(max(1, (deadline - Self.clock.now) / 1_000_000))
    var request = HTTPClient.Request(ask.method, address)
    request.headers = ask.headers + access.credentials(for: address)
    request.body = .bytes(ask.body)
    request.limit = SDPLimits.bytes
    request.redirects = 0
    request.timeouts = HTTPClient.Timeouts(connect: left, answer: left, whole: left)
    request.proxy = access.proxy
    request.trust = access.trust
    // `SignalAccess` has its own rule, which is stricter.
    request.allowsPlainCredentials = true
    let call = client.run(request) { [self] result in take(result, from: address) }
    let isCancelled = state.withLock { state in
      state.visited.append(address)
      state.call = state.isCancelled ? nil : call
      return state.isCancelled
    }
    if isCancelled { call.cancel() }
  }

  private func take(_ result: Result<HTTPClient.Response, NetError>, from address: WebAddress) {
    let isCancelled = state.withLock { $0.isCancelled }
    guard !isCancelled, case .success(let response) = result, (301...308).contains(response.status),
      response.status != 304
    else { return done(result) }
    do throws(NetError) {
      send(to: try target(of: response, from: address))
    } catch {
      done(.failure(error))
    }
  }

  private func target(
    of response: HTTPClient.Response, from address: WebAddress
  ) throws(NetError) -> WebAddress {
    func refused(_ why: String) -> NetError {
      NetError(.refused, status: response.status, "\(address.authority) redirects \(why)")
    }
    guard response.status == 307 || response.status == 308 else {
      throw refused(
        "with status \(response.status), which would lose the description; the server must use 307 or 308")
    }
    guard let target = response.location else { throw refused("to no valid address; check the URL") }
    guard access.mayGo(from: address, to: target) else {
      throw refused(
        "to \(target.scheme.rawValue): at \(target.authority), in plain text; use an https: address"
      )
    }
    let visited = state.withLock { $0.visited }
    guard !visited.contains(target) else { throw refused("in a loop; check the URL") }
    guard visited.count <= Self.mostRedirects else {
      throw refused("more than \(Self.mostRedirects) times; check the URL")
    }
    return target
  }
}
