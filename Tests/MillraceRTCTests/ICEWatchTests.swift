import MillraceCore
import Testing

@testable import MillraceRTC

@Suite("the watch over a peer's silence")
struct ICEWatchTests {
  /// A third of the patience passes in two ticks.
  private let tick = Nanoseconds.milliseconds(500)

  /// Ticks without anything of the peer. Returns how often it was asked for a sign of life.
  private func wait(_ count: Int, _ watch: inout ICEWatch, from start: Int) -> Int {
    var probes = 0
    for number in start..<(start + count)
    where watch.tick(at: tick * Int64(number), received: false, heard: false) {
      probes += 1
    }
    return probes
  }

  @Test("a peer that can be heard and says nothing for 3 s is silent; it is asked from the first second on")
  func silence() {
    var watch = ICEWatch(patience: .milliseconds(3_000))
    _ = watch.tick(at: 0, received: false, heard: true)
    #expect(wait(1, &watch, from: 1) == 0)
    #expect(wait(4, &watch, from: 2) == 4 && !watch.isSilent)
    #expect(wait(1, &watch, from: 6) == 1 && watch.isSilent)
    _ = watch.tick(at: tick * 7, received: false, heard: true)
    #expect(!watch.isSilent)
  }

  @Test("a peer that only receives, and answers when it is asked, is never silent", arguments: [true, false])
  func receiver(isICE: Bool) {
    var watch = ICEWatch(patience: .milliseconds(3_000))
    var isAsked = false
    _ = watch.tick(at: 0, received: false, heard: true)
    for number in 1..<1_000 {
      isAsked = watch.tick(at: tick * Int64(number), received: isAsked && !isICE, heard: isAsked && isICE)
      #expect(!watch.isSilent)
    }
  }

  @Test("over a transport that cannot be heard there is no verdict")
  func deaf() {
    var watch = ICEWatch(patience: .milliseconds(3_000))
    _ = watch.tick(at: 0, received: true, heard: false)
    _ = wait(1_000, &watch, from: 1)
    #expect(!watch.isSilent)
  }

  @Test("a thread that stood still for a minute has missed nothing")
  func standstill() {
    var watch = ICEWatch(patience: .milliseconds(3_000))
    _ = watch.tick(at: 0, received: false, heard: true)
    _ = watch.tick(at: .milliseconds(60_000), received: false, heard: false)
    #expect(!watch.isSilent)
    #expect(watch.due == Nanoseconds.milliseconds(60_500))
  }

  @Test("a clock that steps back changes nothing")
  func clockStep() {
    var watch = ICEWatch(patience: .milliseconds(3_000))
    _ = watch.tick(at: .milliseconds(60_000), received: false, heard: true)
    _ = watch.tick(at: 0, received: false, heard: false)
    #expect(!watch.isSilent)
  }

  @Test("after a restart of ICE there is no new verdict before the peer was heard")
  func restart() {
    var watch = ICEWatch(patience: .milliseconds(3_000))
    _ = watch.tick(at: 0, received: false, heard: true)
    watch.restart()
    _ = wait(20, &watch, from: 1)
    #expect(!watch.isSilent)
    _ = watch.tick(at: tick * 21, received: false, heard: true)
    _ = wait(6, &watch, from: 22)
    #expect(watch.isSilent)
    watch.restart()
    #expect(watch.isSilent)
  }

  // MARK: In a transport

  /// Two connected ends; the client is watched from `start` on.
  private func connect() throws -> (PipePair, PeerTransport, start: Nanoseconds) {
    let pair = try PipePair()
    pair.connect()
    let transport = try #require(pair.client.transport)
    let start = Clock(.realtime).now
    pair.client.pipe.hasAnswered = true
    _ = transport.run(at: start)
    return (pair, transport, start)
  }

  @Test("a silent peer is disconnected after 3 s, and connected again with its next packet")
  func disconnects() throws {
    let (pair, transport, start) = try connect()
    for number in 1...5 { #expect(transport.run(at: start + tick * Int64(number)) != nil) }
    #expect(pair.client.states.last == .connected)
    _ = transport.run(at: start + tick * 6)
    #expect(pair.client.states.last == .disconnected && pair.client.pipe.probes == 5)
    let packet: [UInt8] = [0x80, 111, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1]
    pair.client.pipe.receive(pair.server.send(packet))
    #expect(pair.client.states.last == .connected && pair.client.packets == [packet])
  }

  @Test("an answer to the request for a sign of life connects again")
  func answers() throws {
    let (pair, transport, start) = try connect()
    for number in 1...6 { _ = transport.run(at: start + tick * Int64(number)) }
    #expect(pair.client.states.last == .disconnected)
    pair.client.pipe.hasAnswered = true
    _ = transport.run(at: start + tick * 7)
    #expect(pair.client.states.last == .connected)
  }

  @Test("where ICE itself has lost the pair, a late packet does not connect again")
  func lostPair() throws {
    let (pair, transport, start) = try connect()
    pair.client.pipe.fail()
    pair.client.pipe.receive(pair.server.send([0x80, 111, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1]))
    pair.client.pipe.hasAnswered = true
    _ = transport.run(at: start + tick)
    #expect(pair.client.states.last == .disconnected)
    pair.client.pipe.open()
    #expect(pair.client.states.last == .connected)
  }
}
