package import MillraceCore
package import MillraceRTCWire

/// The transport between two peers, below media and data: ICE, over it DTLS, from it the keys of SRTP, and over it SCTP.
///
/// On the thread of its loop. It is closed by `close`, not within a call of the observer.
@safe
package final class PeerTransport: ICEObserver {
  /// Datagrams of a handshake that are kept until ICE has a pair: the peer may see one first. A flight has up to six.
  private static let earlyDatagrams = 16
  /// Between two requests for checks while there is no pair: as long as the first flight of DTLS waits.
  private static let checkInterval: Nanoseconds = .milliseconds(200)

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
  /// When the peer is asked for checks; nil: its description has just come.
  private var checkAt: Nanoseconds?
  private var protection: SRTPProtection?
  private var association: SCTPAssociation?
  private var tickAt: Nanoseconds?
  private(set) var watch: ICEWatch?
  /// A datagram that is not ICE's own has come since the watch last looked.
  private var hasReceived = false
  /// ICE has lost the pair, or consent.
  private var hasLostPair = false

  /// Creates a transport over an agent.
  /// - Parameters:
  ///   - silence: how long nothing at all may come of the peer, which is asked for a sign of life meanwhile, before the transport is
  ///     `disconnected`. Nil: only ICE decides, which with `ICESettings.hasConsent` takes up to 10 s.
  ///   - entry: is woken when there is something to do that no packet brings.
  ///   - endpoint: makes the end of DTLS, as client or not.
  package init(
    _ ice: any ICETransport, _ identity: DTLSIdentity, observer: any PeerObserver,
    silence: Nanoseconds? = .milliseconds(3_000),
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
    watch = silence.map { ICEWatch(patience: $0) }
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
    watch?.restart()
    guard dtls == nil else { return }
    let endpoint = try makeEndpoint(identity, description.isClient)
    unsafe endpoint.send = { [ice] in _ = unsafe ice.send($0) }
    unsafe endpoint.receive = { [weak self] in unsafe self?.association?.feed($0) }
    dtls = endpoint
    if hasPair { beginHandshake() } else { entry()?.wake() }
  }

  /// Adds a candidate of the peer. False for one that cannot be used: host names that only its own network resolves, TCP.
  package func add(_ candidate: String) -> Bool { ice.add(candidate) }

  /// No more candidates of the peer follow.
  package func endCandidates() { ice.endCandidates() }

  /// Begins ICE again, with new credentials of this side and the candidates it has found.
  package func restart() throws(RTCProblem) {
    watch?.restart()
    try ice.restart()
  }

  // MARK: Packets

  /// Protects and sends a packet of RTP or RTCP of `count` bytes, with room for `SRTPContext.trailer` behind it. False when it was not
  /// sent, which is as if it were lost.
  package func send(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) -> Bool {
    guard let length = unsafe protection?.protect(packet, count: count, isRTCP: isRTCP) else { return false }
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
    watchPeer(at: now)
    var earliest = state == .securing ? dtls.due(at: now) : askForChecks(at: now)
    if let due = tickAt { earliest = min(earliest ?? due, due) }
    if isUp, let due = watch?.due { earliest = min(earliest ?? due, due) }
    return earliest
  }

  /// Asks the peer for checks while there is no pair. Returns when to be called again.
  private func askForChecks(at now: Nanoseconds) -> Nanoseconds? {
    guard state == .connecting else { return nil }
    if let checkAt, now < checkAt { return checkAt }
    if checkAt != nil { _ = ice.check() }
    let next = now + Self.checkInterval
    checkAt = next
    return next
  }

  /// The handshake is over, and the connection has not ended.
  private var isUp: Bool { state == .connected || state == .disconnected }

  /// Looks whether the peer still lives.
  private func watchPeer(at now: Nanoseconds) {
    guard isUp, var watch, now >= watch.due ?? now else { return }
    let isProbing = watch.tick(at: now, received: hasReceived, heard: ice.heard())
    hasReceived = false
    self.watch = watch
    if isProbing { _ = ice.probe() }
    if watch.isSilent {
      if state == .connected { change(.disconnected) }
    } else {
      noteLife()
    }
  }

  /// The peer lives, which helps as long as ICE has a pair.
  private func noteLife() {
    if state == .disconnected && !hasLostPair { change(.connected) }
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
      hasLostPair = false
      watch?.hear()
      noteLife()
      guard !hasPair else { return }
      hasPair = true
      beginHandshake()
    // Not for good: a late candidate, or a check of the peer, may bring a pair. The owner decides how long to wait.
    case .failed:
      hasLostPair = true
      if state == .connected { change(.disconnected) }
    }
  }

  package func iceReceived(_ datagram: UnsafeMutableRawBufferPointer) {
    guard isOpen else { return }
    hasReceived = true
    if state == .disconnected {
      watch?.hear()
      noteLife()
    }
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
    guard let protection else { return refusals.early += 1 }
    guard let count = unsafe protection.unprotect(packet, isRTCP: isRTCP, &refusals) else { return }
    unsafe observer?.peerReceived(UnsafeRawBufferPointer(rebasing: packet[..<count]), isRTCP: isRTCP)
  }

  /// Notes that a source has ended: where there is no room for another, it makes room.
  package func noteEnd(of source: UInt32) { protection?.noteEnd(of: source) }

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
        protection = try SRTPProtection(keys)
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
