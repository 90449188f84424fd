internal import MillraceCore

/// The values that live parameters were set to while the run was at work, by the program and by overload steps.
struct LiveValues {
  /// A live parameter of a node.
  struct Key: Hashable {
    /// The node's index in the plan.
    var node: Int
    var parameter: String
  }

  /// Values set by the program. Undoing an overload step restores them.
  private var choices: [Key: ParameterValue] = [:]
  /// The last value set, by the program or a step. A recreated node starts with it.
  private var last: [Key: ParameterValue] = [:]
  /// Active ramps, each with a unique number.
  private var ramps: [Key: Int] = [:]
  private var nextRamp = 0

  /// The value set by the program, if any.
  func choice(for key: Key) -> ParameterValue? { choices[key] }

  /// The last value set; nil while the graph's value is in force.
  func current(_ key: Key) -> ParameterValue? { last[key] }

  /// Records a value that was sent to its node.
  mutating func record(_ value: ParameterValue, for key: Key, isChoice: Bool) {
    last[key] = value
    if isChoice { choices[key] = value }
  }

  /// Ends the ramp of a parameter, if one is active.
  mutating func endRamp(of key: Key) { ramps[key] = nil }

  /// Begins a ramp, replacing an earlier one of the same parameter; returns its number. Its target counts as the program's choice,
  /// so that undoing an overload step goes to the end of the ramp.
  mutating func beginRamp(of key: Key, to target: ParameterValue) -> Int {
    nextRamp += 1
    ramps[key] = nextRamp
    choices[key] = target
    return nextRamp
  }

  /// True until the ramp has ended or was replaced by another ramp or a set.
  func isUnderWay(_ ramp: Int, of key: Key) -> Bool { ramps[key] == ramp }

  /// Replaces a node's initial parameters with the values set since.
  func apply(to parameters: inout ParameterValues, of node: Int) {
    for (key, value) in last where key.node == node { parameters[key.parameter] = value }
  }
}
