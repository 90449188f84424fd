internal import MillraceCore
internal import MillraceGraph

/// Carrying out the steps of a graph's ladder against overload. On the supervisor's thread, but for what says otherwise.
extension GraphRun {
  /// True while the run has steps to take. A virtual clock knows no load.
  var watchesLoad: Bool { !plan.overload.isEmpty && engine.clock == .realtime && canRestart }

  /// Carries out a change of the ladder, and tells it.
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

  /// What a parameter goes back to when a step is taken back: what a lower step says, what the program chose, or the graph's.
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

  /// Closes or opens the engine for new sessions, as far as this run is concerned.
  func refuseSessions(atLevel level: Int, load: Double, worker: String) {
    let step = plan.overload[..<level].last { $0.refuses }
    engine.setRefusal(
      step.map {
        "worker \(worker) is \(Int(load.rounded())) % busy, and \"\(name)\" lets no more in above \($0.above) %"
      }, of: id)
  }
}
