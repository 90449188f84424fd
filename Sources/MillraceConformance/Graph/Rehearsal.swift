internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// Why a case went wrong before its record could be looked at, in words.
struct Mismatch: Error {
  let text: String
  init(_ text: String) { self.text = text }
}

/// One case at work: the double, a graph of its node between the kit's own nodes, and what happens.
final class Rehearsal {
  let double: any ServiceDouble
  let traits: ServiceTraits
  let script: ServiceScript
  let stage: Stage
  let run: GraphRun
  /// Longest wait for anything. A machine that is busy takes its time; one that never gets there is told of.
  let patience: Double

  static let service = "service"
  private static let user = "user"

  init(
    _ type: any ServiceDouble.Type, _ script: ServiceScript, _ catalogue: Catalogue, patience: Double
  ) async throws {
    traits = type.traits
    self.patience = patience
    self.script = script
    let made = try await type.start(script)
    double = made
    stage = Stage(type)
    var catalogue = catalogue
    catalogue.add(ConformanceVoice.self)
    catalogue.add(ConformanceUser.self)
    let text = Self.graph(traits, made.parameters, stage.number)
    do {
      let plan = try Graph.load(text: text, name: "conformance.json", catalogue: catalogue)
      run = try Engine(catalogue: catalogue, workers: 1).prepare(plan, observesEvents: false)
    } catch {
      stage.leave()
      made.stop()
      throw Mismatch("the node's graph is refused: \(error)")
    }
    if !traits.eventOutputs.isEmpty { stage.note(.told(.state(.connecting))) }
    run.start()
  }

  /// The graph of a case: the node, with every port it has that the kit knows of.
  static func graph(_ traits: ServiceTraits, _ parameters: [JSONValue.Member], _ stage: Int) -> String {
    let number = JSONValue.Member("stage", .integer(stage))
    var nodes = [
      JSONValue.Member(
        service, .object([JSONValue.Member("type", .string(traits.nodeType))] + parameters)),
      JSONValue.Member(
        user,
        .object([
          JSONValue.Member("type", "conformance.user"), number,
          JSONValue.Member("reports", .bool(traits.takesReports)),
        ])),
    ]
    // Nothing a service tells may get lost on the way to who keeps it: 4,096 packets are the longest link there is.
    func link(_ from: String, _ to: String, waits: Bool) -> JSONValue {
      [
        "from": .string(from), "to": .string(to), "capacity": 4_096,
        "whenFull": waits ? "block" : "dropNewest",
      ]
    }
    func fromService(_ output: String, _ input: String) -> JSONValue {
      link("\(service).\(output)", "\(user).\(input)", waits: traits.waits)
    }
    var links = [
      fromService("events", "events"), link("\(user).control", "\(service).\(traits.control)", waits: true),
    ]
    for output in traits.eventOutputs { links.append(fromService(output, "words")) }
    if let replies = traits.replies { links.append(fromService(replies, "audio")) }
    if let audio = traits.audio {
      nodes.append(
        JSONValue.Member("voice", .object([JSONValue.Member("type", "conformance.voice"), number])))
      links.append(.string("voice.out -> \(service).\(audio)"))
    }
    let graph: JSONValue = [
      "millrace": 1, "name": "conformance", "nodes": .object(nodes), "links": .array(links),
    ]
    return graph.text
  }

  var record: ServiceRecord {
    var record = stage.record.withLock { $0 }
    record.sight = double.seen
    return record
  }

  // MARK: Waiting

