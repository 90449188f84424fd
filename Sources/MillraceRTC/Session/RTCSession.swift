package import MillraceCore
package import MillraceRTCWire

/// A session of WebRTC with one peer: its descriptions, the transport, its media and its data channels. The caller has the
/// form of signalling.
///
/// On the offering side: `offer`, then `accept`; on the answering side: `answer`. Later, `offerRestart` or another `answer` restart ICE;
/// what was agreed on about media stays, and another offer of the peer may add some. On the thread of its loop. A session that has failed
/// or was closed releases its sockets by itself; `end` closes it properly, and is not called within a call of the observer.
@safe
package final class RTCSession: RTCLoopMember {
  /// Candidates of the peer that are taken beside its descriptions.
  private static let mostCandidates = 1_000
  /// How long nothing may come of a peer that is asked for a sign of life, and of one that is not: its reports come every 7.5 s at the
  /// latest (RFC 3550 section 6.2).
  private static let askedSilence: Nanoseconds = .milliseconds(3_000)
  private static let unaskedSilence: Nanoseconds = .milliseconds(16_000)
  /// Sections that this side has at most, however often the peer offers more: twice what a description has (`SDPLimits.media`).
  private static let mostSections = 128

  private let loop: RTCLoop
  private let settings: RTCSessionSettings
  private let identity: DTLSIdentity
  private weak var observer: (any RTCSessionObserver)?
  private var entry: RTCLoop.Entry?
  private let clock = Clock(.realtime)

  package private(set) var state = RTCSessionState.signalling
  private var transport: PeerTransport?
  private var role = NegotiatedSession.Role.offerer
  private var origin = SDPOrigin(sessionID: .random(in: 1...(.max >> 1)))
  /// The sections with the sources of this side.
  private var sections: [MediaSection] = []
  /// For each m-line, the place of the section that this side has described it with; nil: refused.
  private var places: [Int?] = []
  /// The places of sections that have a medium.
  private var usedSections: Set<Int> = []
  private var candidates: [ICECandidate] = []
  private var hasAllCandidates = false
  /// The offer of an ICE restart that the peer has not answered.
  private var restartOffer: SessionDescription?
  /// Candidates of the peer that came before its offer could be answered; nil: no more follow.
  private var earlyCandidates: [ICECandidate?] = []
  private var remoteCandidates = 0
  /// The peer's offer that is to be answered.
  private var pendingOffer: SessionDescription?
  package private(set) var local: SessionDescription?
  package private(set) var remote: SessionDescription?
  package private(set) var negotiated: NegotiatedSession?
  private var engines: SessionMedia?
  private var channels: DataChannels?
  /// When a description is sent with what was found.
  private var describeAt: Nanoseconds?
  private var connectBy: Nanoseconds?
  private var recoverBy: Nanoseconds?
  private var hasEnded = false
  /// What the transport has counted until it was closed.
  private var refusals = PeerRefusals()

  /// Creates a session that has not begun.
  package init(
    on loop: RTCLoop, _ settings: RTCSessionSettings, _ identity: DTLSIdentity,
    observer: any RTCSessionObserver
  ) {
    self.loop = loop
    self.settings = settings
    self.identity = identity
    self.observer = observer
  }

  // MARK: Descriptions

  /// Begins as the offering side. The offer is reported when addresses were searched.
  package func offer() {
    begin(.offerer, isControlling: !settings.ice.isLite)
  }

  /// Begins as the answering side. The answer is reported when addresses were searched. Also takes a later offer of the peer, which may
  /// restart ICE: its answer is reported at once.
  /// - Parameter added: sections beside those of the settings, for m-lines that a later offer adds. One whose mid another has is left out.
  /// - Returns: why a later offer is refused: it has no answer, and the session continues as if it had not come. Nil: it was not refused.
  ///   A first offer that cannot be used is a failure of the session.
  @discardableResult
  package func answer(
    _ offer: SessionDescription, adding added: [MediaSection] = []
  ) -> RTCSessionFailure? {
    if remote != nil { return answerAgain(offer, adding: added) }
    // Not beside an offer of this side.
    guard entry == nil, !isOver else { return nil }
    pendingOffer = offer
    begin(.answerer, isControlling: offer.isICELite && !settings.ice.isLite)
    sections += described(added)
    return nil
  }

  /// The sections among these for which there is none yet, with sources of this side.
  private func described(_ added: [MediaSection]) -> [MediaSection] {
    let mids = Set(sections.compactMap { $0.mid })
    let new = added.filter { section in section.mid.map { !mids.contains($0) } ?? true }
    let room = max(0, Self.mostSections - sections.count)
    return settings.described(Array(new.prefix(room)), beside: sections)
  }

  /// Takes the answer to the latest offer. One that answers none is ignored.
  package func accept(_ answer: SessionDescription) {
    guard !isOver else { return }
    if let offer = restartOffer { return acceptRestart(offer, answer) }
    guard let local, remote == nil, role == .offerer else { return }
    negotiate(local, answer)
  }

  /// Takes a candidate of the peer that its description did not have; nil: no more follow.
  package func add(_ candidate: ICECandidate?) {
    guard let transport, !isOver, remoteCandidates < Self.mostCandidates else { return }
    remoteCandidates += 1
    guard remote != nil, restartOffer == nil else { return earlyCandidates.append(candidate) }
    guard let candidate else { return transport.endCandidates() }
    add(candidate, to: transport)
  }

  private func begin(_ role: NegotiatedSession.Role, isControlling: Bool) {
    guard entry == nil, !isOver else { return }
    self.role = role
    entry = loop.add(self)
    sections = settings.describedSections()
    do throws(RTCProblem) {
      let ice = try NiceTransport(settings.ice, isControlling: isControlling, on: loop)
      let silence = settings.ice.hasConsent ? Self.askedSilence : Self.unaskedSilence
      let made = PeerTransport(ice, identity, observer: self, silence: silence) { [weak self] in self?.entry }
      transport = made
      let asksServers = settings.ice.stun != nil || !settings.ice.relays.isEmpty
      describeAt = clock.now + (settings.gathering ?? .milliseconds(asksServers ? 5_000 : 100))
      try made.gather()
    } catch {
      fail(.library(error))
    }
    entry?.wake()
  }

  /// Describes this side with what was found.
  private func describe() {
    guard describeAt != nil, let transport, local == nil, !isOver else { return }
    describeAt = nil
    do {
      let description = try description(try ownTransport(transport))
      local = description
      observer?.sessionDescribed(description)
      if let offer = pendingOffer { negotiate(description, offer) }
    } catch let problem as NegotiationProblem {
      fail(.negotiation(problem))
    } catch let problem as RTCProblem {
      fail(.library(problem))
    } catch {
      fail(.library(.library("\(error)")))
    }
  }

  /// The transport of this side, as descriptions show it.
  private func ownTransport(_ transport: PeerTransport) throws(RTCProblem) -> LocalTransport {
    guard let fingerprint = CertificateFingerprint(digest: identity.fingerprint) else {
      throw .library("OpenSSL made no SHA-256 digest of the certificate")
    }
    var own = LocalTransport(credentials: try transport.credentials, fingerprint: fingerprint)
    own.candidates = candidates
    own.hasAllCandidates = hasAllCandidates
    own.isLite = settings.ice.isLite
    return own
  }

  private func description(_ own: LocalTransport) throws(NegotiationProblem) -> SessionDescription {
    guard let offer = pendingOffer else {
      places = Array(sections.indices)
      return try SDPOffer(origin: origin, transport: own, sections: sections).description()
    }
    let answer = try SDPAnswer(to: offer, origin: origin, transport: own, sections: sections)
    places = answer.places
    return answer.description
  }

  private func negotiate(_ local: SessionDescription, _ remote: SessionDescription) {
    guard let transport else { return }
    do throws(NegotiationProblem) {
      let session = try NegotiatedSession(local: local, remote: remote, role: role)
      self.remote = remote
      negotiated = session
      connectBy = clock.now + settings.connect
      nameSections(local)
      makeMedia(session)
      makeChannels(session)
      connect(session, over: transport)
    } catch {
      fail(.negotiation(error))
    }
    entry?.wake()
  }

  /// Gives each section the mid of its m-line, so that it has the same one in a later offer.
  private func nameSections(_ local: SessionDescription) {
    for (index, place) in places.enumerated() {
      guard let place, sections[place].mid == nil, local.media.indices.contains(index) else { continue }
      sections[place].mid = local.media[index].mid
    }
  }

  /// Makes the media that are not there yet.
  private func makeMedia(_ session: NegotiatedSession) {
    let lines = MediaLine.all(session, sections, places).filter { !usedSections.contains($0.section) }
    guard !lines.isEmpty else { return }
    for line in lines { usedSections.insert(line.section) }
    if let engines { return engines.add(lines, at: clock.now) }
    engines = SessionMedia(
      lines, soundBitrate: settings.soundBitrate, videoBitrate: settings.videoBitrate,
      seed: .random(in: 0...(.max)), at: clock.now, observer: self)
  }

  private func makeChannels(_ session: NegotiatedSession) {
    guard channels == nil, let data = session.data else { return }
    channels = DataChannels(
      isClient: session.dtlsRole == .client, largestRemote: Int(clamping: data.maxMessageSize),
      send: { [weak self] bytes, stream, number, delivery in
        self?.transport?.send(bytes, stream: stream, protocol: number, delivery) ?? .unsent
      },
      close: { [weak self] stream in self?.transport?.close(stream: stream) ?? false },
      report: { [weak self] event in self?.observer?.sessionReceived(event) })
  }

  private func connect(_ session: NegotiatedSession, over transport: PeerTransport) {
    var description = PeerDescription(
      session.remoteCredentials, fingerprints: session.remoteFingerprints,
      isClient: session.dtlsRole == .client)
    if let data = session.data {
      let section = sections.first { $0.kind == .application }
      description.data = PeerDescription.Data(
        localPort: data.localPort, remotePort: data.remotePort,
        largest: Int(clamping: section?.maxMessageSize ?? 0))
    }
    description.hasMedia = !session.media.isEmpty
    change(.connecting)
    do throws(RTCProblem) { try transport.setRemote(description) } catch { return fail(.library(error)) }
    addCandidates(of: session, to: transport)
  }

  private func addCandidates(of session: NegotiatedSession, to transport: PeerTransport) {
    for candidate in session.remoteCandidates { add(candidate, to: transport) }
    if session.hasAllRemoteCandidates { transport.endCandidates() }
    let early = earlyCandidates
    earlyCandidates = []
    for candidate in early {
      if let candidate { add(candidate, to: transport) } else { transport.endCandidates() }
    }
  }

  /// Host names that only the peer's network resolves, and TCP, are of no use: the peer's checks show its address.
  private func add(_ candidate: ICECandidate, to transport: PeerTransport) {
    guard candidate.isUDP, !candidate.isLocalName else { return }
    _ = transport.add(candidate.text)
  }

  // MARK: ICE restart

  /// Restarts ICE: the offer is reported at once, and its answer goes to `accept`. The media continue over the present addresses until
  /// others work. Before the first answer, and while a restart waits for its own, it does nothing.
  package func offerRestart() {
    guard let transport, let local, remote != nil, restartOffer == nil, !isOver else { return }
    do throws(RTCProblem) {
      try transport.restart()
      let offer = local.restartingICE(
        try transport.credentials, candidates: candidates, hasAllCandidates: hasAllCandidates)
      restartOffer = offer
      remoteCandidates = 0
      observer?.sessionDescribed(offer)
    } catch {
      fail(.library(error))
    }
  }

  /// An answer that cannot be used ends the session: its ICE has begun again, and the addresses before would not hold for long.
  private func acceptRestart(_ offer: SessionDescription, _ answer: SessionDescription) {
    restartOffer = nil
    do throws(RTCSessionFailure) {
      reconnect(try agreement(offer, answer, .offerer), offer, answer)
    } catch {
      fail(error)
    }
  }

  /// Answers an offer of a session that runs. What it says about the media that there are changes nothing, and others are added; new
  /// credentials restart ICE.
  ///
  /// An offer that does not fit is refused before anything is changed, another certificate included: an offer that fails leaves the
  /// session as it was (W3C WebRTC 1.0 section 4.4.1.5), and what passes is still of the peer that was authenticated.
  private func answerAgain(
    _ offer: SessionDescription, adding added: [MediaSection]
  ) -> RTCSessionFailure? {
    guard let transport, let local, let remote, !isOver else { return nil }
    let all = sections + described(added)
    let restarts = offer.restartsICE(after: remote)
    var reply: (answer: SDPAnswer, session: NegotiatedSession)
    do throws(RTCSessionFailure) {
      try Self.checkOrder(of: offer, after: local, remote)
      reply = try self.reply(to: offer, all, transport)
    } catch {
      return error
    }
    do throws(RTCSessionFailure) {
      if restarts {
        // An offer of our own that crossed it has made new credentials, and is withdrawn.
        if restartOffer == nil { try Self.restart(transport) }
        reply = try self.reply(to: offer, all, transport)
      }
    } catch {
      fail(error)
      return nil
    }
    restartOffer = nil
    remoteCandidates = 0
    origin.version = reply.answer.description.origin.version
    sections = all
    places = reply.answer.places
    reconnect(reply.session, reply.answer.description, offer, restarts: restarts)
    guard !isOver else { return nil }
    nameSections(reply.answer.description)
    makeMedia(reply.session)
    observer?.sessionDescribed(reply.answer.description)
    return nil
  }

  private static func checkOrder(
    of offer: SessionDescription, after local: SessionDescription, _ remote: SessionDescription
  ) throws(RTCSessionFailure) {
    do throws(NegotiationProblem) { try offer.checkOrder(after: local, remote) } catch {
      throw .negotiation(error)
    }
  }

  private static func restart(_ transport: PeerTransport) throws(RTCSessionFailure) {
    do throws(RTCProblem) { try transport.restart() } catch { throw .library(error) }
  }

  /// The answer to a later offer, with the credentials that this side has now. Changes nothing.
  private func reply(
    to offer: SessionDescription, _ sections: [MediaSection], _ transport: PeerTransport
  ) throws(RTCSessionFailure) -> (answer: SDPAnswer, session: NegotiatedSession) {
    var origin = origin
    origin.version = max(origin.version, local?.origin.version ?? 0) + 1
    let own: LocalTransport
    do throws(RTCProblem) { own = try ownTransport(transport) } catch { throw .library(error) }
    let answer: SDPAnswer
    do throws(NegotiationProblem) {
      answer = try SDPAnswer(
        to: offer, origin: origin, transport: own, sections: matched(sections, offer),
        keeping: negotiated?.dtlsRole)
    } catch {
      throw .negotiation(error)
    }
    return (answer, try agreement(answer.description, offer, .answerer))
  }

  /// What later descriptions agree on. The association of DTLS stays as it is, with its certificates and roles (RFC 8842 section 5.5).
  private func agreement(
    _ local: SessionDescription, _ remote: SessionDescription, _ role: NegotiatedSession.Role
  ) throws(RTCSessionFailure) -> NegotiatedSession {
    let session: NegotiatedSession
    do throws(NegotiationProblem) {
      session = try NegotiatedSession(local: local, remote: remote, role: role)
    } catch {
      throw .negotiation(error)
    }
    guard let negotiated else { return session }
    guard Set(session.remoteFingerprints) == Set(negotiated.remoteFingerprints) else {
      throw .peer(.fingerprint)
    }
    guard session.dtlsRole == negotiated.dtlsRole else {
      let other: DTLSSetup = session.dtlsRole == .client ? .passive : .active
      throw .negotiation(.invalidSetup(offer: role == .offerer ? .actpass : other, answer: other))
    }
    return session
  }

  /// The sections for a later offer. Where it has the same m-lines by other mids, they are matched by their order again.
  private func matched(_ sections: [MediaSection], _ offer: SessionDescription) -> [MediaSection] {
    guard offer.media.count <= places.count else { return sections }
    let mids = Set(offer.media.compactMap { $0.mid })
    return sections.map { section in
      var section = section
      if let mid = section.mid, !mids.contains(mid) { section.mid = nil }
      return section
    }
  }

  /// Takes the peer's new addresses and credentials.
  private func reconnect(
    _ session: NegotiatedSession, _ local: SessionDescription, _ remote: SessionDescription,
    restarts: Bool = true
  ) {
    guard let transport, let before = transport.remote else { return }
    (self.local, self.remote) = (local, remote)
    if restarts {
      var description = before
      description.credentials = session.remoteCredentials
      do throws(RTCProblem) { try transport.setRemote(description) } catch { return fail(.library(error)) }
      if state == .disconnected { recoverBy = clock.now + settings.recovery }
    }
    addCandidates(of: session, to: transport)
    entry?.wake()
  }

  // MARK: Media and messages

  /// The sound and the pictures that both sides accepted, in the order of the m-lines; those of a later offer stand behind them. A place
  /// here is what `medium` means everywhere. Empty before the answer.
  package var media: [SessionMedium] { engines?.shown ?? [] }

  /// The codec in which sound is sent, that of the first medium which sends; nil: none is.
  package var soundCodec: RTPCodec? { engines?.soundCodec }

  /// The codec in which pictures are sent, that of the first medium which sends; nil: none are.
  package var pictureCodec: RTPCodec? { engines?.pictureCodec }

  /// Sends sound. Before the connection it is dropped.
  /// - Parameters:
  ///   - duration: samples per channel of the payload, by the clock of the codec.
  ///   - pause: samples that were not sent before it.
  ///   - medium: one that sends sound; nil: the first of them.
  package func send(
    _ payload: Span<UInt8>, duration: Int, pause: Int = 0, level: RTPAudioLevel? = nil,
    on medium: Int? = nil
  ) {
    guard state == .connected else { return }
    engines?.send(
      sound: payload, duration: duration, pause: pause, level: level, on: medium, at: clock.now)
  }

  /// Sends a packet of another session on, of any source: numbers and timestamps continue what this medium has sent. The gaps and the order
  /// of a source are kept, so that the peer conceals what was lost; where the source changes or begins again, the numbers have no gap, and
  /// the timestamp moves by the time that has passed. A packet of another codec, that comes twice, or before the connection, is dropped.
  package func forward(_ sound: ReceivedSound, _ payload: Span<UInt8>, on medium: Int) {
    guard state == .connected else { return }
    engines?.forward(sound, payload, on: medium, at: clock.now)
  }

  /// Sends an access unit of H.264 in Annex B form, or a frame of VP8. Before the connection it is dropped.
  /// - Parameters:
  ///   - captured: on the monotonic clock.
  ///   - medium: one that sends pictures; nil: the first of them.
  package func send(
    picture bytes: Span<UInt8>, isKey: Bool, captured: Nanoseconds, on medium: Int? = nil
  ) {
    guard state == .connected, let engines else { return }
    if engines.send(picture: bytes, isKey: isKey, captured: captured, on: medium, at: clock.now) {
      entry?.wake()
    }
  }

  /// Asks every source of pictures in a medium for a key frame, at most every 500 ms each; nil: those of all media.
  package func requestKeyFrame(medium: Int? = nil) {
    guard state == .connected else { return }
    engines?.requestKeyFrame(medium: medium, at: clock.now)
  }

  /// Sends keys of a telephone: 0 to 9, *, #, A to D. False: another is among them, more than 64 wait, or the peer takes none.
  package func send(tones: String, milliseconds: Int = 100, gap: Int = 70) -> Bool {
    guard state == .connected, let engines else { return false }
    defer { entry?.wake() }
    return engines.send(tones: tones, milliseconds: milliseconds, gap: gap, at: clock.now)
  }

  /// Opens a data channel. Nil: there are none in this session, or too many.
  package func openChannel(_ request: DataChannelRequest) -> Int? {
    guard !isOver, let channels else { return nil }
    defer { entry?.wake() }
    return channels.open(request)
  }

  /// Sends a message on a data channel.
  package func send(message bytes: [UInt8], isText: Bool, on channel: Int) -> SCTPAssociation.Result {
    guard !isOver, let channels else { return .unsent }
    defer { entry?.wake() }
    return channels.send(bytes, isText: isText, on: channel)
  }

  /// Closes a data channel.
  package func closeChannel(_ channel: Int) {
    channels?.close(channel)
    entry?.wake()
  }

  /// Everything that was counted.
  package var statistics: RTCStatistics {
    var all = engines?.statistics ?? RTCStatistics()
    all.refusals = transport?.refusals ?? refusals
    return all
  }

  /// The pair of addresses in use.
  package var selectedPair: (local: String, remote: String)? { transport?.selectedPair }

  // MARK: Time and end

  package func run(at now: Nanoseconds) -> Nanoseconds? {
    guard !isOver else {
      leave()
      return nil
    }
    if let time = describeAt, time <= now, !candidates.isEmpty || hasAllCandidates { describe() }
    if let time = connectBy, time <= now, state == .connecting { fail(.timeout) }
    if let time = recoverBy, time <= now { fail(.lost) }
    var next = describeAt.map { max($0, now + .milliseconds(5)) }
    Self.advance(&next, connectBy)
    Self.advance(&next, recoverBy)
    Self.advance(&next, transport?.run(at: now))
    if let channels, channels.wantsRun { channels.run(at: now) }
    if state == .connected { Self.advance(&next, engines?.run(at: now)) }
    return next
  }

  private static func advance(_ next: inout Nanoseconds?, _ time: Nanoseconds?) {
    if let time { next = min(next ?? time, time) }
  }

  /// Ends: BYE, the end of the data channels and close_notify, as far as the peer is reached.
  package func end() {
    guard !hasEnded else { return }
    hasEnded = true
    observer = nil
    if state == .connected { engines?.end(at: clock.now) }
    leave()
  }

  /// Releases the sockets, and the place on the loop.
  private func leave() {
    refusals = transport?.refusals ?? refusals
    transport?.close()
    transport = nil
    if let entry { loop.remove(entry) }
    entry = nil
  }

  private var isOver: Bool {
    if hasEnded { return true }
    switch state {
    case .closed, .failed: return true
    case .signalling, .connecting, .connected, .disconnected: return false
    }
  }

  private func change(_ new: RTCSessionState) {
    guard !isOver, new != state else { return }
    state = new
    if new != .connecting { connectBy = nil }
    recoverBy = new == .disconnected ? clock.now + settings.recovery : nil
    observer?.sessionChanged(new)
    entry?.wake()
  }

  private func fail(_ failure: RTCSessionFailure) { change(.failed(failure)) }
}

