public import MillraceConformance
public import MillraceDoubles

/// IVH for runners: `millrace double ivh`.
public enum IVHProgram: ServiceProgram {
  public static let name = "ivh"
  public static let summary = "Tencent's interactive virtual human, a talking figure"
  public static let nodeTypes = ["ivh.avatar"]
  public static var conformance: [any ServiceDouble.Type] { [IVHConformance.self] }

  public static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
    var scenario: IVHScenario = try options.load(faults: IVHConformance.traits.faults)
    if case .conversation = options.scenario { scenario.hasPicture = true }
    return try await IVHDouble.listen(scenario, options)
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
