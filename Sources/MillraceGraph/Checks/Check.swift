/// One rule that graphs are held against.
///
/// A check reads the facts of a draft and adds what breaks its rule; it never depends on another check having run. What follows
/// from a mistake that another check tells is not told again.
protocol Check: SendableMetatype {
  /// The rule, as a sentence for the reference pages.
  static var rule: String { get }
  /// Adds a problem for everything that breaks the rule.
  static func examine(_ graph: GraphDraft, _ problems: inout Problems)
}

/// Every rule, in the order of the reference pages. The order does not matter to the result: problems are sorted by place.
enum Checks {
  static let all: [any Check.Type] = [
    EmptyGraph.self, UnknownType.self,
    UnknownParameter.self, ParameterType.self, ParameterRange.self, MissingParameter.self,
    UnknownSetting.self, UnusedParameter.self,
    UnknownNode.self, UnknownPort.self, DuplicateLink.self, DoubleLinkedInput.self, CapacityRange.self,
    UnlinkedNode.self, UnlinkedPort.self, IdleNode.self, SynchronousCycle.self,
    NodeObjection.self, UndecidedFormat.self, UnsettledFormat.self, FormatMismatch.self,
    PacketSize.self, MemoryLimit.self,
    BlockedSource.self, PointlessCapacity.self, LaneChange.self, VoiceBudget.self, UnmeasuredAge.self,
    VirtualClock.self,
    OverloadSteps.self, SharedEnd.self,
  ]
}
