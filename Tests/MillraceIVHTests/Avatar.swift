import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceIVH
import MillraceIVHDouble
import MillraceJSON
import MillraceTesting
import Testing

/// A node and its double, with everything the node emitted. Speech counts as heard as soon as it is over.
final class Avatar {
  static let voice = OutputShape.pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320)
  static let lines = OutputShape(.text, packetDuration: nil, packetBytes: 4_096)
  static let reports = OutputShape(.event, packetDuration: nil, packetBytes: 8_192)
  /// A bound in seconds that no test should reach.
  private static let limit = 300.0

  let double: IVHDouble
  let bench: NodeBench
  var events: [BenchEvent] = []
  var texts: [String] = []
  var streams: [String] = []
  /// What is spoken is reported as heard as soon as it is over.
  var isHeard = true
  private var isOver = false

  init(
    _ generation: IVHGeneration, _ scenario: IVHScenario = IVHScenario(),
    _ more: [String: ParameterValue] = [:],
    inputs: [String: OutputShape] = ["audio": voice, "control": reports, "text": lines]
  ) async throws {
    var patient = scenario
    patient.keeps = true
    double = try await IVHDouble.listen(patient)
    var parameters: [String: ParameterValue] = [
      "generation": .string(generation.rawValue), "url": .string(double.address),
      "key": "appkey-of-the-double",
      "token": "token-of-the-double", "user": "tester", "start": "now", "first": 10, "most": 20, "poll": 50,
      "open": 600_000,
    ]
    if generation == .session { parameters["project"] = "p1" }
    parameters.merge(more) { _, new in new }
    bench = try NodeBench(IVHAvatar.self, parameters, inputs: inputs, clock: .realtime)
  }

  /// Runs the node until a condition holds.
  func wait(until condition: () -> Bool) throws -> Bool {
    // What a node that fails has emitted before counts, too.
    defer { take() }
    let end = ContinuousClock.now + .seconds(Self.limit)
    while ContinuousClock.now < end {
      let holds = try bench.wait(0.005) {
        take()
        return condition()
      }
      if holds { return true }
    }
    return false
  }

  private func take() {
    let new = bench.events()
    events += new
    texts += bench.texts("text")
    streams += bench.texts("stream")
    for event in new where event.name == "replyEnded" && isHeard { heard() }
  }

  /// Reports what is spoken as heard.
  func heard() {
    guard !isOver else { return }
    bench.push(
      text: #"{"event":"replyFinished","reply":\#(bench.generation),"samples":1,"ms":1}"#, to: "control")
  }

  func command(_ text: String) { bench.push(text: text, to: "control") }
  func say(_ text: String) { command(#"{"command":"say","text":"\#(text)","id":"\#(text)"}"#) }

  var states: [String] { events.filter { $0.name == "state" }.compactMap { $0.string("state") } }
  var isListening: Bool { states.last == "listening" }
  var words: String {
    (double.seen.lines + double.seen.violations.map { "! \($0)" } + events.map(\.json)).joined(
      separator: "\n")
  }

  func named(_ name: String) -> [BenchEvent] { events.filter { $0.name == name } }
  func has(_ name: String) -> Bool { events.contains { $0.name == name } }

  /// How commands with this id were answered.
  func answers(_ id: String) -> [Bool] {
    named("answer").filter { $0.string("id") == id }.compactMap { $0.bool("ok") }
  }

  /// What was reported as an error.
  var errors: [String] { named("error").compactMap { $0.string("text") } }

  func end() throws {
    isOver = true
    try bench.finish()
    take()
  }
}
