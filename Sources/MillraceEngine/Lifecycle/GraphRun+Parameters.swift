public import MillraceCore
internal import MillraceGraph

extension GraphRun {
  /// The current value of the parameter of a node, or of a part's node (`fx/gain`): the value set last, or the graph's. nil when it has neither.
  ///
  /// During a ramp this is the value of the last step. Any parameter can be read, live or not, also after the run has stopped. A
  /// secret is returned as it is: do not print it.
  /// - Throws: `unknownNode`, `unknownParameter`.
  public func get(_ node: String, _ parameter: String) throws(ControlProblem) -> ParameterValue? {
    if let inner = inPart(node) { return try inner.part.get(inner.node, parameter) }
    let index = try nodeIndex(node)
    _ = try LiveCheck.index(plan.nodes[index], parameter)
    return value(of: LiveValues.Key(node: index, parameter: parameter))
  }

  /// As `get`, but redacted: secrets by contract and values that came from the environment are replaced.
  /// - Throws: `unknownNode`, `unknownParameter`.
  public func shownValue(_ node: String, _ parameter: String) throws(ControlProblem) -> ParameterValue? {
    if let inner = inPart(node) { return try inner.part.shownValue(inner.node, parameter) }
    let planned = plan.nodes[try nodeIndex(node)]
    guard let value = try get(node, parameter), let contract = planned.contract.parameter(parameter) else {
      return nil
    }
    return planned.secrets.contains(parameter) ? .string(Secrets.mark) : shown(contract.shown(value))
  }

  /// A value with all secrets of the run removed.
  private func shown(_ value: ParameterValue) -> ParameterValue {
    switch value {
    case .string(let text): .string(secrets.redacting(text))
    case .list(let values): .list(values.map { shown($0) })
    case .bool, .integer, .number: value
    }
  }

  /// A typed handle for a node's parameter: name and type are checked once, here.
  ///
  /// ```swift
  /// let frequency = try run.parameter("robot", RobotVoice.frequency)
  /// try frequency.set(80)
  /// try frequency.ramp(to: 120, over: .seconds(1))
  /// ```
  /// - Throws: `unknownNode`, `unknownParameter`; `foreignHandle` when the node's type declares the parameter differently.
  public func parameter<Value>(
    _ node: String, _ parameter: Parameter<Value>
  ) throws(ControlProblem) -> ParameterHandle<Value> {
    if let inner = inPart(node) { return try inner.part.parameter(inner.node, parameter) }
    let index = try nodeIndex(node)
    let contract = plan.nodes[index].contract
    let declared = contract.parameters[try LiveCheck.index(plan.nodes[index], parameter.name)]
    guard declared == parameter.contract else {
      throw ControlProblem(
        "\"\(parameter.name)\" is declared differently by \(contract.type), the type of \"\(node)\"; use the parameter that type declares",
        .foreignHandle)
    }
    return ParameterHandle(self, LiveValues.Key(node: index, parameter: parameter.name))
  }

  /// Ramps a live number parameter linearly from its current value to a target, which it reaches after `duration`, in steps of 10 ms.
  ///
  /// Returns at once. The first step is due 10 ms from now, the last one is exactly the target; a duration of 0 sets it at once.
  /// Another ramp or `set` of the same parameter, by the program or by an overload step, ends this ramp where it is. Steps are
  /// scheduled as by `at`: exact on a virtual clock; on the real clock a late step takes the value for its actual time, so that
  /// the ramp ends on time. A step that finds the node's mailbox full is skipped, the last one is retried. The ramp ends with the node.
  /// - Throws: as `set`; `notNumber` when the parameter is not a number, `wrongValue` for a negative duration.
  public func ramp(
    _ node: String, _ parameter: String, to target: Double, over duration: Duration
  ) throws(ControlProblem) {
    if let inner = inPart(node) {
      return try inner.part.ramp(inner.node, parameter, to: target, over: duration)
    }
    try ramp(LiveValues.Key(node: try nodeIndex(node), parameter: parameter), to: target, over: duration)
  }

  /// The current value, as a number when the parameter is one.
  func value(of key: LiveValues.Key) -> ParameterValue? {
    let planned = plan.nodes[key.node]
    let value = liveValues.withLock { $0.current(key) } ?? planned.parameters[key.parameter]
    guard case .number? = planned.contract.parameter(key.parameter)?.kind else { return value }
    return value?.asNumber.map { .number($0) }
  }
}

/// A parameter of one node of one run, with the Swift type of its values. Made by `GraphRun.parameter`.
///
/// Retains its run. Any thread.
public struct ParameterHandle<Value: ParameterConvertible>: Sendable {
  private let run: GraphRun
  private let key: LiveValues.Key

  init(_ run: GraphRun, _ key: LiveValues.Key) {
    self.run = run
    self.key = key
  }

  /// The current value: the value set last, or the graph's. See `GraphRun.get`.
  public var value: Value {
    guard let value = Value(parameterValue: run.value(of: key)) else {
      preconditionFailure("the checks let another type into \"\(key.parameter)\"")
    }
    return value
  }

  /// Sets the value from the node's next packet on, and ends a ramp. Not every parameter is live.
  /// - Throws: as `GraphRun.set`.
  public func set(_ value: Value) throws(ControlProblem) {
    guard let given = value.parameterValue else {
      // Whether it is live comes first, as for every other value.
      _ = try LiveCheck.liveIndex(run.plan.nodes[key.node], key.parameter)
      throw ControlProblem("\"\(key.parameter)\" cannot be unset while the graph runs", .wrongValue)
    }
    try run.set(key, to: given, isChoice: true)
  }
}

extension ParameterHandle where Value == Double {
  /// Ramps the value linearly to a target in steps of 10 ms. See `GraphRun.ramp`.
  public func ramp(to target: Double, over duration: Duration) throws(ControlProblem) {
    try run.ramp(key, to: target, over: duration)
  }
}
