internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceRTCWire

/// A WHIP server for one publisher (RFC 9725), or a WHEP server for many viewers (draft-ietf-wish-whep), at a path of a port that
/// others may share; see `ListeningPort`.
///
/// Clients offer: each POST is reported as `offer` and waits, for the time of the settings at most, until `describe` or `refuse`. Their
/// candidates are reported as they come; those of this side have to be in its answer, because HTTP offers no way to send more. A restart
/// of ICE by the client is an `offer` for the known session. A client that goes without DELETE is noticed by its media only: then `end`
/// frees its place.
///
/// Pages of browsers are let in as `ServerAdmission` says. The bearer is compared in constant time, and asked for before anything else is
/// told. The address of a session has 128 random bits. Where it listens is reported as the event `extra` `listening` (`port`, `path`), who
/// was refused as `refused` (`count` since the last event; `code` and `text` of the latest), whatever the reason, at most once a second.
///
/// Works on the network thread, where it reports; only a network thread that cannot be started is reported from within `begin`.
package final class ResourceServer: Signalling {
  /// Bytes of a PATCH: that of a browser has fewer than 2,000.
  private static let mostFragment = 65_536

  private struct State {
    var isRunning = false
    var report: (@Sendable (SignalEvent) -> Void)?
    var hasBegun = false
    var isOver = false
    var hasListened = false
    var place: ListeningPort?
    var table: ResourceTable
    /// Requests that have waited for this side so far.
    var requests = 0
    var refusals = RefusalCount()
  }

  private let settings: ResourceServerSettings
  private let state: Locked<State>

  package init(_ settings: ResourceServerSettings) {
    self.settings = settings
    state = Locked(State(table: ResourceTable(settings)))
  }

  package var traits: SignalTraits { SignalTraits(isServer: true) }

  /// The port it listens on; 0: it does not. Any thread.
  package var port: Int { state.withLock { $0.place }?.port ?? 0 }

  /// This server, or one before it, has listened: what `ResourceServerSettings.hasHadPort` is for the next. Any thread.
  package var hasHadPort: Bool { settings.hasHadPort || state.withLock { $0.hasListened } }

  // MARK: Any thread

  package func begin(_ report: @escaping @Sendable (SignalEvent) -> Void) {
    let isFirst = state.withLock { state in
      guard !state.hasBegun, !state.isOver else { return false }
      (state.hasBegun, state.report) = (true, report)
      return true
    }
    guard isFirst else { return }
    do throws(NetError) { try NetLoop.begin() } catch { return fail(RTCError.network.error(error.text)) }
    state.withLock { $0.isRunning = true }
    onLoop { $0.join() }
  }

  package func describe(_ session: SignalSessionID, sdp: String) { onLoop { $0.answer(session, sdp) } }

  /// Refuses the offer that waits in a session: the client gets a status and the text, which may hold no secret. An ICE restart that is
  /// refused leaves the session as it was.
  package func refuse(_ session: SignalSessionID, _ error: RTCError, _ text: String) {
    onLoop { server in
      guard let resource = server.state.withLock({ $0.table[session] }) else { return }
      let pending = server.state.withLock { $0.table.takePending(resource.id) }
      if !resource.isOpen { _ = server.state.withLock { $0.table.remove(resource.id) } }
      pending?.refuse(ResourceResponse.status(of: error), text)
    }
  }

  package func end(_ session: SignalSessionID) {
    onLoop { server in
      let resource = server.state.withLock { state in
        state.table[session].flatMap { state.table.remove($0.id) }
      }
      resource?.pending?.end(503, "the session has ended")
    }
  }

  package func end(_ done: @escaping @Sendable () -> Void) {
    let isRunning = state.withLock { state in
      if !state.isRunning { (state.isOver, state.report) = (true, nil) }
      return state.isRunning
    }
    guard isRunning else { return done() }
    onLoop { server in
      server.close()
      done()
    }
  }

  private func onLoop(_ body: @escaping @Sendable (ResourceServer) -> Void) {
    guard state.withLock({ $0.isRunning }) else { return }
    NetLoop.shared.run { [self] in body(self) }
  }

  // MARK: Listening

  private func report(_ event: SignalEvent) {
    let report = state.withLock { $0.report }
    report?(event)
  }

  private func join() {
    guard !state.withLock({ $0.isOver }) else { return }
    if let problem = settings.problem {
      return fail(RTCError.failed.error("\(problem)", reaction: .refuse))
    }
    ListeningPort.join(self, settings) { [self] result in
      switch result {
      case .success(let place): didJoin(place)
      case .failure(let error): fail(error)
      }
    }
  }

  private func didJoin(_ place: ListeningPort) {
    let isOver = state.withLock { state in
      if !state.isOver { (state.place, state.hasListened) = (place, true) }
      return state.isOver
    }
    if isOver { return place.leave(settings.path) }
    let payload = JSONValue.object(["port": .integer(place.port), "path": .string(settings.path)])
    report(.event(.extra(name: "listening", payload: payload)))
  }

  private func fail(_ error: DialogError) {
    let report = state.withLock { state in
      state.isOver = true
      return state.report.take()
    }
    report?(.closed(error))
  }

  private func close() {
    let (place, resources) = state.withLock { state in
      (state.isOver, state.report) = (true, nil)
      return (state.place.take(), state.table.removeAll())
    }
    for resource in resources { resource.pending?.end(503, "the server has ended") }
    place?.leave(settings.path)
  }

  /// Clients were refused by the rules of the port, which this server reports for all of them.
  func report(_ refusals: ServerAdmission.Refusals) {
    reportRefused(
      state.withLock {
        $0.refusals.add(
          refusals.count, code: refusals.latest.status ?? 0, text: "\(refusals.peer): \(refusals.latest)")
      })
  }

  /// A client was refused by this server, or found nothing at its path of the port, which this server reports for all of them.
  func noteRefused(by peer: String, _ status: Int, _ text: String) {
    let line = text.prefix { $0 != "\n" }
    reportRefused(state.withLock { $0.refusals.add(1, code: status, text: "\(peer): \(line)") })
  }

  private func reportRefused(_ payload: JSONValue?) {
    guard let payload else { return }
    report(.event(.extra(name: "refused", payload: payload)))
    _ = NetLoop.shared.run(after: Nanoseconds.milliseconds(RefusalCount.interval)) { [weak self] in
      guard let self else { return }
      reportRefused(state.withLock { $0.refusals.next() })
    }
  }

  // MARK: Requests

  /// Makes the responses to a request, and notes those that refuse it.
  private func response(to request: HTTPServer.Request) -> ResourceResponse {
    let peer = request.peer
    return ResourceResponse(origin: request[header: "Origin"]) { [weak self] status, text in
      self?.noteRefused(by: peer, status, text)
    }
  }

  /// Decides about a request.
  /// - Parameter id: that of a session; nil: the request is for the endpoint.
  func decide(_ request: HTTPServer.Request, _ id: String?) -> HTTPServer.Decision {
    let response = response(to: request)
    let methods = id == nil ? ResourceResponse.endpointMethods : ResourceResponse.sessionMethods
    // A preflight carries no credentials (Fetch section 4.8).
    if request.method == "OPTIONS" { return .answer(response.options(methods, isEndpoint: id == nil)) }
    guard isAdmitted(request) else { return refuseKey(response) }
    if let id, state.withLock({ $0.table[id] }) == nil {
      // That a client ends a session whose connection has ended already is the usual end, and no refusal.
      let quiet = request.method == "DELETE" ? ResourceResponse(origin: response.origin) : response
      return .answer(quiet.text(404, "there is no such session; it has ended, or never existed\n"))
    }
    let type = ResourceResponse.type(of: request)
    switch (request.method, id) {
    case ("POST", nil):
      guard type == SignalAnswer.mediaType else {
        return .answer(
          response.text(
            415, "an offer must be \(SignalAnswer.mediaType)\n",
            [(name: "Accept-Post", value: SignalAnswer.mediaType)]))
      }
      return .receive(limit: SDPLimits.bytes) { [self] in create($0, $1) }
    case ("PATCH", let id?):
      guard type == TrickleFragment.mediaType else {
        return .answer(
          response.text(
            415, "candidates must be \(TrickleFragment.mediaType)\n",
            [(name: "Accept-Patch", value: TrickleFragment.mediaType)]))
      }
      return .receive(limit: Self.mostFragment) { [self] in patch(id, $0, $1) }
    case ("DELETE", let id?):
      delete(id)
      return .answer(response.content(200))
    default: return .answer(response.notAllowed(methods))
    }
  }

  private func isAdmitted(_ request: HTTPServer.Request) -> Bool {
    guard let bearer = settings.bearer else { return true }
    guard let header = request[header: "Authorization"], header.lowercased().hasPrefix("bearer ") else {
      return false
    }
    let offered = header.utf8.dropFirst("bearer ".utf8.count).drop { $0 == UInt8(ascii: " ") }
    return ServerAdmission.areEqual(Array(bearer.utf8), Array(offered))
  }

  private func refuseKey(_ response: ResourceResponse) -> HTTPServer.Decision {
    let text = "missing or wrong bearer; send it as \"Authorization: Bearer\""
    guard response.origin != nil else { return .refuse(status: 401, text) }
    // A page can only read the status of a response that names its origin.
    return .answer(response.text(401, text + "\n", [(name: "WWW-Authenticate", value: "Bearer")]))
  }

  /// A request that waits for this side from now on.
  private func pending(
    _ id: String, _ reply: HTTPReply, _ response: ResourceResponse, _ offer: SessionDescription
  ) -> ResourceTable.Pending {
    let number = state.withLock { state in
      state.requests += 1
      return state.requests
    }
    let timer = NetLoop.shared.run(after: Nanoseconds.milliseconds(Int64(settings.timeout))) { [weak self] in
      self?.expire(id, number)
    }
    return ResourceTable.Pending(
      number: number, reply: reply, response: response, offer: offer, timer: timer)
  }

  // MARK: Offers

  private func create(_ request: HTTPServer.Request, _ reply: HTTPReply) {
    let response = response(to: request)
    let offer: SessionDescription
    do throws(SDPProblem) { offer = try SessionDescription(parsing: request.body) } catch {
      return reply.send(response.text(400, "the offer cannot be used: \(error)\n"))
    }
    guard offer.bundleCredentials != nil else {
      return reply.send(
        response.text(400, "the offer cannot be used: it has no ICE user fragment and password\n"))
    }
    let media = offer.mediaInCommon(with: settings.media)
    guard media.audio != .inactive || media.video != .inactive || media.hasData else {
      return reply.send(response.text(422, "the offer has nothing in common with this endpoint: \(wanted)\n"))
    }
    let id = SecretText.random(bytes: 16)
    let pending = pending(id, reply, response, offer)
    let (room, resource) = state.withLock { state -> (ResourceTable.Room?, ResourceTable.Resource?) in
      guard !state.isOver else { return (nil, nil) }
      guard case .free = state.table.room else { return (state.table.room, nil) }
      return (.free, state.table.add(id, media, settings.client, pending))
    }
    guard let resource else { return pending.refuse(room) }
    reply.whenOver { [weak self] problem in
      // The client has gone before it knew its session.
      if problem != nil { self?.delete(id) }
    }
    report(
      .offer(
        resource.session, sdp: String(decoding: request.body, as: UTF8.self), media, peer: resource.peer))
  }

  private var wanted: String {
    settings.role == .ingest
      ? "a publisher sends (a=sendonly) what this endpoint receives"
      : "a viewer receives (a=recvonly) what this endpoint sends"
  }

  /// This side describes itself.
  private func answer(_ session: SignalSessionID, _ sdp: String) {
    guard let before = state.withLock({ $0.table[session] }),
      let pending = state.withLock({ $0.table.takePending(before.id) })
    else { return }
    guard let local = try? SessionDescription(parsing: sdp), local.bundleCredentials != nil else {
      if !before.isOpen { _ = state.withLock { $0.table.remove(before.id) } }
      pending.refuse(503, "this side has no description")
      return report(
        .sessionFailed(session, RTCError.failed.error("the answer of this side is no description with ICE")))
    }
    guard let resource = state.withLock({ $0.table.open(before.id, pending.offer) }) else { return }
    let headers = [(name: "ETag", value: resource.etag)]
    if before.isOpen {
      let tagged = local.bundle?.mids.first.flatMap { local.medium($0) } ?? local.media.first
      var fragment = TrickleFragment(
        of: local, candidates: tagged?.candidates ?? [],
        hasEndOfCandidates: tagged?.hasEndOfCandidates ?? false)
      fragment.isICELite = local.isICELite
      pending.send(pending.response.content(200, headers, type: TrickleFragment.mediaType, fragment.text))
    } else {
      pending.send(
        pending.response.content(201, headers + place(of: resource), type: SignalAnswer.mediaType, sdp))
    }
  }

  private func place(of resource: ResourceTable.Resource) -> [(name: String, value: String)] {
    var headers = [
      (name: "Location", value: settings.path(of: resource.id)),
      (name: "Accept-Patch", value: TrickleFragment.mediaType),
    ]
    for link in ICEServerLinks.write(settings.servers) { headers.append((name: "Link", value: link)) }
    return headers
  }

  /// This side has not answered in time.
  private func expire(_ id: String, _ number: Int) {
    guard let pending = state.withLock({ $0.table.takePending(id, number: number) }) else { return }
    pending.refuse(503, "the session was not answered within \(settings.timeout) ms")
    guard let resource = state.withLock({ $0.table[id] }), !resource.isOpen else { return }
    _ = state.withLock { $0.table.remove(id) }
    let text = "the offer of \(resource.peer) was not answered within \(settings.timeout) ms"
    report(.sessionFailed(resource.session, RTCError.signalTimeout.error(text)))
  }

  // MARK: Sessions

  private func delete(_ id: String) {
    guard let resource = state.withLock({ $0.table.remove(id) }) else { return }
    resource.pending?.end(404, "the session has ended")
    report(.sessionEnded(resource.session))
  }

  /// Candidates of a client, or an ICE restart. Source of the conditions: RFC 9725 section 4.3.
  private func patch(_ id: String, _ request: HTTPServer.Request, _ reply: HTTPReply) {
    let response = response(to: request)
    guard let resource = state.withLock({ $0.table[id] }) else {
      return reply.send(response.text(404, "the session has ended\n"))
    }
    guard let condition = request[header: "If-Match"] else {
      return reply.send(response.text(428, "the request needs If-Match, with the ETag or with *\n"))
    }
    let tags = condition.split(separator: ",").map { $0.filter { $0 != " " } }
    // RFC 9725 section 4.3.3 shows the asterisk in quotes, RFC 9110 section 13.1.1 wants it without.
    guard tags.contains("*") || tags.contains("\"*\"") || tags.contains(resource.etag) else {
      return reply.send(response.text(412, "the ETag is that of an ICE session that has ended\n"))
    }
    let fragment: TrickleFragment
    do throws(SDPProblem) { fragment = try TrickleFragment(parsing: request.body) } catch {
      return reply.send(response.text(400, "the fragment cannot be used: \(error)\n"))
    }
    let section = fragment.sections.first
    let credentials = section.flatMap { fragment.credentials(of: $0) } ?? fragment.credentials
    if let credentials, credentials != resource.remote.bundleCredentials {
      return restart(resource, credentials, fragment, reply, response)
    }
    let candidates = fragment.sections.flatMap { $0.candidates }
    let admitted = state.withLock { $0.table.admit(candidates.count, to: id) }
    for candidate in candidates.prefix(admitted) { report(.candidate(resource.session, candidate.text)) }
    if fragment.hasEndOfCandidates || fragment.sections.contains(where: { $0.hasEndOfCandidates }) {
      report(.candidate(resource.session, nil))
    }
    reply.send(response.content(204))
  }

  private func restart(
    _ resource: ResourceTable.Resource, _ credentials: ICECredentials, _ fragment: TrickleFragment,
    _ reply: HTTPReply, _ response: ResourceResponse
  ) {
    guard resource.isOpen, resource.pending == nil else {
      return reply.send(response.text(409, "another restart of this session is not answered yet\n"))
    }
    let section = fragment.sections.first
    let offer = resource.remote.restartingICE(
      credentials, candidates: section?.candidates ?? [],
      hasAllCandidates: fragment.hasEndOfCandidates || section?.hasEndOfCandidates ?? false)
    let pending = pending(resource.id, reply, response, offer)
    state.withLock { $0.table.wait(resource.id, for: pending) }
    report(.offer(resource.session, sdp: offer.text, resource.media, peer: resource.peer))
  }
}

extension ResourceTable.Pending {
  func send(_ answer: HTTPServer.Response) {
    timer.cancel()
    reply.send(answer)
  }

  func refuse(_ status: Int, _ text: String) { send(response.text(status, text + "\n")) }

  /// The session is over for another reason than a refusal, and the client may have gone: not noted.
  func end(_ status: Int, _ text: String) {
    var response = response
    response.note = nil
    send(response.text(status, text + "\n"))
  }

  /// There is no room for it; nil: the server ends.
  func refuse(_ room: ResourceTable.Room?) {
    switch room {
    case .occupied: refuse(409, "there is a publisher at this path already; end that session first")
    case .full: refuse(503, "there are as many viewers as this server takes; try again later")
    case .free, nil: refuse(503, "the server has ended")
    }
  }
}
