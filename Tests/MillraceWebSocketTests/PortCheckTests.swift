import MillraceCore
import MillraceEngine
import MillraceGraph
import MillraceWebSocket
import Testing

@Suite("Ports of net.websocket in a graph") struct PortCheckTests {
  /// The problems of a graph of two nodes that listen, and send each other what they hear.
  private func problems(_ one: String, _ two: String) -> String {
    do throws(Problems) {
      _ = try Graph.load(
        text: """
          { "millrace": 1, "clock": "realtime", "nodes": {
            "one": { "type": "net.websocket", \(one) }, "two": { "type": "net.websocket", \(two) } },
            "links": ["one.audio -> two.audio", "two.audio -> one.audio"] }
          """, name: "ports.json", catalogue: .webSocket)
      return ""
    } catch {
      return error.description
    }
  }

  @Test("two servers on one port are refused by the check, also with different paths")
  func same() {
    let words = problems(#""listen": 8765, "path": "/a""#, #""listen": 8765, "path": "/b""#)
    #expect(
      words.contains(
        #""one" and "two" both listen on port 8765 of "127.0.0.1"; set another "listen" in one of them"#),
      "\(words)")
  }

  @Test(
    "servers on two ports, on any free port or at two addresses are accepted",
    arguments: [
      (#""listen": 8765"#, #""listen": 8766"#), (#""listen": 0"#, #""listen": 0"#),
      (#""listen": 8765"#, #""listen": 8765, "host": "127.0.0.2""#),
      (#""listen": 8765"#, #""url": "ws://127.0.0.1:8765/""#),
    ])
  func apart(one: String, two: String) { #expect(problems(one, two) == "") }
}
