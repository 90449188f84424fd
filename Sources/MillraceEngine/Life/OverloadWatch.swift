internal import MillraceCore
internal import MillraceGraph

/// Measures how busy the workers are, and has the graphs with steps against overload take them. On the supervisor's thread.
struct OverloadWatch {
  /// Time between two looks.
  static let interval: Nanoseconds = 250_000_000

  private var ladders: [Int: OverloadLadder] = [:]
  private var lastLook: Nanoseconds?
  /// Busy ticks of each worker at the last look, by name.
  private var lastBusy: [String: Int] = [:]

  /// When to look next; nil while no run has a ladder.
  func due(_ runs: some Collection<GraphRun>, _ now: Nanoseconds) -> Nanoseconds? {
    guard runs.contains(where: \.watchesLoad) else { return nil }
    return (lastLook ?? now) + Self.interval
  }

  /// Looks at the workers, when it is time to.
  mutating func look(at runs: some Collection<GraphRun>, _ now: Nanoseconds) {
    let watched = runs.filter(\.watchesLoad)
    guard let first = watched.first else {
      lastLook = nil
      ladders = [:]
      return
    }
    guard let last = lastLook else {
      lastLook = now
      _ = measure(first.engine, over: Self.interval)
      return
    }
    guard now - last >= Self.interval else { return }
    let loads = measure(first.engine, over: now - last)
    lastLook = now
    for run in watched.sorted(by: { $0.id < $1.id }) {
      var ladder = ladders[run.id] ?? OverloadLadder(run.plan.overload.map(\.above))
      let busiest = run.strands.map { (loads[$0.worker.name] ?? 0, $0.worker.name) }.max { $0.0 < $1.0 }
      guard let (load, worker) = busiest else { continue }
      let change = ladder.look(load)
      ladders[run.id] = ladder
      // Before it is told: whoever hears of the step finds the door closed.
      run.refuseSessions(atLevel: ladder.level, load: load, worker: worker)
      if let change { run.take(change, load: load) }
    }
    let ids = Set(watched.map(\.id))
    ladders = ladders.filter { ids.contains($0.key) }
  }

  /// Percent of the time each worker spent in nodes since the last look.
  private mutating func measure(_ engine: EngineCore, over time: Nanoseconds) -> [String: Double] {
    var loads: [String: Double] = [:]
    for worker in engine.allWorkers {
      let busy = worker.busyTicks.current
      let ticks = busy &- (lastBusy[worker.name] ?? busy)
      lastBusy[worker.name] = busy
      loads[worker.name] = Double(TickScale.machine.nanoseconds(UInt64(max(0, ticks)))) * 100 / Double(time)
    }
    return loads
  }
}

extension GraphRun {
  /// A live parameter of a node.
  struct ChosenParameter: Hashable {
    var node: Int
    var name: String
  }

  /// True while the run has steps to take. A virtual clock knows no load.
  var watchesLoad: Bool { !plan.overload.isEmpty && engine.clock == .realtime && canRestart }

  /// Carries out a change of the ladder, and tells it.
  func take(_ change: OverloadLadder.Change, load: Double) {
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
        let node = plan.nodes[setting.node]
        let (number, live) = try LiveParameter.check(node, setting.parameter, value)
        try send(.set(parameter: number, live), to: setting.node)
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
    let key = ChosenParameter(node: setting.node, name: setting.parameter)
    if let chosen = status.withLock({ $0.chosen[key] }) { return chosen }
    return plan.nodes[setting.node].parameters[setting.parameter] ?? setting.value
  }

  private func shed(upTo level: Int) {
    let nodes = Set(plan.overload[..<level].flatMap(\.shed))
    status.withLock { $0.shed = nodes }
    for strand in strands { strand.ask(Strand.Request.shed) }
  }

  /// Whether a node is to get nothing. From a worker, when it was asked to look.
  func isShed(_ node: Int) -> Bool { status.withLock { $0.shed.contains(node) } }

  /// Closes or opens the engine for new sessions, as far as this run is concerned.
  func refuseSessions(atLevel level: Int, load: Double, worker: String) {
    let step = plan.overload[..<level].last { $0.refuses }
    engine.setRefusal(
      step.map {
        "worker \(worker) is \(Int(load.rounded())) % busy, and \"\(name)\" lets no more in above \($0.above) %"
      }, of: id)
  }
}
