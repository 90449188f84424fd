internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet

/// Plays or pushes a stream of a live network by one HTTP request with an offer as JSON: RTS of Alibaba Cloud, RTD of NetEase.
///
/// One session, number 0, offered by this side with all candidates. Nothing follows: no trickle, no ICE restart, no request at the end; the
/// session ends with its media (DTLS close_notify). The server's `trace_id`, which its support asks for, is reported as the event `extra`
/// `trace`.
///
/// Works on the network thread, where it reports; only a network thread that cannot be started is reported from within `begin`.
package final class RTSClient: Signalling {
  private static let session = SignalSessionID(0)

  private enum Phase {
    case idle, asking
    case posting(SignalExchange)
    case over
  }

  private struct State {
    var phase = Phase.idle
    var isRunning = false
    var report: (@Sendable (SignalEvent) -> Void)?
  }

  private let settings: RTSSettings
  private let client = HTTPClient()
  private let state = Locked(State())

  package init(_ settings: RTSSettings) { self.settings = settings }

  package var traits: SignalTraits { SignalTraits() }

  // MARK: Any thread

  package func begin(_ report: @escaping @Sendable (SignalEvent) -> Void) {
    let isFirst = state.withLock { state in
      guard case .idle = state.phase else { return false }
      (state.phase, state.report) = (.asking, report)
      return true
    }
    guard isFirst else { return }
    do throws(NetError) { try NetLoop.begin() } catch { return fail(SignalStatus.error(error)) }
    state.withLock { $0.isRunning = true }
    onLoop { $0.ask() }
  }

  package func describe(_ session: SignalSessionID, sdp: String) {
    if session == Self.session { onLoop { $0.post(sdp) } }
  }

  package func end(_ session: SignalSessionID) {
    if session == Self.session { onLoop { $0.giveUp() } }
  }

  package func end(_ done: @escaping @Sendable () -> Void) {
    let isRunning = state.withLock { state in
      if !state.isRunning { (state.phase, state.report) = (.over, nil) }
      return state.isRunning
    }
    guard isRunning else { return done() }
    onLoop { client in
      client.giveUp()
      done()
    }
  }

  private func onLoop(_ body: @escaping @Sendable (RTSClient) -> Void) {
    guard state.withLock({ $0.isRunning }) else { return }
    NetLoop.shared.run { [self] in body(self) }
  }

  /// The parameter with what the server knows this side by: aliyun's key stands in the query.
  private var key: String { settings.dialect == .netease ? "appKey" : "url" }

  // MARK: The network thread

  private func report(_ event: SignalEvent) {
    let report = state.withLock { $0.report }
    report?(event)
  }

  private func fail(_ error: DialogError) {
    let report = state.withLock { state in
      state.phase = .over
      return state.report.take()
    }
    report?(.closed(error))
  }

  private func giveUp() {
    let exchange = state.withLock { state -> SignalExchange? in
      defer { (state.phase, state.report) = (.over, nil) }
      if case .posting(let exchange) = state.phase { return exchange }
      return nil
    }
    exchange?.cancel()
  }

  private func ask() {
    let access: SignalAccess
    do throws(NodeProblem) { access = try settings.access() } catch {
      return fail(RTCError.failed.error("\(error)", reaction: .refuse))
    }
    do throws(DialogError) { try access.checkRoots() } catch { return fail(error) }
    report(.wantsOffer(Self.session, settings.media, servers: []))
  }

  private func post(_ sdp: String) {
    guard state.withLock({ if case .asking = $0.phase { true } else { false } }) else { return }
    do throws(NodeProblem) {
      let access = try settings.access()
      let fields = RTSFields.of(settings.dialect)
      var headers = [
        (name: "Content-Type", value: "application/json"), (name: "Accept", value: "application/json"),
      ]
      if fields.hasRequestID { headers.append((RTSFields.requestID, SecretText.random(bytes: 16))) }
      let ask = SignalExchange.Ask(
        method: "POST", address: access.url, headers: headers,
        body: fields.request(settings, sdp: sdp).bytes)
      let exchange = SignalExchange.begin(ask, access, client) { [self] in take($0) }
      state.withLock { $0.phase = .posting(exchange) }
    } catch {
      fail(RTCError.failed.error("\(error)", reaction: .refuse))
    }
  }

  private func take(_ result: Result<HTTPClient.Response, NetError>) {
    guard state.withLock({ if case .posting = $0.phase { true } else { false } }) else { return }
    do throws(DialogError) {
      switch result {
      case .success(let response):
        let answer = try read(response)
        state.withLock { $0.phase = .over }
        report(.answer(Self.session, sdp: answer.text))
      case .failure(let problem): throw SignalStatus.error(problem)
      }
    } catch {
      fail(error)
    }
  }

  /// Reads the reply. Its status may be 200 where its `code` says that it failed.
  private func read(_ response: HTTPClient.Response) throws(DialogError) -> SignalAnswer {
    let server = response.address.authority
    let json = try? JSONValue(parsing: response.body)
    if let trace = json?[RTSFields.trace]?.string {
      report(.event(.extra(name: "trace", payload: .object(["id": .string(ServerText.shown(trace))]))))
    }
    guard response.status == 200 else {
      throw SignalStatus.error(
        response.status, of: server, retryAfter: response["Retry-After"], key: key)
    }
    guard let json, json.members != nil else {
      let isPage = response.body.first { $0 > 0x20 } == UInt8(ascii: "<")
      throw RTCError.badAnswer.error(
        isPage
          ? "\(server) answered with a web page instead of JSON; check the URL, and that RTS is switched on"
          : "\(server) answered with something other than a JSON object; check the URL", code: 200)
    }
    if let code = json[RTSFields.code], !code.isNull, code.integer != RTSFields.success {
      throw refusal(code.integer, of: server)
    }
    guard let jsep = json[RTSFields.jsep], let sdp = jsep[RTSFields.sdp]?.string else {
      throw RTCError.badAnswer.error(
        "\(server) answered without \"\(RTSFields.jsep).\(RTSFields.sdp)\"; check \"dialect\"", code: 200)
    }
    if let type = jsep[RTSFields.type]?.string, type.lowercased() != "answer" {
      throw RTCError.badAnswer.error("\(server) answered with an offer instead of an answer", code: 200)
    }
    return try SignalAnswer(Array(sdp.utf8), of: server)
  }

  /// A `code` that is not that of success: those below 600 have the meaning of HTTP's.
  private func refusal(_ code: Int?, of server: String) -> DialogError {
    guard let code else {
      return RTCError.badAnswer.error("\(server) answered with a code that is no number; check \"dialect\"")
    }
    if (400..<600).contains(code) { return SignalStatus.error(code, of: server, retryAfter: nil, key: key) }
    return RTCError.signalRefused.error(
      "\(server) refused the stream (code \(code)); check the URL", code: code)
  }
}