extension RTCSession: PeerObserver {
  package func peerFound(_ text: String) {
    let candidate: ICECandidate
    do throws(SDPProblem) { candidate = try ICECandidate(parsing: text) } catch { return }
    // An ICE restart shows them all.
    candidates.append(candidate)
    if local != nil { observer?.sessionFound(candidate) }
  }

  package func peerGathered() {
    hasAllCandidates = true
    // Not within the call of ICE: the next run describes.
    if local == nil { describeAt = clock.now } else { observer?.sessionFound(nil) }
    entry?.wake()
  }

  package func peerChanged(_ now: PeerState) {
    switch now {
    case .connecting, .securing: break
    case .connected: change(.connected)
    case .disconnected: change(.disconnected)
    case .closed: change(.closed)
    case .failed(let failure): fail(.peer(failure))
    }
    entry?.wake()
  }

  package func peerReceived(_ packet: UnsafeRawBufferPointer, isRTCP: Bool) {
    guard let engines else { return }
    let bytes = unsafe packet.bindMemory(to: UInt8.self)
    if engines.take(unsafe bytes.span, isRTCP: isRTCP, at: clock.now) { entry?.wake() }
  }

  package func peerReceived(_ event: SCTPAssociation.Event) {
    channels?.take(event)
    entry?.wake()
  }
}

extension RTCSession: SessionMediaObserver {
  func mediaSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) {
    _ = unsafe transport?.send(packet, count: count, isRTCP: isRTCP)
  }

  func mediaReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    observer?.sessionReceived(sound, payload)
  }

  func mediaReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    observer?.sessionReceived(picture, bytes)
  }

  func mediaReceived(_ tone: ReceivedTone) { observer?.sessionReceived(tone) }

  func mediaEnded(_ ssrc: UInt32, reason: String?) {
    transport?.noteEnd(of: ssrc)
    observer?.sessionEnded(source: ssrc, reason: reason)
  }

  func mediaLeft(_ ssrc: UInt32) { transport?.noteEnd(of: ssrc) }

  func mediaWantsKeyFrame(medium: Int) { observer?.sessionWantsKeyFrame(medium: medium) }

  func mediaAllocated(sound: Int, video: Int) { observer?.sessionAllocated(sound: sound, video: video) }
}
