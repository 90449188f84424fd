internal import MillraceCore
internal import Synchronization

/// `conformance.voice`: a user's microphone, 16-bit mono PCM at 16 kHz, several times faster than real time. Silent, except for the frames
/// in which the case has the user speak.
struct ConformanceVoice: Node {
  static let contract = NodeContract(
    "conformance.voice", "the microphone of a case",
    outputs: [
      PortContract("out", .pcm(rates: .only(16_000), channels: .only(1), samples: [.s16]), text: "audio")
    ],
    parameters: [
      ParameterContract("stage", .integer(0...Int.max), required: true, text: "number of the case")
    ],
    drive: .itself
  ) { resolution in
    resolution.outputs["out"] = .pcm(rate: 16_000, channels: 1, sample: .s16, frames: Self.frames)
    resolution.pacing = .live
  }

  /// Samples per frame.
  static let frames = 320
  /// The interval between two frames of 20 ms.
  private static let pace: Nanoseconds = .milliseconds(4)
  /// Well above the threshold of any energy detector.
  private static let level: Int16 = 6_000

  private let stage: CaseState
  private var next: Nanoseconds = 0
  private var position: Int64 = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    stage = try CaseState.find(setup.parameters.integer("stage"))
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if stage.isAudioOver.load(ordering: .acquiring) { return .ended }
    guard ports.now >= next else {
      ports.wake(at: next)
      return .done
    }
    next = max(next + Self.pace, ports.now - 10 * Self.pace)
    let isLoud = stage.speechFrames.load(ordering: .relaxed) > 0
    if isLoud {
      stage.silentFrames.store(0, ordering: .relaxed)
      stage.speechFrames.subtract(1, ordering: .relaxed)
    } else {
      stage.silentFrames.add(1, ordering: .relaxed)
    }
    var packet = try ports.makePacket(bytes: Self.frames * 2, of: .none)
    packet.duration = Self.frames
    packet.position = position
    position += Int64(Self.frames)
    var samples = packet.mutableSamples(of: Int16.self)
    for index in 0..<Self.frames {
      samples[index] = isLoud ? (index % 2 == 0 ? Self.level : -Self.level) : 0
    }
    ports.emit(packet)
    ports.wake(at: next)
    return .done
  }
}
