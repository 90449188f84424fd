internal import CMillraceSys
public import MillraceCore
public import MillraceGraph
internal import Synchronization

/// A running graph: one instance of a plan on an engine's workers.
///
/// Thread-safe: every method may be called from any thread. A run goes prepared → running → draining → stopped. `stop` may be
/// called in any phase and completes within two seconds; a node that does not return in time is abandoned and named in the report.
@safe
public final class GraphRun: @unchecked Sendable {
  /// Number of the run on its engine, from 1.
  public let id: Int
  /// The graph it runs.
  public let plan: GraphPlan
  /// Removed from every message of the nodes: the plan's secrets, those given to the run since, and those its nodes have learnt. A part
  /// shares those of its run.
  public let secrets: Secrets
  /// What the nodes know of each other.
  let identity: GraphIdentity
  let engine: EngineCore
  /// True when the run waits for slow listeners instead of losing events: no node follows the real clock.
  let waitsForListeners: Bool
  /// Keeps the workers alive as long as there is a run.
  let owner: Engine
  /// The run that this one is a part of; nil for a top-level run.
  let parent: GraphRun?
  /// The name of the part in its parent; empty for a top-level run.
  let partName: String
  /// The prefix of its node names in the parent's events: `recorder/`; empty for a top-level run.
  let path: String
  // Set once while the run is prepared, before any worker sees it.
  var strands: [Strand] = []
  var memory: RunMemory?
  /// For each node of the plan: its strand and its index there.
  var places: [(strand: Strand, index: Int)] = []
  var mailboxes: [Mailbox] = []
  /// The program's sources and sinks.
  var ends = AppEnds()
  var firstTraceID: UInt32 = 0
  var poolBytes = 0

  /// The current reply and whether it is ducked; shared with all parts.
  let reply: ReplyState
  let liveCells = Atomic<Int>(0)
  let retiredStrands = Atomic<Int>(0)
  let firstPacketTime = Atomic<Int64>(0)
  /// Graph time at which the run drains by itself.
  let drainTime = Atomic<Int64>(Nanoseconds.max)
  /// Graph time 0 on the workers' clock; `Nanoseconds.max` before the start.
  let epoch = Atomic<Int64>(Nanoseconds.max)
  /// Shared with all parts: a callback of one may stop another.
  let decisions: PendingDecisions
  /// On a virtual clock, graph time when the last node ended; `Nanoseconds.min` before that.
  private let endTime = Atomic<Int64>(Nanoseconds.min)
  /// 0 until the run has stopped, then 1: what `waitUntilStopped` sleeps on.
  private let stopped = Futex()

  /// The run's state on the control side.
  struct Status {
    var phase = RunPhase.prepared
    var failure: RunFailure?
    var startRequestedAt: Nanoseconds = 0
    var stoppedAt: Nanoseconds?
    var restarts: [Int: [Nanoseconds]] = [:]
    var waiters: [CheckedContinuation<RunReport, Never>] = []
    var detached: [String] = []
    /// Reports of parts that ended with the run.
    var partReports: [RunReport] = []
    var leakedBlocks = 0
    /// Set in the same step in which the run's memory goes.
    var finalReport: RunReport?
  }
  let status = Locked(Status())
  let listeners = EventListeners()
  let outboxReader = OutboxReader()
  let liveValues = Locked(LiveValues())
  /// Nodes that receive no input while the machine is overloaded. Workers read it without a lock.
  let shedNodes: NodeSet
  /// Sources to be ended because the node they end with has ended; and, for each node, the sources that end with it.
  let endingSources: NodeSet
  let dependents: [Int: [Int]]
  /// Nodes that end when all others have, and how many of them have not ended.
  let companions: [Int]
  let liveCompanions: Atomic<Int>
  let failureDecisions: FailureDecisions
  /// Wakes the supervisor for this run.
  let waker: SupervisorWaker
  let outlets = Locked(OutletBoard())
  let inlets = Locked(InletBoard())
  let parts = Locked(PartList())
  /// The part no longer counts among the parent's live nodes.
  let hasReleasedParent = Atomic<Bool>(false)
  /// The part has closed, and its parent was waiting only for that.
  var completesParent = false
  let missedBudgets = MissedBudgets()
  let callbacks = ScheduledCallbacks()

  /// What happens to a failed node.
  @safe
  enum FailureDecision: @unchecked Sendable {
    case none
    case replace(Unmanaged<AnyExecutor>)
    case isolate
  }

