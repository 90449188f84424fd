internal import MillraceCore
internal import MillraceGraph

/// Samples the load of the workers and makes graphs with overload steps take or undo them. On the supervisor's thread.
struct OverloadWatch {
  /// Time between two samples.
  static let interval: Nanoseconds = 250_000_000

  private var ladders: [Int: OverloadLadder] = [:]
  private var lastSample: Nanoseconds?
  /// Busy ticks of each worker at the last sample, by name.
  private var lastBusy: [String: Int] = [:]

  /// When the next sample is due; nil while no run has a ladder.
  func due(_ runs: some Collection<GraphRun>, _ now: Nanoseconds) -> Nanoseconds? {
    guard runs.contains(where: \.watchesLoad) else { return nil }
    return (lastSample ?? now) + Self.interval
  }

  /// Takes a sample when one is due.
  mutating func sample(_ runs: some Collection<GraphRun>, _ now: Nanoseconds) {
    let watched = runs.filter(\.watchesLoad)
    guard let first = watched.first else {
      lastSample = nil
      ladders = [:]
      return
    }
    guard let last = lastSample else {
      lastSample = now
      _ = measure(first.engine, over: Self.interval)
      return
    }
    guard now - last >= Self.interval else { return }
    let loads = measure(first.engine, over: now - last)
    lastSample = now
    for run in watched.sorted(by: { $0.id < $1.id }) {
      var ladder = ladders[run.id] ?? OverloadLadder(run.plan.overload.map(\.above))
      let busiest = run.strands.map { (loads[$0.worker.name] ?? 0, $0.worker.name) }.max { $0.0 < $1.0 }
      guard let (load, worker) = busiest else { continue }
      let change = ladder.update(load)
      ladders[run.id] = ladder
      // Before the event: a listener that reacts to the step finds new sessions already refused.
      run.refuseSessions(atLevel: ladder.level, load: load, worker: worker)
      if let change { run.apply(change, load: load) }
    }
    let ids = Set(watched.map(\.id))
    ladders = ladders.filter { ids.contains($0.key) }
  }

  /// Percentage of time each worker spent in nodes since the last sample.
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
