import MillraceCore
import MillraceRTCWire

@testable import MillraceRTC

/// ICE without a network: datagrams wait until the test delivers them, drops them or changes them.
final class PipeTransport: ICETransport {
  weak var observer: (any ICEObserver)?
  /// What was sent and not delivered.
  var sent: [[UInt8]] = []
  /// Everything that was sent.
  private(set) var log: [[UInt8]] = []
  /// Datagrams that were offered, also those that nobody carried.
  private(set) var attempts = 0
  private(set) var isOpen = false
  private(set) var isClosed = false
  /// Signs of life that were asked for.
  private(set) var probes = 0
  /// Checks that were asked for.
  private(set) var checks = 0
  /// Something of ICE has come since `heard` was called.
  var hasAnswered = false
  let credentials = ICECredentials(fragment: "abcd", password: "abcdefghijklmnopqrstuv")
  var selectedPair: (local: String, remote: String)? { nil }

  func gather() {}
  func setRemote(_ credentials: ICECredentials) {}
  func add(_ candidate: String) -> Bool { true }
  func endCandidates() {}
  func restart() {}
  func close() { isClosed = true }

  func check() -> Bool {
    checks += 1
    return true
  }

  func probe() -> Bool {
    probes += 1
    return true
  }

  func heard() -> Bool {
    defer { hasAnswered = false }
    return hasAnswered
  }

  func send(_ datagram: UnsafeRawBufferPointer) -> Bool {
    attempts += 1
    if isOpen {
      sent.append(Array(datagram))
      log.append(Array(datagram))
    }
    return isOpen
  }

  func open() {
    isOpen = true
    observer?.iceChanged(.connected)
  }

  func fail() { observer?.iceChanged(.failed) }

  /// Hands a datagram to this side.
  func receive(_ datagram: [UInt8]) {
    var bytes = datagram
    bytes.withUnsafeMutableBytes { observer?.iceReceived($0) }
  }
}

/// Two transports over pipes, on the thread of the test.
final class PipePair {
  final class End: PeerObserver {
    let pipe = PipeTransport()
    var states: [PeerState] = []
    var packets: [[UInt8]] = []
    private(set) var transport: PeerTransport?

    func begin(_ identity: DTLSIdentity) {
      transport = PeerTransport(pipe, identity, observer: self, entry: { nil })
    }
    func peerFound(_ candidate: String) {}
    func peerGathered() {}
    func peerChanged(_ state: PeerState) { states.append(state) }
    func peerReceived(_ packet: UnsafeRawBufferPointer, isRTCP: Bool) { packets.append(Array(packet)) }
    func peerReceived(_ event: SCTPAssociation.Event) {}

    /// Protects and sends a packet. Returns the datagram.
    func send(_ bytes: [UInt8]) -> [UInt8] {
      var packet = bytes + [UInt8](repeating: 0, count: SRTPContext.trailer)
      packet.withUnsafeMutableBytes { _ = transport?.send($0, count: bytes.count, isRTCP: false) }
      return pipe.sent.popLast() ?? []
    }
  }

  let client = End()
  let server = End()

  /// Both sides know each other, and neither has a pair of addresses.
  /// - Parameter impostor: the client's certificate is not the one that the server expects.
  init(impostor: Bool = false) throws {
    let identities = (try DTLSIdentity(), try DTLSIdentity())
    client.begin(identities.0)
    server.begin(identities.1)
    let expected = impostor ? try DTLSIdentity() : identities.0
    for (end, other, isClient) in [(client, identities.1, true), (server, expected, false)] {
      guard let fingerprint = CertificateFingerprint(digest: other.fingerprint) else { continue }
      try end.transport?.setRemote(
        PeerDescription(end.pipe.credentials, fingerprints: [fingerprint], isClient: isClient))
    }
  }

  /// Delivers everything until nothing more is sent.
  func deliver(dropping drops: (End) -> Bool = { _ in false }) {
    while !client.pipe.sent.isEmpty || !server.pipe.sent.isEmpty {
      for (end, peer) in [(client, server), (server, client)] {
        let datagrams = end.pipe.sent
        end.pipe.sent = []
        for datagram in datagrams where !drops(end) { peer.pipe.receive(datagram) }
      }
    }
  }

  func connect() {
    client.pipe.open()
    server.pipe.open()
    deliver()
  }
}