  init(
    id: Int, plan: GraphPlan, waitsForListeners: Bool, owner: Engine,
    family: (parent: GraphRun, name: String)? = nil
  ) {
    parent = family?.parent
    partName = family?.name ?? ""
    path = family.map { $0.parent.path + $0.name + "/" } ?? ""
    reply = family?.parent.reply ?? ReplyState()
    self.id = id
    self.plan = plan
    self.waitsForListeners = waitsForListeners
    secrets = family.map { Secrets(plan.secretTexts, within: $0.parent.secrets) } ?? plan.secrets
    identity = GraphIdentity(
      plan.nodes.map {
        GraphIdentity.Member(name: $0.name, type: $0.contract.type, parameters: $0.parameters)
      },
      within: family?.parent.identity)
    self.owner = owner
    engine = owner.core
    decisions =
      family?.parent.decisions ?? PendingDecisions(isVirtual: owner.core.clock == .virtual)
    shedNodes = NodeSet(count: plan.nodes.count)
    endingSources = NodeSet(count: plan.nodes.count)
    dependents = plan.dependents
    companions = plan.nodes.indices.filter { plan.nodes[$0].contract.endsWithOthers }
    liveCompanions = Atomic(companions.count)
    failureDecisions = FailureDecisions(count: plan.nodes.count)
    waker = SupervisorWaker(owner.core.supervisor.wokenRuns)
    memory = nil
    unsafe waker.run = unsafe Unmanaged.passUnretained(self)
  }

  deinit {
    if memory != nil && status.withLock({ $0.phase == .prepared }) { dropUnstarted() }
  }

  // MARK: Life

  /// The graph's name.
  public var name: String { plan.name }

  /// The run's phase.
  public var phase: RunPhase { status.withLock { $0.phase } }

  /// Starts a prepared run. Has no effect in any other phase.
  public func start() { engine.start(self) }

  /// Ends the sources and lets queued packets flow out; the run then stops by itself.
  public func drain() { drain(alone: true) }

  /// - Parameter alone: false: the parent drains too, and feeds this run until its own nodes have ended.
  func drain(alone: Bool) {
    guard beginDraining() else { return }
    announce("draining", isOwn: true)
    if alone { engine.isolate(self) }
    for strand in strands { strand.request(Strand.Request.drain) }
    for part in parts.withLock({ $0.runs }) { part.drain(alone: false) }
  }

  /// True when the run was not draining yet.
  func beginDraining() -> Bool {
    status.withLock { status in
      guard status.phase == .running else { return false }
      status.phase = .draining
      return true
    }
  }

  /// Drains when graph time reaches `time`: the sources emit what is due before it and nothing due at or after it. On a virtual
  /// clock this is exact, so that two runs of a graph with the same time give the same bytes; on the real one it happens within a
  /// timer tick of one millisecond.
  ///
  /// Call it before `start` to have it exact. Another call changes the time; a time in the past drains at once. On a virtual clock
  /// a source that does not follow the clock takes no graph time: it runs to its own end first.
  /// - Parameter time: since the graph's start, at least 0.
  public func drain(at time: Duration) {
    precondition(time >= .zero, "graph time begins at 0")
    drain(atGraphTime: time.nanoseconds)
  }

  /// The same in nanoseconds of graph time; parts drain at the corresponding time of their own.
  func drain(atGraphTime time: Nanoseconds) {
    drainTime.store(time, ordering: .releasing)
    for strand in strands { strand.request(Strand.Request.drainAtTime) }
    for part in parts.withLock({ $0.runs }) {
      part.drain(atGraphTime: max(0, time - (part.timeShift - timeShift)))
    }
  }

  /// Stops at once. Returns immediately; `wait` returns when it is done (two seconds at most).
  ///
  /// Queued packets are dropped. Stop also drops messages and parameter values that were not read, although `send` and `set` succeeded,
  /// and does not report them. With `drain()` a node that ends before it has read its messages reports them as `messagesLost`.
  public func stop() {
    decisions.begin()
    engine.supervisor.post(.stop(self))
  }

  /// Waits until the run has stopped and returns its report.
  public func wait() async -> RunReport {
    await withCheckedContinuation { continuation in
      let report = status.withLock { status -> RunReport? in
        if let report = status.finalReport { return report }
        status.waiters.append(continuation)
        return nil
      }
      if let report { continuation.resume(returning: report) }
    }
  }

