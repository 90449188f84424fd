public import MillraceCore
internal import MillraceGraph

extension GraphRun {
  /// The value of a node's parameter now: what it was set to last, or what the graph says. Nil for one that has neither.
  ///
  /// During a ramp this is the last step. Any parameter can be read, live or not, also after the run has stopped. What is secret is
  /// answered as it is: do not print it.
  /// - Throws: `unknownNode`, `unknownParameter`.
  public func get(_ node: String, _ parameter: String) throws(ControlProblem) -> ParameterValue? {
    let index = try nodeIndex(node)
    _ = try LiveCheck.index(plan.nodes[index], parameter)
    return value(of: LiveValues.Key(node: index, parameter: parameter))
  }

  /// As `get`, with everything replaced that must not be shown: secrets by contract, and values that came from the environment.
  /// - Throws: `unknownNode`, `unknownParameter`.
  public func shownValue(_ node: String, _ parameter: String) throws(ControlProblem) -> ParameterValue? {
    let planned = plan.nodes[try nodeIndex(node)]
    guard let value = try get(node, parameter), let contract = planned.contract.parameter(parameter) else {
      return nil
    }
    return planned.secrets.contains(parameter) ? .string(Secrets.mark) : shown(contract.shown(value))
  }

  /// A value without what is secret elsewhere in the run.
  private func shown(_ value: ParameterValue) -> ParameterValue {
    switch value {
    case .string(let text): .string(secrets.removed(from: text))
    case .list(let values): .list(values.map { shown($0) })
    case .bool, .integer, .number: value
    }
  }

  /// A parameter of a node by what the node type declares: typed, checked once here, without a name afterwards.
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
    let index = try nodeIndex(node)
    let contract = plan.nodes[index].contract
    let declared = contract.parameters[try LiveCheck.index(plan.nodes[index], parameter.name)]
    guard declared == parameter.contract else {
      throw ControlProblem(
        "\"\(parameter.name)\" is declared differently by \(contract.type), the type of \"\(node)\"; take the handle from that type",
        .foreignHandle)
    }
    return ParameterHandle(self, LiveValues.Key(node: index, parameter: parameter.name))
  }

  /// Moves a live number parameter in even steps of 10 ms from its value now to a target, which it reaches after `duration`.
  ///
  /// Returns at once. The first step is due 10 ms from now, the last one is exactly the target; a duration of 0 sets it at once. Another
  /// ramp or a `set` of the same parameter, from the program or as a step against overload, ends this one where it is. The steps are
  /// set as by `at`: exact on a virtual clock; on the real clock a late step gets the value of its real time, so that the ramp
  /// ends in time. A step that finds the node's mailbox full is left out, the last one is tried again. Ends with the node.
  /// - Throws: as `set`; `notNumber` when the parameter is no number, `wrongValue` for a negative duration.
  public func ramp(
    _ node: String, _ parameter: String, to target: Double, over duration: Duration
  ) throws(ControlProblem) {
    try ramp(LiveValues.Key(node: try nodeIndex(node), parameter: parameter), to: target, over: duration)
  }

  /// The value now: as a number where the parameter is one.
  func value(of key: LiveValues.Key) -> ParameterValue? {
    let planned = plan.nodes[key.node]
    let value = liveValues.withLock { $0.current(key) } ?? planned.parameters[key.parameter]
    guard case .number? = planned.contract.parameter(key.parameter)?.kind else { return value }
    return value?.asNumber.map { .number($0) }
  }
}

/// A parameter of one node of one run, with the Swift type of its values. Made by `GraphRun.parameter`.
///
/// Keeps its run. Any thread.
public struct ParameterHandle<Value: ParameterConvertible>: Sendable {
  private let run: GraphRun
  private let key: LiveValues.Key

  init(_ run: GraphRun, _ key: LiveValues.Key) {
    self.run = run
    self.key = key
  }

  /// The value now: what was set last, or what the graph says. See `GraphRun.get`.
  public var value: Value {
    guard let value = Value(parameterValue: run.value(of: key)) else {
      preconditionFailure("the checks let another type into \"\(key.parameter)\"")
    }
    return value
  }

  /// Sets it from the node's next packet on, and ends a ramp. Not every parameter is live.
  /// - Throws: as `GraphRun.set`.
  public func set(_ value: Value) throws(ControlProblem) {
    guard let given = value.parameterValue else {
      throw ControlProblem("\"\(key.parameter)\" cannot be taken away while the graph runs", .wrongValue)
    }
    try run.set(key, to: given, isChoice: true)
  }
}

extension ParameterHandle where Value == Double {
  /// Moves it in even steps of 10 ms to a target. See `GraphRun.ramp`.
  public func ramp(to target: Double, over duration: Duration) throws(ControlProblem) {
    try run.ramp(key, to: target, over: duration)
  }
}
