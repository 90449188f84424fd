import MillraceCore
import MillraceGraph
import Synchronization
import Testing

@testable import MillraceEngine

@Suite("Graphs that change while they run", .timeLimit(.minutes(30)))
struct LiveGraphTests {
  /// source -> kept, source -> changed: endless numbers, nothing dropped.
  private func plan(_ probe: String, interval: Int = 0) throws -> GraphPlan {
    var graph = GraphDescription("live")
    graph.add("source", "test.count", ["count": -1, "interval": .integer(interval)])
    graph.add("kept", "test.sequence", ["probe": .string(probe + ".kept")])
    graph.add("changed", "test.sequence", ["probe": .string(probe + ".changed")])
    graph.link("source -> kept", whenFull: .block)
    graph.link("source -> changed", whenFull: .block)
    return try Graph.load(graph, catalogue: liveCatalogue)
  }

  private func engine(_ clock: Clock.Kind = .realtime, workers: Int = 1) -> Engine {
    Engine(catalogue: liveCatalogue, clock: clock, workers: workers)
  }

  /// Waits until a condition holds.
  private func until(_ condition: () -> Bool) { while !condition() { pauseBriefly() } }

  private func stop(_ run: GraphRun) throws -> RunReport {
    run.stop()
    return try #require(run.waitUntilStopped(timeout: .seconds(120)), "the run does not end")
  }

  @Test(
    "a part linked to a running output gets every packet from then on, and is removed after its packets were read"
  )
  func partReads() throws {
    let run = try engine().start(try plan("reads"))
    let part = try run.add("tail", "test.sequence", ["probe": "reads.part"]) {
      $0.link("source -> tail", whenFull: .block)
    }
    let tail = Sequence.named("reads.part")
    until { tail.seen > 1_000 }
    try part.remove()
    let report = try #require(part.run.waitUntilStopped(timeout: .seconds(120)))
    #expect(tail.isFinished && tail.broken == 0 && report.failure == nil)
    #expect(run.phase == .running && run.currentParts.isEmpty)
    let kept = Sequence.named("reads.kept")
    let seen = kept.seen
    until { kept.seen > seen + 1_000 }
    #expect(try stop(run).leakedBlocks == 0)
    #expect(kept.broken == 0 && Sequence.named("reads.changed").broken == 0)
  }

  @Test("a node is inserted between two others and removed again: their link loses and duplicates nothing")
  func insertion() throws {
    let run = try engine().start(try plan("insertion"))
    let changed = Sequence.named("insertion.changed")
    until { changed.seen > 100 }
    let part = try run.add("fx", "test.pass") {
      $0.unlink("source -> changed")
      $0.link("source -> fx")
      $0.link("fx -> changed")
    }
    var seen = changed.seen
    until { changed.seen > seen + 1_000 }
    try part.remove { $0.link("source -> changed") }
    _ = try #require(part.run.waitUntilStopped(timeout: .seconds(120)))
    seen = changed.seen
    until { changed.seen > seen + 1_000 }
    #expect(try stop(run).leakedBlocks == 0)
    #expect(changed.broken == 0 && Sequence.named("insertion.kept").broken == 0)
  }

  @Test(
    "a thousand nodes inserted and removed and links moved under load: nothing is lost or duplicated, memory is flat"
  )
  func thousandfold() throws {
    let engine = engine(workers: 2)
    let run = try engine.start(try plan("thousandfold"))
    let changed = Sequence.named("thousandfold.changed")
    let kept = Sequence.named("thousandfold.kept")
    var claimed: Int?
    for round in 0..<1_000 {
      let part = try run.add("fx", "test.pass") {
        $0.unlink("source -> changed")
        $0.link("source -> fx")
        $0.link("fx -> changed")
      }
      if round % 3 == 0 { try run.relink("source -> fx/fx") }
      if round % 50 == 0 {
        let seen = changed.seen
        until { changed.seen > seen + 100 }
      }
      try part.remove { $0.link("source -> changed") }
      _ = try #require(part.run.waitUntilStopped(timeout: .seconds(120)))
      if round == 0 {
        let seen = changed.seen
        until { changed.seen > seen + 1_000 }
        claimed = engine.memory.claimed
      }
    }
    let seen = changed.seen
    until { changed.seen > seen + 1_000 }
    until { engine.memory.claimed == claimed }
    #expect(run.liveLinks.count == 1)
    let report = try stop(run)
    #expect(report.leakedBlocks == 0)
    #expect(changed.broken == 0 && kept.broken == 0)
    until { engine.memory.claimed == 0 }
  }

