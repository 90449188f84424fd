import MillraceCore
import TestSystem
import Testing

@Suite("ring") struct RingTests {
  /// Every capacity with every number of queued elements, at every position of the indices up to twice around.
  static let layouts: [(capacity: Int, start: Int, count: Int)] = [1, 2, 3, 64].flatMap { asked in
    let capacity = asked == 3 ? 4 : asked
    return (0...2 * capacity).flatMap { start in
      // For the large ring only the corner cases: empty, one, all but one, full.
      (capacity > 4 ? [0, 1, capacity - 1, capacity] : Array(0...capacity)).map { (asked, start, $0) }
    }
  }

  @Test("in every layout, elements pop in the order they were pushed, and counts, room and emptiness agree")
  func layouts() {
    for layout in Self.layouts {
      let ring = Ring<Int>(minimumCapacity: layout.capacity)
      var writer = ring.writer
      var reader = ring.reader
      let capacity = writer.capacity
      for value in 0..<layout.start {
        writer.push(value)
        #expect(reader.pop() == value)
      }
      for value in 0..<layout.count { writer.push(value) }
      #expect(writer.count == layout.count && reader.count == layout.count, "\(layout)")
      #expect(writer.hasRoom == (layout.count < capacity), "\(layout)")
      #expect(writer.hasRoom(within: 1) == (layout.count < 1), "\(layout)")
      #expect(writer.hasRoom(within: capacity) == (layout.count < capacity), "\(layout)")
      #expect(reader.isEmpty == (layout.count == 0), "\(layout)")
      #expect(reader.peek { $0 } == (layout.count == 0 ? nil : 0), "\(layout)")
      for value in 0..<layout.count { #expect(reader.pop() == value, "\(layout)") }
      #expect(reader.pop() == nil, "\(layout)")
      #expect(writer.hasRoom == true, "\(layout)")
    }
  }

  @Test(
    "the capacity is the next power of two", arguments: [(1, 1), (2, 2), (3, 4), (5, 8), (64, 64), (65, 128)])
  func capacity(asked: Int, given: Int) {
    let ring = Ring<UInt8>(minimumCapacity: asked)
    #expect(ring.writer.capacity == given)
  }

  @Test("pop and peek on an empty ring return nil")
  func empty() {
    var ring = Ring<Int>(minimumCapacity: 2)
    #expect(ring.reader.pop() == nil)
    #expect(ring.reader.peek { $0 } == nil)
    #expect(ring.reader.count == 0)
  }

  @Test("peek shows the oldest element without removing it")
  func peek() {
    let live = LiveCount()
    var ring = Ring<Tracked>(minimumCapacity: 2)
    ring.writer.push(Tracked(7, live))
    ring.writer.push(Tracked(8, live))
    #expect(ring.reader.peek { $0.number } == 7)
    #expect(ring.reader.count == 2)
    guard let popped = ring.reader.pop() else {
      Issue.record("the element is missing")
      return
    }
    #expect(popped.number == 7)
    _ = consume popped
    #expect(live.current == 1)
  }

  @Test("elements left in a ring are destroyed with the last end", arguments: [1, 2, 3, 64])
  func lifetime(capacity: Int) {
    let live = LiveCount()
    for offset in 0...capacity {
      for writerGoesFirst in [true, false] {
        let ring = Ring<Tracked>(minimumCapacity: capacity)
        var writer: RingWriter<Tracked>? = ring.writer
        var reader: RingReader<Tracked>? = ring.reader
        for number in 0..<offset {
          writer!.push(Tracked(number, live))
          _ = reader!.pop()
        }
        #expect(live.current == 0)
        for number in 0..<capacity { writer!.push(Tracked(number, live)) }
        #expect(live.current == capacity)
        if writerGoesFirst { writer = nil } else { reader = nil }
        #expect(live.current == capacity)
        writer = nil
        reader = nil
        #expect(live.current == 0)
      }
    }
  }

  @Test("pushing into a full ring traps")
  func overflow() async {
    await #expect(processExitsWith: .failure) {
      var ring = Ring<Int>(minimumCapacity: 2)
      for value in 0..<3 { ring.writer.push(value) }
    }
  }

  @Test("a ring without capacity traps")
  func noCapacity() async {
    await #expect(processExitsWith: .failure) { _ = Ring<Int>(minimumCapacity: 0) }
  }

  @Test("between two threads every element arrives once, in order, and complete", arguments: [1, 2, 64])
  func threads(capacity: Int) {
    // Three words: a torn or early read shows as words that differ.
    let count = 50_000
    let ring = Ring<(Int, Int, Int)>(minimumCapacity: capacity)
    let writing = Box(ring.writer)
    let reading = Box(ring.reader)
    let wrong = Tally()
    runTogether([
      {
        var writer = writing.take()
        for value in 0..<count {
          spin { writer.hasRoom }
          writer.push((value, ~value, value &* 3))
        }
      },
      {
        var reader = reading.take()
        for expected in 0..<count {
          spin { !reader.isEmpty }
          guard let (first, second, third) = reader.pop() else {
            wrong.add()
            continue
          }
          if first != expected || second != ~expected || third != expected &* 3 { wrong.add() }
        }
      },
    ])
    #expect(wrong.count == 0)
  }

  @Test("between two threads no element is lost or freed twice")
  func threadLifetime() {
    let live = LiveCount()
    let ring = Ring<Tracked>(minimumCapacity: 8)
    let writing = Box(ring.writer)
    let reading = Box(ring.reader)
    let sum = Tally()
    runTogether([
      {
        var writer = writing.take()
        for number in 1...20_000 {
          spin { writer.hasRoom }
          writer.push(Tracked(number, live))
        }
      },
      {
        var reader = reading.take()
        for _ in 1...20_000 {
          spin { !reader.isEmpty }
          if let element = reader.pop() { sum.add(element.number) }
        }
      },
    ])
    #expect(sum.count == 20_000 * 20_001 / 2)
    #expect(live.current == 0)
  }
}
