import MillraceDialog
import Testing

/// Events that say which reply they concern.
@Suite("rounds of replies") struct TurnRoundTests {
  private static let late: [TurnInput] = [
    .replyEnded(utterances: 1), .replyEnded(utterances: 0), .serviceInterrupted, .failed,
  ]

  /// A reply of round 1 was interrupted, and the service prepares the next.
  private func afterInterruption() -> Turn {
    var turn = Turn(.duplex)
    turn(.start, .serviceListening, .serviceThinking)
    turn.pass(.replyStarted, "1")
    turn(.interrupt(), .serviceListening, .serviceThinking)
    turn.actions = []
    return turn
  }

  @Test(
    "what arrives late of an interrupted reply does not end the next, before and after it begins",
    arguments: late)
  func lateEvent(input: TurnInput) {
    var turn = afterInterruption()
    turn.pass(input, "1")
    #expect(turn.state == .thinking && turn.taken() == [])
    turn.pass(.replyStarted, "2")
    turn.pass(input, "1")
    #expect(turn.state == .responding && turn.taken() == [])
    turn.pass(input, "2")
    #expect(turn.state != .responding)
  }

  @Test(
    "another session may number its rounds from the beginning", arguments: [TurnInput.closed, .reconnecting])
  func anotherSession(end: TurnInput) {
    var turn = Turn(.duplex)
    turn(.start, .serviceListening, .serviceThinking)
    turn.pass(.replyStarted, "1")
    turn(end, .start, .connected, .serviceListening, .serviceThinking)
    #expect(turn.state == .thinking)
    turn.pass(.failed, "1")
    #expect(turn.state != .thinking)
  }

  @Test("an event without a round concerns the reply that is here", arguments: late)
  func unknown(input: TurnInput) {
    var turn = afterInterruption()
    turn.pass(.replyStarted, "2")
    turn(input)
    #expect(turn.state != .responding)
    var other = afterInterruption()
    other(.replyStarted)
    other.pass(input, "7")
    #expect(other.state != .responding)
  }

  @Test("of replies that follow each other without a pause, an event of each counts")
  func joined() {
    for (input, round) in [(TurnInput.serviceInterrupted, "1"), (.serviceInterrupted, "2"), (.failed, "1")] {
      var turn = Turn(.duplex)
      turn(.start, .serviceListening, .serviceThinking)
      turn.pass(.replyStarted, "1")
      turn.pass(.replyEnded(utterances: 1), "1")
      turn.pass(.replyStarted, "2")
      #expect(turn.state == .responding)
      turn.pass(input, round)
      #expect(turn.state == .yielding)
    }
  }

  @Test("a reply announced again under another round before it ended is ended by either")
  func announcedAgain() {
    for round in ["1", "2"] {
      var turn = Turn(.duplex)
      turn(.start, .serviceListening, .serviceThinking, .serviceResponding)
      turn.pass(.replyStarted, "1")
      turn.pass(.replyStarted, "2")
      turn.pass(.replyEnded(utterances: 1), round)
      #expect(turn.state == .draining)
    }
  }

  @Test("the service's answer to an interruption is its own reply's, whatever its round")
  func answerToCancellation() {
    var turn = Turn(.duplex)
    turn(.start, .serviceListening, .serviceThinking)
    turn.pass(.replyStarted, "1")
    turn(.replyCancelled)
    turn.pass(.serviceInterrupted, "1")
    turn.pass(100 * 1_000_000)
    #expect(!turn.taken().contains(.interrupt()))
  }

  @Test("rounds differ where their texts do")
  func text() {
    let ids = ["", "1", "2", "12", "21", "r-1", "r-2", "\u{E4}"]
    #expect(Set(ids.map { TurnRound($0) }).count == ids.count)
    #expect(!ids.map { TurnRound($0) }.contains(.unknown))
    #expect(TurnRound("r-1") == TurnRound("r-1"))
  }
}

extension Turn {
  /// Passes an event of the service about a reply.
  fileprivate mutating func pass(_ input: TurnInput, _ round: String) {
    now += 10_000_000
    actions += machine.handle(input, round: TurnRound(round), at: now).list
  }
}
