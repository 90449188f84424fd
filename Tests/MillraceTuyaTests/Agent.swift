import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceJSON
import MillraceTesting
import MillraceTuya
import MillraceTuyaDouble
import Testing

/// A node beside a double, with everything the node emitted. Replies count as played as soon as they arrive.
final class Agent {
  static let sound = OutputShape.pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320)
  static let lines = OutputShape(.text, packetDuration: nil, packetBytes: 4_096)
  static let reports = OutputShape(.event, packetDuration: nil, packetBytes: 8_192)
  static let pictures = OutputShape(.jpeg, packetDuration: nil, packetBytes: 1 << 20)
  /// A bound in seconds that no test should reach.
  private static let limit = 120.0

  let double: TuyaDouble
  let bench: NodeBench
  var events: [BenchEvent] = []
  var packets: [CapturedPacket] = []
  var texts: [String] = []
  var images: [[UInt8]] = []
  var files: [String] = []
  /// Replies are reported as played as soon as they arrive.
  var playsReplies = true
  private var isAudibleReported = false
  /// The inputs have ended: no reports can be sent.
  private var isOver = false

  /// A scenario that is quick, and keeps its report.
  static func scenario(_ change: (inout TuyaScenario) -> Void = { _ in }) -> TuyaScenario {
    var scenario = TuyaScenario()
    scenario.speed = 100
    scenario.keeps = true
    scenario.turns[0].hears = "what time is it"
    scenario.turns[0].says = "It is nine."
    scenario.turns[0].thinks = 10
    change(&scenario)
    return scenario
  }

  /// The parameters of a node that reaches a double.
  static func parameters(_ double: TuyaDouble) -> [String: ParameterValue] {
    var parameters: [String: ParameterValue] = [
      "url": .string(double.address), "client": .string(double.client), "localKey": .string(double.localKey),
      "token": .string(double.agentToken), "proxy": "none", "first": 10, "most": 20, "open": 600_000,
      "prepare": 600_000, "answer": 600_000,
    ]
    if let roots = double.roots { parameters["roots"] = .string(roots) }
    return parameters
  }

  /// A node beside a double of its own.
  convenience init(
    _ scenario: TuyaScenario = Agent.scenario(), _ more: [String: ParameterValue] = [:],
    outputs: [String]? = nil,
    inputs: [String: OutputShape] = ["audio": sound, "control": reports, "text": lines]
  ) async throws {
    try self.init(try await TuyaDouble.listen(scenario), more, outputs: outputs, inputs: inputs)
  }

  /// A node beside a double that others use, too. A parameter without a value is left out.
  init(
    _ double: TuyaDouble, _ more: [String: ParameterValue?] = [:], outputs: [String]? = nil,
    inputs: [String: OutputShape] = ["audio": sound, "control": reports, "text": lines]
  ) throws {
    self.double = double
    var parameters = Self.parameters(double)
    for (name, value) in more { parameters[name] = value }
    bench = try NodeBench(TuyaAgent.self, parameters, inputs: inputs, outputs: outputs, clock: .realtime)
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
    Issue.record("not reached: \(words)")
    return false
  }

  /// Takes what the node emitted, and plays it.
  func take() {
    events += bench.events()
    texts += bench.texts("text")
    images += bench.packets("image").map(\.bytes)
    files += bench.texts("file")
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

  private func report(_ event: String, _ generation: UInt32) {
    guard !isOver else { return }
    bench.push(text: #"{"event":"\#(event)","reply":\#(generation),"samples":1,"ms":1}"#, to: "control")
  }

  // MARK: The user

  func command(_ text: String) { bench.push(text: text, to: "control") }

  /// An `extra` command with an id.
  func extra(_ name: String, _ payload: String = "{}", id: String) {
    command(#"{"command":"extra","name":"\#(name)","payload":\#(payload),"id":"\#(id)"}"#)
  }

  func ask(_ text: String, id: String = "ask") {
    command(#"{"command":"ask","text":"\#(text)","id":"\#(id)"}"#)
  }

  /// A second of loud audio, and one of silence.
  func speak() {
    bench.push((0..<16_000).map { Int16($0 % 2 == 0 ? 6_000 : -6_000) }, to: "audio")
    hush(1)
  }

  func hush(_ seconds: Int) { bench.push([Int16](repeating: 0, count: 16_000 * seconds), to: "audio") }

  // MARK: What was seen

  var states: [String] { events.filter { $0.name == "state" }.compactMap { $0.string("state") } }
  var isListening: Bool { states.last == "listening" }
  /// How often the agent was ready for the user.
  var turns: Int { states.count { $0 == "listening" } }
  func named(_ name: String) -> [BenchEvent] { events.filter { $0.name == name } }
  func has(_ name: String) -> Bool { events.contains { $0.name == name } }
  var errors: [BenchEvent] { named("error") }

  /// The answer to the command with an id, as JSON.
  func answer(_ id: String) -> BenchEvent? { named("answer").first { $0.string("id") == id } }

  var words: String {
    (double.seen.lines.suffix(80) + double.seen.violations.map { "! \($0)" } + events.map(\.json)).joined(
      separator: "\n")
  }

  /// The sound of replies.
  var heard: [UInt8] { packets.flatMap(\.bytes) }

  /// With numbered replies in PCM: the numbers of the replies of which there is sound, from a packet on.
  func replies(from index: Int = 0) -> Set<UInt16> {
    let bytes = packets[index...].flatMap(\.bytes)
    return Set(
      stride(from: 0, to: bytes.count - 1, by: 2).map { UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8 })
  }

  /// Ends the inputs once a reply was played, and waits for the end of the node.
  func end(stopsDouble: Bool = true) throws {
    _ = try wait { isListening || states.last == "closed" || bench.hasEnded }
    isOver = true
    try bench.finish()
    take()
    #expect(double.seen.violations == [], "\(words)")
    if stopsDouble { double.stop() }
  }
}
