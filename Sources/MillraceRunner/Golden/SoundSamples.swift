internal import Millrace
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// The samples of an audio file, in any format that the standard nodes can read.
struct SoundSamples {
  let rate: Int
  let channels: Int
  /// Interleaved; full scale is 1. 16-bit samples are exact.
  let samples: [Float]

  var frames: Int { samples.count / channels }
  var form: String { "\(rate) Hz \(channels) ch" }

  /// Reads a file with a graph. nil when it is not an audio file.
  init?(path: String) {
    var catalogue = Catalogue.standard
    catalogue.add(SampleCollector.self)
    var graph = GraphDescription("samples")
    graph.add("in", "audio.read", ["path": .string(path), "sample": "f32"])
    graph.add("out", SampleCollector.type, ["key": .string(path)])
    graph.link("in -> out")
    guard let plan = try? Graph.load(graph, settings: GraphSettings(clock: .virtual), catalogue: catalogue),
      case .pcm(let rate, let channels, _)? = plan.links.first?.shape.format
    else { return nil }
    _ = SampleCollector.take(path)
    guard let run = try? Engine(catalogue: catalogue, clock: .virtual, workers: 1).start(plan) else {
      return nil
    }
    guard let report = run.waitUntilStopped(), report.failure == nil else { return nil }
    (self.rate, self.channels) = (rate, channels)
    samples = SampleCollector.take(path)
  }
}

/// Collects all samples from its input for `SoundSamples`. Only the catalogue of `SoundSamples` has it.
private struct SampleCollector: Node {
  static let type = "golden.samples"
  static let contract = NodeContract(
    type, "collects samples",
    inputs: [PortContract("in", .pcm(samples: [.f32]), text: "audio")],
    parameters: [ParameterContract("key", .string, required: true, text: "identifies the samples")],
    lane: .bulk)

  private static let collected = Mutex<[String: [Float]]>([:])
  private let key: String
  private var samples: [Float] = []

  /// Removes and returns the samples with a key.
  static func take(_ key: String) -> [Float] { collected.withLock { $0.removeValue(forKey: key) ?? [] } }

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { key = setup.parameters.string("key") }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      let more = packet.samples(of: Float.self)
      for index in more.indices { samples.append(more[index]) }
    }
    return .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let samples = samples
    Self.collected.withLock { $0[key] = samples }
    return .ended
  }
}
