@testable import MillraceCore
import TestSystem
import Testing

/// One link and what it needs.
private final class OneLink {
  let fixture: TableFixture
  init(_ policy: LinkPolicy, limit: Int = 4, burst: Int = 1, isRemote: Bool = false) {
    fixture = TableFixture(inputs: [.init(limit: limit, policy: policy, burst: burst, isRemote: isRemote)])
  }
  var link: UnsafeMutablePointer<Link> { fixture.inputs[0] }
  var counters: UnsafeMutablePointer<LinkCounters> { fixture.counters[0] }

  @discardableResult
  func put(_ number: Int, generation: UInt32 = 0, flags: PacketFlags = []) -> Bool {
    link.pointee.put(fixture.packet(number, generation: generation, flags: flags))
  }
  func take(generation: UInt32 = 0) -> Int? {
    guard let packet = link.pointee.take(generation: generation) else { return nil }
    return Int(packet.position)
  }
  func takeAll(generation: UInt32 = 0) -> [Int] {
    var all: [Int] = []
    while let number = take(generation: generation) { all.append(number) }
    return all
  }
}

@Suite("link policies") struct LinkPolicyTests {
  @Test(
    "a blocking link has room up to its limit, and accepts a burst beyond it that was granted before",
    arguments: [false, true])
  func block(isRemote: Bool) {
    let one = OneLink(.block, limit: 2, burst: 3, isRemote: isRemote)
    #expect(one.link.pointee.hasRoom() == true)
    one.put(1)
    #expect(one.link.pointee.hasRoom() == true)
    for number in 2...4 { #expect(one.put(number)) }
    #expect(one.link.pointee.hasRoom() == false)
    #expect(one.takeAll() == [1, 2, 3, 4])
    #expect(one.counters.pointee.pushed.current == 4)
    #expect(one.counters.pointee.popped.current == 4)
    #expect(one.counters.pointee.highWater.current == 4)
    #expect(one.link.pointee.hasRoom() == true)
  }

  @Test(
    "a packet beyond limit and burst of a blocking link is lost, counted, and the writer's fault",
    arguments: [false, true])
  func blockOverflow(isRemote: Bool) {
    let one = OneLink(.block, limit: 2, burst: 1, isRemote: isRemote)
    var accepted = 0
    while accepted < 100 && one.put(accepted) { accepted += 1 }
    #expect(accepted >= 3 && accepted <= 4)
    #expect(one.counters.pointee.droppedNewest.current == 1)
    #expect(one.takeAll() == Array(0..<accepted))
    #expect(one.fixture.pool.hasAllBlocks)
  }

  @Test(
    "dropOldest always has room, and gives the reader the newest packets up to its limit",
    arguments: [false, true])
  func dropOldest(isRemote: Bool) {
    let one = OneLink(.dropOldest, limit: 4, isRemote: isRemote)
    for number in 0..<10 {
      #expect(one.link.pointee.hasRoom() == true)
      #expect(one.put(number))
    }
    #expect(one.takeAll() == [6, 7, 8, 9])
    #expect(one.counters.pointee.droppedOldest.current == 6)
    #expect(one.counters.pointee.popped.current == 4)
    #expect(one.counters.pointee.pushed.current == 10)
    #expect(one.counters.pointee.highWater.current == 10)
    #expect(one.fixture.pool.hasAllBlocks)
  }

  @Test(
    "when its reader sleeps for long, dropOldest does not overflow: it discards and counts the newest packets",
    arguments: [false, true])
  func dropOldestSlack(isRemote: Bool) {
    let one = OneLink(.dropOldest, limit: 4, isRemote: isRemote)
    for number in 0..<50 { #expect(one.put(number)) }
    let pushed = one.counters.pointee.pushed.current
    #expect(pushed >= 4 + 8)
    #expect(one.counters.pointee.droppedNewest.current == 50 - pushed)
    #expect(one.takeAll() == Array((pushed - 4)..<pushed))
    #expect(one.fixture.pool.hasAllBlocks)
  }

  @Test("dropNewest keeps the queued packets and counts the discarded ones", arguments: [false, true])
  func dropNewest(isRemote: Bool) {
    let one = OneLink(.dropNewest, limit: 3, isRemote: isRemote)
    for number in 0..<10 { #expect(one.put(number)) }
    #expect(one.takeAll() == [0, 1, 2])
    #expect(one.counters.pointee.droppedNewest.current == 7)
    one.put(10)
    #expect(one.takeAll() == [10])
  }

  @Test("latest keeps one packet at any limit", arguments: [false, true])
  func latest(isRemote: Bool) {
    let one = OneLink(.latest, limit: 4, isRemote: isRemote)
    for number in 0..<5 { #expect(one.put(number)) }
    #expect(one.takeAll() == [4])
    #expect(one.counters.pointee.droppedOldest.current == 4)
    one.put(5)
    #expect(one.takeAll() == [5])
  }

  @Test(
    "a link with policy fail fails the writer at the first packet above the limit", arguments: [false, true])
  func fail(isRemote: Bool) {
    let one = OneLink(.fail, limit: 2, isRemote: isRemote)
    #expect(one.put(0))
    #expect(one.put(1))
    #expect(!one.put(2))
    #expect(one.counters.pointee.droppedNewest.current == 1)
    #expect(one.takeAll() == [0, 1])
  }

  @Test("the end becomes visible only after the last packet", arguments: [false, true])
  func end(isRemote: Bool) {
    let one = OneLink(.block, isRemote: isRemote)
    one.put(1)
    one.link.pointee.end()
    #expect(one.link.pointee.isOver() == false)
    #expect(one.take() == 1)
    #expect(one.link.pointee.isOver() == true)
  }

  @Test("discard empties the link and counts the packets", arguments: [false, true])
  func discard(isRemote: Bool) {
    let one = OneLink(.block, isRemote: isRemote)
    one.put(1)
    one.put(2)
    one.link.pointee.discard()
    #expect(one.link.pointee.hasPacket(generation: 0) == false)
    #expect(one.counters.pointee.discarded.current == 2)
    #expect(one.fixture.pool.hasAllBlocks)
  }

  @Test("each packet and the end mark the reading cell ready")
  func marks() {
    let one = OneLink(.block)
    one.put(1)
    #expect(one.fixture.ready.pointee == 1)
    one.fixture.ready.pointee = 0
    one.link.pointee.end()
    #expect(one.fixture.ready.pointee == 1)
  }

  @Test("a writer that requested a wake-up is woken once by the next pop; another one is not")
  func handshake() {
    let one = OneLink(.block, limit: 1)
    #expect(one.link.pointee.hasRoomOrRequestsWake() == true)
    one.put(1)
    #expect(one.take() == 1)
    #expect(one.fixture.ready.pointee & 2 == 0)
    one.put(2)
    #expect(one.link.pointee.hasRoomOrRequestsWake() == false)
    one.fixture.ready.pointee = 0
    #expect(one.take() == 2)
    #expect(one.fixture.ready.pointee == 2)
    one.fixture.ready.pointee = 0
    one.put(3)
    _ = one.take()
    #expect(one.fixture.ready.pointee & 2 == 0)
  }

  @Test(
    "deferred wake-ups are recorded as pending; half a link of room and the end wake at once"
  )
  func patient() {
    let fixture = TableFixture(inputs: [.init(limit: 4, isRemote: true, isDeferred: true)])
    let link = fixture.inputs[0]
    for number in 1...4 { fixture.feed(number) }
    #expect(fixture.pending.pointee == 1)
    #expect(link.pointee.hasRoomOrRequestsWake() == false)
    fixture.pending.pointee = 0
    _ = link.pointee.take(generation: 0)
    #expect(fixture.pending.pointee == 2 && fixture.told.ends.1.count == 0)
    _ = link.pointee.take(generation: 0)
    #expect(fixture.told.ends.1.count == 1)
    _ = link.pointee.take(generation: 0)
    #expect(fixture.told.ends.1.count == 1 && fixture.told.ends.0.count == 0)
    link.pointee.end()
    #expect(fixture.told.ends.0.count == 1)
  }

  @Test("discard wakes a writer that requested a wake-up")
  func discardWakes() {
    let one = OneLink(.block, limit: 1)
    one.put(1)
    #expect(one.link.pointee.hasRoomOrRequestsWake() == false)
    one.fixture.ready.pointee = 0
    one.link.pointee.discard()
    #expect(one.fixture.ready.pointee == 2)
  }
}

@Suite("interrupted replies on a link") struct StaleTests {
  @Test(
    "packets of older replies are discarded and counted; those of the current reply, of none, and uninterruptible ones pass; a newer one waits"
  )
  func stale() {
    let one = OneLink(.block, limit: 8)
    one.put(1, generation: 4)
    one.put(2, generation: 5)
    one.put(3)
    one.put(4, generation: 4, flags: .uninterruptible)
    one.put(5, generation: 6)
    #expect(one.takeAll(generation: 5) == [2, 3, 4])
    #expect(one.counters.pointee.droppedStale.current == 1)
    #expect(one.counters.pointee.popped.current == 4)
    #expect(one.link.pointee.hasPacket(generation: 5) == false)
    #expect(one.link.pointee.hasPacket(generation: 6) == true)
    #expect(one.takeAll(generation: 6) == [5])
  }

  @Test("dropStale discards stale packets at the front and keeps the others")
  func dropStale() {
    let one = OneLink(.block, limit: 8)
    one.put(1, generation: 4)
    one.put(2, generation: 4)
    one.put(3)
    one.put(4, generation: 4)
    one.link.pointee.dropStale(generation: 5)
    #expect(one.counters.pointee.droppedStale.current == 2)
    #expect(one.takeAll(generation: 5) == [3])
    #expect(one.counters.pointee.droppedStale.current == 3)
    #expect(one.counters.pointee.pushed.current == one.counters.pointee.popped.current)
    #expect(one.fixture.pool.hasAllBlocks)
  }

  @Test(
    "generations wrap around",
    arguments: [
      (UInt32.max, 0, true), (UInt32.max, 1, true), (UInt32.max - 1, UInt32.max, true),
      (1, UInt32.max, false),
      (UInt32.max, UInt32.max, false), (1, 1 + 0x7fff_ffff, true), (1, 1 + 0x8000_0000, false), (7, 6, false),
    ] as [(UInt32, UInt32, Bool)])
  func wrap(born: UInt32, current: UInt32, isStale: Bool) {
    let one = OneLink(.block)
    one.put(1, generation: born)
    _ = one.take(generation: current)
    #expect((one.counters.pointee.droppedStale.current == 1) == isStale)
  }
}

@Suite("links between threads") struct LinkThreadTests {
  /// Counts the wake-ups that an engine's group of cells would receive.
  private final class Bell: RemoteWake, @unchecked Sendable {
    let writer = Tally()
    override func wake(_ index: Int) { if index == 1 { writer.add() } }
  }

  @Test("a writer on another thread that requests a wake-up is always woken, and no packet is lost")
  func remoteHandshake() {
    // The writer waits for the wake-up without checking the link again. A lost wake-up would hang, so it is counted instead after
    // far more turns than any delay explains.
    let pool = BlockPool(blockBytes: 64, blockCount: 64)
    let bell = Bell()
    let counters = UnsafeMutablePointer<LinkCounters>.allocate(capacity: 1)
    counters.initialize(to: LinkCounters())
    nonisolated(unsafe) let link = UnsafeMutablePointer<Link>.allocate(capacity: 1)
    let remote = Unmanaged<RemoteWake>.passUnretained(bell)
    link.initialize(
      to: Link(
        limit: 1, policy: .block, burst: 1, counters: counters, consumer: Wake(remote: remote, index: 0),
        producer: Wake(remote: remote, index: 1)))
    let lost = Tally()
    let sum = Tally()
    let count = 100_000
    runTogether([
      {
        for number in 1...count where lost.count == 0 {
          var heard = bell.writer.count
          while !link.pointee.hasRoomOrRequestsWake() {
            var turns = 0
            spin {
              turns += 1
              return bell.writer.count != heard || turns == 5_000_000
            }
            if turns == 5_000_000 { lost.add() }
            heard = bell.writer.count
          }
          var packet = Packet(pool.take()!, byteCount: 8)
          packet.position = Int64(number)
          _ = link.pointee.put(packet)
        }
        link.pointee.end()
      },
      {
        while !link.pointee.isOver() {
          if let packet = link.pointee.take(generation: 0) { sum.add(Int(packet.position)) }
        }
      },
    ])
    #expect(lost.count == 0)
    #expect(sum.count == count * (count + 1) / 2)
    link.deinitialize(count: 1)
    link.deallocate()
    counters.deinitialize(count: 1)
    counters.deallocate()
    #expect(pool.hasAllBlocks)
  }

  @Test(
    "a link that drops packets between threads counts every loss and keeps the order",
    arguments: [LinkPolicy.dropOldest, .latest, .dropNewest])
  func dropping(policy: LinkPolicy) {
    let fixture = TableFixture(inputs: [.init(limit: 4, policy: policy, isRemote: true)])
    nonisolated(unsafe) let link = fixture.inputs[0]
    nonisolated(unsafe) let shared = fixture
    let disorder = Tally()
    let received = Tally()
    let count = 20_000
    runTogether([
      {
        for number in 0..<count { _ = link.pointee.put(shared.packet(number)) }
        link.pointee.end()
      },
      {
        var last: Int64 = -1
        while !link.pointee.isOver() {
          guard let packet = link.pointee.take(generation: 0) else { continue }
          if packet.position <= last { disorder.add() }
          last = packet.position
          received.add()
        }
      },
    ])
    let counters = fixture.counters[0]
    #expect(disorder.count == 0)
    #expect(counters.pointee.pushed.current + counters.pointee.droppedNewest.current == count)
    #expect(received.count + counters.pointee.droppedOldest.current == counters.pointee.pushed.current)
    #expect(fixture.pool.hasAllBlocks)
  }
}
