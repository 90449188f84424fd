public import MillraceConformance
internal import MillraceDialog
internal import MillraceDoubles
public import MillraceJSON

/// The double of the AI stream for the conformance suite: `tuya.agent` in duplex with one long event and numbered PCM replies; v21, TLS.
public final class TuyaConformance: ServiceDouble {
  public static let traits: ServiceTraits = {
    var traits = ServiceTraits(nodeType: "tuya.agent", vendor: "tuya", key: "token-nobody-may-see")
    let turn: Set<ServiceFault.Place> = [.thinking, .responding, .midway, .answered]
    let (anywhere, listening) = (turn.union([.connecting, .listening]), turn.union([.listening]))
    traits.faults = [
      .hold: anywhere, .stall: anywhere, .drop: anywhere, .malformed: listening, .unknown: listening,
      .oversized: turn, .error: turn, .fail: anywhere, .repeated: turn, .outOfOrder: turn, .kick: listening,
      .expire: anywhere,
    ]
    traits.answers = .whenListening
    traits.sendsMedia = true
    traits.kickReasons = [.replaced]
    traits.sharesConnections = true
    traits.closesSessions = true
    return traits
  }()

  private let double: TuyaDouble
  private let script: ServiceScript
  private let mute: SilentPort?

  public static func start(_ script: ServiceScript) async throws -> TuyaConformance {
    var scenario = TuyaScenario(script)
    // A refused key is an identity that the cloud does not know: it is refused with 401 before there is a session.
    if scenario.keys.isEmpty { scenario.keys = [traits.key] } else { scenario.client = "client-of-nobody" }
    if script.sendsMedia { scenario.turns[0].images = ["https://pictures.example/a.png"] }
    if script.closesSession { scenario.turns[0].sessionClose = 500 }
    let mute = script.isSilent ? try SilentPort() : nil
    return TuyaConformance(try await TuyaDouble.listen(scenario), script, mute)
  }

  private init(_ double: TuyaDouble, _ script: ServiceScript, _ mute: SilentPort?) {
    self.double = double
    self.script = script
    self.mute = mute
  }

  public var parameters: [JSONValue.Member] {
    var members: [JSONValue.Member] = [
      JSONValue.Member("url", .string(TuyaDouble.address(mute?.port ?? double.port))),
      JSONValue.Member("client", .string(TuyaMembers().client)),
      JSONValue.Member("localKey", .string(double.localKey)),
      JSONValue.Member("token", .string(Self.traits.key)),
      // Nodes of one case share it.
      JSONValue.Member("connection", .string("conformance-\(double.port)")),
      JSONValue.Member("mode", "duplex"), JSONValue.Member("reply", "pcm"),
      JSONValue.Member("first", 10), JSONValue.Member("most", 50), JSONValue.Member("proxy", "none"),
      // Short where the case is about it, and otherwise longer than the busiest machine takes.
      JSONValue.Member("open", script.isSilent ? 300 : 60_000),
      JSONValue.Member("ping", script.fault?.kind == .stall ? 4_000 : 60_000),
    ]
    if let roots = double.roots { members.append(JSONValue.Member("roots", .string(roots))) }
    return members
  }

  public var seen: ServiceReport { ServiceReport(double.seen) }
  public func forget() { double.forget() }
  public func stop() { double.stop() }
}
