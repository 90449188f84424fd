internal import CMillraceSys
internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// The control side of an engine: one thread that answers failures, ends runs in time, and carries events to the program.
///
/// Workers leave messages (failures and ends only; a lock is taken, but never once a packet) and go on. Here memory may be
/// allocated, texts built, nodes made anew.
@safe
final class Supervisor: @unchecked Sendable {
  enum Message {
    case started(GraphRun)
    /// A node's fault waits for the verdict on the node.
    case failed(GraphRun, node: Int, NodeFault)
    /// Messages to a node that has ended without reading them.
    case mailLost(GraphRun, node: Int, count: Int)
    case draining(GraphRun, at: Nanoseconds)
    /// On the real clock: the run has appointments to be kept.
    case appointed(GraphRun)
    /// The last node has ended by itself.
    case finished(GraphRun)
    case stop(GraphRun)
    /// Every worker has let go.
    case retired(GraphRun)
    /// On a virtual clock: the pause before a new attempt is over.
    case restart(GraphRun, node: Int)
    case quit
  }

  /// How often a thread is asked for in place of one that the system refused.
  static let reliefInterval: Nanoseconds = 250_000_000
  /// How often events are carried while runs are active.
  static let eventInterval: Nanoseconds = 10_000_000
  /// How often it is looked whether the blocks of links that are gone are back.
  static let lingeringInterval: Nanoseconds = 10_000_000

