import MillraceCore
import Testing

@testable import MillraceDialog

@Suite("Turns")
struct TurnLogTests {
  private typealias Turn = MillraceDialog.Turn

  private func turns(_ marks: [(Turn.Mark, Int64)], label: String = "") -> [Turn] {
    var log = TurnLog()
    for (mark, time) in marks { log.add(mark, at: .milliseconds(time), label: label) }
    return log.turns
  }

  @Test("a dialogue is cut into turns where the user begins to speak")
  func plain() {
    let turns = turns([
      (.speechStarted, 100), (.speechEnded, 900), (.sent, 910), (.replyStarted, 1_300),
      (.replyAudible, 1_400),
      (.replyFinished, 3_000), (.speechStarted, 4_000), (.speechEnded, 4_500), (.replyAudible, 5_000),
    ])
    #expect(turns.count == 2)
    #expect(
      turns[0].marks.map(\.mark) == [
        .speechStarted, .speechEnded, .sent, .replyStarted, .replyAudible, .replyFinished,
      ])
    #expect(turns.map(\.answerTime) == [.milliseconds(500), .milliseconds(500)])
    #expect(turns[0].isOver && !turns[1].isOver)
  }

  @Test("a user who interrupts is in the next turn; what was cut off is the answer before")
  func bargeIn() {
    let turns = turns([
      (.speechStarted, 100), (.speechEnded, 900), (.replyStarted, 1_300), (.replyAudible, 1_400),
      (.speechStarted, 2_000), (.interrupted, 2_080), (.speechEnded, 2_500), (.replyStarted, 3_000),
    ])
    #expect(turns.count == 2)
    #expect(turns[0].times[.interrupted] == .milliseconds(2_080))
    #expect(turns[1].times[.interrupted] == nil)
    #expect(turns[1].times[.replyStarted] == .milliseconds(3_000))
    #expect(turns[1].answerTime == nil)
  }

  @Test("a bot that speaks first has turns without speech")
  func botFirst() {
    let turns = turns([
      (.replyAudible, 10), (.replyFinished, 900), (.replyAudible, 1_000), (.replyFinished, 1_500),
    ])
    #expect(
      turns.map(\.times) == [
        [.replyAudible: .milliseconds(10), .replyFinished: .milliseconds(900)],
        [.replyAudible: .milliseconds(1_000), .replyFinished: .milliseconds(1_500)],
      ])
  }

  @Test("marks are listed in the order they happened, even when they came late")
  func order() {
    let turn = turns([(.speechStarted, 100), (.sent, 950), (.speechEnded, 900)])[0]
    #expect(turn.marks.map(\.mark) == [.speechStarted, .speechEnded, .sent])
  }

  @Test("runs do not mix")
  func runs() {
    var log = TurnLog()
    log.add(.speechStarted, at: 1, label: "a: ")
    log.add(.speechStarted, at: 2, label: "b: ")
    log.add(.speechEnded, at: 3, label: "a: ")
    #expect(log.turns.map(\.times) == [[.speechStarted: 1, .speechEnded: 3], [.speechStarted: 2]])
  }

  @Test("where a detector hears the user, the service's report only gives the time it noticed")
  func detector() {
    var log = TurnLog()
    func add(_ mark: Turn.Mark, _ time: Int64, _ isDetected: Bool = false) {
      log.add(mark, at: .milliseconds(time), label: "", isDetected: isDetected)
    }
    add(.speechStarted, 100, true)
    add(.speechStarted, 300)
    add(.speechEnded, 900, true)
    add(.speechEnded, 1_500)
    add(.replyStarted, 1_700)
    add(.replyStarted, 1_650)
    add(.replyAudible, 1_900)
    #expect(
      log.turns.map(\.times) == [
        [
          .speechStarted: .milliseconds(100), .speechEnded: .milliseconds(900),
          .noticed: .milliseconds(1_500),
          .replyStarted: .milliseconds(1_650), .replyAudible: .milliseconds(1_900),
        ]
      ])
  }

  @Test("an interruption reported by several nodes ends one answer, and not the next")
  func reportedTwice() {
    let turns = turns([
      (.speechStarted, 100), (.replyStarted, 300), (.replyAudible, 400), (.speechStarted, 500),
      (.interrupted, 510), (.interrupted, 511), (.interrupted, 512), (.replyStarted, 900),
      (.replyAudible, 950),
    ])
    #expect(turns.count == 2)
    #expect(turns[1].times[.interrupted] == nil && turns[1].times[.replyAudible] == .milliseconds(950))
  }

  @Test("turns are taken out when they are over, and those before them with them")
  func finished() {
    var log = TurnLog()
    log.add(.speechStarted, at: 1, label: "")
    log.add(.speechStarted, at: 2, label: "")
    #expect(log.takeFinished().isEmpty)
    log.add(.replyAudible, at: 3, label: "")
    log.add(.replyFinished, at: 4, label: "")
    #expect(log.takeFinished().map(\.start) == [1, 2])
    log.add(.speechStarted, at: 5, label: "")
    #expect(log.takeFinished().isEmpty)
    #expect(log.takeFinished(isEnd: true).map(\.start) == [5])
    #expect(log.turns.isEmpty)
  }

  @Test("an event that knows when it happened carries that time, not the time it was posted")
  func events() {
    func event(_ name: String, node: String = "vad", _ numbers: [String: Double]) -> TurnEvent? {
      TurnEvent(name: name, node: node, time: .milliseconds(2_000), number: { numbers[$0] })
    }
    #expect(event("sent", [:])?.time == .milliseconds(2_000))
    #expect(event("sent", ["at": 1.5])?.time == .milliseconds(1_500))
    let detected = event("speechEnded", ["delay": 300, "time": 2])
    #expect(detected?.time == .milliseconds(1_700) && detected?.isDetected == true)
    let started = event("started", ["waited": 250])
    #expect(started?.mark == .replyStarted && started?.time == .milliseconds(1_750))
    #expect(event("started", [:]) == nil && event("sent", node: "", [:]) == nil)
  }
}
