import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

/// Two transports with data channels over pipes. On the loop's thread.
private final class DataPair: RTCLoopMember {
  final class End: PeerObserver {
    let pipe = PipeTransport()
    var states: [PeerState] = []
    var events: [SCTPAssociation.Event] = []
    var transport: PeerTransport?

    func peerFound(_ candidate: String) {}
    func peerGathered() {}
    func peerChanged(_ state: PeerState) { states.append(state) }
    func peerReceived(_ packet: UnsafeRawBufferPointer, isRTCP: Bool) {}
    func peerReceived(_ event: SCTPAssociation.Event) { events.append(event) }

    /// What was sent and not delivered.
    func takeSent() -> [[UInt8]] {
      defer { pipe.sent = [] }
      return pipe.sent
    }
  }

  let (client, server) = (End(), End())
  private var entry: RTCLoop.Entry?

  init(on loop: RTCLoop) throws(RTCProblem) {
    let entry = loop.add(self)
    self.entry = entry
    let (own, other) = (try DTLSIdentity(), try DTLSIdentity())
    for (end, identity, peer, isClient) in [(client, own, other, true), (server, other, own, false)] {
      let made = PeerTransport(end.pipe, identity, observer: end, entry: { entry })
      end.transport = made
      guard let fingerprint = CertificateFingerprint(digest: peer.fingerprint) else { continue }
      var description = PeerDescription(
        end.pipe.credentials, fingerprints: [fingerprint], isClient: isClient)
      description.data = PeerDescription.Data(largest: 262_144)
      try made.setRemote(description)
    }
  }

  func run(at now: Nanoseconds) -> Nanoseconds? { nil }
  func end() {
    client.transport?.close()
    server.transport?.close()
  }

  /// Carries the handshake until the server, whose flight is the last, is done. What it has sent then waits in its pipe.
  func shakeHands() {
    client.pipe.open()
    server.pipe.open()
    for _ in 0..<10 where server.states.last != .connected {
      for datagram in server.takeSent() { client.pipe.receive(datagram) }
      for datagram in client.takeSent() { server.pipe.receive(datagram) }
    }
  }

  /// Carries datagrams until none is left.
  func deliver() {
    while !client.pipe.sent.isEmpty || !server.pipe.sent.isEmpty {
      for datagram in client.takeSent() { server.pipe.receive(datagram) }
      for datagram in server.takeSent() { client.pipe.receive(datagram) }
    }
  }
}

/// An ICE agent and the candidates that it has found. On the loop's thread, but for `found` and `isOver`.
private final class AgentPlace: ICEObserver, @unchecked Sendable {
  let found = Locked<[String]>([])
  let isOver = Locked(false)
  private(set) var agent: NiceTransport?

  func open(on loop: RTCLoop) {
    do throws(RTCProblem) {
      let made = try NiceTransport(ICESettings(), isControlling: true, on: loop)
      agent = made
      made.observer = self
      try made.gather()
    } catch {
      // A machine without a network has no address to find.
      isOver.withLock { $0 = true }
    }
  }

  func iceFound(_ candidate: String) { found.withLock { $0.append(candidate) } }
  func iceGathered() { isOver.withLock { $0 = true } }
  func iceChanged(_ state: ICEState) {}
  func iceReceived(_ datagram: UnsafeMutableRawBufferPointer) {}
}

/// A socket of a peer and where its datagrams come from. On the loop's thread, but for `sources` and `local`.
private final class PeerSocket: @unchecked Sendable {
  let sources = Locked<[DatagramAddress]>([])
  let local = Locked<DatagramAddress?>(nil)
  private(set) var socket: DatagramSocket?

  func open(on loop: RTCLoop) {
    socket = try? DatagramSocket(address: "127.0.0.1", port: 0, on: loop) { [weak self] _, source in
      self?.sources.withLock { $0.append(source) }
    }
    let bound = socket?.local
    local.withLock { $0 = bound }
  }
}

