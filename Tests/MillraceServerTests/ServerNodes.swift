import MillraceCore
import MillraceEngine
import MillraceGraph
import Testing

/// Emits a packet each 2 ms of graph time, `count` of them, or without end.
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

/// Takes packets. With each of the first it tells the next thing of one turn of a dialogue; it may fail, and may refuse to end.
struct TalkSink: Node {
  static let marks = [
    "speechStarted", "speechEnded", "transcript", "sent", "replyStarted", "replyAudible", "replyFinished",
  ]
  static let contract = NodeContract(
    "test.talk", "takes, and tells a turn", inputs: [PortContract("in", .any, text: "ticks")],
    parameters: [
      ParameterContract("failAt", .integer(-1...1_000_000), default: -1, text: "packet that fails it"),
      ParameterContract("lingers", .bool, default: false, text: "it never finishes by itself"),
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

/// Waits until something is so; the test's time limit ends what never becomes so.
func until(_ isSo: () async -> Bool) async throws {
  while await !isSo() { try await Task.sleep(for: .milliseconds(2)) }
}
