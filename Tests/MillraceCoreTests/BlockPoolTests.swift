import Glibc
import Synchronization
@testable import MillraceCore
import TestSystem
import Testing

@Suite("block pool") struct BlockPoolTests {
  @Test("a pool provides every block once and returns nil when all are in use", arguments: [1, 2, 3, 64])
  func exhaustion(count: Int) {
    let pool = BlockPool(blockBytes: 10, blockCount: count)
    #expect(pool.blockBytes == 64)
    #expect(pool.hasAllBlocks)
    let queue = Ring<Block>(minimumCapacity: count)
    var out = queue.writer
    var back = queue.reader
    for taken in 1...count {
      guard var block = pool.take() else {
        Issue.record("block \(taken) of \(count) is missing")
        return
      }
      var bytes = block.mutableSamples(of: UInt8.self, count: 64)
      for index in bytes.indices { bytes[index] = UInt8(taken) }
      out.push(block)
      #expect(pool.freeCount == count - taken)
    }
    let extra = pool.take() == nil
    #expect(extra)
    #expect(pool.exhaustedCount == 1)
    #expect(!pool.hasFree)
    for taken in 1...count {
      // No two blocks share a byte.
      guard let block = back.pop() else { return }
      let isIntact = Self.isFilled(block, with: UInt8(taken))
      #expect(isIntact, "block \(taken) was overwritten through another block")
      _ = consume block
      #expect(pool.freeCount == taken)
    }
    #expect(pool.hasAllBlocks && pool.hasFree)
  }

  private static func isFilled(_ block: borrowing Block, with value: UInt8) -> Bool {
    let bytes = block.samples(of: UInt8.self, count: 64)
    for index in bytes.indices where bytes[index] != value { return false }
    return true
  }

  @Test("a block returns to its pool only with its last holder")
  func sharing() {
    let pool = BlockPool(blockBytes: 64, blockCount: 1)
    let first = pool.take()!
    let second = first.share()
    let third = second.share()
    var unique = first.isUnique
    #expect(!unique)
    _ = consume first
    _ = consume third
    #expect(!pool.hasAllBlocks)
    unique = second.isUnique
    #expect(unique)
    _ = consume second
    #expect(pool.hasAllBlocks)
  }

  @Test("a block's content starts on a cache line", arguments: [1, 64, 100])
  func alignment(bytes: Int) {
    let pool = BlockPool(blockBytes: bytes, blockCount: 3)
    for _ in 0..<3 {
      let block = pool.take()!
      let span = block.samples(of: UInt8.self, count: bytes)
      let address = span.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
      #expect(address % 64 == 0)
    }
    #expect(pool.byteCount == 3 * (pool.blockBytes + 64))
  }

  @Test("only as many blocks are touched as were ever in use at once")
  func touching() {
    let pool = BlockPool(blockBytes: 64, blockCount: 100)
    #expect(pool.touchedCount == 0 && pool.freeCount == 100)
    for _ in 0..<50 {
      let first = pool.take()
      let second = pool.take()
      let third = pool.take()
      #expect(pool.freeCount == 97)
      _ = consume second
      _ = consume first
      _ = consume third
    }
    #expect(pool.touchedCount == 3 && pool.hasAllBlocks && pool.exhaustedCount == 0)
  }

  @Test("blocks that are never taken use no memory pages")
  func pages() throws {
    let before = try residentBytes()
    let pool = BlockPool(blockBytes: 1 << 20, blockCount: 512)
    let block = pool.take()
    #expect(pool.byteCount > 512 << 20)
    #expect(try residentBytes() - before < 256 << 20)
    _ = consume block
  }

  /// Resident memory of the process (proc(5): the second number of statm, in pages of 4 KiB).
  private func residentBytes() throws -> Int {
    let text = try #require(readFile("/proc/self/statm"))
    return try #require(text.split(separator: " ").dropFirst().first.flatMap { Int($0) }) * 4096
  }

