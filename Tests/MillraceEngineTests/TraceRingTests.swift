import Testing

@testable import MillraceEngine

@Suite("The trace of a worker's last calls")
struct TraceRingTests {
  @Test("calls are read as they were recorded, each once")
  func roundTrip() {
    let ring = TraceRing(isVirtual: true)
    #expect(ring.records(from: 0).records.isEmpty)
    ring.record(cell: 7, start: 1_000, ticks: 50, time: 20)
    ring.record(cell: UInt32.max, start: UInt64.max, ticks: UInt64.max, time: 40)
    let first = ring.records(from: 0)
    #expect(first.records.map(\.cell) == [7, UInt32.max])
    #expect(first.records.map(\.startTicks) == [1_000, UInt64.max])
    #expect(first.records.map(\.time) == [20, 40])
    // A call longer than a trace can hold is shown as the longest one.
    #expect(first.records.map(\.ticks) == [50, UInt32.max])
    #expect(first.next == 2 && first.lost == 0)
    ring.record(cell: 8, start: 2_000, ticks: 1, time: 60)
    #expect(ring.records(from: first.next).records.map(\.cell) == [8])
  }

  @Test("what was overwritten before it was read is counted, and the slot being written is not trusted")
  func overwritten() {
    let ring = TraceRing(isVirtual: true)
    let count = TraceRing.capacity + 100
    for number in 0..<count {
      ring.record(cell: UInt32(number), start: UInt64(number), ticks: 1, time: Int64(number))
    }
    let read = ring.records(from: 0)
    #expect(read.records.count == TraceRing.capacity - 1)
    #expect(read.lost == 101 && read.next == count)
    #expect(read.records.map { Int($0.cell) } == Array(101..<count))
    #expect(read.records.map { Int($0.startTicks) } == Array(101..<count))
    #expect(ring.records(from: count).records.isEmpty)
  }
}
