import Glibc
import Millrace

/// Turns a voice into a robot's by ring modulation: a whole custom node.
///
/// `in`, `out`: s16 PCM of any rate, one channel. Every sample is multiplied by a sine of `frequency` Hz (live). No latency.
struct RobotVoice: Node {
  static let contract = NodeContract(
    "example.robotVoice", "makes a voice sound like a robot's",
    inputs: [PortContract("in", .pcm(channels: .only(1), samples: [.s16]), text: "a voice")],
    outputs: [PortContract("out", .pcm(), text: "a robot's voice")],
    parameters: [
      ParameterContract(
        "frequency", .number(1...500), unit: "Hz", default: 50, live: true, text: "of the humming in it")
    ],
    events: [EventContract("retuned", text: "`frequency` was changed; its new value in Hz")])

  let rate: Double
  var step: Double
  var phase = 0.0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    rate = Double(setup.inputFormat().rate ?? 48_000)
    step = 2 * .pi * setup.parameters.number("frequency") / rate
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let heard = ports.next() else { return .done }
    var said = try ports.makeWritable(heard)
    var samples = said.mutableSamples(of: Int16.self)
    for index in samples.indices {
      samples[index] = Int16(clamping: Int(Double(samples[index]) * sin(phase)))
      phase = (phase + step).truncatingRemainder(dividingBy: 2 * .pi)
    }
    ports.emit(said)
    return .done
  }

  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(_, let value) = message else { return }
    step = 2 * .pi * value.asNumber / rate
    ports.post(0) { $0.field("frequency", value.asNumber) }
  }
}
