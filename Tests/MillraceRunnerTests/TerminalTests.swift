import MillraceGraph
import Testing

import MillraceEngine
@testable import MillraceRunner

@Suite("Words of the command line, meters of the terminal")
struct TerminalTests {
  @Test("notices nobody takes are kept up to a number, and the rest is counted")
  func untakenNotices() {
    let board = EventMonitor()
    for _ in 0..<EventMonitor.mostNotices + 3 {
      board.take(GraphEvent(time: 0, node: "a", name: "nodeRestarted", json: "{}"), "")
    }
    let notices = board.takeNotices()
    #expect(notices.count == EventMonitor.mostNotices + 1)
    #expect(notices.last?.text == "3 more came too fast to be told")
    #expect(board.takeNotices().isEmpty)
  }

  @Test("messages that nobody read are told")
  func lostMessages() {
    let board = EventMonitor()
    for count in [1, 3] {
      board.take(GraphEvent(time: 0, node: "bot", name: "messagesLost", json: #"{"count":\#(count)}"#), "")
    }
    #expect(
      board.takeNotices().map(\.text) == [
        #"node "bot" ended before it read a message"#, #"node "bot" ended before it read 3 messages"#,
      ])
  }

  @Test("a stream that is not there is told once; what a service says is not")
  func remarks() {
    let board = EventMonitor()
    let json = #"{"time":1,"node":"in","event":"disconnected","reason":"Connection refused"}"#
    for node in ["in", "in", "service"] {
      board.take(GraphEvent(time: 0, node: node, name: "disconnected", json: json), "", [], ["in"])
    }
    #expect(
      board.takeNotices().map(\.text) == [#"node "in": disconnected: reason Connection refused"#])
  }

  @Test("what a server says is shown without control characters")
  func controlCharacters() {
    let board = EventMonitor()
    let json = #"{"reason":"no\u001b[2J\u009b31m\u007f\u202e"}"#
    let title = #"{"text":"\u001b]0;x\u0007"}"#
    board.take(GraphEvent(time: 0, node: "in", name: "refused", json: json), "", [], ["in"])
    board.take(GraphEvent(time: 0, node: "in", name: "nodeFailed", json: title), "")
    #expect(
      board.takeNotices().map(\.text) == [
        #"node "in": refused: reason no\u001B[2J\u009B31m\u007F\u202E"#,
        #"node "in" failed: \u001B]0;x\u0007"#,
      ])
  }

  @Test(
    "a stretch of time needs a number and a unit",
    arguments: [
      ("10s", 10_000_000_000), ("500ms", 500_000_000), ("1.5s", 1_500_000_000), ("2min", 120_000_000_000),
      ("1h", 3_600_000_000_000), ("10 s", 10_000_000_000),
    ] as [(String, Int64)])
  func times(text: String, nanoseconds: Int64) {
    #expect(TimeSpan(argument: text)?.nanoseconds == nanoseconds)
  }

  @Test(
    "anything else is no time",
    arguments: ["", "10", "s", "-1s", "0s", "1e9s", "nans", "1..5s", "10 sec", "999999h"])
  func noTimes(text: String) {
    #expect(TimeSpan(argument: text) == nil)
  }

  @Test("a value is everything behind the first equals sign, and may be empty")
  func assignments() {
    #expect(Assignment(argument: "input=a=b.wav").value == "a=b.wav")
    #expect(Assignment(argument: "input=").value == "" && Assignment(argument: "input=").name == "input")
    #expect(Assignment(argument: "input").name == "")
    #expect(Assignment(argument: "=x").name == "")
  }

  @Test("a meter shows the RMS as a bar in eighths of a cell and the peak as a mark, over 60 dB")
  func meter() {
    let style = TerminalStyle.plain
    #expect(LevelBar.draw(rms: -30, peak: -10, cells: 12, style: style) == "██████····│·")
    #expect(LevelBar.draw(rms: -32.5, peak: -31, cells: 12, style: style) == "█████▌······")
    #expect(LevelBar.draw(rms: -120, peak: -120, cells: 12, style: style) == "············")
    #expect(LevelBar.draw(rms: 0, peak: 3, cells: 12, style: style) == "████████████")
  }

  @Test("a meter is green below -18, yellow below -9, red above")
  func meterColours() {
    let bar = LevelBar.draw(rms: 0, peak: 0, cells: 20, style: TerminalStyle(width: 80, isColoured: true))
    #expect(bar.ranges(of: "\u{1B}[32m").count == 14)
    #expect(bar.ranges(of: "\u{1B}[33m").count == 3)
    #expect(bar.ranges(of: "\u{1B}[31m").count == 3)
  }
}
