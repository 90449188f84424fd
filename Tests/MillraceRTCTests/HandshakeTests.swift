import MillraceCore
import Testing

@testable import MillraceRTC

@Suite("handshakes and packets of two peers", .timeLimit(.minutes(2)))
struct HandshakeTests {
  private let clock = Clock(.realtime)

  /// A packet of a source.
  private func packet(_ sequence: UInt16, of source: UInt32 = 3, count: Int = 50) -> [UInt8] {
    let head: [UInt32] = [0x806F_0000 | UInt32(sequence), 960 * UInt32(sequence), source]
    return head.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
      + [UInt8](repeating: 7, count: count)
  }

  @Test("a handshake that begins before this side has a pair of addresses is not lost")
  func early() throws {
    let pair = try PipePair()
    pair.client.pipe.open()
    pair.deliver()
    #expect(pair.server.states.isEmpty && pair.server.pipe.attempts == 0)
    pair.server.pipe.open()
    pair.deliver()
    #expect(pair.client.states == [.securing, .connected] && pair.server.states == [.securing, .connected])
  }

  @Test("while this side has no pair, it asks the peer for checks five times a second")
  func checks() throws {
    let pair = try PipePair()
    let transport = try #require(pair.client.transport)
    #expect(transport.run(at: 0) == .milliseconds(200) && pair.client.pipe.checks == 0)
    #expect(transport.run(at: .milliseconds(100)) == .milliseconds(200) && pair.client.pipe.checks == 0)
    #expect(transport.run(at: .milliseconds(200)) == .milliseconds(400) && pair.client.pipe.checks == 1)
    #expect(transport.run(at: .milliseconds(450)) == .milliseconds(650) && pair.client.pipe.checks == 2)
    pair.client.pipe.open()
    _ = transport.run(at: .milliseconds(900))
    #expect(pair.client.pipe.checks == 2)
  }

  @Test("a handshake connects whatever its first datagrams are cut to, because they are sent again")
  func cut() async throws {
    for count in [0, 1, 12, 13, 14, 24, 25, 60, 100] {
      let pair = try PipePair()
      pair.client.pipe.open()
      pair.server.pipe.open()
      let first = try #require(pair.client.pipe.sent.first)
      pair.client.pipe.sent = []
      pair.server.pipe.receive(Array(first.prefix(count)))
      let transport = try #require(pair.client.transport)
      while pair.client.states.last != .connected {
        try await Task.sleep(for: .milliseconds(5))
        _ = transport.run(at: clock.now)
        pair.deliver()
      }
      #expect(pair.server.states.last == .connected)
    }
  }

  @Test("every datagram of a handshake may be cut anywhere: nobody crashes, and nobody is connected by it")
  func cutAnywhere() throws {
    let recorded = try PipePair()
    recorded.connect()
    let datagrams = recorded.client.pipe.log
    let hello = try #require(datagrams.first)
    let pair = try PipePair()
    pair.server.pipe.open()
    for count in 0..<hello.count { pair.server.pipe.receive(Array(hello.prefix(count))) }
    for datagram in datagrams {
      for count in stride(from: 1, to: datagram.count, by: 7) {
        pair.server.pipe.receive(Array(datagram.prefix(count)))
      }
    }
    #expect(pair.server.states.allSatisfy { $0 != .connected })
  }

  @Test("a certificate that is not the one of the description never connects, and no packet passes")
  func wrongFingerprint() throws {
    let pair = try PipePair(impostor: true)
    pair.connect()
    #expect(pair.server.states == [.securing, .failed(.fingerprint)])
    pair.server.pipe.receive(pair.client.send(packet(1)))
    #expect(pair.server.packets.isEmpty)
  }

  @Test("the certificate of the process is made once, on the curve P-256, and has a digest of SHA-256")
  func certificate() throws {
    let (first, second) = (try DTLSIdentity.process.get(), try DTLSIdentity.process.get())
    #expect(first === second && first.fingerprint.count == 32)
    #expect(first.fingerprint != (try DTLSIdentity()).fingerprint)
    let pair = try PipePair()
    pair.connect()
    let plain = Array(pair.server.pipe.log.joined())
    // The object identifiers of an elliptic curve's key and of P-256 (RFC 5480 sections 2.1.1 and 2.1.1.1), as certificates carry them.
    let curve: [UInt8] = [
      0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03,
      0x01,
      0x07,
    ]
    #expect(plain.indices.contains { plain[$0...].starts(with: curve) })
  }