/// What cost a failure with a real peer, each in a test that fails without it. Waits are bounded, so that one fails and does not hang.
@Suite("rules that real peers have taught", .timeLimit(.minutes(2)))
struct RuleTests {
  /// Longer than anything here takes on a machine with much else to do.
  private static let patience: Nanoseconds = .milliseconds(30_000)

  private let clock = Clock(.realtime)

  /// Waits until something is so, or until `patience` is over.
  private func until(_ condition: () -> Bool) async throws {
    let end = clock.now + Self.patience
    while !condition(), clock.now < end { try await Task.sleep(for: .milliseconds(2)) }
  }

  /// A flight that was sent again.
  private struct Repetition {
    /// What was left of the wait when it was asked for first; nil: nothing.
    var left: Nanoseconds?
    /// Right before and right after the call that sent it.
    var before: Nanoseconds
    var after: Nanoseconds
  }

  /// Waits until the client sends a flight again.
  private func repeatFlight(_ pair: PipePair) async throws -> Repetition {
    let transport = try #require(pair.client.transport)
    let (begun, pipe) = (clock.now, pair.client.pipe)
    var seen = Repetition(left: nil, before: begun, after: begun)
    var due = transport.run(at: begun)
    seen.after = clock.now
    if pipe.sent.isEmpty, let due { seen.left = due - begun }
    while pipe.sent.isEmpty, clock.now < begun + Self.patience {
      try await Task.sleep(for: .milliseconds(2))
      seen.before = clock.now
      due = transport.run(at: seen.before)
      seen.after = clock.now
    }
    #expect(due != nil)
    return seen
  }

  // MARK: DTLS

  @Test("a datagram of the handshake that cannot be sent is as good as lost, and no error")
  func unsent() async throws {
    let pair = try PipePair()
    // There is a pair of addresses, and its network takes nothing yet.
    pair.client.pipe.observer?.iceChanged(.connected)
    #expect(pair.client.pipe.attempts > 0 && pair.client.pipe.log.isEmpty)
    #expect(pair.client.states == [.securing])
    pair.client.pipe.open()
    pair.server.pipe.open()
    _ = try await repeatFlight(pair)
    pair.deliver()
    #expect(pair.client.states == [.securing, .connected])
    #expect(pair.server.states == [.securing, .connected])
  }

  @Test("the last flight is sent again as often as the peer repeats its own")
  func lastFlight() async throws {
    let pair = try PipePair()
    pair.client.pipe.open()
    pair.server.pipe.open()
    pair.deliver { $0 === pair.server && pair.server.states.last == .connected }
    #expect(pair.server.states.last == .connected && pair.client.states.last == .securing)
    for isLost in [true, false] {
      _ = try await repeatFlight(pair)
      pair.deliver { isLost && $0 === pair.server }
    }
    #expect(pair.client.states == [.securing, .connected])
    #expect(pair.server.states == [.securing, .connected])
  }

  @Test("a flight is repeated after 200 ms, and then after half as long again each time")
  func flightTimer() async throws {
    let pair = try PipePair()
    var sentAt = clock.now
    pair.client.pipe.open()
    for wait: Int64 in [200, 300, 450] {
      pair.client.pipe.sent = []
      let seen = try await repeatFlight(pair)
      if let left = seen.left { #expect(left <= .milliseconds(wait)) }
      // OpenSSL counts the last 15 ms as over.
      #expect(seen.after - sentAt >= .milliseconds(wait - 20))
      sentAt = seen.before
    }
  }

  // MARK: SCTP

  private struct Beginning: Sendable {
    var states: [PeerState]
    var answers: Int
    var events: [[SCTPAssociation.Event]]
  }

  @Test("data channels that the peer begins in the datagram that ends its handshake are answered at once")
  func earlyAssociation() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let outcome = Locked<Result<Beginning, RTCProblem>?>(nil)
    loop.perform {
      let result = Result { () throws(RTCProblem) -> Beginning in
        let pair = try DataPair(on: loop)
        pair.shakeHands()
        pair.client.pipe.receive(Array(pair.server.takeSent().joined()))
        let states = pair.client.states
        // Its own INIT, and the answer to the peer's.
        let answers = pair.client.pipe.sent.count
        pair.deliver()
        return Beginning(
          states: states, answers: answers, events: [pair.client.events, pair.server.events])
      }
      outcome.withLock { $0 = result }
    }
    try await until { outcome.withLock { $0 != nil } }
    let seen = try #require(outcome.withLock { $0 }).get()
    #expect(seen.states == [.securing, .connected])
    #expect(seen.answers >= 2)
    // Without a timer: nothing had to be sent again, and nobody has aborted.
    #expect(seen.events.allSatisfy { $0.first == .connected && !$0.contains(.ended) })
  }