  private func readFile(_ path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    fgets(&line, Int32(line.count), file)
    return String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  @Test("a block that is taken again has no metadata of its earlier use")
  func clearsMetadata() {
    let pool = BlockPool(blockBytes: 64, blockCount: 1)
    var packet = Packet(pool.take()!, byteCount: 4)
    packet.position = -312
    packet.duration = 960
    packet.trimStart = 1
    packet.trimEnd = 2
    _ = consume packet
    let again = Packet(pool.take()!, byteCount: 4)
    let marks = [Int(again.position), again.duration, again.trimStart, again.trimEnd]
    #expect(marks == [0, 0, 0, 0])
  }

  @Test(
    "several threads that take and return blocks never hold the same block, and lose none",
    arguments: [1, 3, 8])
  func threads(count: Int) {
    // Fewer blocks than threads use: the list is often empty, and a block that one thread read as the first is taken and returned
    // by others before it can exchange. Without the counter in the head, that corrupts the list.
    let pool = BlockPool(blockBytes: 64, blockCount: count)
    let clashes = Tally()
    let taken = Tally()
    runTogether(
      (1...4).map { thread in
        {
          for round in 0..<10_000 {
            guard var first = pool.take() else { continue }
            let mark = UInt64(thread) << 32 | UInt64(round)
            var elements = first.mutableSamples(of: UInt64.self, count: 8)
            for index in elements.indices { elements[index] = mark }
            taken.add()
            let second = pool.take()
            let shared = first.share()
            let seen = shared.samples(of: UInt64.self, count: 8)
            for index in seen.indices where seen[index] != mark { clashes.add() }
            // Returned in varying order to shuffle the list.
            if round % 2 == 0 {
              _ = consume second
              _ = consume first
            } else {
              _ = consume first
              _ = consume second
            }
          }
        }
      })
    #expect(clashes.count == 0)
    #expect(taken.count > 0)
    #expect(pool.hasAllBlocks)
  }

  @Test("one thread may return blocks while another takes them")
  func handOver() {
    let pool = BlockPool(blockBytes: 64, blockCount: 4)
    let ring = Ring<Packet>(minimumCapacity: 8)
    let writing = Box(ring.writer)
    let reading = Box(ring.reader)
    let wrong = Tally()
    runTogether([
      {
        var writer = writing.take()
        var sent = 0
        while sent < 30_000 {
          spin { writer.hasRoom && pool.hasFree }
          guard let block = pool.take() else { continue }
          var packet = Packet(block, byteCount: 8, timestamp: Int64(sent))
          packet.position = Int64(sent)
          var elements = packet.mutableSamples(of: Int.self)
          elements[0] = sent
          writer.push(packet)
          sent += 1
        }
      },
      {
        var reader = reading.take()
        var expected = 0
        while expected < 30_000 {
          spin { !reader.isEmpty }
          guard let packet = reader.pop() else { continue }
          let word = packet.samples(of: Int.self)[0]
          if word != expected || packet.position != Int64(expected) { wrong.add() }
          expected += 1
        }
      },
    ])
    #expect(wrong.count == 0)
    #expect(pool.hasAllBlocks)
  }

  @Test("taking and returning a block changes the head, although the same block is first again")
  func headsNeverRepeat() {
    // This prevents the ABA problem when a thread is delayed between reading the head and exchanging it. Two threads would have to
    // collide within nanoseconds to show it, so the head is checked directly.
    let pool = BlockPool(blockBytes: 64, blockCount: 2)
    // The first use of a block does not change the list.
    _ = pool.take()
    var seen: Set<UInt64> = [pool.head.load(ordering: .relaxed)]
    for _ in 0..<1000 {
      let block = pool.take()
      seen.insert(pool.head.load(ordering: .relaxed))
      _ = consume block
      seen.insert(pool.head.load(ordering: .relaxed))
    }
    #expect(seen.count == 2001)
  }

  @Test("with holders on several threads, the last one returns the block exactly once")
  func sharedAcrossThreads() {
    let pool = BlockPool(blockBytes: 64, blockCount: 1)
    for _ in 0..<500 {
      let first = pool.take()!
      let boxes = [Box(first.share()), Box(first.share())]
      let last = Box(first)
      runTogether([{ _ = boxes[0].take() }, { _ = boxes[1].take() }, { _ = last.take() }])
      #expect(pool.hasAllBlocks)
    }
  }

  @Test("writing to a shared block traps")
  func sharedWrite() async {
    await #expect(processExitsWith: .failure) {
      let pool = BlockPool(blockBytes: 64, blockCount: 1)
      var block = pool.take()!
      let other = block.share()
      var span = block.mutableSamples(of: UInt8.self, count: 1)
      span[0] = 1
      _ = consume other
    }
  }

  @Test("a view of more elements than the block holds traps")
  func tooLongView() async {
    await #expect(processExitsWith: .failure) {
      let pool = BlockPool(blockBytes: 64, blockCount: 1)
      let block = pool.take()!
      _ = block.samples(of: Int16.self, count: 33).count
    }
  }

  @Test("a pool without blocks traps")
  func noBlocks() async {
    await #expect(processExitsWith: .failure) { _ = BlockPool(blockBytes: 64, blockCount: 0) }
  }
}

@Suite("allocation errors")
struct AllocationErrorTests {
  @Test("a pool larger than any address space throws the system's error")
  func outOfMemory() throws {
    let error = try #require(throws: AllocationError.self) {
      _ = try BlockPool(reserving: 1 << 22, blocksOf: BlockPool.maxBlockBytes)
    }
    #expect(error.byteCount > 1 << 50)
    #expect(error.code == ENOMEM)
  }
}
