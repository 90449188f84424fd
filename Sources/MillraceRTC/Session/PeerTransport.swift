package import MillraceCore
package import MillraceRTCWire

/// What the peer's description says about the transport.
package struct PeerDescription: Sendable, Equatable {
  /// Data channels.
  package struct Data: Sendable, Equatable {
    package var localPort: UInt16
    package var remotePort: UInt16
    /// Bytes of the largest message that this side takes.
    package var largest: Int

    package init(localPort: UInt16 = 5_000, remotePort: UInt16 = 5_000, largest: Int) {
      self.localPort = localPort
      self.remotePort = remotePort
      self.largest = largest
    }
  }

  package var credentials: ICECredentials
  /// Its certificate has to match one of them.
  package var fingerprints: [CertificateFingerprint]
  /// This side begins the handshake.
  package var isClient: Bool
  /// Nil: no data channels.
  package var data: Data?
  /// Sound or pictures were agreed on, which need keys for SRTP.
  package var hasMedia = true

  package init(_ credentials: ICECredentials, fingerprints: [CertificateFingerprint], isClient: Bool) {
    self.credentials = credentials
    self.fingerprints = fingerprints
    self.isClient = isClient
  }
}

/// Why the transport has failed.
package enum PeerFailure: Error, Sendable, Equatable {
  /// The handshake failed, in OpenSSL's words.
  case handshake(String)
  /// The certificate is not the one of the description.
  case fingerprint
  /// No profile of SRTP in common.
  case noProfile
  /// A library refuses.
  case library(RTCProblem)
}

/// Where a `PeerTransport` stands.
package enum PeerState: Sendable, Equatable {
  /// The peer is not known, or ICE checks its addresses.
  case connecting
  /// A pair of addresses works: the handshake.
  case securing
  /// Packets pass, protected.
  case connected
  /// The pair of addresses does not work any more. It may again, or another may.
  case disconnected
  /// The peer has ended the connection.
  case closed
  case failed(PeerFailure)
}

/// What a `PeerTransport` reports, on the thread of its loop.
package protocol PeerObserver: AnyObject {
  func peerFound(_ candidate: String)
  func peerGathered()
  func peerChanged(_ state: PeerState)
  /// A packet of RTP or RTCP, decrypted. It is valid only during the call.
  func peerReceived(_ packet: UnsafeRawBufferPointer, isRTCP: Bool)
  func peerReceived(_ event: SCTPAssociation.Event)
}

/// How many packets were not taken, and why.
package struct PeerRefusals: Sendable, Equatable {
  /// The peer's keys did not make them.
  package var forged = 0
  /// They came before.
  package var replayed = 0
  /// They were no packets of any protocol here.
  package var malformed = 0
  /// They came before the keys were there, or the handshake had begun.
  package var early = 0
  /// They came from more sources than one peer may have.
  package var sources = 0
}

