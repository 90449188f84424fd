import Millrace
import MillraceCore
import MillraceEngine
import MillraceGraph
import Synchronization

/// Emits 20 ms of silence at 16 kHz every 20 ms, as a node.
struct OwnSource: Node {
  static let contract = NodeContract(
    "bench.ownSource", "emits silence", outputs: [PortContract("out", .pcm(), text: "silence")],
    parameters: [ParameterContract("packets", .integer(1...1_000_000), default: 1, text: "packets")],
    drive: .itself
  ) {
    $0.outputs["out"] = .pcm(rate: 16_000, channels: 1, sample: .s16, frames: ProgramLoad.samples)
    $0.pacing = .live
  }
  private let packets: Int
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    packets = setup.parameters.integer("packets")
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if next == packets { return .ended }
    let due = Int64(next) * ProgramLoad.interval
    if ports.now >= due {
      var packet = try ports.makePacket(bytes: 2 * ProgramLoad.samples, of: .none)
      var content = packet.mutableSamples(of: Int16.self)
      for index in content.indices { content[index] = 0 }
      packet.timestamp = due
      ports.emit(packet)
      next += 1
    }
    ports.wake(at: Int64(next) * ProgramLoad.interval)
    return .done
  }
}

/// Counts packets.
struct OwnSink: Node {
  static let contract = NodeContract(
    "bench.ownSink", "counts packets", inputs: [PortContract("in", .any, text: "anything")])
  static let taken = Atomic<Int>(0)

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    use(packet.byteCount)
    Self.taken.add(1, ordering: .relaxed)
    return .done
  }
}

/// The load of `ProgramSuite`.
enum ProgramLoad {
  static let sessions = 1_000
  /// Samples per packet: 20 ms at 16 kHz.
  static let samples = 320
  static let interval: Nanoseconds = 20_000_000
  static let frame = [Int16](repeating: 0, count: samples)

  static let catalogue: Catalogue = {
    var catalogue = Catalogue.standard
    catalogue.add(OwnSource.self)
    catalogue.add(OwnSink.self)
    return catalogue
  }()

  static func plan(_ source: String, _ values: [String: ParameterValue], _ sink: String) throws -> GraphPlan {
    var graph = GraphDescription("program")
    graph.add("mic", source, values)
    graph.add("bot", sink)
    graph.link("mic -> bot")
    return try Graph.load(graph, catalogue: catalogue)
  }

  /// The sessions that are due in a millisecond; within 20 ms each is due once.
  static func sessions(in millisecond: Int) -> Range<Int> {
    let share = sessions / 20
    let first = millisecond % 20 * share
    return first..<first + share
  }
}
