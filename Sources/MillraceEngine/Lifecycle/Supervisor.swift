internal import CMillraceSys
internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// The control side of an engine: one thread that handles failures, ends runs in time, and delivers events to the program.
///
/// Workers post messages (failures and ends only: a lock, but never per packet) and continue. This thread may allocate memory,
/// build messages and recreate nodes.
@safe
final class Supervisor: @unchecked Sendable {
  enum Message {
    case started(GraphRun)
    /// A node has failed and waits for a decision.
    case failed(GraphRun, node: Int, NodeFault)
    /// A node has ended without reading these messages.
    case mailLost(GraphRun, node: Int, count: Int)
    case draining(GraphRun, at: Nanoseconds)
    /// On the real clock: the run has scheduled callbacks.
    case callbackScheduled(GraphRun)
    /// The last node has ended.
    case finished(GraphRun)
    case stop(GraphRun)
    /// Every worker has released the run.
    case retired(GraphRun)
    /// On a virtual clock: the backoff before the next attempt is over.
    case restart(GraphRun, node: Int)
    case quit
  }

  /// How often events are delivered while runs are active.
  static let eventInterval: Nanoseconds = 10_000_000
  /// How often the pools of removed links are checked for returned blocks.
  static let lingeringInterval: Nanoseconds = 10_000_000

  /// Runs that have events or missed budgets.
  let wokenRuns = WokenRuns()
  /// Pools of removed links, until their last blocks are back.
  let lingering = LingeringPools()
  private let messages = Locked<[Message]>([])
  /// 1: there is work to do.
  private let sleep = Futex()
  // Used by the thread only.
  let threadOwner = ThreadOwner("supervisor")
  private var active: [Int: GraphRun] = [:]
  // The active runs that must be checked without a wake.
  /// Runs whose node events are collected.
  private var observedRuns: Set<Int> = []
  /// Runs with overload steps.
  private var loadWatchedRuns: [Int: GraphRun] = [:]
  /// Runs with scheduled callbacks on the real clock.
  private var runsWithCallbacks: [Int: GraphRun] = [:]
  /// Runs with missed budgets that were reported recently, and when the next report is due.
  private var unreportedMisses: [Int: (run: GraphRun, at: Nanoseconds)] = [:]
  /// Counts wakes served.
  let servedWakes = Counter()
  /// Runs that are stopping and not released yet.
  private var stops: [Int: StopWatchdog] = [:]
  private var restarts: [Restart] = []
  /// Runs with a node that never returned and still uses their memory.
  private var abandoned: [GraphRun] = []
  private var stuckThreads = StuckThreads()
  private var watch = OverloadWatch()
  private var isQuitting = false

  struct Restart {
    var run: GraphRun
    var node: Int
    var at: Nanoseconds
  }

  // MARK: From any thread

  func post(_ message: Message) {
    messages.withLock { $0.append(message) }
    wake()
  }

  /// Wakes the thread now.
  func wake() {
    sleep.store(1)
    sleep.wake()
  }

  func shutDown() { post(.quit) }

  /// 0, or the `errno` of the system's refusal.
  func startThread() -> Int32 {
    DetachedThread.start("millrace-super") { [self] in
      threadOwner.bind()
      while !isQuitting || !active.isEmpty { turn() }
    }
  }

  // MARK: The thread

  private func turn() {
    threadOwner.assertIsCurrent()
    sleep.store(0)
    handleMessages()
    let now = millrace_monotonic_ns()
    serveWokenRuns(now)
    for (run, at) in unreportedMisses.values where at <= now { reportMissed(of: run, now) }
    watch.sample(loadWatchedRuns.values, now)
    for run in runsWithCallbacks.values { runDueCallbacks(of: run, now) }
    restartDue(now)
    lingering.sweep()
    stuckThreads.retry(now)
    for (id, stop) in stops where stop.nextSample <= now { checkStop(of: id) }
    sleepUntilDue(now)
  }

  /// A separate function: a batch kept alive while the thread sleeps would retain its runs, and with them the engine.
  private func handleMessages() {
    let batch = messages.withLock { messages in
      let batch = messages
      messages.removeAll(keepingCapacity: true)
      return batch
    }
    for message in batch { handle(message) }
  }

  /// Delivers the events and missed budgets of woken runs.
  private func serveWokenRuns(_ now: Nanoseconds) {
    for run in wokenRuns.take() {
      // A run may wake before it was added: its `started` message is still queued and retains it.
      assert(run.phase != .stopped || abandoned.contains { $0 === run }, "a run that has ended was woken")
      servedWakes.add()
      run.carryEvents()
      reportMissed(of: run, now)
    }
  }

