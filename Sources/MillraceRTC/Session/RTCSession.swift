package import MillraceCore
package import MillraceRTCWire

/// Where a session stands.
package enum RTCSessionState: Sendable, Equatable {
  /// Addresses of this side are searched, or the peer has not answered yet.
  case signalling
  /// Both descriptions are there: ICE, then DTLS.
  case connecting
  case connected
  /// The network has failed, and may come back.
  case disconnected
  /// The peer has ended.
  case closed
  case failed(RTCSessionFailure)
}

/// Why a session has failed.
package enum RTCSessionFailure: Error, Sendable, Equatable {
  /// The descriptions do not fit together.
  case negotiation(NegotiationProblem)
  /// The transport.
  case peer(PeerFailure)
  /// Not connected in time.
  case timeout
  /// Connected, and then not any more for too long.
  case lost
  case library(RTCProblem)
}

/// What a session reports, on the thread of its loop.
package protocol RTCSessionObserver: AnyObject {
  /// The description of this side, an offer or an answer, is to be sent to the peer.
  func sessionDescribed(_ description: SessionDescription)
  /// A candidate that the description did not have; nil: no more follow.
  func sessionFound(_ candidate: ICECandidate?)
  func sessionChanged(_ state: RTCSessionState)
  /// Sound of the peer. The payload is valid only during the call.
  func sessionReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>)
  /// A source of the peer has ended.
  func sessionEnded(source: UInt32, reason: String?)
  func sessionReceived(_ event: SCTPAssociation.Event)
}

/// How a session is set up.
package struct RTCSessionSettings: Sendable {
  package var ice = ICESettings()
  /// What is wanted or can be done.
  package var sections: [MediaSection] = [.audio()]
  /// How long candidates are searched before a description without the rest is sent. Nil: 100 ms for those of this machine, and 5 s where
  /// servers are asked.
  package var gathering: Nanoseconds?
  /// From both descriptions to a connection.
  package var connect: Nanoseconds = .milliseconds(15_000)
  /// How long a connection may be interrupted.
  package var recovery: Nanoseconds = .milliseconds(10_000)
  /// The name of this side in its packets; a random one tells nothing about the machine (RFC 7022).
  package var cname: String?

  package init() {}
}