  @Test("an output is moved from one reader to another in one step: each packet goes to one of them")
  func move() throws {
    let run = try engine().start(try plan("move"))
    let (before, behind) = (Sequence.named("move.changed"), Sequence.named("move.other"))
    until { before.seen > 100 }
    try run.add("other", "test.sequence", ["probe": "move.other"]) {
      $0.unlink("source -> changed")
      $0.link("source -> other", whenFull: .block)
    }
    until { behind.seen > 100 }
    #expect(!before.isFinished, "an input without a link waits for the next one")
    #expect(behind.first.load(ordering: .acquiring) == before.last.load(ordering: .acquiring) + 1)
    #expect(before.broken == 0 && behind.broken == 0)
    let seen = before.seen
    try run.edit { $0.link("source -> changed") }
    until { before.seen > seen + 100 }
    #expect(before.broken == 1, "what was sent meanwhile is missing, and nothing else")
    _ = try stop(run)
  }

  @Test("in links, the name of a part stands for its only node, whatever that is called")
  func onlyNode() throws {
    let run = try engine().start(try plan("only"))
    var graph = GraphDescription("robot")
    graph.add("voice", "test.pass")
    try run.add(graph, named: "fx") {
      $0.unlink("source -> changed")
      $0.link("source -> fx.in")
      $0.link("fx -> changed")
    }
    let changed = Sequence.named("only.changed")
    let seen = changed.seen
    until { changed.seen > seen + 1_000 }
    graph.add("second", "test.pass")
    graph.link("voice -> second")
    let problem = try #require(throws: EditProblem.self) {
      try run.add(graph, named: "pair") { $0.link("source -> pair") }
    }
    #expect(problem.code == .badGraph && problem.text.contains("the part has 2 nodes"), "\(problem)")
    #expect(try stop(run).leakedBlocks == 0)
    #expect(changed.broken == 0)
  }

  @Test("draining a run drains its parts: everything flows out, and the run ends after them")
  func drain() throws {
    let run = try engine().start(try plan("drained"))
    let part = try run.add("fx", "test.pass") {
      $0.unlink("source -> changed")
      $0.link("source -> fx")
      $0.link("fx -> changed")
    }
    let (kept, changed) = (Sequence.named("drained.kept"), Sequence.named("drained.changed"))
    until { changed.seen > 1_000 }
    run.drain()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)), "the run does not end")
    #expect(part.run.phase == .stopped)
    #expect(changed.isFinished && changed.broken == 0)
    #expect(changed.last.load(ordering: .acquiring) == kept.last.load(ordering: .acquiring))
    #expect(report.parts.count == 1 && report.leakedBlocks == 0)
  }

  @Test("an input that was unlinked ends when its run drains")
  func drainUnlinked() throws {
    let run = try engine().start(try plan("unlinked"))
    until { Sequence.named("unlinked.changed").seen > 100 }
    try run.edit { $0.unlink("source -> changed") }
    run.drain()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)), "the run does not end")
    #expect(Sequence.named("unlinked.changed").isFinished)
  }

  @Test(
    "a part that fails ends by itself: its run continues, and its listeners are notified with the part's name"
  )
  func failure() async throws {
    let run = try engine().start(try plan("failing"))
    let events = run.events
    let part = try run.add("fx", "test.pass", ["failAt": 5]) { $0.link("source -> fx") }
    let report = await part.run.wait()
    #expect(report.failure?.node == "fx")
    var heard: [String] = []
    for await event in events {
      if event.name != "budgetMissed" { heard.append(event.name) }
      if event.name == "nodeFailed" { #expect(event.node == "fx/fx") }
      if event.name == "partEnded" { break }
    }
    #expect(heard == ["partStarted", "nodeFailed", "partEnded"])
    let kept = Sequence.named("failing.kept")
    let seen = kept.seen
    until { kept.seen > seen + 1_000 }
    #expect(run.phase == .running && kept.broken == 0)
    #expect(try stop(run).failure == nil)
  }

  @Test("stopping a part at once does not affect the run")
  func stopPart() throws {
    let engine = engine()
    let run = try engine.start(try plan("halted"))
    let claimed = engine.memory.claimed
    let kept = Sequence.named("halted.kept")
    for _ in 0..<20 {
      let part = try run.add("fx", "test.pass") { $0.link("source -> fx", whenFull: .block) }
      part.stop()
      _ = try #require(part.run.waitUntilStopped(timeout: .seconds(120)))
    }
    let seen = kept.seen
    until { kept.seen > seen + 1_000 }
    until { engine.memory.claimed == claimed }
    #expect(kept.broken == 0 && run.liveLinks.isEmpty)
    _ = try stop(run)
  }

  @Test("an interruption reaches the parts of a run, and comes from them too")
  func interruption() throws {
    var graph = GraphDescription("replies")
    graph.add("source", "test.count", ["count": -1, "generation": 1])
    graph.add("kept", "test.sequence", ["probe": "replies.kept"])
    graph.link("source -> kept")
    let run = try engine().start(try Graph.load(graph, catalogue: liveCatalogue))
    let part = try run.add("tail", "test.sequence", ["probe": "replies.part"]) { $0.link("source -> tail") }
    until { Sequence.named("replies.part").seen > 100 }
    part.run.interrupt()
    // The source continues with packets of the old reply.
    until { (part.run.liveLinks.first?.droppedStale ?? 0) > 100 && run.report().links[0].droppedStale > 100 }
    let (heard, kept) = (Sequence.named("replies.part").seen, Sequence.named("replies.kept").seen)
    until { run.report().links[0].droppedStale > 1_000 }
    #expect(Sequence.named("replies.part").seen == heard && Sequence.named("replies.kept").seen == kept)
    _ = try stop(run)
  }

  @Test(
    "on a virtual clock a part added and removed at given times gets exactly what is due between them, in its own time"
  )
  func virtual() throws {
    for turn in 0..<20 {
      let run = try engine(.virtual).prepare(try plan("virtual\(turn)", interval: 20))
      run.at(.milliseconds(100)) {
        let part = try? run.add("tail", "test.collect", ["probe": .string("virtual.tail\(turn)")]) {
          $0.link("source -> tail")
        }
        run.at(.milliseconds(200)) { try? part?.remove() }
      }
      run.drain(at: .milliseconds(400))
      run.start()
      _ = try #require(run.waitUntilStopped(timeout: .seconds(120)), "the run does not end")
      let tail = Probe.named("virtual.tail\(turn)")
      #expect(tail.values == [5, 6, 7, 8, 9])
      #expect(tail.times == [0, 20, 40, 60, 80].map { .milliseconds($0) })
      #expect(tail.finished == 1)
    }
  }

  @Test("a part drains at its own time, although its run drains later")
  func partDrainsFirst() throws {
    let run = try engine(.virtual).prepare(try plan("partDrain", interval: 20))
    run.at(.milliseconds(100)) {
      let part = try? run.add("tail", "test.collect", ["probe": "partDrain.tail"]) {
        $0.link("source -> tail")
      }
      part?.run.drain(at: .milliseconds(100))
    }
    run.drain(at: .milliseconds(1_000))
    run.start()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)), "the run does not end")
    #expect(Probe.named("partDrain.tail").values == [5, 6, 7, 8, 9])
  }

  @Test("timestamps and positions are in the part's own time, its events in the run's")
  func stamps() async throws {
    var graph = GraphDescription("stamps")
    graph.add("sound", "test.sound")
    graph.add("sink", "test.stamp", ["probe": "stamps.run"])
    graph.link("sound -> sink")
    graph.add("source", "test.count", ["count": -1, "interval": 20])
    graph.add("end", "test.sequence", ["probe": "stamps.end"])
    graph.link("source -> end")
    let run = try engine(.virtual).prepare(
      try Graph.load(graph, settings: GraphSettings(clock: .virtual), catalogue: liveCatalogue))
    let events = run.events
    run.at(.milliseconds(110)) {
      _ = try? run.add("tail", "test.stamp", ["probe": "stamps.part"]) { $0.link("sound -> tail") }
      _ = try? run.add("herald", "test.announce") { $0.link("source -> herald") }
    }
    run.drain(at: .milliseconds(200))
    run.start()
    var heard: [Nanoseconds] = []
    for await event in events where event.node == "herald/herald" {
      heard.append(event.time)
      #expect(event.json.hasPrefix("{\"time\":0.1"))
    }
    #expect(heard.first == .milliseconds(120))
    let part = Probe.named("stamps.part")
    #expect(part.times == [10, 30, 50, 70].map { .milliseconds($0) })
    #expect(part.values == [160, 480, 800, 1_120])
    #expect(Probe.named("stamps.run").values.first == 0)
  }

  @Test("a parameter of a part's node is set by its name in the run")
  func control() throws {
    let run = try engine().start(try plan("control"))
    let part = try run.add("fx", "test.pass", ["probe": "control.fx"]) { $0.link("source -> fx") }
    try run.set("fx/fx", "level", to: .number(3))
    try run.set("fx", "level", to: .number(4))
    until { Probe.named("control.fx").texts == ["level=3.0", "level=4.0"] }
    #expect(try run.get("fx", "level") == .number(4) && run.get("fx/fx", "level") == .number(4))
    try run.ramp("fx/fx", "level", to: 5, over: .zero)
    until { Probe.named("control.fx").texts.last == "level=5.0" }
    let unknown = #expect(throws: ControlProblem.self) { try run.set("fy/fx", "level", to: .number(3)) }
    #expect(unknown?.code == .unknownNode)
    part.stop()
    _ = try #require(part.run.waitUntilStopped(timeout: .seconds(120)))
    let gone = #expect(throws: ControlProblem.self) { try run.set("fx", "level", to: .number(3)) }
    #expect(gone?.code == .unknownNode)
    _ = try stop(run)
  }

  @Test("a node is added as a part of a part, and reaches the outer run through it")
  func nested() throws {
    let run = try engine().start(try plan("nested"))
    let part = try run.add("fx", "test.pass") { $0.link("source -> fx") }
    try part.run.add("tail", "test.sequence", ["probe": "nested.tail"]) { $0.link("fx -> tail") }
    let tail = Sequence.named("nested.tail")
    until { tail.seen > 100 }
    try run.relink("source -> fx/tail/tail")
    let seen = tail.seen
    until { tail.seen > seen + 100 }
    #expect(throws: Never.self) { try part.remove() }
    _ = try #require(part.run.waitUntilStopped(timeout: .seconds(120)), "the part does not end")
    #expect(tail.isFinished)
    _ = try stop(run)
  }
}

