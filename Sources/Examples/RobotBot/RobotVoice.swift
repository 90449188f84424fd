import Glibc
import Millrace

/// Turns a voice into a robot's by ring modulation: a whole custom node.
///
/// `in`, `out`: s16 PCM of any rate, one channel. Every sample is multiplied by a sine of `frequency` Hz (live). No latency.
struct RobotVoice: Node {
  static let frequency = Parameter<Double>(
    "frequency", 1...500, unit: "Hz", default: 50, live: true, text: "of the sine the voice is multiplied by")
  static let retuned = EventContract("retuned", text: "`frequency` was changed; its new value in Hz")
  static let contract = NodeContract(
    "example.robotVoice", "makes a voice sound like a robot's",
    inputs: [PortContract("in", .pcm(channels: .only(1), samples: [.s16]), text: "a voice")],
    outputs: [PortContract("out", .pcm(), text: "a robot's voice")],
    parameters: [frequency], events: [retuned])

  var frequency: LiveParameter<Double>
  let retuned: EventPort
  let rate: Double
  var phase = 0.0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    frequency = setup.live(Self.frequency)
    retuned = setup.event(Self.retuned)
    rate = Double(setup.inputFormat().rate ?? 48_000)
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let voice = ports.next() else { return .done }
    var robot = try ports.makeWritable(voice)
    var samples = robot.mutableSamples(of: Int16.self)
    for index in samples.indices {
      samples[index] = Int16(clamping: Int(Double(samples[index]) * sin(phase)))
      phase = (phase + 2 * .pi * frequency.value / rate).truncatingRemainder(dividingBy: 2 * .pi)
    }
    ports.emit(robot)
    return .done
  }

  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    if frequency.update(from: message) { ports.post(retuned) { $0.field("frequency", frequency.value) } }
  }
}
