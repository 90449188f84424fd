public import MillraceConformance
public import MillraceDoubles
public import MillraceJSON

/// The AI stream for runners: `millrace double tuya`.
public enum TuyaProgram: ServiceProgram {
  public static let name = "tuya"
  public static let summary = "Tuya's AI stream, an agent with voice, text, pictures and tools"
  public static let nodeTypes = ["tuya.agent"]
  public static var conformance: [any ServiceDouble.Type] { [TuyaConformance.self] }
  public static let resumes = false

  public static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
    let scenario: TuyaScenario = try options.load(
      faults: TuyaConformance.traits.faults, kickReasons: TuyaConformance.traits.kickReasons)
    if scenario.checksPlayback, case .text(_, let name) = options.scenario {
      throw .other("\(name): the service is not told what was played; remove \"checksPlayback\"")
    }
    return try await TuyaDouble.listen(scenario, options)
  }

  public static func nodeMembers(
    port: Int, trusting authority: String, for use: NodeUse
  ) -> [JSONValue.Member]? {
    let scenario = TuyaMembers()
    let members: [JSONValue.Member] = [
      JSONValue.Member("type", "tuya.agent"), JSONValue.Member("url", .string(TuyaDouble.address(port))),
      JSONValue.Member("roots", .string(authority)), JSONValue.Member("client", .string(scenario.client)),
      JSONValue.Member("localKey", .string(scenario.localKey)),
      JSONValue.Member("token", .string(TuyaDouble.token)), JSONValue.Member("mode", "duplex"),
      // With the vendor's 60 s a network that loses everything for a minute goes unnoticed.
      JSONValue.Member("ping", 10_000),
    ]
    return switch use {
    case .voice: members + [JSONValue.Member("reply", "pcm")]
    case .compressedVoice: members + [JSONValue.Member("reply", "mp3")]
    case .pictures: members + [JSONValue.Member("reply", "pcm"), JSONValue.Member("pictures", "video")]
    case .avatar, .voicedAvatar: nil
    }
  }
}

extension TuyaDouble: RunningDouble {
  public var settings: [DoubleSetting] {
    var settings = [DoubleSetting("url", address, requirement: "the address of the double")]
    if let roots {
      settings.append(DoubleSetting("roots", roots, requirement: "the authority of the double's certificate"))
    }
    return settings + [
      DoubleSetting("client", client, requirement: "the client that the double knows"),
      DoubleSetting("localKey", localKey, requirement: "the key of that client"),
      DoubleSetting("user", user), DoubleSetting("password", password),
      DoubleSetting("token", agentToken), DoubleSetting("provider", provider),
    ]
  }
}
