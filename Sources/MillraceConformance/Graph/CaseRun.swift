internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph
internal import MillraceJSON
internal import Synchronization

/// Why a case failed before its record could be checked.
struct CaseFailure: Error {
  let text: String
  init(_ text: String) { self.text = text }
}

/// A running case: the double, a graph with its node between the suite's own nodes, and the actions.
final class CaseRun {
  let double: any ServiceDouble
  let traits: ServiceTraits
  let script: ServiceScript
  let stage: CaseState
  let run: GraphRun
  /// The longest wait in seconds.
  let patience: Double
  private let catalogue: Catalogue
  /// False: the double belongs to another case.
  private let ownsDouble: Bool
  /// Graphs beside this one with the same double.
  private(set) var neighbours: [CaseRun] = []

  static let service = "service"
  private static let user = "user"

  convenience init(
    _ type: any ServiceDouble.Type, _ script: ServiceScript, _ catalogue: Catalogue, patience: Double
  ) async throws {
    try self.init(try await type.start(script), script, catalogue, patience: patience, ownsDouble: true)
  }

  private init(
    _ double: any ServiceDouble, _ script: ServiceScript, _ catalogue: Catalogue, patience: Double,
    ownsDouble: Bool
  ) throws {
    let type = Swift.type(of: double)
    traits = type.traits
    self.patience = patience
    self.script = script
    self.double = double
    self.catalogue = catalogue
    self.ownsDouble = ownsDouble
    stage = CaseState(type)
    var catalogue = catalogue
    catalogue.add(ConformanceVoice.self)
    catalogue.add(ConformanceUser.self)
    let text = Self.graph(traits, double.parameters, stage.number)
    do {
      let plan = try Graph.load(text: text, name: "conformance.json", catalogue: catalogue)
      run = try Engine(catalogue: catalogue, workers: 1).prepare(plan, observesEvents: false)
    } catch {
      stage.leave()
      if ownsDouble { double.stop() }
      throw CaseFailure("the node's graph is not valid: \(error)")
    }
    if !traits.eventOutputs.isEmpty { stage.note(.event(.state(.connecting))) }
    run.start()
  }

