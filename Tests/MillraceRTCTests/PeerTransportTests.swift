import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

/// Two ends on loopback, over the real libraries.
final class PeerEnd: PeerObserver, RTCLoopMember, @unchecked Sendable {
  struct Seen: Sendable {
    var states: [PeerState] = []
    var packets: [[UInt8]] = []
    var controls: [[UInt8]] = []
    var events: [SCTPAssociation.Event] = []
    var candidates: [String] = []
    var hasGathered = false
  }

  let seen = Locked(Seen())
  let loop: RTCLoop
  private(set) var transport: PeerTransport?
  private var entry: RTCLoop.Entry?
  var onCandidate: ((String) -> Void)?

  init(on loop: RTCLoop) { self.loop = loop }

  func start(isControlling: Bool, _ identity: DTLSIdentity) throws(RTCProblem) {
    entry = loop.add(self)
    var settings = ICESettings()
    settings.addresses = ["127.0.0.1"]
    let ice = try NiceTransport(settings, isControlling: isControlling, on: loop)
    let made = PeerTransport(ice, identity, observer: self, entry: { [unowned self] in entry })
    transport = made
    try made.gather()
  }

  func run(at now: Nanoseconds) -> Nanoseconds? { transport?.run(at: now) }
  func end() { transport?.close() }
  func peerFound(_ candidate: String) {
    seen.withLock { $0.candidates.append(candidate) }
    onCandidate?(candidate)
  }
  func peerGathered() { seen.withLock { $0.hasGathered = true } }
  func peerChanged(_ state: PeerState) { seen.withLock { $0.states.append(state) } }
  func peerReceived(_ packet: UnsafeRawBufferPointer, isRTCP: Bool) {
    let bytes = Array(packet)
    seen.withLock { if isRTCP { $0.controls.append(bytes) } else { $0.packets.append(bytes) } }
  }
  func peerReceived(_ event: SCTPAssociation.Event) { seen.withLock { $0.events.append(event) } }

  func send(_ bytes: [UInt8], isRTCP: Bool = false) {
    var packet = bytes + [UInt8](repeating: 0, count: SRTPContext.trailer)
    packet.withUnsafeMutableBytes { _ = transport?.send($0, count: bytes.count, isRTCP: isRTCP) }
  }
}

@Suite("the transport between two peers", .timeLimit(.minutes(2)))
struct PeerTransportTests {
  /// Waits until something is so. The time limit of the suite ends it otherwise.
  func until(_ condition: () -> Bool) async throws {
    while !condition() { try await Task.sleep(for: .milliseconds(2)) }
  }

  func connect(_ loop: RTCLoop, data: Bool = true, wrong: Bool = false) async throws -> (PeerEnd, PeerEnd) {
    let (a, b) = (PeerEnd(on: loop), PeerEnd(on: loop))
    let (own, other) = (try DTLSIdentity(), try DTLSIdentity())
    loop.perform {
      do {
        try a.start(isControlling: true, own)
        try b.start(isControlling: false, other)
        a.onCandidate = { _ = b.transport?.add($0) }
        b.onCandidate = { _ = a.transport?.add($0) }
        for (end, peer, identity, isClient) in [(a, b, other, false), (b, a, own, true)] {
          guard let credentials = try peer.transport?.credentials else { continue }
          let digest = wrong ? identity.fingerprint.reversed() : identity.fingerprint
          let fingerprint = try #require(CertificateFingerprint(digest: digest))
          var description = PeerDescription(credentials, fingerprints: [fingerprint], isClient: isClient)
          if data { description.data = PeerDescription.Data(largest: 262_144) }
          try end.transport?.setRemote(description)
          for candidate in peer.seen.withLock({ $0.candidates }) { _ = end.transport?.add(candidate) }
        }
      } catch { Issue.record(error) }
    }
    return (a, b)
  }

  @Test("two peers connect, and packets and messages pass both ways")
  func connects() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await connect(loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    #expect(a.seen.withLock { $0.states } == [.securing, .connected])
    let packet: [UInt8] = [0x80, 111, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3] + Array(0..<100)
    let control: [UInt8] = [0x80, 201, 0, 1, 0, 0, 0, 3]
    loop.perform {
      a.send(packet)
      b.send(packet)
      a.send(control, isRTCP: true)
    }
    try await until { b.seen.withLock { $0.packets.count == 1 && $0.controls.count == 1 } }
    try await until { a.seen.withLock { $0.packets.count == 1 } }
    #expect(a.seen.withLock { $0.packets } == [packet] && b.seen.withLock { $0.controls } == [control])

    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.events.contains(.connected) } } }
    let message = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
    loop.perform {
      _ = a.transport?.send(message, stream: 1, protocol: 53, SCTPAssociation.Delivery())
      _ = b.transport?.send([1], stream: 1, protocol: 51, SCTPAssociation.Delivery())
    }
    try await until {
      b.seen.withLock { $0.events.contains(.message(stream: 1, protocol: 53, bytes: message)) }
    }
    try await until { a.seen.withLock { $0.events.contains(.message(stream: 1, protocol: 51, bytes: [1])) } }

    loop.perform { a.transport?.close() }
    try await until { b.seen.withLock { $0.states.last } == .closed }
  }

  @Test("ICE begins again, and everything above it stays as it is")
  func restart() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await connect(loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    let credentials = Locked<[ICECredentials]>([])
    loop.perform {
      do {
        let before = [try a.transport?.credentials, try b.transport?.credentials].compactMap { $0 }
        for end in [a, b] { try end.transport?.restart() }
        let after = [try a.transport?.credentials, try b.transport?.credentials].compactMap { $0 }
        credentials.withLock { $0 = before + after }
        for (end, peer) in [(a, b), (b, a)] {
          guard let own = try peer.transport?.credentials, var description = end.transport?.remote else {
            continue
          }
          description.credentials = own
          try end.transport?.setRemote(description)
          for candidate in peer.seen.withLock({ $0.candidates }) { _ = end.transport?.add(candidate) }
        }
      } catch { Issue.record(error) }
    }
    let packet: [UInt8] = [0x80, 111, 0, 9, 0, 0, 0, 2, 0, 0, 0, 3, 1]
    // Until the new checks have found a pair, packets may be lost.
    var number: UInt8 = 0
    while b.seen.withLock({ $0.packets.isEmpty }) {
      number &+= 1
      var next = packet
      next[3] = number
      let sent = next
      loop.perform { a.send(sent) }
      try await Task.sleep(for: .milliseconds(5))
    }
    #expect(Set(credentials.withLock { $0 }).count == 4)
    #expect([a, b].allSatisfy { $0.seen.withLock { $0.states } == [.securing, .connected] })
  }

  @Test("the certificate of somebody else is refused before a packet passes")
  func impostor() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await connect(loop, wrong: true)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .failed(.fingerprint) } }
    let hasSent = Locked(false)
    loop.perform {
      a.send([0x80, 111, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1])
      // Later than what may have come of it.
      loop.perform { hasSent.withLock { $0 = true } }
    }
    try await until { hasSent.withLock { $0 } }
    #expect(b.seen.withLock { $0.packets.isEmpty && $0.events.isEmpty })
  }
}