  /// Runs that have something to tell.
  let rung = RungBells()
  /// Pools of links that are gone, until their last blocks are back.
  let lingering = LingeringPools()
  private let messages = Locked<[Message]>([])
  /// 1: there is something to look at.
  private let sleep = WaitWord()
  private var active: [Int: GraphRun] = [:]
  // Of those that are active, the few that have to be looked at without having said anything.
  /// Runs whose events are collected.
  private var heard: Set<Int> = []
  /// Runs with steps against overload.
  private var watched: [Int: GraphRun] = [:]
  /// Runs with appointments on the real clock.
  private var appointed: [Int: GraphRun] = [:]
  /// Runs with missed budgets that wait for their turn to be told, and when that is.
  private var untold: [Int: (run: GraphRun, at: Nanoseconds)] = [:]
  /// Runs looked at because they had something to tell.
  let looks = Counter()
  /// Runs that were told to stop and have not let go yet.
  private var stops: [Int: Stopping] = [:]
  private var restarts: [Restart] = []
  /// Runs with a node that never returned: their memory is still in its hands.
  private var abandoned: [GraphRun] = []
  /// Strands of such runs whose node holds a worker that could be given no new thread, and when that is tried again.
  private var heldStrands: [Strand] = []
  private var reliefAt: Nanoseconds?
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
    kick()
  }

  /// Makes the thread look around now.
  func kick() {
    sleep.store(1)
    sleep.wake()
  }

  func shutDown() { post(.quit) }

  /// 0, or the `errno` of the system's refusal.
  func startThread() -> Int32 {
    OwnThread.start("millrace-super") { [self] in
      while !isQuitting || !active.isEmpty { turn() }
    }
  }

  // MARK: The thread

  private func turn() {
    sleep.store(0)
    handleMessages()
    let now = millrace_monotonic_ns()
    listen(now)
    for (run, at) in untold.values where at <= now { tellMissed(of: run, now) }
    watch.look(at: watched.values, now)
    for run in appointed.values { keepAppointments(of: run, now) }
    restartDue(now)
    lingering.sweep()
    relieveHeldWorkers(now)
    for (id, stop) in stops where stop.lookAt <= now { look(at: id) }
    rest(now)
  }

  /// A function of its own: a batch that lived on while the thread sleeps would keep its runs, and with them the engine.
  private func handleMessages() {
    let batch = messages.withLock { messages in
      let batch = messages
      messages.removeAll(keepingCapacity: true)
      return batch
    }
    for message in batch { handle(message) }
  }

  /// Carries what the runs that have rung have to tell.
  private func listen(_ now: Nanoseconds) {
    for run in rung.take() {
      // One that is not admitted yet may ring: its message waits behind this one and keeps it.
      assert(run.phase != .stopped || abandoned.contains { $0 === run }, "a run that has ended still rings")
      looks.add()
      run.carryEvents()
      tellMissed(of: run, now)
    }
  }

  private func tellMissed(of run: GraphRun, _ now: Nanoseconds) {
    guard run.hasMissed.load(ordering: .relaxed) else { return }
    run.tellMissedBudgets(at: now)
    // What was told a moment ago waits.
    let isLeft = run.hasMissed.load(ordering: .relaxed) && active[run.id] != nil
    untold[run.id] = isLeft ? (run, now + GraphRun.missedBudgetInterval) : nil
  }

  private func keepAppointments(of run: GraphRun, _ now: Nanoseconds) {
    if (run.nextAppointment ?? Nanoseconds.max) <= now { run.keepAppointments() }
    if run.appointments.next == Nanoseconds.max { appointed[run.id] = nil }
  }

  private func admit(_ run: GraphRun) {
    active[run.id] = run
    if run.hasOutbox { heard.insert(run.id) }
    if !run.plan.overload.isEmpty { watched[run.id] = run }
    if run.nextAppointment != nil { appointed[run.id] = run }
  }

  /// Carries the last events of a run, and lets go of it.
  private func dismiss(_ run: GraphRun) {
    // It may have rung a moment ago, and the stack knows it unowned. First all its events, whether listeners have room or not: one that
    // stayed would ring again, for a run that nobody keeps any more.
    run.carryEvents(isLast: true)
    listen(millrace_monotonic_ns())
    active[run.id] = nil
    heard.remove(run.id)
    watched[run.id] = nil
    appointed[run.id] = nil
    untold[run.id] = nil
  }

  private func rest(_ now: Nanoseconds) {
    var until = stops.values.map(\.lookAt).min() ?? Nanoseconds.max
    if let restart = restarts.map(\.at).min() { until = min(until, restart) }
    if let relief = reliefAt { until = min(until, relief) }
    if let look = watch.due(watched.values, now) { until = min(until, look) }
    // Missed budgets do not wake the supervisor: it looks.
    if !active.isEmpty { until = min(until, now + GraphRun.missedBudgetInterval) }
    for run in appointed.values { until = min(until, run.nextAppointment ?? Nanoseconds.max) }
    if !lingering.isEmpty { until = min(until, now + Self.lingeringInterval) }
    if !heard.isEmpty { until = min(until, now + Self.eventInterval) }
    sleep.wait(while: 0, for: until == Nanoseconds.max ? -1 : max(0, until - now))
  }

  private func handle(_ message: Message) {
    switch message {
    case .started(let run):
      // A stop may have overtaken it.
      if run.canRestart { admit(run) }
    case .failed(let run, let node, let fault):
      answerFailure(run, node, fault)
      run.decided()
    case .mailLost(let run, let node, let count):
      run.carryEvents()
      run.announce("messagesLost", node: run.plan.nodes[node].name) { $0.member("count", count) }
      run.decided()
    case .appointed(let run):
      // One that has not begun is looked at when it does.
      if active[run.id] != nil { appointed[run.id] = run }
    case .draining(let run, let time):
      if run.engine.clock == .realtime { run.isolateAlone() }
      if run.beginDraining() { run.announce("draining", at: time, isOwn: true) }
    case .finished(let run): beginStop(run)
    case .stop(let run):
      beginStop(run)
      run.decided()
    case .restart(let run, let node):
      makeAnew(node, of: run)
      run.decided()
    case .retired(let run): finish(run)
    case .quit:
      isQuitting = true
      for run in active.values { beginStop(run) }
    }
  }

  // MARK: Failures

  private func answerFailure(_ run: GraphRun, _ node: Int, _ fault: NodeFault) {
    // All stops begin on this thread: in any later phase the node may be gone already, and the run ends anyhow.
    guard run.canRestart else { return }
    let planned = run.plan.nodes[node]
    let text = run.explain(fault, of: node)
    // What the graph's nodes posted before comes first.
    run.carryEvents()
    run.announce("nodeFailed", node: planned.name) {
      $0.member("reason", "\(fault.reason)")
      $0.member("text", text)
    }
    switch planned.onError {
    case .stop: fail(run, planned.name, fault, text)
    case .isolate:
      run.announce("nodeIsolated", node: planned.name)
      run.decide(.isolate, on: node)
    case .restart: planRestart(run, node, fault, text)
    }
  }

  private func fail(_ run: GraphRun, _ node: String, _ fault: NodeFault?, _ text: String) {
    run.status.withLock { status in
      if status.failure == nil { status.failure = RunFailure(node: node, fault: fault, text: text) }
    }
    beginStop(run)
  }

  /// A node that fails more often than this many times in `restartWindow` is not made anew again.
  private static let restartLimit = 5
  private static let restartWindow: Nanoseconds = 10_000_000_000
  /// Wait before the second attempt; doubled for every further one.
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
      makeAnew(node, of: run)
    }
  }

  private func restartDue(_ now: Nanoseconds) {
    let due = restarts.filter { $0.at <= now }
    restarts.removeAll { $0.at <= now }
    for restart in due { makeAnew(restart.node, of: restart.run) }
  }

  private func makeAnew(_ node: Int, of run: GraphRun) {
    guard run.canRestart else { return }
    let name = run.plan.nodes[node].name
    switch run.makeAnew(node) {
    case .success(let executor):
      run.announce("nodeRestarted", node: name)
      unsafe run.decide(.replace(Unmanaged.passRetained(executor)), on: node)
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
    run.noteEnd()
    // Before its own nodes go: no part is made any more.
    for part in run.parts.withLock({ $0.close() }) { beginStop(part) }
    admit(run)
    restarts.removeAll { $0.run === run }
    stops[run.id] = Stopping(at: millrace_monotonic_ns())
    for strand in run.strands {
      if before == .prepared {
        strand.release(with: Strand.Request.retire)
      } else {
        strand.ask(Strand.Request.retire)
      }
    }
  }

  private func finish(_ run: GraphRun) {
    // A run that was left behind has been closed already; what its lost thread held stays out.
    guard active[run.id] != nil else { return }
    stops[run.id] = nil
    // Its report has those of its parts.
    guard run.parts.withLock({ $0.noteRetired() }) else { return }
    dismiss(run)
    run.close(releasing: true)
    finishParent(of: run)
  }

  /// A part has closed: a run that waited for it and has retired itself is finished.
  private func finishParent(of part: GraphRun) {
    if part.freesParent, let parent = part.parent { finish(parent) }
  }

  /// The run has not let go yet. When its workers stand still its nodes are judged to hold them, or those of another graph.
  private func look(at id: Int) {
    guard let run = active[id], var stop = stops[id] else { return }
    stop.look(turns: run.turnsOfHolders, now: millrace_monotonic_ns())
    stops[id] = stop
    guard stop.ownNodesAreStuck else { return }
    let (stuck, refusal) = replaceThreads(of: run)
    if !stuck.isEmpty || stop.othersAreStuck { leaveBehind(run, stuck, refusal) }
  }

  /// Ends a run that does not let go. Its memory stays with the nodes that are still in a call.
  private func leaveBehind(_ run: GraphRun, _ stuck: [String], _ refusal: Int32?) {
    stops[run.id] = nil
    abandoned.append(run)
    dismiss(run)
    for name in stuck { run.announce("nodeDetached", node: name) }
    let held = refusal.map(Self.heldText)
    if let held, let name = stuck.first { run.announce("workerHeld", node: name) { $0.member("text", held) } }
    run.status.withLock { status in
      status.detached = stuck
      if status.failure == nil {
        status.failure =
          stuck.first.map {
            RunFailure(
              node: $0, fault: nil,
              text: held.map { "did not return when the graph was stopped; \($0)" }
                ?? "did not return when the graph was stopped; its thread was left behind after 2 s")
          }
          ?? RunFailure(
            node: run.plan.nodes[0].name, fault: nil,
            text: "could not be dropped: a node of another graph holds the worker; stop that graph too")
      }
    }
    run.close(releasing: false)
    finishParent(of: run)
  }

  // MARK: Threads in place of stuck ones

  /// Gives workers that nodes of a run hold a new thread. The names of those nodes, and the system's refusal of a thread, an
  /// `errno`.
  private func replaceThreads(of run: GraphRun) -> (stuck: [String], refusal: Int32?) {
    var stuck: [String] = []
    var refusal: Int32?
    for strand in run.strands where strand.holdsRun {
      guard let name = strand.nodeInCall(of: run) else { continue }
      switch strand.replaceThread() {
      case .kept: continue
      case .done: break
      case .refused(let code):
        refusal = code
        heldStrands.append(strand)
        reliefAt = millrace_monotonic_ns() + Self.reliefInterval
      }
      stuck.append(name)
    }
    return (stuck, refusal)
  }

  /// Asks again for the threads that the system refused, until it gives them or the nodes have returned.
  private func relieveHeldWorkers(_ now: Nanoseconds) {
    guard let due = reliefAt, due <= now else { return }
    heldStrands.removeAll { strand in
      guard strand.isInCall else { return true }
      if case .refused = strand.replaceThread() { return false }
      return true
    }
    reliefAt = heldStrands.isEmpty ? nil : now + Self.reliefInterval
  }

  private static func heldText(_ refusal: Int32) -> String {
    "the system refused a new thread for its worker: \(SystemError.text(refusal)); graphs on that worker stand still until the node "
      + "returns or there is a thread: end other programs of this user, or raise the limits (ulimit -u, -v)"
  }
}
