import Testing

@testable import MillraceRTC

@Suite("messages of data channels that have begun") struct PartialMessagesTests {
  private func part(_ count: Int, _ byte: UInt8 = 7) -> [UInt8] { [UInt8](repeating: byte, count: count) }

  @Test("parts of several streams become their own messages")
  func streams() {
    var partial = PartialMessages(largest: 100, room: 200)
    let outcomes = [
      partial.add(part(10, 1), stream: 1, isEnd: false), partial.add(part(20, 2), stream: 2, isEnd: false),
      partial.add(part(5, 1), stream: 1, isEnd: true), partial.add(part(1, 2), stream: 2, isEnd: true),
      partial.add(part(3, 3), stream: 3, isEnd: true),
    ]
    #expect(
      outcomes == [
        .incomplete, .incomplete, .message(part(15, 1)), .message(part(21, 2)), .message(part(3, 3)),
      ])
    #expect(partial.held == 0)
  }

  @Test("a message that is too large is dropped, and its bytes are counted")
  func tooLarge() {
    var partial = PartialMessages(largest: 100, room: 200)
    let first = partial.add(part(90), stream: 1, isEnd: false)
    let second = partial.add(part(20), stream: 1, isEnd: false)
    #expect(first == .incomplete && second == .incomplete)
    #expect(partial.held == 0)
    let last = partial.add(part(1), stream: 1, isEnd: true)
    #expect(last == .dropped(111))
    let next = partial.add(part(100), stream: 1, isEnd: true)
    #expect(next == .message(part(100)))
  }

  @Test("however many messages begin, they take no more than their room, and those that fit still come")
  func room() {
    var partial = PartialMessages(largest: 100, room: 200)
    var most = 0
    for stream in 0..<1_000 {
      _ = partial.add(part(90), stream: UInt16(stream), isEnd: false)
      most = max(most, partial.held)
    }
    #expect(most <= 200)
    let kept = partial.add(part(10), stream: 0, isEnd: true)
    #expect(kept == .message(part(100)))
    // It had begun when there was no room.
    let dropped = partial.add(part(1), stream: 999, isEnd: true)
    #expect(dropped == .dropped(91))
    let whole = partial.add(part(100), stream: 5_000, isEnd: true)
    #expect(whole == .message(part(100)))
  }

  @Test("what was given up makes room")
  func given() {
    var partial = PartialMessages(largest: 100, room: 200)
    for stream in 0..<2 { _ = partial.add(part(100), stream: UInt16(stream), isEnd: false) }
    #expect(partial.held == 200)
    partial.remove(0)
    #expect(partial.held == 100)
    let last = partial.add(part(1), stream: 0, isEnd: true)
    #expect(last == .message(part(1)))
    partial.removeAll()
    #expect(partial.held == 0)
  }
}
