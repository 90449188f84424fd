import Glibc
import Millrace
import MillraceCore
@testable import MillraceRunner

/// What the test nodes carry: numbers as text, 20 ms each.
private let shape = OutputShape(.text, packetDuration: .milliseconds(20), packetBytes: 16)

/// Emits packets: so many, or for ever.
struct CountSource: Node {
  static let contract = NodeContract(
    "test.count", "emits packets",
    outputs: [PortContract("out", .kind(.text), text: "packets")],
    parameters: [
      ParameterContract("count", .integer(-1...1_000_000), default: 100, text: "how many; -1: for ever"),
      ParameterContract("pace", .bool, default: false, text: "one every 20 ms"),
      ParameterContract("word", .string, default: "", text: "not used"),
    ],
    events: [EventContract("truncated", text: "posted once, at the start")], drive: .itself
  ) { resolution in
    resolution.outputs["out"] = shape
    resolution.pacing = resolution.parameters.bool("pace") ? .paced : .waits
  }
  private let count: Int
  private let isPaced: Bool
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    count = setup.parameters.integer("count")
    isPaced = setup.parameters.bool("pace")
    if setup.parameters.string("word") == "interrupt" {
      kill(getpid(), SIGINT)
      // This thread may block signals; another one then counts it, a moment later.
      while Signals.interruptCount == 0 { sched_yield() }
    }
    if setup.parameters.string("word") == "refuse" {
      throw NodeProblem("the word \"refuse\" is not liked", cure: "say another")
    }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if next == count { return .ended }
    if next == 0 { ports.post(0) { $0.field("expected", 12) } }
    ports.emit(try ports.makePacket(bytes: 8))
    next += 1
    guard isPaced else { return .again }
    ports.wake(at: .milliseconds(20 * Int64(next)))
    return .done
  }
}

/// Takes packets; on the way it may fail, interrupt its own process, or refuse to finish.
struct CountSink: Node {
  static let contract = NodeContract(
    "test.sink", "takes packets",
    inputs: [PortContract("in", .kind(.text), text: "packets")],
    parameters: [
      ParameterContract(
        "failAt", .integer(0...1_000_000), default: 0, text: "fails at this packet; 0: never"),
      ParameterContract(
        "interruptAt", .integer(0...1_000_000), default: 0, text: "raises SIGINT there; 0: never"),
      ParameterContract(
        "terminateAt", .integer(0...1_000_000), default: 0, text: "raises SIGTERM there; 0: never"),
      ParameterContract(
        "clings", .bool, default: false, text: "asks for another SIGINT when drained, and goes on"),
      ParameterContract("path", .path, text: "a file said to be written"),
    ],
    events: [EventContract("written", text: "posted at the end")])
  private let parameters: ParameterValues
  private var taken = 0
  private var hasAsked = false

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { parameters = setup.parameters }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while ports.next() != nil {
      taken += 1
      if taken == parameters.integer("failAt") { throw NodeFault(.custom, code: 7) }
      if taken == parameters.integer("interruptAt") { kill(getpid(), SIGINT) }
      if taken == parameters.integer("terminateAt") { kill(getpid(), SIGTERM) }
    }
    return .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard parameters.bool("clings") else {
      ports.post(0) { $0.field("packets", taken) }
      return .ended
    }
    if !hasAsked {
      hasAsked = true
      kill(getpid(), SIGINT)
    }
    return .again
  }

  func explain(_ fault: NodeFault) -> String? {
    fault.code == 7 ? "packet \(parameters.integer("failAt")) was one too many; give it fewer" : nil
  }
}

extension Catalogue {
  static let runnerTests: Catalogue = {
    var catalogue = Catalogue()
    catalogue.add(CountSource.self)
    catalogue.add(CountSink.self)
    return catalogue
  }()

  /// With the nodes that start programs.
  static let runnerProgramTests: Catalogue = {
    var catalogue = Catalogue.standard
    catalogue.add(CountSource.self)
    catalogue.add(CountSink.self)
    return catalogue
  }()
}
