public import MillraceConformance
public import MillraceDoubles
public import MillraceJSON
internal import MillraceNet

/// Bailian for runners: `millrace double bailian`.
public enum BailianProgram: ServiceProgram {
  public static let name = "bailian"
  public static let summary = "Alibaba Bailian's multimodal dialogue"
  public static let nodeTypes = ["bailian.dialog"]
  public static var conformance: [any ServiceDouble.Type] { [BailianConformance.self] }

  public static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
    let scenario: BailianScenario = try options.load()
    do throws(NetError) {
      return try await BailianDouble.listen(
        scenario, port: options.port, identity: options.identity, observer: options.observer,
        watch: options.watch)
    } catch {
      throw .listening(error)
    }
  }

  public static func nodeMembers(port: Int, for use: NodeUse) -> [JSONValue.Member]? {
    nodeMembers(BailianDouble.address(port), use)
  }

  public static func nodeMembers(
    port: Int, trusting authority: String, for use: NodeUse
  ) -> [JSONValue.Member]? {
    nodeMembers(BailianDouble.address(port, isSecure: true), use).map {
      $0 + [JSONValue.Member("roots", .string(authority))]
    }
  }

  private static func nodeMembers(_ address: String, _ use: NodeUse) -> [JSONValue.Member]? {
    let members: [JSONValue.Member] = [
      JSONValue.Member("type", "bailian.dialog"), JSONValue.Member("url", .string(address)),
      JSONValue.Member("key", "none"), JSONValue.Member("workspace", "llm-1"),
      JSONValue.Member("app", "mm_1"),
      JSONValue.Member("user", "somebody"),
    ]
    return switch use {
    case .voice: members
    case .compressedVoice: members + [JSONValue.Member("format", "mp3")]
    case .pictures: members + [JSONValue.Member("video", true), JSONValue.Member("live", "start")]
    case .avatar, .voicedAvatar: nil
    }
  }
}

extension BailianDouble: RunningDouble {
  public var settings: [DoubleSetting] {
    // It needs no real key.
    [
      DoubleSetting("url", address, requirement: "the address of the double"),
      DoubleSetting("key", "sk-of-the-double"),
    ]
  }
}
