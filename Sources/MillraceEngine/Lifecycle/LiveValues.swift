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
  /// What was set last, by anybody. A node that is recreated begins with it.
  private var last: [Key: ParameterValue] = [:]
  /// The ramps under way, each with a number of its own.
  private var ramps: [Key: Int] = [:]
  private var nextRamp = 0

  /// What the program chose, if it did.
  func choice(for key: Key) -> ParameterValue? { choices[key] }

  /// What was set last; nil when the value is still the graph's.
  func current(_ key: Key) -> ParameterValue? { last[key] }

  /// Notes a value that was sent to its node.
  mutating func record(_ value: ParameterValue, for key: Key, isChoice: Bool) {
    last[key] = value
    if isChoice { choices[key] = value }
  }

  /// Ends the ramp of a parameter, if one is under way.
  mutating func endRamp(of key: Key) { ramps[key] = nil }

  /// Begins a ramp in place of an older one of the same parameter: its number. What the program chose is its target, so that a step
  /// against overload which is taken back goes to the end of the ramp.
  mutating func beginRamp(of key: Key, to target: ParameterValue) -> Int {
    nextRamp += 1
    ramps[key] = nextRamp
    choices[key] = target
    return nextRamp
  }

  /// True until the ramp has ended, or another ramp or a set has taken its place.
  func isUnderWay(_ ramp: Int, of key: Key) -> Bool { ramps[key] == ramp }

  /// Puts the values of a node in the place of those it was first made with.
  func apply(to parameters: inout ParameterValues, of node: Int) {
    for (key, value) in last where key.node == node { parameters[key.parameter] = value }
  }
}
