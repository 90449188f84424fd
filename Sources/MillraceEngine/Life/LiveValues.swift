internal import MillraceCore

/// What the live parameters of a run's nodes were set to while it ran: by the program, and by the steps against overload.
struct LiveValues {
  /// A live parameter of a node.
  struct Key: Hashable {
    /// The node's place in the plan.
    var node: Int
    var parameter: String
  }

  /// What the program has set. A step against overload that is taken back goes back to it.
  private var choices: [Key: ParameterValue] = [:]
  /// What was set last, whoever did it. A node that is made anew begins with it.
  private var last: [Key: ParameterValue] = [:]

  /// What the program chose, if it did.
  func choice(for key: Key) -> ParameterValue? { choices[key] }

  /// Notes a value that was sent to its node.
  mutating func note(_ value: ParameterValue, for key: Key, isChoice: Bool) {
    last[key] = value
    if isChoice { choices[key] = value }
  }

  /// Puts the values of a node in the place of those it was first made with.
  func apply(to parameters: inout ParameterValues, of node: Int) {
    for (key, value) in last where key.node == node { parameters[key.parameter] = value }
  }
}
