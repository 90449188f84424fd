import Testing

@testable import MillraceDSP

@Suite("Reblocker")
struct ReblockerTests {
  @Test(
    "pieces of any length are reblocked into frames of any length, in order",
    arguments: [1, 3, 128, 160, 512])
  func anyLength(frame: Int) {
    let input = noise16(5000)
    var queue = Reblocker<Int16>(capacity: 1024)
    var output: [Int16] = []
    var block = [Int16](repeating: 0, count: frame)
    for range in pieces(of: input.count, length: 0) {
      var start = range.lowerBound
      while start < range.upperBound {
        start += queue.write(input.span.extracting(start..<range.upperBound))
        while true {
          let position = queue.position
          var span = block.mutableSpan
          guard queue.read(into: &span) else { break }
          #expect(position == output.count)
          output += block
        }
      }
    }
    #expect(queue.count == 5000 % frame)
    var rest = [Int16](repeating: 0, count: 600)
    var span = rest.mutableSpan
    let left = queue.drain(into: &span)
    output += rest[..<left]
    #expect(output == input)
  }

  @Test("a full queue takes no more, an empty one gives nothing")
  func bounds() {
    var queue = Reblocker<Float>(capacity: 5)
    let input = noise(4)
    let first = queue.write(input.span)
    let second = queue.write(input.span)
    let third = queue.write(input.span)
    #expect([first, second, third] == [4, 1, 0])
    #expect(queue.room == 0)
    var six = [Float](repeating: 0, count: 6)
    var span = six.mutableSpan
    let refused = queue.read(into: &span)
    #expect(!refused)
    let skipped = queue.skip(2)
    #expect(skipped == 2)
    #expect(queue.position == 2)
    var three = [Float](repeating: 0, count: 3)
    var threeSpan = three.mutableSpan
    let given = queue.read(into: &threeSpan)
    #expect(given)
    #expect(three == [input[2], input[3], input[0]])
    let nothing = queue.skip(1)
    #expect(nothing == 0)
    queue.reset()
    #expect(queue.position == 0)
  }

  @Test("reblocking allocates nothing")
  func heap() {
    var queue = Reblocker<Int16>(capacity: 1000)
    let input = noise16(480)
    var block = [Int16](repeating: 0, count: 128)
    let requests = heapRequests {
      for _ in 0..<100 {
        _ = queue.write(input.span)
        var more = true
        while more {
          var span = block.mutableSpan
          more = queue.read(into: &span)
        }
      }
    }
    #expect(requests == 0)
  }
}
