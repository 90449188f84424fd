public import MillraceCore

/// One step of a graph's ladder against overload: what gives way while a worker of the graph is busier than `above`.
///
/// Steps are taken one after the other as the load rises, and taken back in the opposite order when it has fallen.
public struct OverloadStep: Sendable, Hashable {
  /// A live parameter and its value while the step is in force.
  public struct Setting: Sendable, Hashable {
    /// Index of the node in the plan.
    public var node: Int
    /// The name of a live parameter of that node.
    public var parameter: String
    /// What it is set to; what it was before comes back with the end of the step.
    public var value: ParameterValue

    /// A setting of a node by its index.
    public init(node: Int, parameter: String, value: ParameterValue) {
      self.node = node
      self.parameter = parameter
      self.value = value
    }
  }

  /// Percent of a worker's time spent in nodes.
  public var above: Int
  /// The percentages a step may name.
  public static let aboveRange = 1...100
  /// What is set while the step is in force.
  public var settings: [Setting]
  /// Indices of nodes whose input is thrown away, counted on its link.
  public var shed: [Int]
  /// True: the engine takes no new sessions.
  public var refuses: Bool

  /// A step that is taken above so many percent.
  public init(above: Int, settings: [Setting] = [], shed: [Int] = [], refuses: Bool = false) {
    self.above = above
    self.settings = settings
    self.shed = shed
    self.refuses = refuses
  }
}

extension GraphPlan {
  /// What a step does, in words: `enc.complexity = 2; pictures gets nothing; no new sessions`. The values are shown as they
  /// are: take the plan's secrets out before anybody reads them.
  public func describe(_ step: OverloadStep) -> String {
    let settings = step.settings.map { "\(nodes[$0.node].name).\($0.parameter) = \($0.value)" }
    let shed = step.shed.map { "\(nodes[$0].name) gets nothing" }
    return (settings + shed + (step.refuses ? ["no new sessions"] : [])).joined(separator: "; ")
  }
}
