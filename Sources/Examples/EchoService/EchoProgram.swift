import MillraceConformance
import MillraceDoubles
import MillraceJSON

/// The echo service for runners: `echo-runner double echo`.
public enum EchoProgram: ServiceProgram {
  public static let name = "echo"
  public static let summary = "repeats what it hears, over records on a TLS stream"
  public static let nodeTypes = ["echo.dialog"]
  public static var conformance: [any ServiceDouble.Type] { [EchoConformance.self] }

  public static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
    let scenario: EchoDouble.Server.Scenario = try options.load(faults: EchoConformance.traits.faults)
    if scenario.checksPlayback, case .text(_, let name) = options.scenario {
      throw .other(
        "\(name): the echo service is not told whether a reply was played or interrupted; remove \"checksPlayback\""
      )
    }
    return try await EchoDouble(scenario, options)
  }
}

/// The echo service for the conformance suite.
final class EchoConformance: ServiceDouble {
  static let traits: ServiceTraits = {
    var traits = ServiceTraits(nodeType: "echo.dialog", vendor: "echo", key: "a-key-nobody-may-see")
    let turn: Set<ServiceFault.Place> = [.thinking, .responding, .midway, .answered]
    let (anywhere, listening) = (turn.union([.connecting, .listening]), turn.union([.listening]))
    traits.answers = .atOnce
    traits.faults = [
      .hold: anywhere, .stall: anywhere, .drop: anywhere, .malformed: listening, .unknown: listening,
      .oversized: turn, .error: turn, .fail: turn, .kick: listening, .expire: listening,
    ]
    return traits
  }()

  private let double: EchoDouble
  private let script: ServiceScript
  private let mute: SilentPort?

  static func start(_ script: ServiceScript) async throws -> EchoConformance {
    var scenario = EchoDouble.Server.Scenario(script)
    if scenario.keys.isEmpty { scenario.keys = [traits.key] }
    let mute = script.isSilent ? try SilentPort() : nil
    return EchoConformance(try await EchoDouble(scenario), script, mute)
  }

  private init(_ double: EchoDouble, _ script: ServiceScript, _ mute: SilentPort?) {
    self.double = double
    self.script = script
    self.mute = mute
  }

  var parameters: [JSONValue.Member] {
    var members = [
      JSONValue.Member("url", .string(EchoDouble.address(mute?.port ?? double.port))),
      JSONValue.Member("key", .string(Self.traits.key)),
      JSONValue.Member("first", 10), JSONValue.Member("most", 50), JSONValue.Member("proxy", "none"),
      // Short where the case is about it, and otherwise longer than the busiest machine takes.
      JSONValue.Member("open", script.isSilent ? 300 : 60_000),
      JSONValue.Member("silence", script.fault?.kind == .stall ? 4_000 : 60_000),
    ]
    if let roots = double.roots { members.append(JSONValue.Member("roots", .string(roots))) }
    return members
  }

  var seen: ServiceReport { ServiceReport(double.seen) }
  func forget() { double.forget() }
  func stop() { double.stop() }
}