/// The transport between two peers, below media and data: ICE, over it DTLS, from it the keys of SRTP, and over it SCTP.
///
/// On the thread of its loop. It is closed by `close`, not within a call of the observer.
@safe
package final class PeerTransport: ICEObserver {
  /// Datagrams of a handshake that are kept until ICE has a pair: the peer may see one first. A flight has up to six.
  private static let earlyDatagrams = 16
  /// Sources of RTP and RTCP of the peer. libsrtp keeps a context for each, so that without a limit a peer could use up the memory.
  private static let mostSources = 128

  private let identity: DTLSIdentity
  private let ice: any ICETransport
  private let makeEndpoint: (DTLSIdentity, Bool) throws(RTCProblem) -> any DTLSEndpoint
  private weak var observer: (any PeerObserver)?
  private let entry: () -> RTCLoop.Entry?
  package private(set) var state = PeerState.connecting
  package private(set) var refusals = PeerRefusals()

  package private(set) var remote: PeerDescription?
  private var dtls: (any DTLSEndpoint)?
  private var early: [[UInt8]] = []
  private var hasPair = false
  /// Sources whose packets were decrypted, and those of them that have ended, oldest first.
  private var sources: [UInt32] = []
  private var endedSources: [UInt32] = []
  private var outbound: SRTPContext?
  private var inbound: SRTPContext?
  private var association: SCTPAssociation?
  private var tickAt: Nanoseconds?

  /// Creates a transport over an agent.
  /// - Parameters:
  ///   - entry: is woken when there is something to do that no packet brings.
  ///   - endpoint: makes the end of DTLS, as client or not.
  package init(
    _ ice: any ICETransport, _ identity: DTLSIdentity, observer: any PeerObserver,
    entry: @escaping () -> RTCLoop.Entry?,
    endpoint: @escaping (DTLSIdentity, Bool) throws(RTCProblem) -> any DTLSEndpoint = {
      (identity, isClient) throws(RTCProblem) in try OpenSSLEndpoint(identity, isClient: isClient)
    }
  ) {
    self.ice = ice
    self.identity = identity
    self.observer = observer
    self.entry = entry
    makeEndpoint = endpoint
    ice.observer = self
  }

  /// Begins to search candidates of this side.
  package func gather() throws(RTCProblem) { try ice.gather() }

  /// The credentials of this side.
  package var credentials: ICECredentials { get throws(RTCProblem) { try ice.credentials } }

  /// The pair of addresses in use.
  package var selectedPair: (local: String, remote: String)? { ice.selectedPair }

  // MARK: The peer

  /// Takes the peer's description: the first, or that of an ICE restart, which keeps everything above ICE.
  package func setRemote(_ description: PeerDescription) throws(RTCProblem) {
    guard remote == nil || remote?.fingerprints == description.fingerprints else {
      throw .value("the peer's certificate has changed; that needs a new session")
    }
    try ice.setRemote(description.credentials)
    remote = description
    guard dtls == nil else { return }
    let endpoint = try makeEndpoint(identity, description.isClient)
    unsafe endpoint.send = { [ice] in _ = unsafe ice.send($0) }
    unsafe endpoint.receive = { [weak self] in unsafe self?.association?.feed($0) }
    dtls = endpoint
    if hasPair { beginHandshake() }
  }

  /// Adds a candidate of the peer. False for one that cannot be used: host names that only its own network resolves, TCP.
  package func add(_ candidate: String) -> Bool { ice.add(candidate) }

  /// No more candidates of the peer follow.
  package func endCandidates() { ice.endCandidates() }

  /// Begins ICE again, with new credentials of this side and the candidates it has found.
  package func restart() throws(RTCProblem) { try ice.restart() }

  // MARK: Packets

  /// Protects and sends a packet of RTP or RTCP of `count` bytes, with room for `SRTPContext.trailer` behind it. False when it was not sent,
  /// which is as if it were lost.
  package func send(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) -> Bool {
    guard let outbound, case .done(let length) = unsafe outbound.protect(packet, count: count, isRTCP: isRTCP)
    else { return false }
    return unsafe ice.send(UnsafeRawBufferPointer(rebasing: packet[..<length]))
  }

  /// Sends a message of a data channel.
  package func send(
    _ bytes: [UInt8], stream: UInt16, protocol number: UInt32, _ delivery: SCTPAssociation.Delivery
  ) -> SCTPAssociation.Result {
    association?.send(bytes, stream: stream, protocol: number, delivery) ?? .unsent
  }

  /// Closes the outgoing half of a stream.
  package func close(stream: UInt16) -> Bool { association?.close(stream: stream) ?? false }

  // MARK: Time

  /// Does what is due. Returns when to be called again.
  package func run(at now: Nanoseconds) -> Nanoseconds? {
    guard let dtls else { return nil }
    if state == .securing, let due = dtls.due(at: now), due <= now {
      dtls.repeatFlight()
      judge(dtls)
    }
    advanceAssociation(at: now)
    let due = state == .securing ? dtls.due(at: now) : nil
    return [due, tickAt].compactMap { $0 }.min()
  }

  private func advanceAssociation(at now: Nanoseconds) {
    guard association != nil, now >= tickAt ?? now else { return }
    association?.tick()
    readAssociation()
    // On a grid, so that all sessions of a loop are served at once.
    let interval = Nanoseconds.milliseconds(Int64(SCTPAssociation.tickMilliseconds))
    tickAt = (now / interval + 1) * interval
  }

  private func readAssociation() {
    while isOpen, let event = association?.next() { observer?.peerReceived(event) }
  }

  /// Ends: the peer learns of it, as far as it is reached, and nothing is reported any more.
  package func close() {
    observer = nil
    // First, so that the peer learns that it is an end, and no failure of its data channels.
    dtls?.close()
    association?.close()
    ice.close()
    association = nil
    tickAt = nil
  }

  // MARK: ICE

  package func iceFound(_ candidate: String) { observer?.peerFound(candidate) }

  package func iceGathered() { observer?.peerGathered() }

  package func iceChanged(_ now: ICEState) {
    switch now {
    case .idle, .checking: break
    case .connected:
      if state == .disconnected { change(.connected) }
      guard !hasPair else { return }
      hasPair = true
      beginHandshake()
    // Not for good: a late candidate, or a check of the peer, may bring a pair. The owner decides how long to wait.
    case .failed: if state == .connected { change(.disconnected) }
    }
  }

  package func iceReceived(_ datagram: UnsafeMutableRawBufferPointer) {
    guard isOpen else { return }
    let bytes = unsafe datagram.bindMemory(to: UInt8.self)
    switch RTPDemultiplexer.kind(of: unsafe bytes.span) {
    case .dtls: unsafe take(handshake: UnsafeRawBufferPointer(datagram))
    case .rtp: unsafe take(packet: datagram, isRTCP: false)
    case .rtcp: unsafe take(packet: datagram, isRTCP: true)
    // What belongs to ICE does not get here.
    case .stun, .turnChannel, .unknown: refusals.malformed += 1
    }
  }

  private var isOpen: Bool {
    switch state {
    case .connecting, .securing, .connected, .disconnected: true
    case .closed, .failed: false
    }
  }

  private func take(packet: UnsafeMutableRawBufferPointer, isRTCP: Bool) {
    // Before the keys are there nobody can say whose it is.
    guard let inbound else { return refusals.early += 1 }
    guard let source = unsafe Self.source(of: packet, isRTCP: isRTCP) else { return refusals.malformed += 1 }
    let isKnown = sources.contains(source)
    guard isKnown || hasRoomForSource() else { return refusals.sources += 1 }
    switch unsafe inbound.unprotect(packet, isRTCP: isRTCP) {
    case .done(let count):
      if !isKnown { sources.append(source) }
      unsafe observer?.peerReceived(UnsafeRawBufferPointer(rebasing: packet[..<count]), isRTCP: isRTCP)
    case .replayed: refusals.replayed += 1
    case .forged: refusals.forged += 1
    case .malformed: refusals.malformed += 1
    }
  }

  /// The source of a packet, which is not encrypted (RFC 3550 sections 5.1 and 6.1).
  private static func source(of packet: UnsafeMutableRawBufferPointer, isRTCP: Bool) -> UInt32? {
    let offset = isRTCP ? 4 : 8
    guard packet.count >= offset + 4 else { return nil }
    return unsafe packet.bindMemory(to: UInt8.self).span.uint32(at: offset)
  }

  /// Notes that a source has ended: where there is no room for another, it makes room. Not before: with the source SRTP forgets which of its
  /// packets came, and they could be repeated.
  package func noteEnd(of source: UInt32) {
    if sources.contains(source) && !endedSources.contains(source) { endedSources.append(source) }
  }

  private func hasRoomForSource() -> Bool {
    guard sources.count >= Self.mostSources else { return true }
    guard !endedSources.isEmpty else { return false }
    let ended = endedSources.removeFirst()
    sources.removeAll { $0 == ended }
    inbound?.forget(ended)
    return true
  }

  // MARK: DTLS

  /// The peer may have a pair, and begin, before this side has one or knows who it is: what it sends is kept.
  private func take(handshake datagram: UnsafeRawBufferPointer) {
    guard let dtls, state != .connecting else {
      guard early.count < Self.earlyDatagrams else { return refusals.early += 1 }
      return early.append(unsafe Array(datagram))
    }
    unsafe dtls.feed(datagram)
    judge(dtls)
    readAssociation()
  }

  private func beginHandshake() {
    guard let dtls, state == .connecting else { return }
    change(.securing)
    dtls.start()
    judge(dtls)
    let kept = early
    early = []
    for datagram in kept where state == .securing || state == .connected {
      unsafe datagram.withUnsafeBytes { unsafe dtls.feed($0) }
      judge(dtls)
    }
    entry()?.wake()
  }

  /// Follows the state of the handshake.
  private func judge(_ dtls: any DTLSEndpoint) {
    switch dtls.state {
    case .handshaking: entry()?.wake()
    case .connected: if state == .securing { secured(dtls) }
    case .closed: if isOpen { change(.closed) }
    case .failed(let reason): fail(.handshake(reason))
    }
  }

  private func secured(_ dtls: any DTLSEndpoint) {
    guard let remote, matches(dtls, remote) else { return fail(.fingerprint) }
    do throws(RTCProblem) {
      if let keys = dtls.srtpKeys() {
        outbound = try SRTPContext(keys.profile, key: keys.outbound, isOutbound: true)
        inbound = try SRTPContext(keys.profile, key: keys.inbound, isOutbound: false)
      } else if remote.hasMedia {
        return fail(.noProfile)
      }
      // Before anything of the peer is read: its INIT would find nobody, and be answered by an ABORT.
      try beginAssociation(remote)
    } catch {
      return fail(.library(error))
    }
    change(.connected)
    dtls.readEarlyData()
    judge(dtls)
    entry()?.wake()
  }

  private func matches(_ dtls: any DTLSEndpoint, _ remote: PeerDescription) -> Bool {
    remote.fingerprints.contains { fingerprint in
      guard let digest = dtls.peerDigest(fingerprint.algorithm.rawValue) else { return false }
      return fingerprint.isStrong && fingerprint.matches(digest.span)
    }
  }

  private func beginAssociation(_ remote: PeerDescription) throws(RTCProblem) {
    guard let data = remote.data, let entry = entry() else { return }
    unsafe association = try SCTPAssociation(
      localPort: data.localPort, remotePort: data.remotePort, largest: data.largest, entry: entry
    ) { [weak dtls] in _ = unsafe dtls?.write($0) }
  }

  // MARK: States

  private func change(_ new: PeerState) {
    state = new
    observer?.peerChanged(new)
  }

  private func fail(_ failure: PeerFailure) {
    guard isOpen else { return }
    change(.failed(failure))
  }
}
