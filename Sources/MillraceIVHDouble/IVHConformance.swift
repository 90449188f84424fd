public import MillraceConformance
internal import MillraceDialog
internal import MillraceDoubles
public import MillraceJSON

/// The IVH double for the conformance suite: `ivh.avatar` in the session generation, driven by texts.
public final class IVHConformance: ServiceDouble {
  public static let traits: ServiceTraits = {
    var traits = ServiceTraits(nodeType: "ivh.avatar", vendor: "ivh", key: "token-nobody-may-see")
    let turn: Set<ServiceFault.Place> = [.thinking, .responding, .midway, .answered]
    let (anywhere, listening) = (turn.union([.connecting, .listening]), turn.union([.listening]))
    traits.faults = [
      .hold: anywhere, .stall: listening, .drop: listening, .malformed: listening, .unknown: listening,
      .oversized: turn, .error: turn, .fail: turn, .repeated: turn, .expire: listening,
    ]
    traits.audio = nil
    traits.replies = nil
    traits.detectsSpeech = false
    traits.streamsReplies = true
    traits.stream = "stream"
    traits.kickReasons = [.replaced]
    traits.sendsMedia = true
    traits.answers = .whenListening
    return traits
  }()

  /// The faults of scenarios. A session that is closed without a reason is followed by another, which the suite does not expect of a kick.
  static var faults: [ServiceFault.Kind: Set<ServiceFault.Place>] {
    traits.faults.merging([.kick: [.listening, .thinking, .responding, .midway, .answered]]) { $1 }
  }

  private let double: IVHDouble
  private let script: ServiceScript
  private let mute: SilentPort?

  public static func start(_ script: ServiceScript) async throws -> IVHConformance {
    var scenario = IVHScenario(script)
    if scenario.keys.isEmpty { scenario.keys = [traits.key] }
    if script.sendsMedia {
      scenario.turns[0].own.interaction = [
        "type": "Image", "content": ["url": "https://pictures.example/a.png"],
      ]
    }
    let mute = script.isSilent ? try SilentPort() : nil
    return IVHConformance(try await IVHDouble.listen(scenario), script, mute)
  }

  private init(_ double: IVHDouble, _ script: ServiceScript, _ mute: SilentPort?) {
    self.double = double
    self.script = script
    self.mute = mute
  }

  public var parameters: [JSONValue.Member] {
    [
      JSONValue.Member("url", .string(IVHDouble.address(mute?.port ?? double.port))),
      JSONValue.Member("key", .string(IVHSignature.appKey)),
      JSONValue.Member("token", .string(Self.traits.key)),
      JSONValue.Member("user", "conformance"), JSONValue.Member("project", "p1"),
      JSONValue.Member("start", "now"), JSONValue.Member("poll", 50),
      JSONValue.Member("first", 10), JSONValue.Member("most", 50), JSONValue.Member("proxy", "none"),
      // Short where the case is about it, and otherwise longer than the busiest machine takes.
      JSONValue.Member("open", script.isSilent ? 300 : 60_000),
      // What is not answered on a busy machine for a while is no fault of the node.
      JSONValue.Member("close", script.fault == nil && !script.isSilent ? 60_000 : 2_000),
    ] + (script.fault?.kind == .stall ? [JSONValue.Member("silence", 4_000)] : [])
  }

  public var seen: ServiceReport { ServiceReport(double.seen) }
  public func forget() { double.forget() }
  public func stop() { double.stop() }
}
