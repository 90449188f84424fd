public import MillraceConformance
public import MillraceDoubles
public import MillraceJSON

/// IVH for runners: `millrace double ivh`.
public enum IVHProgram: ServiceProgram {
  public static let name = "ivh"
  public static let summary = "Tencent's interactive virtual human, an avatar"
  public static let nodeTypes = ["ivh.avatar"]
  public static var conformance: [any ServiceDouble.Type] { [IVHConformance.self] }

  public static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
    var scenario: IVHScenario = try options.load(faults: IVHConformance.faults)
    switch options.scenario {
    case .conversation: scenario.hasPicture = true
    case .standard: scenario.hasPicture = PictureServer.isInstalled && !options.keeps
    case .text: break
    }
    let double = try await IVHDouble.listen(scenario, options)
    if !scenario.hasPicture && !options.keeps { double.note("# no picture: \(noPicture(options))") }
    return double
  }

  private static func noPicture(_ options: DoubleOptions) -> String {
    options.scenario == .standard
      ? "it needs the packages nginx and libnginx-mod-rtmp" : "the scenario has no \"picture\": true"
  }

  public static func nodeMembers(port: Int, for use: NodeUse) -> [JSONValue.Member]? {
    nodeMembers(IVHDouble.address(port), use)
  }

  public static func nodeMembers(
    port: Int, trusting authority: String, for use: NodeUse
  ) -> [JSONValue.Member]? {
    nodeMembers(IVHDouble.address(port, isSecure: true), use).map {
      $0 + [JSONValue.Member("roots", .string(authority))]
    }
  }

  private static func nodeMembers(_ address: String, _ use: NodeUse) -> [JSONValue.Member]? {
    let members: [JSONValue.Member] = [
      JSONValue.Member("type", "ivh.avatar"), JSONValue.Member("url", .string(address)),
      JSONValue.Member("key", .string(IVHSignature.appKey)),
      JSONValue.Member("token", .string(IVHSignature.token)), JSONValue.Member("project", "project-double"),
      // A second session of a user ends the first.
      JSONValue.Member("user", .string("user-\(UInt64.random(in: 0...(.max)))")),
    ]
    return switch use {
    case .avatar: members
    case .voicedAvatar:
      members + [JSONValue.Member("driver", "originalVoice"), JSONValue.Member("audioFrom", "reply")]
    case .voice, .compressedVoice, .pictures: nil
    }
  }
}

extension IVHDouble: RunningDouble {
  public var settings: [DoubleSetting] {
    [
      DoubleSetting("url", address, requirement: "the address of the double"),
      DoubleSetting("key", IVHSignature.appKey), DoubleSetting("token", IVHSignature.token),
    ]
  }
}
