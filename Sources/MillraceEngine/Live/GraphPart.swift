public import MillraceCore
public import MillraceGraph
internal import Synchronization

/// The parts of a run that have not closed. Under its lock.
struct PartList {
  private(set) var runs: [GraphRun] = []
  /// The one of them that is being linked: nobody else touches it until its workers know of it.
  private var unfinished: GraphRun?
  /// The run stops: none is added.
  private var isClosed = false
  /// The run's own workers have let go of it.
  private var isRetired = false

  /// Adds a part that is still to be linked and started. False when the run is stopping, or has a part of that name.
  mutating func add(_ part: GraphRun) -> Bool {
    guard !isClosed, !runs.contains(where: { $0.partName == part.partName }) else { return false }
    runs.append(part)
    unfinished = part
    return true
  }

  /// The part that was added last has been started. False when the run has begun to stop meanwhile, without it.
  mutating func finish() -> Bool {
    unfinished = nil
    return !isClosed
  }

  /// From here on no part is added; those that are left and have been started.
  mutating func close() -> [GraphRun] {
    isClosed = true
    return finished
  }

  /// Those that have been started.
  var finished: [GraphRun] { runs.filter { $0 !== unfinished } }

  /// The run's own workers have let go of it. True when no part is left.
  mutating func markRetired() -> Bool {
    isRetired = true
    return runs.isEmpty
  }

  /// A part has closed. True when the run waits for that alone.
  mutating func remove(_ part: GraphRun) -> Bool {
    runs.removeAll { $0 === part }
    if unfinished === part { unfinished = nil }
    return runs.isEmpty && isRetired
  }
}

/// A sub-graph of a running graph, with a life of its own.
///
/// It shares the replies of its run: an interruption or ducking reaches both. It begins at a graph time 0 of its own, and what passes
/// between the two is translated. Its events go to the listeners of the run too, with its name before those of its nodes
/// (`recorder/meter`) and in the time of the run. When one of its nodes fails, the part does what the node's `onError` says, and the run
/// goes on. The run stops and drains its parts with itself, and ends after them.
public struct GraphPart: Sendable {
  /// The part as a run: its events, report, parameters and life.
  public let run: GraphRun

  /// Its name in the run it belongs to.
  public var name: String { run.partName }

  /// Ends the part: what leads into it ends, and what it holds flows out; then it ends by itself. The links that lead out of it end
  /// behind its last packet.
  ///
  /// Any thread; returns at once. `run.wait()` answers when it has ended.
  /// - Parameter body: links made in the same step, such as those that lead around the part from now on. An input that the part
  ///   feeds reads what the part still gives first.
  /// - Throws: that the part has ended, or what is wrong with the links; nothing has changed then.
  public func remove(_ body: (inout GraphEdit) -> Void = { _ in }) throws(EditProblem) {
    guard let parent = run.parent else { return }
    var edit = GraphEdit()
    body(&edit)
    try run.engine.edit { (editor) throws(EditProblem) in
      guard run.phase == .running else {
        throw EditProblem(
          .ended, "part \(Problem.quoted(String(run.path.dropLast()))) has ended, or is about to",
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
    }
    run.drain(alone: false)
  }

  /// Stops the part at once: what it holds is dropped. The run goes on.
  public func stop() { run.stop() }
}

extension GraphRun {
  /// The parts of the run that have not ended, in the order in which they were added.
  public var currentParts: [GraphPart] { parts.withLock { $0.finished }.map { GraphPart(run: $0) } }

  /// The run of a part that has not ended.
  func part(named name: String) -> GraphRun? { parts.withLock { $0.runs.first { $0.partName == name } } }

  /// True while no worker knows of the run.
  var isUnstarted: Bool { phase == .prepared }

  /// The run and all its parts, by number.
  var familyNumbers: Set<Int> {
    parts.withLock { $0.runs }.reduce(into: [id]) { $0.formUnion($1.familyNumbers) }
  }

  /// The worker of its voice lane, or its only one.
  var voiceWorker: Worker? {
    (strands.first { $0.worker !== engine.bulkWorker } ?? strands.first)?.worker
  }

  /// How much later than its family's outermost run it began; 0 for that run itself.
  var timeShift: Nanoseconds {
    guard var root = parent else { return 0 }
    while let next = root.parent { root = next }
    let (own, first) = (epoch.load(ordering: .acquiring), root.epoch.load(ordering: .acquiring))
    return own == Nanoseconds.max || first == Nanoseconds.max ? 0 : own - first
  }

  /// The part has ended by itself, or has closed: its run need not wait for it any longer. Once.
  func releaseParent() {
    guard let parent, !hasReleasedParent.exchange(true, ordering: .acquiringAndReleasing) else { return }
    parent.cellEnded()
  }

  /// The part has closed. True when its run waits for that alone.
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
  /// The graph passes the same checks as any other, together with its links to the run. Its nodes are made before anything moves; this
  /// may take milliseconds, on the calling thread, while the run goes on. Any thread. On a virtual clock the part begins at exactly the
  /// graph time of `at`, when it is added there.
  /// - Parameters:
  ///   - graph: the sub-graph; files are taken in with `include`.
  ///   - name: its name in the run, unlike those of the run's nodes and other parts.
  ///   - settings: values for the sub-graph's parameters.
  ///   - observesEvents: as `Engine.prepare` takes it.
  ///   - body: links between the run and the part, and other changes in the same step, as `edit` takes them.
  /// - Throws: what is wrong; nothing has changed then.
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

  /// Adds one node to the running graph: a part with one node, which has the part's name.
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
