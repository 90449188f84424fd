import MillraceCore
import MillraceEngine
import MillraceGraph
import Testing

/// Emits `count` packets, one every 2 ms of graph time, or packets without end.
struct TickSource: Node {
  static let contract = NodeContract(
    "test.tick", "emits on time", outputs: [PortContract("out", .kind(.text), text: "ticks")],
    parameters: [ParameterContract("count", .integer(-1...1_000_000), default: -1, text: "-1: without end")],
    drive: .itself,
    resolve: {
      $0.outputs["out"] = OutputShape(.text, packetDuration: nil, packetBytes: 8)
      $0.pacing = .paced
    })

  let count: Int
  var sent = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { count = setup.parameters.integer("count") }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if sent == count { return .ended }
    let due = Int64(sent) * .milliseconds(2)
    if ports.now < due {
      ports.wake(at: due)
      return .done
    }
    ports.emit(try ports.makePacket(bytes: 1, of: .none))
    sent += 1
    ports.wake(at: Int64(sent) * .milliseconds(2))
    return .done
  }
}

/// Reads packets. The first packets each trigger the next event of a turn. It can fail, or refuse to end.
struct TalkSink: Node {
  static let marks = [
    "speechStarted", "speechEnded", "transcript", "sent", "replyStarted", "replyAudible", "replyFinished",
  ]
  static let contract = NodeContract(
    "test.talk", "posts the events of a turn", inputs: [PortContract("in", .any, text: "ticks")],
    parameters: [
      ParameterContract("failAt", .integer(-1...1_000_000), default: -1, text: "fails at this packet"),
      ParameterContract("lingers", .bool, default: false, text: "never finishes"),
    ],
    events: marks.map { EventContract($0, text: "of the turn") })

  let failAt: Int
  let lingers: Bool
  var taken = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    failAt = setup.parameters.integer("failAt")
    lingers = setup.parameters.bool("lingers")
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    _ = consume packet
    if taken == failAt { throw NodeFault(.custom, code: 7) }
    if taken < Self.marks.count {
      let isTranscript = Self.marks[taken] == "transcript"
      ports.post(taken) { event in
        event.field("number", 42)
        if isTranscript { event.field("text", "my number is 1234") }
      }
    }
    taken += 1
    return .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { lingers ? .again : .ended }
}

let serverCatalogue: Catalogue = {
  var catalogue = Catalogue()
  catalogue.add(TickSource.self)
  catalogue.add(TalkSink.self)
  return catalogue
}()

/// mic -> bot
func talkPlan(
  _ name: String = "talk", count: Int = -1, failAt: Int = -1, lingers: Bool = false
) throws -> GraphPlan {
  var graph = GraphDescription(name)
  graph.add("mic", "test.tick", ["count": .integer(count)])
  graph.add("bot", "test.talk", ["failAt": .integer(failAt), "lingers": .bool(lingers)])
  graph.link("mic -> bot")
  return try Graph.load(graph, catalogue: serverCatalogue)
}

/// Waits until a condition holds. The test's time limit ends the wait if it never does.
func until(_ condition: () async -> Bool) async throws {
  while await !condition() { try await Task.sleep(for: .milliseconds(2)) }
}