@Suite("Changes of running graphs that are refused", .timeLimit(.minutes(30)))
struct LiveRefusalTests {
  private func refuses(
    _ code: EditProblem.Code, _ body: () throws -> Void, at place: SourceLocation = #_sourceLocation
  ) {
    let problem = #expect(throws: EditProblem.self, sourceLocation: place, performing: body)
    #expect(problem?.code == code, "\(problem.map { "\($0)" } ?? "nothing")", sourceLocation: place)
  }

  private func start(_ name: String, on engine: Engine) throws -> GraphRun {
    var graph = GraphDescription(name)
    graph.add("source", "test.constant")
    graph.add("pass", "test.pass")
    graph.add("sink", "test.collect", ["probe": .string(name)])
    graph.add("sound", "test.sound")
    graph.add("quiet", "test.collect", ["probe": .string(name + ".quiet")])
    graph.add("large", "test.constant", ["bytes": 128])
    graph.add("wide", "test.collect", ["probe": .string(name + ".wide")])
    graph.add("lone", "test.announce")
    graph.link("source -> pass -> sink")
    graph.link("sound -> quiet")
    graph.link("large -> wide")
    graph.link("source -> lone")
    return try engine.start(try Graph.load(graph, catalogue: liveCatalogue))
  }

  @Test("are refused each with its reason, and nothing has changed")
  func table() throws {
    let engine = Engine(catalogue: liveCatalogue, workers: 1)
    let run = try start("refusals", on: engine)
    let claimed = engine.memory.claimed
    refuses(.badLink) { try run.relink("source") }
    refuses(.badLink) { try run.relink("source -> pass -> sink") }
    refuses(.unknownNode) { try run.relink("sorce -> sink") }
    refuses(.unknownNode) { try run.relink("source -> tail/sink") }
    refuses(.unknownPort) { try run.relink("source.left -> sink") }
    refuses(.unknownPort) { try run.relink("sink -> pass") }
    refuses(.otherFormat) { try run.relink("sound -> sink") }
    refuses(.otherFormat) { try run.relink("large -> sink") }
    refuses(.alreadyLinked) { try run.edit { $0.link("source -> sink") } }
    refuses(.alreadyLinked) {
      try run.edit {
        $0.relink("source -> sink"); $0.link("pass -> sink")
      }
    }
    refuses(.notLinked) { try run.edit { $0.unlink("source -> sink") } }
    refuses(.cycle) { try run.relink("pass -> pass") }
    refuses(.badTerms) { try run.relink("source -> sink", whenFull: .block) }
    refuses(.badTerms) { try run.relink("source -> sink", capacity: .packets(100_000)) }
    refuses(.badName) { try run.add("sink", "test.pass") { $0.link("source -> sink") } }
    for name in ["", "a/b", "a.b", "a b", "a\"b", "a\nb", "a->b"] {
      refuses(.badName) { try run.add(name, "test.pass") { $0.link("source -> \(name)") } }
    }
    refuses(.badGraph) { try run.add("fx", "test.pas") { $0.link("source -> fx") } }
    refuses(.badGraph) { try run.add("fx", "test.pass") }
    refuses(.badGraph) { try run.add("fx", "test.refuse") { $0.link("source -> fx") } }
    refuses(.badGraph) {
      try run.add("fx", "test.pass") {
        $0.link("sound -> fx"); $0.relink("fx -> sink")
      }
    }
    refuses(.alreadyLinked) {
      try run.add("fx", "test.pass") {
        $0.link("source -> fx"); $0.link("fx -> sink")
      }
    }
    // An invalid step undoes those before it.
    refuses(.notLinked) {
      try run.edit {
        $0.relink("source -> sink"); $0.unlink("large -> quiet")
      }
    }
    #expect(run.currentParts.isEmpty && run.liveLinks.isEmpty && engine.memory.claimed == claimed)
    let part = try run.add("fx", "test.pass") { $0.link("source -> fx") }
    refuses(.cycle) {
      try run.add("fy", "test.pass") {
        $0.link("fx -> fy"); $0.relink("fy -> fx")
      }
    }
    refuses(.badName) { try run.add("fx", "test.pass") { $0.link("source -> fx") } }
    try part.remove()
    refuses(.ended) { try part.remove() }
    _ = try #require(part.run.waitUntilStopped(timeout: .seconds(120)))
    refuses(.ended) { try part.remove() }
    refuses(.unknownNode) { try run.relink("fx -> sink") }
    let other = try start("refusals.other", on: Engine(catalogue: liveCatalogue, workers: 1))
    refuses(.otherEngine) { try engine.connect(other, "source", to: run, "sink", replacing: true) }
    let waiting = try engine.prepare(run.plan)
    refuses(.notStarted) { try engine.connect(waiting, "source", to: run, "sink", replacing: true) }
    refuses(.notStarted) { try waiting.add("fx", "test.pass") { $0.link("source -> fx") } }
    other.stop()
    run.stop()
    while run.phase == .running { pauseBriefly() }
    refuses(.ended) { try run.relink("source -> sink") }
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    refuses(.ended) { try run.relink("source -> sink") }
    refuses(.ended) { try run.add("fx", "test.pass") { $0.link("source -> fx") } }
  }

