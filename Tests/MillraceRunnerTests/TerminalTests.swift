import MillraceGraph
import Testing

import MillraceEngine
@testable import MillraceRunner

@Suite("Notices, arguments and meters")
struct TerminalTests {
  @Test("notices that are not taken are kept up to a limit, and the rest are counted")
  func untakenNotices() {
    let monitor = EventMonitor()
    for _ in 0..<EventMonitor.mostNotices + 3 {
      monitor.handle(GraphEvent(time: 0, node: "a", name: "nodeRestarted", json: "{}"), "")
    }
    let notices = monitor.takeNotices()
    #expect(notices.count == EventMonitor.mostNotices + 1)
    #expect(notices.last?.text == "3 more messages omitted")
    #expect(monitor.takeNotices().isEmpty)
  }

  @Test("messages that a node did not read are reported")
  func lostMessages() {
    let monitor = EventMonitor()
    for count in [1, 3] {
      monitor.handle(
        GraphEvent(time: 0, node: "bot", name: "messagesLost", json: #"{"count":\#(count)}"#), "")
    }
    #expect(
      monitor.takeNotices().map(\.text) == [
        #"node "bot" ended before reading 1 message"#, #"node "bot" ended before reading 3 messages"#,
      ])
  }

  @Test("a lost stream is reported once; the same event of a service is not shown")
  func streamEvents() {
    let monitor = EventMonitor()
    let json = #"{"time":1,"node":"in","event":"disconnected","reason":"Connection refused"}"#
    for node in ["in", "in", "service"] {
      monitor.handle(GraphEvent(time: 0, node: node, name: "disconnected", json: json), "", [], ["in"])
    }
    #expect(
      monitor.takeNotices().map(\.text) == [#"node "in": disconnected: reason Connection refused"#])
  }

  @Test("where to open the page of a server of the graph is shown, and nothing of servers without one")
  func address() {
    let monitor = EventMonitor()
    func tell(_ node: String, _ members: String) {
      let json = #"{"time":0,"node":"\#(node)","event":"extra",\#(members)}"#
      monitor.handle(GraphEvent(time: 0, node: node, name: "extra", json: json), "web-bot.")
    }
    tell("room", #""name":"listening","payload":{"port":8080,"url":"http://127.0.0.1:8080/"}"#)
    tell("page", #""name":"listening","payload":{"port":8080}"#)
    tell("desk", #""name":"listening","payload":{"url":"http://127.0.0.1/?room=desk","needsToken":true}"#)
    tell("room", #""name":"joined","payload":{"url":"http://127.0.0.1/other"}"#)
    tell("room", #""name":"listening","url":"http://127.0.0.1/elsewhere""#)
    tell("odd", #""name":"listening","payload":{"url":"http://a\u001b[2J/"}"#)
    let notices = monitor.takeNotices()
    #expect(
      notices.map(\.text) == [
        "web-bot.room: open http://127.0.0.1:8080/",
        "web-bot.desk: open http://127.0.0.1/?room=desk; people need a token: millrace token room",
        #"web-bot.odd: open http://a\u001B[2J/"#,
      ])
    #expect(notices.allSatisfy { !$0.isError }, "with --quiet they are not shown")
  }

  @Test("text from a server is shown without control characters")
  func controlCharacters() {
    let monitor = EventMonitor()
    let json = #"{"reason":"no\u001b[2J\u009b31m\u007f\u202e"}"#
    let title = #"{"text":"\u001b]0;x\u0007"}"#
    monitor.handle(GraphEvent(time: 0, node: "in", name: "refused", json: json), "", [], ["in"])
    monitor.handle(GraphEvent(time: 0, node: "in", name: "nodeFailed", json: title), "")
    #expect(
      monitor.takeNotices().map(\.text) == [
        #"node "in": refused: reason no\u001B[2J\u009B31m\u007F\u202E"#,
        #"node "in" failed: \u001B]0;x\u0007"#,
      ])
  }

  @Test(
    "a duration needs a number and a unit",
    arguments: [
      ("10s", 10_000_000_000), ("500ms", 500_000_000), ("1.5s", 1_500_000_000), ("2min", 120_000_000_000),
      ("1h", 3_600_000_000_000), ("10 s", 10_000_000_000),
    ] as [(String, Int64)])
  func times(text: String, nanoseconds: Int64) {
    #expect(TimeSpan(argument: text)?.nanoseconds == nanoseconds)
  }

  @Test(
    "anything else is not a duration",
    arguments: ["", "10", "s", "-1s", "0s", "1e9s", "nans", "1..5s", "10 sec", "999999h"])
  func noTimes(text: String) {
    #expect(TimeSpan(argument: text) == nil)
  }

  @Test("a value is everything after the first equals sign, and can be empty")
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