  @Test("a peer that floods the beginning of a handshake fills no memory, and the handshake is repeated")
  func flood() throws {
    let pair = try PipePair()
    for _ in 0..<1_000 { pair.server.pipe.receive([22, 1, 2, 3]) }
    #expect(try #require(pair.server.transport).refusals.early == 1_000 - 16)
    pair.connect()
    // What was kept is no handshake: OpenSSL drops it.
    #expect(pair.client.states.last == .connected && pair.server.states.last == .connected)
  }

  @Test("a flight that is lost is sent again 200 ms later, and then after twice as long")
  func lostFlight() async throws {
    let pair = try PipePair()
    pair.client.pipe.open()
    pair.server.pipe.open()
    pair.client.pipe.sent = []
    let transport = try #require(pair.client.transport)
    let due = try #require(transport.run(at: clock.now))
    #expect(due - clock.now <= .milliseconds(200))
    while pair.client.pipe.sent.isEmpty {
      try await Task.sleep(for: .milliseconds(5))
      _ = transport.run(at: clock.now)
    }
    #expect(try #require(transport.run(at: clock.now)) - clock.now <= .milliseconds(400))
    pair.deliver()
    #expect(pair.client.states.last == .connected && pair.server.states.last == .connected)
  }

  @Test("a last flight that is lost is sent again when the peer repeats its own")
  func lostLastFlight() async throws {
    let pair = try PipePair()
    pair.client.pipe.open()
    pair.server.pipe.open()
    // The last flight is that of the server.
    pair.deliver { $0 === pair.server && pair.server.states.last == .connected }
    #expect(pair.server.states.last == .connected && pair.client.states.last == .securing)
    let transport = try #require(pair.client.transport)
    while pair.client.states.last != .connected {
      try await Task.sleep(for: .milliseconds(5))
      _ = transport.run(at: clock.now)
      pair.deliver()
    }
  }

  @Test("packets that are forged, repeated, too early or nothing at all are counted, and not received")
  func refusals() throws {
    let pair = try PipePair()
    pair.server.pipe.receive(packet(1))
    pair.connect()
    let datagram = pair.client.send(packet(1))
    var forged = pair.client.send(packet(2))
    forged[20] ^= 1
    for bytes in [datagram, datagram, forged, [0x80], [0x80, 111, 0], [255, 0, 0]] {
      pair.server.pipe.receive(bytes)
    }
    #expect(pair.server.packets == [packet(1)])
    let refusals = try #require(pair.server.transport).refusals
    #expect((refusals.early, refusals.replayed, refusals.forged, refusals.malformed) == (1, 1, 1, 3))
  }

  @Test("a peer has a limited number of sources, until some have ended")
  func sources() throws {
    let pair = try PipePair()
    pair.connect()
    for source in 0..<200 { pair.server.pipe.receive(pair.client.send(packet(1, of: UInt32(source) + 1))) }
    let transport = try #require(pair.server.transport)
    #expect(pair.server.packets.count == 128 && transport.refusals.sources == 72)
    let old = pair.client.send(packet(2, of: 2))
    pair.server.pipe.receive(old)
    transport.noteEnd(of: 2)
    // It has ended, and still nobody can repeat what it sent.
    pair.server.pipe.receive(old)
    #expect(pair.server.packets.count == 129 && transport.refusals.replayed == 1)
    pair.server.pipe.receive(pair.client.send(packet(2, of: 500)))
    #expect(pair.server.packets.count == 130)
  }

  @Test("packets of every size pass as they are, up to a datagram")
  func sizes() throws {
    let pair = try PipePair()
    pair.connect()
    let all = [0, 1, 100, 1_200, 8_000].enumerated().map { packet(UInt16($0.offset), count: $0.element) }
    for bytes in all { pair.server.pipe.receive(pair.client.send(bytes)) }
    #expect(pair.server.packets == all)
  }

  @Test("a network that fails for a while is reported, and so is its return")
  func interruption() throws {
    let pair = try PipePair()
    // Before a pair is found, another candidate may bring one.
    pair.client.pipe.fail()
    pair.connect()
    pair.client.pipe.fail()
    pair.client.pipe.open()
    #expect(pair.client.states == [.securing, .connected, .disconnected, .connected])
  }

  @Test("who closes says so: the peer sees an end and no failure")
  func close() throws {
    let pair = try PipePair()
    pair.connect()
    pair.client.transport?.close()
    #expect(pair.client.pipe.isClosed)
    pair.deliver()
    #expect(pair.server.states.last == .closed)
  }
}
