internal import MillraceCore
internal import MillraceGraph

/// Carries out the overload steps of a graph. On the supervisor's thread.
extension GraphRun {
  /// True while the run can take overload steps. There is no load on a virtual clock.
  var watchesLoad: Bool { !plan.overload.isEmpty && engine.clock == .realtime && canRestart }

  /// Carries out a change of the ladder and announces it.
  func apply(_ change: OverloadLadder.Change, load: Double) {
    let (index, isRise) =
      switch change {
      case .rise(let index): (index, true)
      case .fall(let index): (index, false)
      }
    let step = plan.overload[index]
    var refused: [String] = []
    for setting in step.settings {
      let value = isRise ? setting.value : self.value(of: setting, belowStep: index)
      do throws(ControlProblem) {
        let key = LiveValues.Key(node: setting.node, parameter: setting.parameter)
        try set(key, to: value, isChoice: false)
      } catch {
        refused.append(error.text)
      }
    }
    if !step.shed.isEmpty { shed(upTo: isRise ? index + 1 : index) }
    announce(isRise ? "overload" : "overloadEased") { json in
      json.member("step", index + 1)
      json.member("of", plan.overload.count)
      json.member("load", load.rounded())
      json.member("does", plan.describe(step))
      if !refused.isEmpty { json.member("refused", refused.joined(separator: "; ")) }
    }
  }

  /// The value a parameter returns to when a step is undone: that of a lower step, the program's choice, or the graph's.
  private func value(of setting: OverloadStep.Setting, belowStep index: Int) -> ParameterValue {
    for step in plan.overload[..<index].reversed() {
      for other in step.settings where other.node == setting.node && other.parameter == setting.parameter {
        return other.value
      }
    }
    let key = LiveValues.Key(node: setting.node, parameter: setting.parameter)
    if let chosen = liveValues.withLock({ $0.choice(for: key) }) { return chosen }
    return plan.nodes[setting.node].parameters[setting.parameter] ?? setting.value
  }

  private func shed(upTo level: Int) {
    let nodes = Set(plan.overload[..<level].flatMap(\.shed))
    shedNodes.replace(with: nodes)
    for strand in strands { strand.request(Strand.Request.shed) }
  }

  /// Sets or clears this run's refusal of new sessions on the engine.
  func refuseSessions(atLevel level: Int, load: Double, worker: String) {
    let step = plan.overload[..<level].last { $0.refuses }
    engine.setRefusal(
      step.map {
        "worker \(worker) is \(Int(load.rounded())) % busy, and \"\(name)\" refuses new sessions above \($0.above) %"
      }, of: id)
  }
}