  /// Waits until the record shows something.
  func wait(_ what: String, until holds: (ServiceRecord) -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(patience)
    while !holds(record) {
      if run.phase == .stopped && !holds(record) {
        throw Mismatch("\(what) did not come; the run ended" + (failure.map { ": \($0)" } ?? ""))
      }
      guard ContinuousClock.now < end else { throw Mismatch("\(what) did not come in \(Int(patience)) s") }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  private var failure: String? { run.report().failure?.text }

  /// Waits until a state has been told so many times.
  func wait(for state: DialogState, times: Int = 1) async throws {
    try await wait("\(state.rawValue)\(times > 1 ? " number \(times)" : "")") { record in
      record.states.count { $0 == state } >= times
    }
  }

  /// Waits until it listens and nothing is left of the turn.
  func waitListening() async throws {
    try await wait("listening at the end") { $0.states.last == .listening }
  }

  // MARK: Doing

  func command(_ command: DialogCommand) throws {
    do { try run.send(command.json.text, to: Self.user) } catch { throw Mismatch(error.text) }
  }

  /// Begins a turn.
  func ask() throws { if traits.turn == .words { try command(.ask("what is it?", images: [])) } }

  /// A whole turn: asked, answered, heard.
  func turn() async throws {
    let before = record
    try ask()
    try await wait("an answer") { $0.count("replyStarted") > before.count("replyStarted") }
    try await wait("the answer's end") { $0.count("replyEnded") > before.count("replyEnded") }
    try await wait("listening behind an answer") { record in
      record.states.count { $0 == .listening } > before.states.count { $0 == .listening }
        && record.states.last == .listening
    }
  }

  /// The user speaks for so many milliseconds, and is quiet.
  func speak(milliseconds: Int = 500) {
    let frames = milliseconds / 20
    stage.note(.did(.spoke(samples: frames * ConformanceVoice.frames)))
    stage.loudFrames.store(frames, ordering: .relaxed)
  }

  /// Voids the replies of the graph, and has the service end its own: first the graph, where the node drops the rest by itself.
  func interrupt() async throws {
    if !traits.dropsVoided {
      try command(.interrupt)
      try await wait("interrupted") { $0.count("interrupted") >= 1 }
      return run.interrupt()
    }
    let generation = stage.record.withLock { $0.sounds.last?.generation }
    run.interrupt()
    if let generation {
      let begun = stage.record.withLock { $0.sounds.flatMap(\.replies).max() ?? 0 }
      stage.note(.did(.interrupted(upTo: begun, generation: generation)))
    }
    try command(.interrupt)
  }

  func endInput() {
    stage.isSoundOver.store(true, ordering: .releasing)
    stage.note(.did(.endedInput))
  }

  /// Playback goes on with what it holds, and tells of every end from here on.
  func letPlay() throws {
    stage.playsOn.store(true, ordering: .releasing)
    do { try run.send("", to: Self.user) } catch { throw Mismatch(error.text) }
  }

  // MARK: Ending

  /// Hangs up where there is a word for it, lets what is inside flow out, and waits for the end.
  func drain() async throws {
    stage.note(.did(.drained))
    if traits.eventOutputs.isEmpty {
      if record.states.last != .closed { try command(.hangUp) }
      try await wait("closed") { $0.states.last == .closed }
    }
    // The user and the service each have what the other waits for.
    stage.isOver.store(true, ordering: .releasing)
    stage.isSoundOver.store(true, ordering: .releasing)
    if run.phase != .stopped { _ = try? run.send("", to: Self.user) }
    run.drain()
    try await finish("the end after the graph was drained")
    // A good-bye may still be on its way when the node has done with it.
    let end = ContinuousClock.now + .seconds(patience)
    while record.isDueGoodBye, double.seen.goodByes == 0, ContinuousClock.now < end {
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  /// Stops at once, and waits for the end.
  func stop() async throws {
    stage.note(.did(.stopped))
    run.stop()
    try await finish("the end after the graph was stopped")
  }

  /// Waits until the run has ended.
  func finish(_ what: String) async throws {
    let end = ContinuousClock.now + .seconds(patience)
    while run.phase != .stopped {
      guard ContinuousClock.now < end else { throw Mismatch("\(what) did not come in \(Int(patience)) s") }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  /// Ends whatever has not ended, and answers what there is to judge.
  func close() async -> ServiceRecord {
    if run.phase != .stopped { run.stop() }
    let report = await run.wait()
    var record = record
    record.ending.failure = report.failure?.text
    record.ending.detached = report.detachedNodes
    record.ending.leakedBlocks = report.leakedBlocks
    // What goes on beside this is none of the service's.
    record.ending.lostEvents = report.links.filter { $0.name.hasPrefix(Self.service) && $0.format == .event }
      .reduce(0) { $0 + $1.droppedOldest + $1.droppedNewest }
    double.stop()
    stage.leave()
    return record
  }
}
