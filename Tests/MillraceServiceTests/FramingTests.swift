import MillraceService
import TestSystem
import Testing

@Suite("Records behind their length") struct FramingTests {
  private func read(_ framing: inout LengthFraming, _ bytes: [UInt8]) throws -> [[UInt8]] {
    try framing.records(in: bytes)
  }

  @Test("records come back whole, however the stream is cut")
  func cuts() throws {
    var dice = Dice(seed: 3)
    var writing = LengthFraming(largest: 70_000)
    let records = [0, 1, 3, 4, 5, 255, 256, 65_535, 65_536, 70_000].map { count in
      (0..<count).map { _ in UInt8(dice.below(256)) }
    }
    let stream = records.flatMap { writing.bytes(of: $0) }
    for _ in 0..<40 {
      var reading = LengthFraming(largest: 70_000)
      var result: [[UInt8]] = []
      var start = 0
      while start < stream.count {
        let end = min(stream.count, start + 1 + dice.below(dice.below(2) == 0 ? 7 : 30_000))
        result += try reading.records(in: Array(stream[start..<end]))
        start = end
      }
      try #require(result == records)
      #expect(!reading.isInRecord)
    }
  }

  @Test("a record beyond the limit ends the stream at its head, before any of it is kept")
  func tooLong() throws {
    var framing = LengthFraming(largest: 10)
    #expect(try framing.records(in: [0, 0, 0, 1, 7]) == [[7]])
    #expect { try framing.records(in: [0, 0, 0, 11]) } throws: {
      ($0 as? FramingProblem)?.text == "a record of 11 bytes exceeds the limit of 10"
    }
    #expect(!framing.isInRecord)
    var other = LengthFraming(largest: 10)
    #expect(throws: FramingProblem.self) { try other.records(in: [0xFF, 0xFF, 0xFF, 0xFF]) }
  }

  @Test("records in front of one beyond the limit are returned first, and nothing behind it is read")
  func beforeTooLong() throws {
    var framing = LengthFraming(largest: 10)
    #expect(try framing.records(in: [0, 0, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0, 11]) == [[7], []])
    #expect(throws: FramingProblem.self) { try framing.records(in: []) }
    #expect(throws: FramingProblem.self) { try framing.records(in: [0, 0, 0, 1, 7]) }
    #expect(!framing.isInRecord)
  }

  @Test("a stream that ends in the middle of a record can be told")
  func unfinished() throws {
    var framing = LengthFraming(largest: 10)
    #expect(try framing.records(in: [0, 0]) == [])
    #expect(framing.isInRecord)
    #expect(try framing.records(in: [0, 2, 1]) == [])
    #expect(framing.isInRecord)
    #expect(try framing.records(in: [2]) == [[1, 2]])
    #expect(!framing.isInRecord)
  }
}
