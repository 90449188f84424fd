/// One rule that graphs must follow.
///
/// A check reads the facts of a draft and reports what breaks its rule. Checks do not depend on each other: none reports what
/// follows from a problem that another one finds.
protocol Check: SendableMetatype {
  /// The rule, as a sentence for the reference pages.
  static var rule: String { get }
  /// Adds a problem for everything that breaks the rule.
  static func examine(_ graph: GraphDraft, _ problems: inout Problems)
}

/// Every rule, in the order of the reference pages. The order does not affect the result: problems are sorted by place.
enum Checks {
  static let all: [any Check.Type] = [
    EmptyGraph.self, UnknownType.self,
    UnknownParameter.self, ParameterType.self, ParameterRange.self, MissingParameter.self,
    UnknownSetting.self, UnusedParameter.self, NodeReferences.self, PortTakenTwice.self,
    UnknownNode.self, UnknownPort.self, DuplicateLink.self, InputLinkedTwice.self, CapacityRange.self,
    UnlinkedNode.self, UnlinkedPort.self, IdleNode.self, SynchronousCycle.self,
    NodeRejection.self, UndeterminedFormat.self, UnstableFormat.self, FormatMismatch.self,
    PacketSize.self, MemoryLimit.self,
    BlockingLiveSource.self, IneffectiveCapacity.self, LaneChange.self, VoiceBudget.self,
    IneffectiveMaxAge.self,
    VirtualClock.self,
    OverloadSteps.self, EndsWith.self,
  ]
}
