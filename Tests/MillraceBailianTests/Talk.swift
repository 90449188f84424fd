import MillraceBailian
import MillraceBailianDouble
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceTesting
import Testing

/// A node and its double, with everything the node emitted.
final class Talk {
  static let sound = OutputShape.pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320)
  static let lines = OutputShape(.text, packetDuration: nil, packetBytes: 1_000)
  static let reports = OutputShape(.event, packetDuration: nil, packetBytes: 448)
  /// A bound in seconds that no test should reach.
  private static let limit = 300.0

  let double: BailianDouble
  let bench: NodeBench
  var events: [BenchEvent] = []
  var packets: [CapturedPacket] = []
  var texts: [String] = []
  /// Replies are reported as played as soon as they arrive.
  var playsReplies = true
  private var isAudibleReported = false
  /// The inputs have ended: no reports can be sent.
  private var isOver = false

  init(
    _ scenario: BailianScenario, _ more: [String: ParameterValue] = [:], outputs: [String]? = nil,
    inputs: [String: OutputShape] = ["audio": Talk.sound, "control": Talk.reports, "text": Talk.lines]
  ) async throws {
    var patient = scenario
    patient.silence = max(scenario.silence, 100_000)
    double = try await BailianDouble.listen(patient)
    var parameters: [String: ParameterValue] = [
      "url": .string("ws://127.0.0.1:\(double.port)/api-ws/v1/inference"), "key": "sk-secret",
      "workspace": "llm-1", "app": "mm_1", "user": "tester", "first": 10, "most": 20, "open": 600_000,
      "begin": 600_000,
    ]
    parameters.merge(more) { _, new in new }
    bench = try NodeBench(
      BailianDialog.self, parameters, inputs: inputs, outputs: outputs, clock: .realtime)
  }

  /// Runs the node until a condition holds.
  func wait(until condition: () -> Bool) throws -> Bool {
    let end = ContinuousClock.now + .seconds(Self.limit)
    while ContinuousClock.now < end {
      if try bench.wait(
        0.005,
        until: {
          take(); return condition()
        })
      {
        return true
      }
    }
    return false
  }

  /// Takes what the node emitted, and plays it: reports the first packet as audible and the end as finished.
  private func take() {
    events += bench.events()
    texts += bench.texts("text")
    for packet in bench.packets("audio") {
      packets.append(packet)
      if playsReplies { play(packet) }
    }
  }

  private func play(_ packet: CapturedPacket) {
    if !isAudibleReported { report("replyAudible", packet.generation) }
    isAudibleReported = true
    if packet.flags.contains(.endOfUtterance) {
      report("replyFinished", packet.generation)
      isAudibleReported = false
    }
  }

  /// Plays what was held, and from here on plays at once.
  func playHeld() {
    playsReplies = true
    for packet in packets { play(packet) }
  }

  private func report(_ event: String, _ generation: UInt32) {
    guard !isOver else { return }
    bench.push(
      text: #"{"event":"\#(event)","reply":\#(generation),"samples":1,"ms":1}"#, to: "control")
  }

  func command(_ text: String) { bench.push(text: text, to: "control") }

  /// Sends a second of loud audio, and one of silence.
  func speak() {
    bench.push((0..<16_000).map { Int16($0 % 2 == 0 ? 6_000 : -6_000) }, to: "audio")
    hush(1)
  }

  /// The same as Opus packets of 20 ms, which the double judges by their length: SILK, 20 ms in one frame.
  func speakPackets() {
    for index in 0..<100 {
      let isLoud = index < 50
      bench.push(
        bytes: [0x48] + [UInt8](repeating: 7, count: isLoud ? 60 : 2), to: "audio", duration: 320)
    }
  }

  func hush(_ seconds: Int) {
    bench.push([Int16](repeating: 0, count: 16_000 * seconds), to: "audio")
  }

  func states() -> [String] {
    events.filter { $0.name == "state" }.compactMap { $0.string("state") }
  }

  func has(_ name: String) -> Bool { events.contains { $0.name == name } }

  func end() throws {
    isOver = true
    try bench.finish()
    take()
    double.stop()
  }
}
