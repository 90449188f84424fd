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
  /// The agent below the transport.
  private(set) var ice: NiceTransport?
  private(set) var channels: DataChannels?
  var onCandidate: ((String) -> Void)?

  init(on loop: RTCLoop) { self.loop = loop }

  /// - Parameters:
  ///   - silence: how long the peer may be silent.
  ///   - report: given, there are data channels, which report to it.
  func start(
    isControlling: Bool, _ identity: DTLSIdentity, silence: Nanoseconds = .milliseconds(3_000),
    report: ((DataChannelEvent) -> Void)? = nil
  ) throws(RTCProblem) {
    entry = loop.add(self)
    var settings = ICESettings()
    settings.addresses = ["127.0.0.1"]
    let ice = try NiceTransport(settings, isControlling: isControlling, on: loop)
    self.ice = ice
    let made = PeerTransport(
      ice, identity, observer: self, silence: silence, entry: { [unowned self] in entry })
    transport = made
    if let report {
      channels = DataChannels(
        isClient: !isControlling, largestRemote: 0,
        send: { [weak made] in made?.send($0, stream: $1, protocol: $2, $3) ?? .unsent },
        close: { [weak made] in made?.close(stream: $0) ?? false }, report: report)
    }
    try made.gather()
  }

  func run(at now: Nanoseconds) -> Nanoseconds? {
    let due = transport?.run(at: now)
    channels?.run(at: 0)
    return due
  }
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
  func peerReceived(_ event: SCTPAssociation.Event) {
    seen.withLock { $0.events.append(event) }
    channels?.take(event)
  }

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

  func connect(
    _ loop: RTCLoop, data: Bool = true, wrong: Bool = false, silence: Nanoseconds = .milliseconds(3_000),
    reports: (own: ChannelLog, other: ChannelLog)? = nil
  ) async throws -> (PeerEnd, PeerEnd) {
    let (a, b) = (PeerEnd(on: loop), PeerEnd(on: loop))
    let (own, other) = (try DTLSIdentity(), try DTLSIdentity())
    loop.perform {
      do {
        try a.start(
          isControlling: true, own, silence: silence, report: reports.map { $0.own.append })
        try b.start(
          isControlling: false, other, silence: silence, report: reports.map { $0.other.append })
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

  @Test("a candidate of a name that only the peer's network resolves is not used, and the others connect")
  func localName() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await connect(loop)
    let isTaken = Locked<Bool?>(nil)
    loop.perform {
      let name = "candidate:1 1 UDP 2122260223 3f1c9c9e-0c1d-4d5b-a0a5-9a2f4a0d1a11.local 50000 typ host"
      let taken = a.transport?.add(name)
      isTaken.withLock { $0 = taken }
    }
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    #expect(isTaken.withLock { $0 } == false)
  }

  @Test("messages beyond the buffer are full and not kept; those that were taken arrive whole")
  func fullQueue() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await connect(loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.events.contains(.connected) } } }
    let message = [UInt8](repeating: 7, count: 250_000)
    let results = Locked<[SCTPAssociation.Result]>([])
    loop.perform {
      for _ in 0..<200 {
        guard let result = a.transport?.send(message, stream: 1, protocol: 53, SCTPAssociation.Delivery())
        else { continue }
        results.withLock { $0.append(result) }
      }
    }
    try await until { results.withLock { $0.count } == 200 }
    let all = results.withLock { $0 }
    let taken = all.count(where: { $0 == .sent })
    // 2 MB of buffer, and what SCTP has sent meanwhile.
    #expect((4..<40).contains(taken))
    #expect(all.count(where: { $0 == .full }) == 200 - taken)
    let event = SCTPAssociation.Event.message(stream: 1, protocol: 53, bytes: message)
    try await until {
      let events = b.seen.withLock { $0.events }
      return events.count(where: { $0 == event }) == taken
    }
    loop.perform {
      let large = [UInt8](repeating: 1, count: SCTPAssociation.largestMessage * 4)
      let result = a.transport?.send(large, stream: 1, protocol: 53, SCTPAssociation.Delivery())
      results.withLock { $0 = result.map { [$0] } ?? [] }
    }
    try await until { results.withLock { $0.count } == 1 }
    #expect(results.withLock { $0 } == [.tooLarge])
  }

  @Test("data channels are opened by both sides over SCTP, carry messages, and are closed and opened again")
  func channels() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (own, other) = (ChannelLog(), ChannelLog())
    let (a, b) = try await connect(loop, reports: (own, other))
    let request = DataChannelRequest(label: "chat", protocolName: "text")
    loop.perform {
      _ = a.channels?.open(request)
      _ = b.channels?.open(request)
    }
    try await until { own.opened.count == 2 && other.opened.count == 2 }
    let first = try #require(own.opened.first(where: { !$0.isRemote }))
    for round in 0..<5 {
      let text = Array("round \(round)".utf8)
      let number = try #require(own.opened.last(where: { !$0.isRemote })).channel
      loop.perform { _ = a.channels?.send(text, isText: true, on: number) }
      try await until { other.messages.contains(text) }
      loop.perform {
        a.channels?.close(number)
        _ = a.channels?.open(request)
      }
      try await until { own.opened.count == round + 3 && other.opened.count == round + 3 }
    }
    #expect(own.events.contains(.closed(channel: first.channel)))
    #expect(own.refusals.isEmpty && other.refusals.isEmpty)
  }

  @Test("a peer that is gone without a word is noticed, long before its consent expires")
  func vanishes() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await connect(loop, data: false, silence: .milliseconds(600))
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    let canHear = Locked(false)
    while !canHear.withLock({ $0 }) {
      loop.perform {
        let can = a.transport?.watch?.canHear ?? false
        canHear.withLock { $0 = can }
      }
      try await Task.sleep(for: .milliseconds(5))
    }
    loop.perform { b.ice?.close() }
    try await until { a.seen.withLock { $0.states.last } == .disconnected }
    let isSilent = Locked<Bool?>(nil)
    loop.perform {
      let silent = a.transport?.watch?.isSilent
      isSilent.withLock { $0 = silent }
    }
    try await until { isSilent.withLock { $0 } != nil }
    #expect(isSilent.withLock { $0 } == true)
  }

  @Test("a peer answers when it is asked for a sign of life, and the answer is heard")
  func signOfLife() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await connect(loop, data: false)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    // The first look begins the notes.
    loop.perform { _ = a.ice?.heard() }
    let heard = Locked(0)
    // The checks of libnice alone come every 4 s: the time limit would end the test.
    while heard.withLock({ $0 }) < 40 {
      loop.perform {
        guard a.ice?.heard() == true else { return }
        heard.withLock { $0 += 1 }
      }
      loop.perform { _ = a.ice?.probe() }
      try await Task.sleep(for: .milliseconds(5))
    }
    #expect(a.seen.withLock { $0.states } == [.securing, .connected])
  }

  @Test("a certificate with another fingerprint is refused before a packet passes")
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
