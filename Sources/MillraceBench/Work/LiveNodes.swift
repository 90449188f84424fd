import MillraceCore
import Synchronization

/// What the live sessions of a measurement share.
final class LiveStage: Sendable {
  let load: LiveLoad
  let bars: LatenessBars

  init(_ load: LiveLoad, _ bars: LatenessBars) {
    self.load = load
    self.bars = bars
  }

  /// The stage of nodes created from now on.
  static let current = Mutex<LiveStage?>(nil)
}

/// A microphone that plays a voice from memory: a frame of 20 ms every 20 ms.
struct LiveVoice: Node {
  static let contract = NodeContract(
    "bench.voice", "plays a voice from memory",
    outputs: [
      PortContract("out", .pcm(rates: .only(48_000), channels: .only(1), samples: [.s16]), text: "the voice")
    ],
    parameters: [
      ParameterContract("session", .integer(0...1_000_000), default: 0, text: "number of the session")
    ],
    budget: 300, drive: .itself,
    resolve: { resolution in
      resolution.outputs["out"] = .pcm(rate: 48_000, channels: 1, sample: .s16, frames: LiveLoad.frame)
      resolution.pacing = .paced
    })
  private let load: LiveLoad
  private let offset: Int
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let stage = LiveStage.current.withLock({ $0 }) else { throw NodeProblem("no load has been set") }
    load = stage.load
    offset = load.offset(of: setup.parameters.integer("session"))
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if next == load.warmUp + load.measured + load.framesBehind { return .ended }
    let due = Int64(next) * Int64(LiveLoad.frameTime)
    if ports.now < due {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: 2 * LiveLoad.frame, of: .none)
    packet.timestamp = due
    packet.position = Int64(next * LiveLoad.frame)
    packet.duration = LiveLoad.frame
    let start = (offset + next * LiveLoad.frame) % load.voice.count
    var samples = packet.mutableSamples(of: Int16.self)
    for index in 0..<LiveLoad.frame { samples[index] = load.voice[start + index] }
    ports.emit(packet)
    next += 1
    return .again
  }
}

/// Takes Opus packets and records how late each one is.
struct LiveSink: Node {
  static let contract = NodeContract(
    "bench.lateness", "records how late packets are",
    inputs: [PortContract("in", .opus(), text: "Opus packets")])
  private let stage: LiveStage
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let stage = LiveStage.current.withLock({ $0 }) else { throw NodeProblem("no load has been set") }
    self.stage = stage
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while ports.next() != nil {
      if stage.load.counts(next) { stage.bars.add(Int(ports.now) - stage.load.due(next)) }
      next += 1
    }
    return .done
  }
}