  /// Blocks the calling thread until the run has stopped; returns nil on timeout.
  public func waitUntilStopped(timeout: Duration? = nil) -> RunReport? {
    let deadline = timeout.map { millrace_monotonic_ns().addingClamped(max(0, $0.nanoseconds)) }
    while true {
      if let report = status.withLock({ $0.finalReport }) { return report }
      let left = deadline.map { $0 - millrace_monotonic_ns() } ?? -1
      if deadline != nil && left <= 0 { return nil }
      stopped.wait(while: 0, for: left)
    }
  }

  func publishStopped() {
    stopped.store(1)
    stopped.wake(Int32.max)
  }

  /// Current graph time; 0 before the start, the time of the stop afterwards. Costs far less than a report.
  public var time: Duration { .nanoseconds(graphTime) }

  /// Current graph time, as the control side sees it; 0 before the start.
  var graphTime: Nanoseconds {
    if let stopped = status.withLock({ $0.stoppedAt }) { return stopped }
    let end = endTime.load(ordering: .acquiring)
    if end != Nanoseconds.min { return end }
    let started = epoch.load(ordering: .acquiring)
    guard started != Nanoseconds.max, let first = strands.first else { return 0 }
    return max(0, first.worker.controlTime - started)
  }

  // MARK: Control

  /// Sets a live parameter of a node, or of a part's node (`fx/gain`). The value is checked against the contract here and takes
  /// effect before the node's next packet.
  public func set(_ node: String, _ parameter: String, to value: ParameterValue) throws(ControlProblem) {
    if let inner = inPart(node) { return try inner.part.set(inner.node, parameter, to: value) }
    try set(LiveValues.Key(node: try nodeIndex(node), parameter: parameter), to: value, isChoice: true)
  }

  /// Sets a live parameter, for the program (`isChoice`) or for an overload step.
  func set(_ key: LiveValues.Key, to value: ParameterValue, isChoice: Bool) throws(ControlProblem) {
    let node = plan.nodes[key.node]
    if node.secrets.contains(key.parameter) {
      secrets.add(Set(value.texts))
    } else if let parameter = node.contract.parameter(key.parameter) {
      secrets.add(parameter.hiddenTexts(of: value))
    }
    let (number, live) = try LiveCheck.check(node, key.parameter, value)
    // Under the lock: the value recorded last must be the value sent last.
    try liveValues.withLock { values throws(ControlProblem) in
      try send(.set(parameter: number, live), to: key.node)
      values.endRamp(of: key)
      values.record(value, for: key, isChoice: isChoice)
    }
  }

  /// Bytes of the longest message to a node: a question about a picture of 135,000 bytes has 180,000 in Base64.
  public static let longestMessage = 262_144

  /// Sends text, usually a JSON object that the node defines, to a node or a part's node (`fx/gain`). At most `longestMessage`
  /// bytes. Values of members named like credentials, such as `token`, are secrets of the run from now on.
  ///
  /// Success means that the message is in the node's mailbox, not that the node has read it. Messages that a node has not read when
  /// it ends are counted in the event `messagesLost`; `stop()` drops messages that were not read without an event.
  public func send(_ text: String, to node: String) throws(ControlProblem) {
    if let inner = inPart(node) { return try inner.part.send(text, to: inner.node) }
    let index = try nodeIndex(node)
    secrets.add(Secrets.credentials(inMessage: text))
    let bytes = Array(text.utf8)
    guard let packet = engine.controlPacket(bytes) else {
      throw ControlProblem(
        "the message for \"\(node)\" cannot be sent: it has \(bytes.count) bytes (the limit is \(Self.longestMessage)), or too many messages are in flight",
        .messageRefused)
    }
    try send(.text(packet), to: index)
  }

  func nodeIndex(_ name: String) throws(ControlProblem) -> Int {
    if let index = plan.nodes.firstIndex(where: { $0.name == name }) { return index }
    let near = Spelling.nearest(to: name, among: plan.nodes.map(\.name))
    throw ControlProblem(
      "no node is named \"\(name)\"" + (near.map { "; did you mean \"\($0)\"?" } ?? ""), .unknownNode)
  }

  func send(_ message: consuming ControlMessage, to index: Int) throws(ControlProblem) {
    try checkIsRunning(for: index)
    switch mailboxes[index].send(message) {
    case .taken: break
    case .full:
      throw ControlProblem(
        "the mailbox of \"\(plan.nodes[index].name)\" is full; send again when the node has read some messages",
        .mailboxFull)
    case .closed: throw ended(index)
    }
    places[index].strand.wakeForMail(places[index].index)
  }

