public import MillraceCore

/// An overload step: load shedding that applies while a worker of the graph is busier than `above`.
///
/// Steps apply one after the other as the load rises, and are reverted in reverse order as it falls.
public struct OverloadStep: Sendable, Hashable {
  /// A live parameter and its value while the step applies.
  public struct Setting: Sendable, Hashable {
    /// The index of the node in the plan.
    public var node: Int
    /// The name of a live parameter of that node.
    public var parameter: String
    /// Its value while the step applies; afterwards its earlier value is restored.
    public var value: ParameterValue

    /// A setting of a node, by its index.
    public init(node: Int, parameter: String, value: ParameterValue) {
      self.node = node
      self.parameter = parameter
      self.value = value
    }
  }

  /// The percentage of a worker's time spent in nodes above which the step applies.
  public var above: Int
  /// The valid percentages.
  public static let aboveRange = 1...100
  /// Parameters that are set while the step applies.
  public var settings: [Setting]
  /// Indices of nodes whose input is discarded; their links count it.
  public var shed: [Int]
  /// Whether the engine refuses new sessions.
  public var refuses: Bool

  /// A step that applies above a percentage.
  public init(above: Int, settings: [Setting] = [], shed: [Int] = [], refuses: Bool = false) {
    self.above = above
    self.settings = settings
    self.shed = shed
    self.refuses = refuses
  }
}

extension GraphPlan {
  /// The actions of a step: `enc.complexity = 2; shed pictures; refuse new sessions`. Does not redact secrets.
  public func describe(_ step: OverloadStep) -> String {
    let settings = step.settings.map { "\(nodes[$0.node].name).\($0.parameter) = \($0.value)" }
    let shed = step.shed.map { "shed \(nodes[$0].name)" }
    return (settings + shed + (step.refuses ? ["refuse new sessions"] : [])).joined(separator: "; ")
  }
}
