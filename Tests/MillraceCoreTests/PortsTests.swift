@testable import MillraceCore
import Testing

@Suite("ports") struct PortsTests {
  @Test("a packet emitted to several links is shared; without a link it is discarded")
  func fanOut() {
    let fixture = TableFixture(outputs: [.init(linkCount: 3), .init(linkCount: 0)])
    var ports = Ports(fixture.table)
    ports.emit(fixture.packet(65), to: 0)
    #expect(fixture.pool.freeCount == 63)
    for link in 0..<3 { #expect(fixture.takeText(0, link: link) == "A") }
    #expect(fixture.pool.hasAllBlocks)
    ports.emit(fixture.packet(66), to: 1)
    #expect(fixture.pool.hasAllBlocks)
    #expect(ports.isLinked(output: 0) == true)
    #expect(ports.isLinked(output: 1) == false)
    #expect(ports.isLinked(output: 2) == false)
  }

  @Test("a packet gets the output's format, the time of the call, and the given reply")
  func stamps() throws {
    let fixture = TableFixture(inputs: [.init()], outputs: [.init(), .init()])
    fixture.table.pointee.now = 77
    _ = fixture.inputs[0].pointee.put(fixture.packet(1, generation: 3))
    fixture.table.pointee.generation = 3
    var ports = Ports(fixture.table)
    guard let input = ports.next() else {
      Issue.record("the packet is missing")
      return
    }
    #expect(input.generation == 3)
    let packet = try ports.makePacket(1, bytes: 5, of: HeldReply(of: input))
    #expect(packet.generation == 3)
    #expect(packet.format == 11)
    #expect(packet.timestamp == 77)
    #expect(packet.byteCount == 5)
    ports.emit(packet, to: 0)
    guard let emitted = fixture.outputs[0][0].pointee.take(generation: 3) else {
      Issue.record("the packet is missing")
      return
    }
    #expect(emitted.format == 10)
  }

  @Test("a packet belongs to the given reply, not to that of the packet taken last")
  func ownership() throws {
    let fixture = TableFixture(inputs: [.init()], outputs: [.init()])
    fixture.table.pointee.generation = 3
    _ = fixture.inputs[0].pointee.put(fixture.packet(1, generation: 3))
    var ports = Ports(fixture.table)
    _ = ports.next()
    let ofNone = try ports.makePacket(bytes: 1, of: .none)
    #expect(ofNone.generation == 0)
    let ofBot = try ports.makePacket(bytes: 1, of: ports.currentReply)
    #expect(ofBot.generation == 3)
    #expect(ofBot.flags == [])
    var spared = fixture.packet(1, generation: 2)
    spared.flags = [.uninterruptible, .discontinuity]
    let ofSpared = try ports.makePacket(bytes: 1, of: HeldReply(of: spared))
    #expect(ofSpared.generation == 2)
    #expect(ofSpared.flags == .uninterruptible)
  }

  @Test("an output has room when every blocking link has room")
  func room() {
    let fixture = TableFixture(outputs: [.init(limit: 1, linkCount: 2), .init(limit: 1, policy: .dropOldest)])
    var ports = Ports(fixture.table)
    #expect(ports.hasRoom(0) == true)
    ports.emit(fixture.packet(1))
    #expect(ports.hasRoom(0) == false)
    _ = fixture.takeText(0, link: 0)
    #expect(ports.hasRoom(0) == false)
    _ = fixture.takeText(0, link: 1)
    #expect(ports.hasRoom(0) == true)
    for number in 0..<20 { ports.emit(fixture.packet(number), to: 1) }
    #expect(ports.hasRoom(1) == true)
  }

  @Test("emitting without room records a fault for after the call")
  func overflow() {
    let fixture = TableFixture(outputs: [.init(limit: 1, policy: .fail)])
    var ports = Ports(fixture.table)
    ports.emit(fixture.packet(1))
    #expect(fixture.table.pointee.fault == nil)
    ports.emit(fixture.packet(2))
    #expect(fixture.table.pointee.fault == NodeFault(.outputFull, code: 0, detail: 0))
  }

  @Test("an empty pool is a fault and does not block")
  func poolEmpty() throws {
    let fixture = TableFixture(outputs: [.init()], blockCount: 1)
    var ports = Ports(fixture.table)
    let only = try ports.makePacket(bytes: 1, of: .none)
    #expect(throws: NodeFault.poolEmpty) {
      var ports = Ports(fixture.table)
      _ = try ports.makePacket(bytes: 1, of: .none)
    }
    _ = consume only
  }