  /// The graph of a case: the node, with each of its ports that the suite knows.
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
          JSONValue.Member("streams", .bool(traits.streamsReplies)),
        ])),
    ]
    // No event may be lost on the way to the recorder: 4,096 packets is the longest link possible.
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
    if let stream = traits.stream { links.append(fromService(stream, "streams")) }
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
    record.report = double.seen
    return record
  }

  // MARK: Waiting

  /// Waits until the record satisfies a condition.
  func wait(_ what: String, until holds: (ServiceRecord) -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(patience)
    while !holds(record) {
      if run.phase == .stopped && !holds(record) {
        throw CaseFailure("no \(what): the run ended" + (failure.map { ": \($0)" } ?? ""))
      }
      guard ContinuousClock.now < end else { throw CaseFailure("no \(what) within \(Int(patience)) s") }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  private var failure: String? { run.report().failure?.text }

  /// Waits until a state was reported so many times.
  func wait(for state: DialogState, times: Int = 1) async throws {
    try await wait("\(state.rawValue)\(times > 1 ? " number \(times)" : "")") { record in
      record.states.count { $0 == state } >= times
    }
  }

  /// Waits until the service listens and the turn is over.
  func waitListening() async throws {
    try await wait("listening at the end") { $0.states.last == .listening }
  }

  /// Waits until a gate was opened or closed.
  func wait(for gate: DialogGate, isOn: Bool) async throws {
    try await wait("gate \(gate.rawValue) \(isOn ? "closed" : "opened")") { record in
      record.events.contains { if case .gate(gate, isOn, _) = $0 { true } else { false } }
    }
  }

  /// Waits until what the user said has left the link to the node, which holds fewer frames than this.
  func waitSpoken() async throws {
    try await wait("silence after the speech") { [stage] _ in
      stage.speechFrames.load(ordering: .relaxed) == 0 && stage.silentFrames.load(ordering: .relaxed) > 100
    }
  }

  // MARK: Actions

  /// Starts another graph with the same double. It is checked as this one is, and ends with it.
  func startNeighbour() async throws -> CaseRun {
    let other = try CaseRun(double, script, catalogue, patience: patience, ownsDouble: false)
    neighbours.append(other)
    return other
  }

  /// Sends a command.
  /// - Parameter id: the id under which it is to be answered; nil: it is not.
  func command(_ command: DialogCommand, id: String? = nil) throws { try send(command.json, id: id) }

  /// Sends a command that may be invalid.
  func send(_ command: JSONValue, id: String? = nil) throws {
    var members = command.members ?? []
    if let id {
      members.append(JSONValue.Member("id", .string(id)))
      stage.note(.action(.commanded(id: id)))
    }
    do { try run.send(JSONValue.object(members).text, to: Self.user) } catch { throw CaseFailure(error.text) }
  }

  /// Starts a turn.
  func ask(id: String? = nil) throws {
    if traits.turn == .words { try command(.ask("what is it?", images: []), id: id) }
  }

  /// A complete turn: question, answer, playback.
  func turn(id: String? = nil) async throws {
    let before = record
    try ask(id: id)
    try await wait("an answer") { $0.count("replyStarted") > before.count("replyStarted") }
    try await wait("the end of an answer") { $0.count("replyEnded") > before.count("replyEnded") }
    try await wait("listening after an answer") { record in
      record.states.count { $0 == .listening } > before.states.count { $0 == .listening }
        && record.states.last == .listening
    }
  }

  /// The user speaks for so many milliseconds.
  func speak(milliseconds: Int = 500) {
    let frames = milliseconds / 20
    stage.note(.action(.spoke(samples: frames * ConformanceVoice.frames)))
    stage.silentFrames.store(0, ordering: .relaxed)
    stage.speechFrames.store(frames, ordering: .relaxed)
  }

  /// Interrupts the replies of the graph, and the service's. The graph comes first where the node discards the rest by itself.
  func interrupt() async throws {
    if !traits.dropsStaleAudio {
      try command(.interrupt())
      try await wait("interrupted") { $0.count("interrupted") >= 1 }
      return run.interrupt()
    }
    let generation = stage.record.withLock { $0.audio.last?.generation }
    run.interrupt()
    if let generation {
      let begun = stage.record.withLock { $0.audio.flatMap(\.replies).max() ?? 0 }
      stage.note(.action(.interrupted(upTo: begun, generation: generation)))
    }
    try command(.interrupt())
  }

  func endInput() {
    stage.isAudioOver.store(true, ordering: .releasing)
    stage.note(.action(.endedInput))
  }

  /// Playback finishes what it holds, and from here on finishes every reply at once.
  func finishReplies() throws {
    stage.finishesReplies.store(true, ordering: .releasing)
    do { try run.send("", to: Self.user) } catch { throw CaseFailure(error.text) }
  }

  // MARK: Ending

  /// Ends the session where there is a command for it, drains the graph, and waits for the end.
  /// - Parameter sessionEnds: how many sessions of the double have ended then.
  func drain(sessionEnds: Int = 1) async throws {
    stage.note(.action(.drained))
    if traits.eventOutputs.isEmpty {
      if record.states.last != .closed { try command(.hangUp()) }
      try await wait("closed") { $0.states.last == .closed }
    }
    // The user and the service node each wait for the other's end.
    stage.isOver.store(true, ordering: .releasing)
    stage.isAudioOver.store(true, ordering: .releasing)
    if run.phase != .stopped { _ = try? run.send("", to: Self.user) }
    run.drain()
    try await finish("end after draining the graph")
    // The closing message may still be on its way when the node has ended.
    let end = ContinuousClock.now + .seconds(patience)
    while record.mustCloseSession, double.seen.sessionEnds < sessionEnds, ContinuousClock.now < end {
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  /// Stops at once, and waits for the end.
  func stop() async throws {
    stage.note(.action(.stopped))
    run.stop()
    try await finish("end after stopping the graph")
  }

  /// Waits until the run has ended.
  func finish(_ what: String) async throws {
    let end = ContinuousClock.now + .seconds(patience)
    while run.phase != .stopped {
      guard ContinuousClock.now < end else { throw CaseFailure("no \(what) within \(Int(patience)) s") }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  /// Ends the run, and returns the record to check.
  func close() async -> ServiceRecord {
    if run.phase != .stopped { run.stop() }
    let report = await run.wait()
    var record = record
    record.ending.failure = report.failure?.text
    record.ending.detached = report.detachedNodes
    record.ending.leakedBlocks = report.leakedBlocks
    // Losses on other links are not the service's.
    record.ending.lostEvents = report.links.filter { $0.name.hasPrefix(Self.service) && $0.format == .event }
      .reduce(0) { $0 + $1.droppedOldest + $1.droppedNewest }
    if ownsDouble { double.stop() }
    stage.leave()
    return record
  }
}
