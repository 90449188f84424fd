internal import Millrace
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// A sound file in memory, whatever the standard nodes can read.
struct SoundSamples {
  let rate: Int
  let channels: Int
  /// Interleaved, full scale 1. 16-bit samples are exact.
  let samples: [Float]

  var frames: Int { samples.count / channels }
  var form: String { "\(rate) Hz \(channels) ch" }

  /// Reads a file by a graph of its own: read, keep. nil when it is no sound.
  init?(path: String) {
    var catalogue = Catalogue.standard
    catalogue.add(SampleKeeper.self)
    var graph = GraphDescription("samples")
    graph.add("in", "audio.read", ["path": .string(path), "sample": "f32"])
    graph.add("out", SampleKeeper.type, ["shelf": .string(path)])
    graph.link("in -> out")
    guard let plan = try? Graph.load(graph, settings: GraphSettings(clock: .virtual), catalogue: catalogue),
      case .pcm(let rate, let channels, _)? = plan.links.first?.shape.format
    else { return nil }
    _ = SampleKeeper.take(path)
    guard let run = try? Engine(catalogue: catalogue, clock: .virtual, workers: 1).start(plan) else {
      return nil
    }
    guard let report = run.waitUntilStopped(), report.failure == nil else { return nil }
    (self.rate, self.channels) = (rate, channels)
    samples = SampleKeeper.take(path)
  }
}

/// Keeps all samples it gets, on a shelf where `SoundSamples` finds them. In no catalogue but its own.
private struct SampleKeeper: Node {
  static let type = "golden.samples"
  static let contract = NodeContract(
    type, "keeps samples",
    inputs: [PortContract("in", .pcm(samples: [.f32]), text: "sound")],
    parameters: [ParameterContract("shelf", .string, required: true, text: "where to put them")], lane: .bulk)

  private static let shelves = Mutex<[String: [Float]]>([:])
  private let shelf: String
  private var samples: [Float] = []

  /// Takes what lies on a shelf.
  static func take(_ shelf: String) -> [Float] { shelves.withLock { $0.removeValue(forKey: shelf) ?? [] } }

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { shelf = setup.parameters.string("shelf") }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      let more = packet.samples(of: Float.self)
      for index in more.indices { samples.append(more[index]) }
    }
    return .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let samples = samples
    Self.shelves.withLock { $0[shelf] = samples }
    return .ended
  }
}