/// A session of WebRTC with one peer: its descriptions, the transport, its sound and its data channels. The form of signalling is
/// somebody else's.
///
/// On the offering side: `offer`, then `accept`; on the answering side: `answer`. On the thread of its loop. A session that has failed or was
/// closed releases its sockets by itself; `end` closes it properly, and is not called within a call of the observer.
@safe
package final class RTCSession: RTCLoopMember {
  /// Candidates of the peer that are taken beside its descriptions.
  private static let mostCandidates = 1_000

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
  private var candidates: [ICECandidate] = []
  private var hasAllCandidates = false
  /// Candidates of the peer that came before its offer could be answered; nil: no more follow.
  private var earlyCandidates: [ICECandidate?] = []
  private var remoteCandidates = 0
  /// The peer's offer that is to be answered.
  private var pendingOffer: SessionDescription?
  package private(set) var local: SessionDescription?
  package private(set) var remote: SessionDescription?
  package private(set) var negotiated: NegotiatedSession?
  private var sound: SoundEngine?
  /// When a description is sent with what was found.
  private var describeAt: Nanoseconds?
  private var connectBy: Nanoseconds?
  private var recoverBy: Nanoseconds?
  private var hasEnded = false

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

  /// Begins as the answering side. The answer is reported when addresses were searched.
  package func answer(_ offer: SessionDescription) {
    pendingOffer = offer
    begin(.answerer, isControlling: offer.isICELite && !settings.ice.isLite)
  }

  /// Takes the answer to the offer.
  package func accept(_ answer: SessionDescription) {
    guard let local, remote == nil, role == .offerer, !isOver else { return }
    negotiate(local, answer)
  }

  /// Takes a candidate of the peer that its description did not have; nil: no more follow.
  package func add(_ candidate: ICECandidate?) {
    guard let transport, !isOver, remoteCandidates < Self.mostCandidates else { return }
    remoteCandidates += 1
    guard remote != nil else { return earlyCandidates.append(candidate) }
    guard let candidate else { return transport.endCandidates() }
    add(candidate, to: transport)
  }

  private func begin(_ role: NegotiatedSession.Role, isControlling: Bool) {
    guard entry == nil, !hasEnded else { return }
    self.role = role
    entry = loop.add(self)
    sections = Self.withSources(settings)
    do throws(RTCProblem) {
      let ice = try NiceTransport(settings.ice, isControlling: isControlling, on: loop)
      let made = PeerTransport(ice, identity, observer: self) { [weak self] in self?.entry }
      transport = made
      let asksServers = settings.ice.stun != nil || !settings.ice.relays.isEmpty
      describeAt = clock.now + (settings.gathering ?? .milliseconds(asksServers ? 5_000 : 100))
      try made.gather()
    } catch {
      fail(.library(error))
    }
    entry?.wake()
  }

  private static func withSources(_ settings: RTCSessionSettings) -> [MediaSection] {
    var generator = SystemRandomNumberGenerator()
    let cname = settings.cname ?? String(generator.next(), radix: 36)
    return settings.sections.map { section in
      guard section.kind != .application, section.source == nil else { return section }
      var section = section
      // Whoever offers feedback for the whole transport has to send it.
      section.headerExtensions.removeAll { $0 == RTPHeaderExtension.transportCC }
      section.source = LocalSource(
        ssrc: .random(in: 1...(.max)), rtxSSRC: .random(in: 1...(.max)), cname: cname)
      return section
    }
  }

  /// Describes this side with what was found.
  private func describe() {
    guard describeAt != nil, let transport, local == nil, !isOver else { return }
    describeAt = nil
    do {
      guard let fingerprint = CertificateFingerprint(digest: identity.fingerprint) else {
        throw RTCProblem.library("OpenSSL made no SHA-256 digest of the certificate")
      }
      var own = LocalTransport(credentials: try transport.credentials, fingerprint: fingerprint)
      own.candidates = candidates
      own.hasAllCandidates = hasAllCandidates
      own.isLite = settings.ice.isLite
      let description = try description(own)
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

  private func description(_ own: LocalTransport) throws(NegotiationProblem) -> SessionDescription {
    guard let offer = pendingOffer else {
      return try SDPOffer(origin: origin, transport: own, sections: sections).description()
    }
    return try SDPAnswer(to: offer, origin: origin, transport: own, sections: sections).description
  }

  private func negotiate(_ local: SessionDescription, _ remote: SessionDescription) {
    guard let transport else { return }
    do throws(NegotiationProblem) {
      let session = try NegotiatedSession(local: local, remote: remote, role: role)
      self.remote = remote
      negotiated = session
      connectBy = clock.now + settings.connect
      makeSound(session)
      connect(session, over: transport)
    } catch {
      fail(.negotiation(error))
    }
    entry?.wake()
  }

  private func makeSound(_ session: NegotiatedSession) {
    guard sound == nil, let media = session.media.first(where: { $0.kind == .audio }),
      let source = sections.first(where: { $0.kind == .audio })?.source
    else { return }
    sound = SoundEngine(media, source: source, seed: .random(in: 0...(.max)), at: clock.now, observer: self)
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

  // MARK: Sound and messages

  /// The codec in which sound is sent; nil: none is.
  package var soundCodec: RTPCodec? { sound?.codec }

  /// Sends sound. Before the connection it is dropped.
  package func send(
    _ payload: Span<UInt8>, duration: Int, pause: Int = 0, level: RTPAudioLevel? = nil
  ) {
    guard state == .connected else { return }
    sound?.send(payload, duration: duration, pause: pause, level: level, at: clock.now)
  }

  /// Sends a message of a data channel. One that is larger than the peer takes is `tooLarge`.
  package func send(
    _ bytes: [UInt8], stream: UInt16, protocol number: UInt32, _ delivery: SCTPAssociation.Delivery
  ) -> SCTPAssociation.Result {
    let most = negotiated?.data?.maxMessageSize ?? 0
    guard most == 0 || bytes.count <= most else { return .tooLarge }
    return transport?.send(bytes, stream: stream, protocol: number, delivery) ?? .unsent
  }

  /// Counts of the sound.
  package var soundStatistics: SoundStatistics { sound?.statistics ?? SoundStatistics() }

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
    let media = state == .connected ? sound?.run(at: now) : nil
    let description = describeAt.map { max($0, now + .milliseconds(5)) }
    return [description, connectBy, recoverBy, transport?.run(at: now), media].compactMap { $0 }.min()
  }

  /// Ends: BYE, the end of the data channels and close_notify, as far as the peer is reached.
  package func end() {
    guard !hasEnded else { return }
    hasEnded = true
    observer = nil
    if state == .connected { sound?.end(at: clock.now) }
    leave()
  }

  /// Releases the sockets, and the place on the loop.
  private func leave() {
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
    if local == nil { candidates.append(candidate) } else { observer?.sessionFound(candidate) }
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
    guard let sound else { return }
    let bytes = unsafe packet.bindMemory(to: UInt8.self)
    if isRTCP {
      sound.take(reports: unsafe bytes.span, at: clock.now)
    } else {
      sound.take(unsafe bytes.span, at: clock.now)
    }
  }

  package func peerReceived(_ event: SCTPAssociation.Event) { observer?.sessionReceived(event) }
}

extension RTCSession: SoundObserver {
  package func soundSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) {
    _ = unsafe transport?.send(packet, count: count, isRTCP: isRTCP)
  }

  package func soundReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    observer?.sessionReceived(sound, payload)
  }

  package func soundEnded(_ ssrc: UInt32, reason: String?) {
    transport?.noteEnd(of: ssrc)
    observer?.sessionEnded(source: ssrc, reason: reason)
  }
}
