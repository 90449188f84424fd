public import MillraceConformance
internal import MillraceDialog
public import MillraceJSON

/// The Bailian double for the conformance suite: `bailian.dialog` in duplex, with numbered PCM replies.
public final class BailianConformance: ServiceDouble {
  public static let traits: ServiceTraits = {
    var traits = ServiceTraits(nodeType: "bailian.dialog", vendor: "bailian", key: "sk-nobody-may-see-this")
    let turn: Set<ServiceFault.Place> = [.thinking, .responding, .midway, .answered]
    let first: Set<ServiceFault.Place> = [.connecting, .listening]
    traits.faults = [
      .hold: turn.union(first), .stall: turn.union(first), .drop: turn.union(first),
      .malformed: turn.union([.listening]), .unknown: turn.union([.listening]), .repeated: turn,
      .oversized: turn, .outOfOrder: turn, .error: turn, .failure: turn, .kick: turn.union([.listening]),
      .expire: turn.union([.listening]),
    ]
    return traits
  }()

  private let double: BailianDouble
  private let script: ServiceScript
  private let mute: SilentPort?

  public static func start(_ script: ServiceScript) async throws -> BailianConformance {
    let mute = script.isSilent ? try SilentPort() : nil
    return BailianConformance(try await BailianDouble.listen(Self.scenario(script)), script, mute)
  }

  private init(_ double: BailianDouble, _ script: ServiceScript, _ mute: SilentPort?) {
    self.double = double
    self.script = script
    self.mute = mute
  }

  private static func scenario(_ script: ServiceScript) -> BailianScenario {
    var scenario = BailianScenario()
    scenario.isNumbered = true
    scenario.speed = script.speed
    scenario.chunk = script.chunk
    scenario.delay = script.delay
    switch script.refusal {
    case .busy(let count)?: scenario.refusals = count
    case .key?: scenario.keys = ["sk-another"]
    case nil: break
    }
    var turn = BailianScenario.Turn()
    turn.thinks = 10
    turn.says = Array(repeating: "word", count: max(1, script.replyMilliseconds / 100)).joined(separator: " ")
    scenario.turns = [turn, turn]
    guard let fault = script.fault else { return scenario }
    let made = BailianScenario.Fault(kind(fault.kind), at: place(fault.place))
    if fault.place == .connecting || fault.place == .listening {
      scenario.fault = made
    } else {
      scenario.turns[0].fault = made
    }
    return scenario
  }

  private static func kind(_ kind: ServiceFault.Kind) -> BailianScenario.Fault.Kind {
    switch kind {
    case .hold: .hold
    case .stall: .stall
    case .drop: .drop
    case .malformed: .malformed
    case .unknown: .unknown
    case .repeated: .repeated
    case .oversized: .oversized
    case .outOfOrder: .outOfOrder
    case .error: .error
    case .failure: .fail
    case .kick: .kick
    case .expire: .expire
    }
  }

  private static func place(_ place: ServiceFault.Place) -> BailianScenario.Fault.Place {
    switch place {
    case .connecting: .connecting
    case .listening: .listening
    case .thinking: .thinking
    case .responding: .responding
    case .midway: .midway
    case .answered: .answered
    }
  }

  public var parameters: [JSONValue.Member] {
    let port = mute?.port ?? double.port
    var members: [JSONValue.Member] = [
      JSONValue.Member("url", .string("ws://127.0.0.1:\(port)/api-ws/v1/inference")),
      JSONValue.Member("key", .string(Self.traits.key)), JSONValue.Member("workspace", "llm-1"),
      JSONValue.Member("app", "mm_1"), JSONValue.Member("user", "conformance"),
      JSONValue.Member("first", 10), JSONValue.Member("most", 50), JSONValue.Member("proxy", "none"),
    ]
    if script.isSilent { members.append(JSONValue.Member("open", 300)) }
    // Short enough to notice soon, and long enough not to be triggered by a busy machine.
    if script.fault?.kind == .stall {
      members += [JSONValue.Member("heartBeat", 200), JSONValue.Member("silence", 4_000)]
    }
    return members
  }

  public var seen: ServiceReport {
    let seen = double.seen
    var report = ServiceReport()
    report.connections = seen.connections
    report.turns = seen.begun
    report.audioBytes = seen.replyBytes
    report.sessionEnds = seen.stops
    report.speechSamples = seen.speechSamples
    report.unknownMessages = seen.unknownMessages
    report.violations = seen.violations.map(\.description)
    return report
  }

  public func forget() { double.forget() }

  public func stop() { double.stop() }
}
