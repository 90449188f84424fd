import MillraceNet
import Testing

@Suite("byte queue") struct ByteQueueTests {
  @Test("records are read in order, also where the memory wraps")
  func order() throws {
    let queue = ByteQueue(largest: 40, atLeast: 0)
    var (first, end) = (UInt.max, UInt.min)
    for round in 0..<1_000 {
      let count = round % 41
      #expect(queue.hasRoom(count))
      queue.put(UInt8(round & 7), count: count) { for index in 0..<count { $0[index] = UInt8(round & 255) } }
      let record = try #require(queue.peek())
      #expect(
        record.kind == UInt8(round & 7)
          && Array(record.bytes) == .init(repeating: UInt8(round & 255), count: count))
      let start = UInt(bitPattern: record.bytes.baseAddress)
      (first, end) = (min(first, start), max(end, start + UInt(count)))
      queue.drop(record)
    }
    // The memory holds two records of 40 bytes, each after a header of 8 bytes: no record lies beyond its end.
    #expect(end - first <= 2 * 48 - 8)
  }

  @Test("a record without room stops the program instead of overwriting unread ones")
  func noRoom() async {
    await #expect(processExitsWith: .failure) {
      let queue = ByteQueue(largest: 32, atLeast: 0)
      while queue.hasRoom(32) { queue.put(1, count: 32) { _ in } }
      queue.put(1, count: 32) { _ in }
    }
  }

  @Test(
    "a record larger than the limit, or of a negative size, stops the program",
    arguments: [33, 1 << 20, Int.max, -1, Int.min])
  func badCount(count: Int) async {
    await #expect(processExitsWith: .failure) { [count] in
      // Three records of the largest size fit, but none of these.
      ByteQueue(largest: 8, atLeast: 0).put(1, count: count) { _ in }
    }
  }
}