  @Test("of a part's links are shown with the names that the user wrote")
  func names() throws {
    let run = try start("names", on: Engine(catalogue: liveCatalogue, workers: 1))
    let problem = try #require(throws: EditProblem.self) {
      try run.add("fx", "test.pass") {
        $0.link("sound -> fx"); $0.relink("fx -> sink")
      }
    }
    #expect(problem.text.contains("\"sink\"") && !problem.text.contains("("), "\(problem)")
    run.stop()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
  }

  @Test("include a link or part that the memory limit does not allow")
  func memory() throws {
    var graph = GraphDescription("small")
    graph.add("source", "test.constant")
    graph.add("sink", "test.collect", ["probe": "small"])
    graph.link("source -> sink")
    let plan = try Graph.load(graph, catalogue: liveCatalogue)
    let bytes = PlanMemory(plan, clock: .realtime).byteCount
    let engine = Engine(catalogue: liveCatalogue, workers: 1, memoryLimit: bytes + 8_192)
    let run = try engine.start(plan)
    refuses(.memory) { try run.relink("source -> sink", capacity: .packets(4_096)) }
    refuses(.memory) {
      try run.add("fx", "test.pass") {
        $0.link("source -> fx", capacity: .packets(4_096), whenFull: .dropOldest)
      }
    }
    #expect(engine.memory.claimed == bytes && run.currentParts.isEmpty)
    run.stop()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
  }
}