  @Test("an unshared packet is written in place; a shared one is copied with its metadata")
  func makeWritable() throws {
    let fixture = TableFixture(outputs: [.init()])
    var ports = Ports(fixture.table)
    let alone = try ports.makeWritable(fixture.packet(67))
    #expect(fixture.pool.freeCount == 63)
    let other = alone.share()
    var copy = try ports.makeWritable(alone)
    #expect(fixture.pool.freeCount == 62)
    #expect(copy.position == 67)
    #expect(copy.timestamp == 67)
    let was = copy.samples(of: UInt8.self)[0]
    #expect(was == 67)
    var view = copy.mutableSamples(of: UInt8.self)
    view[0] = 1
    let kept = other.samples(of: UInt8.self)[0]
    #expect(kept == 67)
  }

  @Test("an unlinked input has no packets and is over")
  func unlinked() {
    let fixture = TableFixture(inputs: [.init()])
    fixture.table.pointee.inputs[0].link = nil
    var ports = Ports(fixture.table)
    let isEmpty = ports.next() == nil
    #expect(isEmpty)
    #expect(ports.hasPacket() == false)
    #expect(ports.isOver() == true)
    #expect(ports.isLinked(input: 0) == false)
    #expect(ports.isLinked(input: 5) == false)
  }

  @Test("a later timer request replaces the earlier one")
  func wishes() {
    let fixture = TableFixture()
    var ports = Ports(fixture.table)
    ports.wake(at: 5)
    ports.wake(at: 9)
    #expect(fixture.table.pointee.wakeAt == 9)
  }

  @Test("an event without a listener takes no block")
  func unheard() {
    let fixture = TableFixture(outputs: [.init(linkCount: 0)])
    fixture.listen(event: "\"e\":1")
    var ports = Ports(fixture.table)
    var wasWritten = false
    ports.post(0) { _ in wasWritten = true }
    #expect(!wasWritten)
    #expect(fixture.pool.exhaustedCount == 0)
  }

  @Test("an event goes to the embedding program and to the links")
  func outbox() {
    let fixture = TableFixture(outputs: [.init(), .init()])
    fixture.listen(event: "\"e\":1")
    fixture.table.pointee.outbox = fixture.outputs[1][0]
    var ports = Ports(fixture.table)
    ports.post(0)
    #expect(fixture.takeText(0) == #"{"time":0.000000,"e":1}"#)
    #expect(fixture.takeText(1) == #"{"time":0.000000,"e":1}"#)
    #expect(fixture.pool.hasAllBlocks)
  }

  @Test("an event's packet names node, event and time, so that events can be sorted without parsing")
  func eventOrigin() {
    let fixture = TableFixture(outputs: [.init()])
    fixture.listen(event: "\"e\":1")
    fixture.table.pointee.nodeIndex = 7
    fixture.table.pointee.now = 1_500_000
    var ports = Ports(fixture.table)
    ports.post(0)
    guard let packet = fixture.outputs[0][0].pointee.take(generation: 0) else {
      Issue.record("no packet")
      return
    }
    #expect(packet.position == 0 && packet.duration == 7 && packet.timestamp == 1_500_000)
  }

  @Test(
    "an event without a free block is counted on every link and for the embedding program")
  func lostEvent() {
    let fixture = TableFixture(outputs: [.init(linkCount: 2), .init()], blockCount: 1)
    fixture.listen(event: "\"e\":1")
    fixture.table.pointee.outbox = fixture.outputs[1][0]
    var ports = Ports(fixture.table)
    let held = fixture.pool.take()
    ports.post(0)
    ports.post(0)
    #expect(fixture.counters.map { $0.pointee.droppedNewest.current } == [2, 2, 2])
    #expect(fixture.takeText(0) == nil && fixture.takeText(1) == nil)
    _ = consume held
    ports.post(0)
    #expect(fixture.takeText(0, link: 1) == #"{"time":0.000000,"e":1}"#)
    #expect(fixture.counters.map { $0.pointee.droppedNewest.current } == [2, 2, 2])
  }
}
