public import MillraceCore

/// What a node does with sound or a film that ends too early: a file that is cut off, a reply that breaks off inside a frame.
///
/// What is there is played in either case, and event `truncated` tells of the rest.
public enum Truncation: String, Sendable, CaseIterable {
  /// It counts as the end.
  case play
  /// The node fails once it has handed on what is there, so that a program that runs the graph learns of it.
  case fail

  /// Code of the fault, whose reason is `.custom`.
  public static let faultCode: Int32 = 1_001

  /// The fault of a node that was told to fail; `place` is where it breaks off, as the node counts.
  public static func fault(at place: Int64) -> NodeFault {
    NodeFault(.custom, code: faultCode, detail: place)
  }

  /// True for the fault made here.
  public static func isFault(_ fault: NodeFault) -> Bool {
    fault.reason == .custom && fault.code == faultCode
  }
}

extension ParameterContract {
  /// Parameter `truncated`: the same on every node that knows where what it reads should end.
  public static let truncated = ParameterContract(
    "truncated", .choice(Truncation.allCases.map(\.rawValue)), default: "play",
    text:
      "what ends too early: `play` what is there and report it, or `fail` after that (exit status 3)")
}

extension ParameterValues {
  /// The value of parameter `truncated`.
  public var truncation: Truncation { Truncation(rawValue: string("truncated")) ?? .play }
}