@Suite("Links between runs", .timeLimit(.minutes(30)))
struct ConferenceTests {
  private func member(_ name: String, says value: Int, count: Int = -1) throws -> GraphPlan {
    var graph = GraphDescription(name)
    graph.add("mic", "test.constant", ["value": .integer(value), "count": .integer(count)])
    graph.add("own", "test.collect", ["probe": .string(name + ".own")])
    graph.add("silence", "test.constant")
    graph.add("mix", "test.sum")
    graph.add("ear", "test.collect", ["probe": .string(name + ".ear")])
    graph.link("mic -> own")
    graph.link("silence -> mix.in1")
    graph.link("silence -> mix.in2")
    graph.link("mix -> ear")
    return try Graph.load(graph, catalogue: liveCatalogue)
  }

  private func join(_ runs: [GraphRun], on engine: Engine) throws(EditProblem) {
    for (index, run) in runs.enumerated() {
      let others = runs.indices.filter { $0 != index }
      for (place, other) in others.enumerated() {
        try engine.connect(runs[other], "mic", to: run, "mix.in\(place + 1)", replacing: true)
      }
    }
  }

  @Test("three runs on a virtual clock each hear the sum of the other two, and the rest when one has ended")
  func conference() throws {
    let engine = Engine(catalogue: liveCatalogue, clock: .virtual, workers: 1)
    let names = ["anna", "bert", "cleo"]
    let runs = try zip(names, [1, 10, 100]).map {
      try engine.prepare(try member($0, says: $1, count: $0 == "bert" ? 100 : -1))
    }
    let result = Locked<EditProblem?>(nil)
    runs[0].at(.milliseconds(1_010)) {
      do throws(EditProblem) { try join(runs, on: engine) } catch { result.withLock { $0 = error } }
    }
    for run in runs { run.drain(at: .milliseconds(4_000)) }
    // Virtual time does not wait for a run that has not been started.
    runs[0].at(.zero) { for run in runs.dropFirst() { run.start() } }
    runs[0].start()
    for run in runs { _ = try #require(run.waitUntilStopped(timeout: .seconds(120)), "a run does not end") }
    #expect(result.withLock { $0 } == nil)
    let heard = names.map { Probe.named($0 + ".ear").values }
    #expect(heard[0].contains(110) && heard[1].contains(101) && heard[2].contains(11))
    #expect(Set(heard[0]) == [0, 110, 100] && Set(heard[1]) == [0, 101] && Set(heard[2]) == [0, 11, 1])
    #expect(engine.memory.claimed == 0)
  }

  @Test("a run that drains ends its links from other runs, and they continue")
  func drained() throws {
    let engine = Engine(catalogue: liveCatalogue, workers: 2)
    let runs = try (0..<3).map { try engine.start(try member("drained\($0)", says: 1)) }
    try join(runs, on: engine)
    while !Probe.named("drained2.ear").values.contains(2) { pauseBriefly() }
    runs[2].drain()
    let report = try #require(runs[2].waitUntilStopped(timeout: .seconds(120)), "the run does not end")
    #expect(report.failure == nil && Probe.named("drained2.ear").finished == 1)
    #expect(runs[0].phase == .running && runs[1].phase == .running)
    for run in runs { run.stop() }
    for run in runs { _ = try #require(run.waitUntilStopped(timeout: .seconds(120))) }
  }

  @Test("on the real clock runs join and leave without affecting each other")
  func comingAndGoing() throws {
    let engine = Engine(catalogue: liveCatalogue, workers: 2)
    var runs = try (0..<3).map { try engine.start(try member("real\($0)", says: 1)) }
    let ears = (0..<3).map { Probe.named("real\($0).ear") }
    for _ in 0..<3 {
      try join(runs, on: engine)
      let before = ears.map { $0.values.count }
      while !zip(ears, before).allSatisfy({ $0.values.dropFirst($1).contains(2) }) { pauseBriefly() }
      runs[2].stop()
      _ = try #require(runs[2].waitUntilStopped(timeout: .seconds(120)))
      let behind = ears.map { $0.values.count }
      while !zip(ears, behind).prefix(2).allSatisfy({ $0.values.count > $1 + 5 }) { pauseBriefly() }
      #expect(runs[0].phase == .running && runs[1].phase == .running)
      runs[2] = try engine.start(try member("real2", says: 1))
    }
    for run in runs { run.stop() }
    for run in runs {
      #expect(try #require(run.waitUntilStopped(timeout: .seconds(120))).leakedBlocks == 0)
    }
    while engine.memory.claimed != 0 { pauseBriefly() }
  }
}