  private func reportMissed(of run: GraphRun, _ now: Nanoseconds) {
    guard !run.missedBudgets.isEmpty else { return }
    run.missedBudgets.report(of: run, at: now)
    // A node reported a moment ago is reported again later.
    let isLeft = !run.missedBudgets.isEmpty && active[run.id] != nil
    unreportedMisses[run.id] = isLeft ? (run, now + MissedBudgets.interval) : nil
  }

  private func runDueCallbacks(of run: GraphRun, _ now: Nanoseconds) {
    if (run.nextCallbackTime ?? Nanoseconds.max) <= now { run.runDueCallbacks() }
    if run.callbacks.next == Nanoseconds.max { runsWithCallbacks[run.id] = nil }
  }

  private func add(_ run: GraphRun) {
    active[run.id] = run
    if run.hasOutbox { observedRuns.insert(run.id) }
    if !run.plan.overload.isEmpty { loadWatchedRuns[run.id] = run }
    if run.nextCallbackTime != nil { runsWithCallbacks[run.id] = run }
  }

  /// Delivers the last events of a run and releases it.
  private func remove(_ run: GraphRun) {
    // The run may have woken a moment ago, and the stack holds it unretained. All events are delivered first, even to full
    // listeners: one left behind would wake again for a released run.
    run.carryEvents(isLast: true)
    serveWokenRuns(millrace_monotonic_ns())
    active[run.id] = nil
    observedRuns.remove(run.id)
    loadWatchedRuns[run.id] = nil
    runsWithCallbacks[run.id] = nil
    unreportedMisses[run.id] = nil
  }

  private func sleepUntilDue(_ now: Nanoseconds) {
    var until = stops.values.map(\.nextSample).min() ?? Nanoseconds.max
    if let restart = restarts.map(\.at).min() { until = min(until, restart) }
    if let retry = stuckThreads.retryAt { until = min(until, retry) }
    if let sample = watch.due(loadWatchedRuns.values, now) { until = min(until, sample) }
    // Missed budgets do not wake this thread: it polls.
    if !active.isEmpty { until = min(until, now + MissedBudgets.interval) }
    for run in runsWithCallbacks.values { until = min(until, run.nextCallbackTime ?? Nanoseconds.max) }
    if !lingering.isEmpty { until = min(until, now + Self.lingeringInterval) }
    if !observedRuns.isEmpty { until = min(until, now + Self.eventInterval) }
    sleep.wait(while: 0, for: until == Nanoseconds.max ? -1 : max(0, until - now))
  }

  private func handle(_ message: Message) {
    switch message {
    case .started(let run):
      // A stop may have been handled first.
      if run.canRestart { add(run) }
    case .failed(let run, let node, let fault):
      answerFailure(run, node, fault)
      run.decisions.end()
    case .mailLost(let run, let node, let count):
      run.carryEvents()
      run.announce("messagesLost", node: run.plan.nodes[node].name) { $0.member("count", count) }
      run.decisions.end()
    case .callbackScheduled(let run):
      // A run that has not started is added with its callbacks when it does.
      if active[run.id] != nil { runsWithCallbacks[run.id] = run }
    case .draining(let run, let time):
      let hasBegun = run.beginDraining()
      if run.engine.clock == .realtime { run.isolateUnlessParentDrains() }
      if hasBegun { run.announce("draining", at: time, isOwn: true) }
    case .finished(let run): beginStop(run)
    case .stop(let run):
      beginStop(run)
      run.decisions.end()
    case .restart(let run, let node):
      recreate(node, of: run)
      run.decisions.end()
    case .retired(let run): finish(run)
    case .quit:
      isQuitting = true
      for run in active.values { beginStop(run) }
    }
  }

  // MARK: Failures

  private func answerFailure(_ run: GraphRun, _ node: Int, _ fault: NodeFault) {
    // All stops begin on this thread: in any later phase the node may be gone, and the run ends anyway.
    guard run.canRestart else { return }
    let planned = run.plan.nodes[node]
    let text = run.explain(fault, of: node)
    // Events that nodes posted earlier come first.
    run.carryEvents()
    run.announce("nodeFailed", node: planned.name) {
      $0.member("reason", "\(fault.reason)")
      $0.member("text", text)
    }
    switch planned.onError {
    case .stop: fail(run, planned.name, fault, text)
    case .isolate:
      run.announce("nodeIsolated", node: planned.name)
      run.decide(.isolate, for: node)
    case .restart: planRestart(run, node, fault, text)
    }
  }

  private func fail(_ run: GraphRun, _ node: String, _ fault: NodeFault?, _ text: String) {
    run.status.withLock { status in
      if status.failure == nil { status.failure = RunFailure(node: node, fault: fault, text: text) }
    }
    beginStop(run)
  }