  // MARK: Addresses

  @Test("packets leave from the port at which this side receives", arguments: [true, false])
  func samePort(hasMux: Bool) async throws {
    let loop = try RTCLoop()
    let (place, peer) = (PlainPlace(), PeerSocket())
    defer {
      loop.perform {
        place.session?.end()
        peer.socket?.close()
      }
      loop.stop()
    }
    loop.perform { peer.open(on: loop) }
    try await until { peer.local.withLock { $0 != nil } }
    var settings = PlainSettings(address: "127.0.0.1", port: 0, .sendReceive, codec: .pcmu)
    settings.hasRTCPMux = hasMux
    settings.remote = try #require(peer.local.withLock { $0 })
    let known = settings
    loop.perform {
      place.open(known, on: loop)
      for number in 0..<3 {
        place.session?.send([UInt8](repeating: UInt8(number), count: 80).span, duration: 160)
      }
    }
    try await until { peer.sources.withLock { $0.count >= 3 } }
    let local = try #require(place.local.withLock { $0 })
    let sources = peer.sources.withLock { $0 }
    #expect(sources.count >= 3 && sources.allSatisfy { $0 == local })
  }

  @Test("addresses of loopback are offered only where they are named: servers ignore them")
  func loopback() async throws {
    let loop = try RTCLoop()
    let place = AgentPlace()
    defer {
      loop.perform { place.agent?.close() }
      loop.stop()
    }
    loop.perform { place.open(on: loop) }
    try await until { place.isOver.withLock { $0 } }
    #expect(place.isOver.withLock { $0 })
    let addresses = try place.found.withLock { $0 }.map { try ICECandidate(parsing: $0).address }
    #expect(addresses.allSatisfy { !$0.hasPrefix("127.") && $0 != "::1" })
  }

  @Test(
    "a peer whose only candidate is a browser's name is found by its own checks", arguments: [true, false])
  func browserName(isAnswering: Bool) async throws {
    let name = try ICECandidate(
      parsing: "candidate:1 1 UDP 2122260223 3f1c9c9e-0c1d-4d5b-a0a5-9a2f4a0d1a11.local 50000 typ host")
    let loop = try RTCLoop()
    defer { loop.stop() }
    let identity = try DTLSIdentity()
    let (a, b) = (SessionEnd(on: loop, identity), SessionEnd(on: loop, identity))
    let hidden = isAnswering ? b : a
    loop.perform {
      func shown(_ description: SessionDescription, of end: SessionEnd) -> SessionDescription {
        guard end === hidden else { return description }
        var description = description
        for index in description.media.indices {
          description.media[index].candidates = [name]
          description.media[index].hasEndOfCandidates = false
        }
        return description
      }
      a.onDescription = { description in
        b.session?.answer(shown(description, of: a))
        // Once more beside the description.
        b.session?.add(name)
      }
      b.onDescription = { description in
        a.session?.accept(shown(description, of: b))
        a.session?.add(name)
      }
      a.session?.offer()
    }
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    #expect(a.seen.withLock { $0.states } == [.connecting, .connected])
    #expect(b.seen.withLock { $0.states } == [.connecting, .connected])
  }
}
