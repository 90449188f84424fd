internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceRTCWire

/// Publishes by WHIP (RFC 9725), or plays by WHEP (draft-ietf-wish-whep), as a client: one session, number 0, offered by this side.
///
/// The offer carries every candidate that is known when it is made. What follows is sent by PATCH where the server has said that it takes
/// it: with an `ETag` or `Accept-Patch`. A server that then answers 405 or 501 is not asked again. A missing `Location` is tolerated: such
/// a session can neither be patched nor deleted, and ends with its media. One that must not be used, because it leads from https: to http:,
/// is reported as the event `extra` `location` and treated as missing.
///
/// Works on the network thread, where it reports; only a network thread that cannot be started is reported from within `begin`. Its
/// connections are its own. Refusals are `closed` with an error whose reaction says whether another attempt makes sense; a failed ICE
/// restart is `sessionFailed`.
package final class WHIPClient: Signalling {
  /// The longest time that the end may take, in milliseconds.
  static let endMilliseconds = 1_500
  /// The most candidates that wait to be sent.
  static let mostWaiting = 256

  private static let session = SignalSessionID(0)

  private enum Phase {
    case idle
    /// `wantsOffer` was reported.
    case asking
    case posting(SignalExchange)
    case open
    /// It has failed or is to end.
    case over
  }

  private struct State {
    var phase = Phase.idle
    /// The network thread runs. Without it nothing is to be released.
    var isRunning = false
    var report: (@Sendable (SignalEvent) -> Void)?
    var resource: WHIPResource?
    var servers: [SignalServer]
    /// What this side has offered last, and what was answered.
    var local: SessionDescription?
    var answer: SignalAnswer?
    var waiting = WaitingCandidates()
    /// An offer that restarts ICE and was not sent.
    var restart: SessionDescription?
    /// The condition that every ICE session meets, as RFC 9725 section 4.3.3 shows it; `*` for a server that keeps to RFC 9110
    /// section 13.1.1, which reads the quoted asterisk as an entity tag and answers 412.
    var anyTag = "\"*\""
    var patch: SignalExchange?
    var deletion: SignalExchange?
    /// Called when everything is released.
    var dones: [@Sendable () -> Void] = []
    var timer: NetTimer?
  }

  private let settings: WHIPSettings
  private let access: SignalAccess
  private let client: HTTPClient
  private let state: Locked<State>

  package init(_ settings: WHIPSettings) {
    self.settings = settings
    access = settings.access
    // A PATCH on a kept connection fails when the server has just closed it.
    var limits = HTTPClient.Limits()
    limits.idle = 1
    client = HTTPClient(limits: limits)
    state = Locked(State(servers: settings.servers))
  }

  /// The servers of the settings until the server has named its own: for the next attempt.
  package var servers: [SignalServer] { state.withLock { $0.servers } }

  package var traits: SignalTraits {
    state.withLock { state in
      SignalTraits(
        isTrickle: state.resource?.takesCandidates ?? false,
        canRestart: state.resource?.takesRestarts ?? false)
    }
  }

  // MARK: Any thread

  package func begin(_ report: @escaping @Sendable (SignalEvent) -> Void) {
    let isFirst = state.withLock { state in
      guard case .idle = state.phase else { return false }
      state.phase = .asking
      state.report = report
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

  package func add(_ candidate: String?, to session: SignalSessionID) {
    if session == Self.session { onLoop { $0.take(candidate) } }
  }

  package func restart(_ session: SignalSessionID, sdp: String) {
    if session == Self.session { onLoop { $0.takeRestart(sdp) } }
  }

  package func end(_ session: SignalSessionID) {
    // The only session: nothing of it is reported any more.
    if session == Self.session { onLoop { $0.giveUp() } }
  }

  package func end(_ done: @escaping @Sendable () -> Void) {
    let isRunning = state.withLock { state in
      if !state.isRunning { (state.phase, state.report) = (.over, nil) }
      return state.isRunning
    }
    if isRunning { onLoop { $0.finish(done) } } else { done() }
  }

  private func onLoop(_ body: @escaping @Sendable (WHIPClient) -> Void) {
    guard state.withLock({ $0.isRunning }) else { return }
    NetLoop.shared.run { [self] in body(self) }
  }

  // MARK: Offer

  private func report(_ event: SignalEvent) {
    let report = state.withLock { $0.report }
    report?(event)
  }

  private func ask() {
    if let problem = settings.problem {
      return fail(RTCError.failed.error("\(problem)", reaction: .refuse))
    }
    do throws(DialogError) { try access.checkRoots() } catch { return fail(error) }
    report(.wantsOffer(Self.session, settings.media, servers: servers))
  }

  private func post(_ sdp: String) {
    guard state.withLock({ if case .asking = $0.phase { true } else { false } }) else { return }
    do throws(SDPProblem) {
      let local = try SessionDescription(parsing: sdp)
      let ask = SignalExchange.Ask(
        method: "POST", address: settings.url,
        headers: [("Content-Type", SignalAnswer.mediaType), ("Accept", SignalAnswer.mediaType)],
        body: Array(sdp.utf8))
      let exchange = SignalExchange.begin(ask, access, client) { [self] in takeAnswer($0) }
      state.withLock { state in
        state.local = local
        state.phase = .posting(exchange)
      }
    } catch {
      fail(RTCError.failed.error("the offer of this side cannot be sent: \(error)", reaction: .refuse))
    }
  }

  /// The POST was answered.
  private func takeAnswer(_ result: Result<HTTPClient.Response, NetError>) {
    let isWanted = state.withLock { state in
      guard case .posting = state.phase else { return false }
      state.phase = .open
      return state.report != nil
    }
    if case .success(let response) = result { note(response) }
    guard isWanted else { return release() }
    do throws(DialogError) {
      let response: HTTPClient.Response
      switch result {
      case .success(let present): response = present
      case .failure(let problem): throw SignalStatus.error(problem)
      }
      try check(response)
      let answer = try SignalAnswer(response)
      state.withLock { $0.answer = answer }
      report(.answer(Self.session, sdp: answer.text))
      flush()
    } catch {
      fail(error)
    }
  }

  /// What the response says beside the description. A refusal may have made a resource too: WHEP's counter-offer does.
  private func note(_ response: HTTPClient.Response) {
    guard (200...299).contains(response.status) || response.status == 406 else { return }
    let resource = WHIPResource(response, access)
    let servers = ICEServerLinks.read(response.values(of: "Link"))
    state.withLock { state in
      state.resource = resource
      if !servers.isEmpty { state.servers = servers }
    }
    guard resource == nil, response["Location"] != nil else { return }
    let text =
      "the server's Location leads to no address that may be used; the session cannot be deleted at its end"
    report(.event(.extra(name: "location", payload: .object(["text": .string(text)]))))
  }

  private func check(_ response: HTTPClient.Response) throws(DialogError) {
    // 200 is what some servers say although they have made a resource.
    if response.status == 201 || response.status == 200 { return }
    let server = response.address.authority
    if settings.isPlayback, response.status == 406 {
      throw RTCError.badOffer.error(
        """
        \(server) does not take the offer and wants to offer itself (status 406), which is not supported; \
        check directions and codecs, or use a server that answers offers
        """, code: 406)
    }
    guard !(200...299).contains(response.status) else {
      throw RTCError.badAnswer.error(
        "\(server) answered with status \(response.status) instead of 201; check the URL",
        code: response.status)
    }
    throw SignalStatus.error(
      response.status, of: server, retryAfter: response["Retry-After"], key: key)
  }

  /// The parameter with the key that is sent.
  private var key: String? { access.bearer != nil ? "bearer" : access.headers.isEmpty ? nil : "headers" }

  // MARK: Candidates and restarts

  private func take(_ candidate: String?) {
    state.withLock { state in
      switch state.phase {
      case .open where state.resource?.takesCandidates != true: return
      case .idle, .over: return
      case .asking, .posting, .open: state.waiting.add(candidate)
      }
    }
    flush()
  }

  private func takeRestart(_ sdp: String) {
    guard state.withLock({ if case .open = $0.phase { true } else { false } }) else { return }
    guard traits.canRestart else {
      return failRestart(
        RTCError.signalRefused.error("the server takes no ICE restart", reaction: .reconnect))
    }
    do throws(SDPProblem) {
      let offer = try SessionDescription(parsing: sdp)
      state.withLock { state in
        state.restart = offer
        // They belong to the credentials before.
        state.waiting = WaitingCandidates()
      }
      flush()
    } catch {
      failRestart(RTCError.failed.error("the offer of this side cannot be sent: \(error)"))
    }
  }

  private func failRestart(_ error: DialogError) { report(.sessionFailed(Self.session, error)) }

  /// Sends what waits: one PATCH at a time, a restart first.
  private func flush() {
    let next = state.withLock { state -> (ask: SignalExchange.Ask, restart: SessionDescription?)? in
      guard case .open = state.phase, state.patch == nil, let resource = state.resource,
        let local = state.local
      else { return nil }
      if let offer = state.restart.take() {
        return (Self.patch(resource.address, [("If-Match", state.anyTag)], .restart(offer)), offer)
      }
      guard resource.takesCandidates, let waiting = state.waiting.take() else { return nil }
      let fragment = TrickleFragment(
        of: local, candidates: waiting.candidates, hasEndOfCandidates: waiting.isComplete)
      return (Self.patch(resource.address, resource.condition, fragment), nil)
    }
    guard let next else { return }
    let exchange = SignalExchange.begin(next.ask, access, client) { [self] result in
      state.withLock { $0.patch = nil }
      if let offer = next.restart { takeRestart(result, offer) } else { takePatch(result) }
      flush()
    }
    state.withLock { $0.patch = exchange }
  }

  private static func patch(
    _ address: WebAddress, _ condition: [(name: String, value: String)], _ fragment: TrickleFragment
  ) -> SignalExchange.Ask {
    var headers = condition
    for name in ["Content-Type", "Accept"] { headers.append((name, TrickleFragment.mediaType)) }
    return SignalExchange.Ask(
      method: "PATCH", address: address, headers: headers, body: Array(fragment.text.utf8))
  }

  /// A PATCH with candidates was answered. A lost one costs candidate pairs, not the connection.
  private func takePatch(_ result: Result<HTTPClient.Response, NetError>) {
    guard case .success(let response) = result else { return }
    switch response.status {
    case 404, 410: fail(Self.gone(response))
    case 405, 501, 415:
      state.withLock { state in
        state.resource?.takesCandidates = false
        if response.status != 415 { state.resource?.takesRestarts = false }
        state.waiting = WaitingCandidates()
      }
    default: break
    }
  }

  private static func gone(_ response: HTTPClient.Response) -> DialogError {
    RTCError.ended.error(
      "\(response.address.authority) has ended the session (status \(response.status))",
      code: response.status,
      reaction: .reconnect)
  }

  /// A PATCH with a restart was answered.
  private func takeRestart(_ result: Result<HTTPClient.Response, NetError>, _ offer: SessionDescription) {
    let response: HTTPClient.Response
    switch result {
    case .success(let present): response = present
    case .failure(let problem): return failRestart(SignalStatus.error(problem))
    }
    let server = response.address.authority
    switch response.status {
    case 200: break
    case 404, 410: return fail(Self.gone(response))
    case 412 where repeatRestart(offer): return
    default:
      if response.status == 405 || response.status == 501 {
        state.withLock { $0.resource?.takesRestarts = false }
      }
      return failRestart(
        RTCError.signalRefused.error(
          "\(server) refused the ICE restart (status \(response.status))", code: response.status,
          reaction: .reconnect))
    }
    let fragment = try? TrickleFragment(parsing: response.body)
    let answer = state.withLock { state -> SignalAnswer? in
      guard let fragment, let answer = state.answer?.restarted(by: fragment) else { return nil }
      (state.answer, state.local) = (answer, offer)
      if let etag = response["ETag"], !etag.isEmpty { state.resource?.etag = etag }
      return answer
    }
    guard let answer else {
      return failRestart(
        RTCError.badAnswer.error(
          "\(server) answered the ICE restart without credentials", reaction: .reconnect))
    }
    report(.answer(Self.session, sdp: answer.text))
  }

  /// The server reads the quoted asterisk as an entity tag. Returns true when the restart, or a newer one, waits to be sent without them.
  private func repeatRestart(_ offer: SessionDescription) -> Bool {
    state.withLock { state in
      guard state.anyTag != "*", case .open = state.phase else { return false }
      state.anyTag = "*"
      if state.restart == nil { state.restart = offer }
      return true
    }
  }

  // MARK: End

  /// Reports the end and releases the resource.
  private func fail(_ error: DialogError) {
    let report = state.withLock { state in
      state.phase = .over
      return state.report.take()
    }
    guard let report else { return }
    report(.closed(error))
    release()
  }

  /// This side has given the session up.
  private func giveUp() {
    let isPosting = state.withLock { state in
      state.report = nil
      if case .posting = state.phase { return true }
      state.phase = .over
      return false
    }
    // A POST is waited for: its answer says what is to be deleted.
    if !isPosting { release() }
  }

  private func finish(_ done: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.dones.append(done)
      if state.timer == nil {
        state.timer = NetLoop.shared.run(after: Nanoseconds.milliseconds(Int64(Self.endMilliseconds))) {
          [self] in
          conclude()
        }
      }
    }
    giveUp()
  }

  /// Deletes the resource, if there is one. Behind it everything is released.
  private func release() {
    let (resource, patch, isDeleting) = state.withLock { state in
      state.phase = .over
      state.waiting = WaitingCandidates()
      state.restart = nil
      return (state.resource.take(), state.patch.take(), state.deletion != nil)
    }
    patch?.cancel()
    guard let resource else {
      if !isDeleting { conclude() }
      return
    }
    let ask = SignalExchange.Ask(
      method: "DELETE", address: resource.address, timeout: Self.endMilliseconds)
    let exchange = SignalExchange.begin(ask, access, client) { [self] _ in
      state.withLock { $0.deletion = nil }
      conclude()
    }
    state.withLock { $0.deletion = exchange }
  }

  /// Everything is released, or the time for it is up.
  private func conclude() {
    let (exchanges, dones) = state.withLock { state -> ([SignalExchange], [@Sendable () -> Void]) in
      // Nobody waits: it may take as long as its own limit allows.
      guard !state.dones.isEmpty else { return ([], []) }
      var exchanges = [state.deletion.take()].compactMap { $0 }
      if case .posting(let exchange) = state.phase { exchanges.append(exchange) }
      state.phase = .over
      state.timer.take()?.cancel()
      defer { state.dones = [] }
      return (exchanges, state.dones)
    }
    for exchange in exchanges { exchange.cancel() }
    for done in dones { done() }
  }
}