  /// Throws when the node accepts no more messages.
  func checkTakesMessages(_ index: Int) throws(ControlProblem) {
    try checkIsRunning(for: index)
    if mailboxes[index].isClosed { throw ended(index) }
  }

  private func checkIsRunning(for index: Int) throws(ControlProblem) {
    guard phase == .stopped else { return }
    throw ControlProblem(
      "the run has stopped; node \"\(plan.nodes[index].name)\" accepts no more messages", .runStopped)
  }

  private func ended(_ index: Int) -> ControlProblem {
    ControlProblem("node \"\(plan.nodes[index].name)\" has ended; it accepts no more messages", .nodeEnded)
  }

  /// A report of the run so far; the final report once it has stopped.
  public func report() -> RunReport {
    let time = graphTime
    // Built outside the lock, since reading histograms takes time.
    let (final, snapshot) = status.withLock { status in (status.finalReport, self.snapshot(status)) }
    return final ?? makeReport(snapshot, at: time)
  }

  // MARK: From the workers

  /// A node has missed a budget. Called on its worker.
  func markMissedBudget() { if missedBudgets.mark() { waker.wake() } }

  /// The first packet has reached a sink.
  func recordFirstPacket() {
    _ = firstPacketTime.compareExchange(expected: 0, desired: millrace_monotonic_ns(), ordering: .relaxed)
  }

  /// Ends the sources that end with a node. Called on the node's worker before the node counts as ended, so that the run does not
  /// finish before they do.
  func endDependents(of node: Int) {
    endSources(dependents[node] ?? [])
  }

  private func endSources(_ sources: [Int]) {
    for source in sources {
      endingSources.insert(source)
      places[source].strand.request(Strand.Request.endSources)
    }
  }

  /// Records the graph time at which the run ended: the worker's virtual clock may advance further for other runs.
  func recordEnd() {
    guard engine.clock == .virtual else { return }
    _ = endTime.compareExchange(expected: Nanoseconds.min, desired: graphTime, ordering: .releasing)
  }

  /// - Parameter node: the node that has ended; nil: a part.
  func cellEnded(_ node: Int? = nil) {
    // First, so that the number below is never larger than that of the live nodes, of which companions are some.
    if let node, companions.contains(node) { liveCompanions.subtract(1, ordering: .acquiringAndReleasing) }
    let left = liveCells.subtract(1, ordering: .acquiringAndReleasing).newValue
    guard left > 0 else {
      recordEnd()
      releaseParent()
      engine.supervisor.post(.finished(self))
      return
    }
    if left == liveCompanions.load(ordering: .acquiring) { endSources(companions) }
  }

  func cellFailed(_ cell: UnsafeMutablePointer<Cell>, _ fault: NodeFault) {
    decisions.begin()
    unsafe engine.supervisor.post(.failed(self, node: cell.pointee.nodeIndex, fault))
  }

  /// Messages were accepted for a node that ended before it read them.
  func mailLost(_ cell: UnsafeMutablePointer<Cell>, _ count: Int) {
    decisions.begin()
    unsafe engine.supervisor.post(.mailLost(self, node: cell.pointee.nodeIndex, count: count))
  }

  /// A strand has begun to drain at its drain time.
  func reachedDrainTime(_ time: Nanoseconds) {
    // On a virtual clock time does not advance meanwhile, so links from other runs end at that time too.
    if engine.clock == .virtual { isolateUnlessParentDrains() }
    engine.supervisor.post(.draining(self, at: time))
  }

  /// Ends links from other runs, unless the parent drains too, at the latest at the drain time of this run.
  func isolateUnlessParentDrains() {
    if parent?.drains(by: drainTime.load(ordering: .acquiring), of: self) != true { engine.isolate(self) }
  }

  /// - Parameter time: graph time of a part.
  private func drains(by time: Nanoseconds, of part: GraphRun) -> Bool {
    if phase == .draining { return true }
    let own = drainTime.load(ordering: .acquiring)
    return own != Nanoseconds.max && own - (part.timeShift - timeShift) <= time
  }

  func strandRetired() {
    if retiredStrands.add(1, ordering: .acquiringAndReleasing).newValue == strands.count {
      engine.supervisor.post(.retired(self))
    }
  }
}

extension GraphPlan {
  /// For each node, the sources that end with it.
  fileprivate var dependents: [Int: [Int]] {
    var dependents: [Int: [Int]] = [:]
    for (index, node) in nodes.enumerated() {
      if let other = node.endsWith { dependents[other, default: []].append(index) }
    }
    return dependents
  }
}
