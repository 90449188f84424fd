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
    case failed(GraphRun, node: Int, NodeFault)
    case finished(GraphRun)
    case stop(GraphRun)
    case retired(GraphRun)
    case quit
  }

  /// A run is given so long to stop before the nodes that hold it are left behind.
  static let stopLimit: Nanoseconds = 1_900_000_000
  /// How often a run whose worker is held by somebody else is looked at again, 25 ms apart, before it is left behind.
  static let patienceLimit = 3
  /// How often events are carried while runs are active.
  static let eventInterval: Nanoseconds = 10_000_000

  private let messages = Locked<[Message]>([])
  private let sleepWord: UnsafeMutablePointer<UInt32>
  private var active: [Int: GraphRun] = [:]
  private var deadlines: [Int: Nanoseconds] = [:]
  private var patience: [Int: Int] = [:]
  private var restarts: [Restart] = []
  /// Runs with a node that never returned: their memory is still in its hands.
  private var abandoned: [GraphRun] = []
  private var isQuitting = false

  struct Restart {
    var run: GraphRun
    var node: Int
    var at: Nanoseconds
  }

  init() {
    unsafe sleepWord = .allocate(capacity: 1)
    unsafe sleepWord.initialize(to: 0)
  }

  deinit { unsafe sleepWord.deallocate() }

  private var sleeping: UnsafeMutablePointer<Atomic<UInt32>> {
    unsafe UnsafeMutableRawPointer(sleepWord).assumingMemoryBound(to: Atomic<UInt32>.self)
  }

  // MARK: From any thread

  func post(_ message: Message) {
    messages.withLock { $0.append(message) }
    kick()
  }

  /// Makes the thread look around now.
  func kick() {
    unsafe sleeping.pointee.store(1, ordering: .sequentiallyConsistent)
    unsafe millrace_futex_wake(sleepWord, 1)
  }

  func shutDown() { post(.quit) }

  func startThread() {
    startDetachedThread("millrace-super") { [self] in
      while !isQuitting || !active.isEmpty { turn() }
    }
  }

  // MARK: The thread

  private func turn() {
    unsafe sleeping.pointee.store(0, ordering: .sequentiallyConsistent)
    let batch = messages.withLock { messages in
      let batch = messages
      messages.removeAll(keepingCapacity: true)
      return batch
    }
    for message in batch { handle(message) }
    for run in active.values { run.carryEvents() }
    let now = millrace_monotonic_ns()
    restartDue(now)
    for (id, deadline) in deadlines where deadline <= now { giveUp(id) }
    sleep(now)
  }

  private func sleep(_ now: Nanoseconds) {
    var until = deadlines.values.min() ?? Nanoseconds.max
    if let restart = restarts.map(\.at).min() { until = min(until, restart) }
    if active.values.contains(where: \.hasOutbox) { until = min(until, now + Self.eventInterval) }
    _ = unsafe millrace_futex_wait(sleepWord, 0, until == Nanoseconds.max ? -1 : max(0, until - now))
  }

  private func handle(_ message: Message) {
    switch message {
    case .started(let run):
      // A stop may have overtaken it.
      if run.canRestart { active[run.id] = run }
    case .failed(let run, let node, let fault): answerFailure(run, node, fault)
    case .finished(let run), .stop(let run): beginStop(run)
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
    run.announce("nodeFailed", node: planned.name) { $0.member("text", text) }
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
    let now = millrace_monotonic_ns()
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
    restarts.append(Restart(run: run, node: node, at: now + pause))
  }

  private func restartDue(_ now: Nanoseconds) {
    let due = restarts.filter { $0.at <= now }
    restarts.removeAll { $0.at <= now }
    for restart in due where restart.run.canRestart {
      let name = restart.run.plan.nodes[restart.node].name
      switch restart.run.makeAnew(restart.node) {
      case .success(let executor):
        restart.run.announce("nodeRestarted", node: name)
        unsafe restart.run.decide(.replace(Unmanaged.passRetained(executor)), on: restart.node)
      case .failure(let problem):
        restart.run.announce("nodeFailed", node: name) { $0.member("text", problem.description) }
        planRestart(restart.run, restart.node, nil, problem.description)
      }
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
    active[run.id] = run
    restarts.removeAll { $0.run === run }
    deadlines[run.id] = millrace_monotonic_ns() + Self.stopLimit
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
    deadlines[run.id] = nil
    active[run.id] = nil
    run.carryEvents()
    run.close(releasing: true)
  }

  /// The run has not let go in time: names the nodes that hold it and gives their workers new threads.
  private func giveUp(_ id: Int) {
    guard let run = active[id] else { return }
    var stuck: [String] = []
    for strand in run.strands
    where strand.state.load(ordering: .acquiring) & Strand.State.closed == 0 || strand.isInCall {
      guard let name = strand.nodeInCall(of: run), strand.replaceThread() else { continue }
      stuck.append(name)
    }
    if stuck.isEmpty {
      // The node came back just now, or another graph's node holds the worker: a little more time may settle it.
      let attempt = patience[id, default: 0] + 1
      patience[id] = attempt
      guard attempt > Self.patienceLimit else {
        deadlines[id] = millrace_monotonic_ns() + 25_000_000
        return
      }
    }
    patience[id] = nil
    deadlines[id] = nil
    active[id] = nil
    abandoned.append(run)
    run.carryEvents()
    for name in stuck { run.announce("nodeDetached", node: name) }
    run.status.withLock { status in
      status.detached = stuck
      if status.failure == nil {
        status.failure =
          stuck.first.map {
            RunFailure(
              node: $0, fault: nil,
              text: "did not return when the graph was stopped; its thread was left behind after 2 s")
          }
          ?? RunFailure(
            node: run.plan.nodes[0].name, fault: nil,
            text: "could not be dropped: a node of another graph holds the worker; stop that graph too")
      }
    }
    run.close(releasing: false)
  }
}
