public import MillraceConformance
internal import MillraceDialog
internal import MillraceDoubles
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
      .oversized: turn, .outOfOrder: turn, .error: turn, .fail: turn, .kick: turn.union([.listening]),
      .expire: turn.union([.listening]),
    ]
    traits.answers = .whenListening
    return traits
  }()

  private let double: BailianDouble
  private let script: ServiceScript
  private let mute: SilentPort?

  public static func start(_ script: ServiceScript) async throws -> BailianConformance {
    let mute = script.isSilent ? try SilentPort() : nil
    return BailianConformance(try await BailianDouble.listen(BailianScenario(script)), script, mute)
  }

  private init(_ double: BailianDouble, _ script: ServiceScript, _ mute: SilentPort?) {
    self.double = double
    self.script = script
    self.mute = mute
  }

  public var parameters: [JSONValue.Member] {
    let address = BailianDouble.address(mute?.port ?? double.port)
    var members: [JSONValue.Member] = [
      JSONValue.Member("url", .string(address)),
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

  public var seen: ServiceReport { ServiceReport(double.seen) }

  public func forget() { double.forget() }

  public func stop() { double.stop() }
}
