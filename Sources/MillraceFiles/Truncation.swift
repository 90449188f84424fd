public import MillraceCore

/// What a node does with audio or video that ends early: a truncated file, or a reply that breaks off inside a frame.
///
/// What is there is played in both cases, and event `truncated` reports the rest.
public enum Truncation: String, Sendable, CaseIterable {
  /// Treats it as the end.
  case play
  /// Plays what is there, then fails, so that the program that runs the graph sees it.
  case fail

  /// Code of the fault; its reason is `.custom`.
  public static let faultCode: Int32 = 1_001

  /// The fault of a node set to `fail`; `place` is where the input breaks off, in the node's own unit.
  public static func fault(at place: Int64) -> NodeFault {
    NodeFault(.custom, code: faultCode, detail: place)
  }

  /// True for a fault made by `fault(at:)`.
  public static func isFault(_ fault: NodeFault) -> Bool {
    fault.reason == .custom && fault.code == faultCode
  }
}

extension ParameterContract {
  /// Parameter `truncated`, shared by all nodes that know where their input should end.
  public static let truncated = ParameterContract(
    "truncated", .choice(Truncation.allCases.map(\.rawValue)), default: "play",
    text:
      "input that ends early: `play` what is there and report it, or `fail` after that (exit status 3)")
}

extension ParameterValues {
  /// The value of parameter `truncated`.
  public var truncation: Truncation { Truncation(rawValue: string("truncated")) ?? .play }
}
