internal import CMillraceSys
internal import Glibc
internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// What all runs of an engine share: workers, supervisor, trace IDs.
@safe
final class EngineCore: @unchecked Sendable {
  let catalogue: Catalogue
  let clock: Clock.Kind
  let voiceWorkers: [Worker]
  /// The first voice worker on a virtual clock, where one thread runs everything in order.
  let bulkWorker: Worker
  /// The wake target of link ends that have no waiting side.
  let nullWake = NullWake()
  /// For messages from the program. Its memory is touched only when used.
  private let controlPool = BlockPool(blockBytes: GraphRun.longestMessage, blockCount: 32)
  let supervisor = Supervisor()
  /// Resumes program tasks that wait for a source or a sink.
  let resumer = TaskResumer()
  /// The memory limit, and what the runs have claimed of it.
  let memory: MemoryLedger
  /// The links made while graphs run. Edited one change at a time, on the control side.
  let topology = Locked(Topology())

  /// The `errno` of the first thread the system refused; 0: all threads run.
  private var threadRefusal: Int32 = 0

  private struct Numbers {
    var nextRun = 1
    var nextTraceID: UInt32 = 1
    var traceNames: [TraceNames] = []
    var activeRuns = 0
    /// Why no new session is accepted, by run.
    var refusals: [Int: String] = [:]
  }
  private let numbers = Locked(Numbers())

  /// The trace IDs of one run.
  struct TraceNames: Sendable {
    var first: UInt32
    var run: String
    var nodes: [String]
  }

  /// The number of runs whose trace IDs are kept.
  private static let rememberedRuns = 4_096

  init(catalogue: Catalogue, clock: Clock.Kind, workers: Int, memory: MemoryLedger) {
    self.memory = memory
    self.catalogue = catalogue
    self.clock = clock
    let isVirtual = clock == .virtual
    let canReplace = millrace_barrier_prepare()
    voiceWorkers = (1...max(1, workers)).map {
      Worker(name: "millrace-v\($0)", isVirtual: isVirtual, nice: 0, canReplaceThreads: canReplace)
    }
    // The bulk worker yields to voice: 5 steps of niceness, about a third of the weight.
    bulkWorker =
      isVirtual
      ? voiceWorkers[0]
      : Worker(name: "millrace-bulk", isVirtual: false, nice: 5, canReplaceThreads: canReplace)
    for worker in allWorkers where threadRefusal == 0 { threadRefusal = worker.startThread() }
    if threadRefusal == 0 { threadRefusal = supervisor.startThread() }
  }

  /// Throws when the system refused one of the threads, so that no graph can run.
  func checkThreads() throws(StartProblem) {
    guard threadRefusal != 0 else { return }
    throw StartProblem(
      node: "", text: "the system refused to start a thread: \(SystemError.text(threadRefusal))",
      cure: "end other programs of this user, or raise the limits (ulimit -u, or the container's pids limit)")
  }

  /// Throws when an active graph refuses further sessions.
  func checkRoom() throws(StartProblem) {
    let refusals = numbers.withLock { $0.refusals }
    guard let first = refusals.min(by: { $0.key < $1.key }) else { return }
    throw StartProblem(
      node: "", text: "no capacity for another session: \(first.value)",
      cure: "end a session, or start it on another machine")
  }

  func setRefusal(_ text: String?, of run: Int) { numbers.withLock { $0.refusals[run] = text } }

  var allWorkers: [Worker] {
    bulkWorker === voiceWorkers[0] ? voiceWorkers : voiceWorkers + [bulkWorker]
  }

  func newRunNumber() -> Int {
    numbers.withLock { numbers in
      defer { numbers.nextRun += 1 }
      return numbers.nextRun
    }
  }

  /// Reserves trace IDs for the nodes of a run; returns the first.
  func reserveTraceIDs(_ run: String, _ nodes: [String]) -> UInt32 {
    numbers.withLock { numbers in
      let first = numbers.nextTraceID
      numbers.nextTraceID &+= UInt32(nodes.count)
      numbers.traceNames.append(TraceNames(first: first, run: run, nodes: nodes))
      if numbers.traceNames.count > Self.rememberedRuns {
        numbers.traceNames.removeFirst(Self.rememberedRuns / 4)
      }
      return first
    }
  }

  var traceNames: [TraceNames] { numbers.withLock { $0.traceNames } }

  /// A packet with the bytes of a message; nil when the message is too long, or too many messages are in flight.
  func controlPacket(_ bytes: [UInt8]) -> Packet? {
    guard bytes.count <= controlPool.blockBytes, let block = controlPool.take() else { return nil }
    var packet = Packet(block, byteCount: bytes.count)
    var content = packet.mutableSamples(of: UInt8.self)
    for (index, byte) in bytes.enumerated() { content[index] = byte }
    return packet
  }

  /// The voice worker with the fewest strands.
  func leastLoadedWorker() -> Worker {
    var best = voiceWorkers[0]
    for worker in voiceWorkers.dropFirst()
    where worker.load.load(ordering: .relaxed) < best.load.load(ordering: .relaxed) { best = worker }
    return best
  }

  // MARK: Starting

  func start(_ run: GraphRun) {
    // Graph time 0 falls on a whole millisecond, the timers' resolution; instances are spread over 20 ms.
    let tick = unsafe TimerWheel.tick
    let mayStart = run.status.withLock { status in
      guard status.phase == .prepared else { return false }
      status.phase = .running
      status.startRequestedAt = millrace_monotonic_ns()
      return true
    }
    guard mayStart else { return }
    let others = numbers.withLock { numbers in
      defer { numbers.activeRuns += 1 }
      return numbers.activeRuns
    }
    let phase = others == 0 || run.parent != nil ? 0 : Int64(run.id % 20)
    let epoch = millrace_monotonic_ns() / tick * tick + phase * tick
    run.announce("started", isOwn: true)
    if clock == .realtime {
      run.epoch.store(epoch, ordering: .releasing)
    } else if run.parent != nil {
      run.epoch.store(run.strands[0].worker.controlTime, ordering: .releasing)
    }
    // After the epoch is set: the supervisor computes the time of the next callback from it.
    supervisor.post(.started(run))
    // Every strand gets its epoch before the first one begins, which may wake the others at once.
    for strand in run.strands { unsafe strand.epoch = epoch }
    // A part is notified of an interruption or ducking that happened while it was built.
    let request =
      Strand.Request.begin | (run.parent == nil ? 0 : Strand.Request.interrupt | Strand.Request.duck)
    for strand in run.strands { strand.start(with: request) }
  }

  func runEnded() {
    numbers.withLock { $0.activeRuns -= 1 }
  }

  /// Ends the threads. There are no runs any more.
  func shutDown() {
    supervisor.shutDown()
    resumer.stop()
    for worker in allWorkers { worker.stop() }
  }
}
