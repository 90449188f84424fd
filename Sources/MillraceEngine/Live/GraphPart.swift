public import MillraceCore
public import MillraceGraph
internal import Synchronization

/// The parts of a run that have not closed. Under its lock.
struct PartList {
  private(set) var runs: [GraphRun] = []
  /// The one that is being linked: no other thread uses it until its workers have seen it.
  private var unfinished: GraphRun?
  /// The run is stopping: no part may be added.
  private var isClosed = false
  /// The run's own workers have released it.
  private var isRetired = false

  /// Adds a part that is not linked and started yet. False when the run is stopping, or has a part of that name.
  mutating func add(_ part: GraphRun) -> Bool {
    guard !isClosed, !runs.contains(where: { $0.partName == part.partName }) else { return false }
    runs.append(part)
    unfinished = part
    return true
  }

  /// Marks the part added last as started. False when the run has begun to stop meanwhile, without it.
  mutating func finish() -> Bool {
    unfinished = nil
    return !isClosed
  }

  /// Refuses further parts; returns those that have been started.
  mutating func close() -> [GraphRun] {
    isClosed = true
    return finished
  }

  /// Those that have been started.
  var finished: [GraphRun] { runs.filter { $0 !== unfinished } }

  /// The run's own workers have released it. True when no part is left.
  mutating func markRetired() -> Bool {
    isRetired = true
    return runs.isEmpty
  }

  /// Removes a closed part. True when the run was waiting only for it.
  mutating func remove(_ part: GraphRun) -> Bool {
    runs.removeAll { $0 === part }
    if unfinished === part { unfinished = nil }
    return runs.isEmpty && isRetired
  }
}

/// A sub-graph of a running graph, with its own life cycle.
///
/// It shares the replies of its run: an interruption or ducking affects both. It has its own graph time, which starts at 0;
/// timestamps are translated between the two. Its events also go to the listeners of the run, with its name prefixed to node names
/// (`recorder/meter`) and in the run's time. When one of its nodes fails, the part follows the node's `onError`, and the run
/// continues. The run stops and drains its parts with itself, and ends after them.
public struct GraphPart: Sendable {
  /// The part as a run: its events, report, parameters and life cycle.
  public let run: GraphRun

  /// Its name in its run.
  public var name: String { run.partName }

  /// Drains the part: its incoming links end, its packets flow out, and it ends by itself. Its outgoing links end after its last packet.
  ///
  /// Any thread; returns at once. `run.wait()` returns when it has ended.
  /// - Parameter body: links made in the same step, such as those that bypass the part. An input that the part feeds reads the
  ///   rest of the part's packets first.
  /// - Throws: when the part has ended, or the links are invalid; nothing has changed then.
  public func remove(_ body: (inout GraphEdit) -> Void = { _ in }) throws(EditProblem) {
    guard let parent = run.parent else { return }
    var edit = GraphEdit()
    body(&edit)
    try run.engine.edit { (editor) throws(EditProblem) in
      guard run.phase == .running else {
        throw EditProblem(
          .ended, "part \(Problem.quoted(String(run.path.dropLast()))) has ended or is ending",
          cure: "remove a part once")
      }
      let leaving = editor.isolate(run)
      do throws(EditProblem) {
        try editor.take(edit.steps, in: parent)
        try editor.commit()
      } catch {
        for live in leaving { live.isLeaving = false }
        throw error
      }
      // In the same step: no link may be made into a part that drains.
      run.drain(alone: false)
    }
  }

  /// Stops the part at once and discards its packets. The run continues.
  public func stop() { run.stop() }
}

extension GraphRun {
  /// The parts of the run that have not ended, in the order they were added.
  public var currentParts: [GraphPart] { parts.withLock { $0.finished }.map { GraphPart(run: $0) } }

  /// The run of a part that has not ended.
  func part(named name: String) -> GraphRun? { parts.withLock { $0.runs.first { $0.partName == name } } }

  /// True while no worker has seen the run.
  var isUnstarted: Bool { phase == .prepared }

  /// The run and all its parts, by number.
  var familyNumbers: Set<Int> {
    parts.withLock { $0.runs }.reduce(into: [id]) { $0.formUnion($1.familyNumbers) }
  }

  /// The worker of its voice lane, or its only one.
  var voiceWorker: Worker? {
    (strands.first { $0.worker !== engine.bulkWorker } ?? strands.first)?.worker
  }

  /// How much later than its top-level run it began; 0 for that run itself.
  var timeShift: Nanoseconds {
    guard var root = parent else { return 0 }
    while let next = root.parent { root = next }
    let (own, first) = (epoch.load(ordering: .acquiring), root.epoch.load(ordering: .acquiring))
    return own == Nanoseconds.max || first == Nanoseconds.max ? 0 : own - first
  }

  /// The part has ended or closed: its parent need not wait for it any longer. Only the first call has an effect.
  func releaseParent() {
    guard let parent, !hasReleasedParent.exchange(true, ordering: .acquiringAndReleasing) else { return }
    parent.cellEnded()
  }

  /// The part has closed. True when its parent was waiting only for it.
  func detachFromParent(_ report: RunReport) -> Bool {
    guard let parent else { return false }
    parent.announce("partEnded") { json in
      json.member("part", partName)
      if let failure = status.withLock({ $0.failure }) { json.member("text", "\(failure)") }
    }
    parent.status.withLock { if $0.phase != .running { $0.partReports.append(report) } }
    releaseParent()
    return parent.parts.withLock { $0.remove(self) }
  }

  /// Adds a sub-graph to the running graph, links it and starts it, in one step.
  ///
  /// ```swift
  /// var recorder = GraphDescription("recorder")
  /// recorder.add("rec", "audio.write", ["path": "call.wav"])
  /// let part = try run.add(recorder, named: "recorder") { $0.link("mic -> recorder/rec") }
  /// try part.remove()
  /// ```
  ///
  /// The graph passes the same checks as any other, together with its links to the run. Its nodes are created first, on the
  /// calling thread; this may take milliseconds while the run continues. Any thread. On a virtual clock, a part added in a
  /// callback of `at` begins at exactly that graph time.
  /// - Parameters:
  ///   - graph: the sub-graph; use `include` for files.
  ///   - name: its name in the run, different from those of the run's nodes and other parts.
  ///   - settings: values for the sub-graph's parameters.
  ///   - observesEvents: as `Engine.prepare` takes it.
  ///   - body: links between the run and the part, and other changes in the same step, as in `edit`.
  /// - Throws: why the part was refused; nothing has changed then.
  @discardableResult
  public func add(
    _ graph: GraphDescription, named name: String, settings: GraphSettings = GraphSettings(),
    observesEvents: Bool = true, links body: (inout GraphEdit) -> Void = { _ in }
  ) throws(EditProblem) -> GraphPart {
    var edit = GraphEdit()
    body(&edit)
    return GraphPart(
      run: try PartBuilder(self, name, edit).make(graph, settings, observesEvents: observesEvents))
  }

  /// Adds one node to the running graph: a part with a single node of the same name.
  @discardableResult
  public func add(
    _ name: String, _ type: String, _ parameters: [String: ParameterValue] = [:], lane: Lane? = nil,
    onError: ErrorPolicy? = nil, links body: (inout GraphEdit) -> Void = { _ in }
  ) throws(EditProblem) -> GraphPart {
    var graph = GraphDescription(name)
    graph.add(name, type, parameters, lane: lane, onError: onError)
    return try add(graph, named: name, links: body)
  }
}