  /// A node that fails more than this many times in `restartWindow` is not recreated again.
  private static let restartLimit = 5
  private static let restartWindow: Nanoseconds = 10_000_000_000
  /// Backoff before the second attempt; doubled for each further one.
  private static let restartPause: Nanoseconds = 50_000_000

  private func planRestart(_ run: GraphRun, _ node: Int, _ fault: NodeFault?, _ text: String) {
    let isVirtual = run.engine.clock == .virtual
    let now = isVirtual ? run.graphTime : millrace_monotonic_ns()
    let count = run.status.withLock { status -> Int in
      let recent = (status.restarts[node] ?? []).filter { now - $0 < Self.restartWindow } + [now]
      status.restarts[node] = recent
      return recent.count
    }
    guard count <= Self.restartLimit else {
      let name = run.plan.nodes[node].name
      fail(run, name, fault, "\(text) (failed \(count) times in 10 s, not restarted again)")
      return
    }
    let pause = count == 1 ? 0 : Self.restartPause << Int64(count - 2)
    if !isVirtual {
      restarts.append(Restart(run: run, node: node, at: now + pause))
    } else if pause > 0 {
      run.restart(node, at: now + pause)
    } else {
      recreate(node, of: run)
    }
  }

  private func restartDue(_ now: Nanoseconds) {
    let due = restarts.filter { $0.at <= now }
    restarts.removeAll { $0.at <= now }
    for restart in due { recreate(restart.node, of: restart.run) }
  }

  private func recreate(_ node: Int, of run: GraphRun) {
    guard run.canRestart else { return }
    let name = run.plan.nodes[node].name
    switch run.recreate(node) {
    case .success(let executor):
      run.announce("nodeRestarted", node: name)
      unsafe run.decide(.replace(Unmanaged.passRetained(executor)), for: node)
    case .failure(let problem):
      run.announce("nodeFailed", node: name) { $0.member("text", problem.description) }
      planRestart(run, node, nil, problem.description)
    }
  }

  // MARK: Ending

  private func beginStop(_ run: GraphRun) {
    let before = run.status.withLock { status in
      let before = status.phase
      if before != .stopping && before != .stopped { status.phase = .stopping }
      return before
    }
    guard before != .stopping && before != .stopped else { return }
    run.recordEnd()
    // Before its own nodes end: no part is added any more.
    for part in run.parts.withLock({ $0.close() }) { beginStop(part) }
    add(run)
    restarts.removeAll { $0.run === run }
    stops[run.id] = StopWatchdog(at: millrace_monotonic_ns())
    for strand in run.strands {
      if before == .prepared {
        strand.start(with: Strand.Request.retire)
      } else {
        strand.request(Strand.Request.retire)
      }
    }
  }

  private func finish(_ run: GraphRun) {
    // An abandoned run has already been closed; what its thread holds is never released.
    guard active[run.id] != nil else { return }
    stops[run.id] = nil
    // Its report includes those of its parts, so it waits for them.
    guard run.parts.withLock({ $0.markRetired() }) else { return }
    remove(run)
    run.close(releasing: true)
    finishParent(of: run)
  }

  /// A part has closed: finishes a parent that has retired and waited only for it.
  private func finishParent(of part: GraphRun) {
    if part.completesParent, let parent = part.parent { finish(parent) }
  }

  /// The run is still stopping. When its workers make no progress, its nodes are considered stuck, or those of another graph.
  private func checkStop(of id: Int) {
    guard let run = active[id], var stop = stops[id] else { return }
    stop.sample(turns: run.turnsOfHolders, now: millrace_monotonic_ns())
    stops[id] = stop
    guard stop.ownNodesAreStuck else { return }
    let (stuck, refusal) = stuckThreads.replace(of: run)
    if !stuck.isEmpty || stop.othersAreStuck { abandon(run, stuck, refusal) }
  }

  /// Ends a run that does not stop. Its memory stays allocated for the nodes that are still in a call.
  private func abandon(_ run: GraphRun, _ stuck: [String], _ refusal: Int32?) {
    stops[run.id] = nil
    abandoned.append(run)
    remove(run)
    for name in stuck { run.announce("nodeDetached", node: name) }
    let held = refusal.map(StuckThreads.refusalText)
    if let held, let name = stuck.first { run.announce("workerHeld", node: name) { $0.member("text", held) } }
    run.status.withLock { status in
      status.detached = stuck
      if status.failure == nil {
        status.failure =
          stuck.first.map {
            RunFailure(
              node: $0, fault: nil,
              text: held.map { "did not return when the graph was stopped; \($0)" }
                ?? "did not return when the graph was stopped; its thread was abandoned after 2 s")
          }
          ?? RunFailure(
            node: run.plan.nodes[0].name, fault: nil,
            text: "could not be destroyed: a node of another graph blocks the worker; stop that graph too")
      }
    }
    run.close(releasing: false)
    finishParent(of: run)
  }
}
