import MillraceCore
import Testing

/// A link that copies packets into its own blocks, with everything it needs.
private final class CopyingLink {
  let pool = BlockPool(blockBytes: 64, blockCount: 32)
  let own: BlockPool
  let counters = UnsafeMutablePointer<LinkCounters>.allocate(capacity: 1)
  let link = UnsafeMutablePointer<Link>.allocate(capacity: 1)
  let word = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
  let translation = UnsafeMutablePointer<LinkTranslation>.allocate(capacity: 1)

  init(
    _ policy: LinkPolicy, limit: Int = 4, blocks: Int = 16, translation: LinkTranslation = LinkTranslation()
  ) {
    own = BlockPool(blockBytes: 64, blockCount: blocks)
    counters.initialize(to: LinkCounters())
    word.initialize(to: 0)
    self.translation.initialize(to: translation)
    link.initialize(
      to: Link(
        limit: limit, policy: policy, burst: 1, counters: counters, consumer: Wake(word: word, bit: 1),
        producer: Wake(word: word, bit: 2), copies: own, translation: UnsafePointer(self.translation)))
  }

  deinit {
    link.deinitialize(count: 1)
    link.deallocate()
    counters.deallocate()
    word.deallocate()
    translation.deallocate()
  }

  @discardableResult
  func put(_ number: Int, generation: UInt32 = 0) -> Bool {
    guard let block = pool.take() else { return false }
    var packet = Packet(block, byteCount: 4, timestamp: 1_000, generation: generation)
    packet.position = Int64(number)
    var content = packet.mutableSamples(of: Int32.self)
    content[0] = Int32(number)
    return link.pointee.put(packet)
  }

  var isOver: Bool { link.pointee.isOver() }
  var isEnding: Bool { link.pointee.isEnding() }
  var isSpent: Bool { link.pointee.isSpent() }
  var hasRoom: Bool { link.pointee.hasRoom() }
  var hasRoomOrRequestsWake: Bool { link.pointee.hasRoomOrRequestsWake() }

  func takeGeneration() -> UInt32? {
    guard let packet = link.pointee.takeAny() else { return nil }
    return packet.generation
  }

  func takeAll() -> [Int] {
    var all: [Int] = []
    while let packet = link.pointee.takeAny() { all.append(Int(packet.samples(of: Int32.self)[0])) }
    return all
  }
}

@Suite("links that copy packets") struct CopyingLinkTests {
  @Test(
    "packets are copied under every policy, and the writer's blocks are free at once",
    arguments: LinkPolicy.allCases)
  func copies(policy: LinkPolicy) {
    let one = CopyingLink(policy)
    one.put(7)
    #expect(one.pool.hasAllBlocks && !one.own.hasAllBlocks)
    #expect(one.takeAll() == [7])
    #expect(one.own.hasAllBlocks)
  }

  @Test("a full link follows its policy")
  func policies() {
    let newest = CopyingLink(.dropNewest, limit: 2)
    for number in 0..<5 { #expect(newest.put(number)) }
    #expect(newest.takeAll() == [0, 1] && newest.counters.pointee.droppedNewest.current == 3)
    let fail = CopyingLink(.fail, limit: 2)
    #expect((0..<3).map { fail.put($0) } == [true, true, false])
    let block = CopyingLink(.block, limit: 2)
    #expect((0..<2).map { block.put($0) } == [true, true] && !block.hasRoom)
    #expect((2..<4).map { block.put($0) } == [true, false])
    let oldest = CopyingLink(.dropOldest, limit: 2)
    for number in 0..<5 { #expect(oldest.put(number)) }
    var taken: [Int64] = []
    while let packet = oldest.link.pointee.take(generation: 0) { taken.append(packet.position) }
    #expect(taken == [3, 4])
  }

  @Test("without a free block, a packet is lost and counted, and the writer does not fail")
  func exhausted() {
    let one = CopyingLink(.block, blocks: 1)
    #expect(one.put(0) && one.put(1))
    #expect(one.counters.pointee.droppedNewest.current == 1)
    #expect(one.takeAll() == [0])
  }

  @Test("times and positions are translated, and the reply is removed when the graphs do not share replies")
  func translation() {
    var translation = LinkTranslation()
    translation.time = -400
    translation.samples = 160
    let kept = CopyingLink(.block, translation: translation)
    kept.put(1, generation: 3)
    if let packet = kept.link.pointee.takeAny() {
      #expect(packet.timestamp == 600 && packet.position == 161 && packet.generation == 3)
    } else {
      Issue.record("no packet")
    }
    translation.keepsReplies = false
    let stripped = CopyingLink(.block, translation: translation)
    stripped.put(1, generation: 3)
    #expect(stripped.takeGeneration() == 0)
  }

  @Test("a detached link ends its input only when no other link follows")
  func closing() {
    let one = CopyingLink(.block)
    one.put(1)
    one.link.pointee.detach()
    #expect(!one.isEnding && !one.isSpent)
    #expect(one.takeAll() == [1])
    #expect(one.isSpent && !one.isOver)
    one.link.pointee.expectNoSuccessor()
    #expect(one.isOver && one.isEnding)

    let followed = CopyingLink(.block)
    followed.link.pointee.expectSuccessor()
    followed.link.pointee.end()
    #expect(
      followed.isSpent && !followed.isOver && !followed.isEnding)
    followed.link.pointee.expectNoSuccessor()
    #expect(!followed.isOver)

    let ended = CopyingLink(.block)
    ended.link.pointee.end()
    #expect(ended.isOver)
  }

  @Test("a reader that refuses packets does not block its writer: they are discarded and counted")
  func refused() {
    let one = CopyingLink(.block, limit: 1)
    one.put(0)
    #expect(!one.hasRoomOrRequestsWake)
    one.word.pointee = 0
    one.link.pointee.refuse()
    #expect(one.word.pointee == 2, "the writer is woken")
    #expect(one.hasRoomOrRequestsWake && one.put(1) && one.put(2))
    #expect(one.counters.pointee.droppedNewest.current == 2 && one.pool.hasAllBlocks)
  }
}
