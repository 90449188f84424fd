import Foundation
import Millrace
import Testing

/// On the virtual clock a graph is a function of its inputs: packets, files, events, counts, and the order of all calls.
@Suite("A hundred runs on the virtual clock are identical", .timeLimit(.minutes(30)))
struct DeterminismTests {
  /// Runs of each graph for each number of workers.
  private static let rounds = 100

  /// The results of a run that must be the same every time.
  private struct Results: Equatable {
    var files: [String: Data] = [:]
    var nodeEvents: [String] = []
    var runEvents: [String] = []
    var calls: [String] = []
    var counts: [String] = []
    var duration: Nanoseconds = 0

    /// Describes the first difference.
    func difference(to other: Results) -> String {
      for (name, data) in files where other.files[name] != data {
        return "\(name): \(data.count) bytes and \(other.files[name]?.count ?? -1)"
      }
      let lists = [
        ("event", nodeEvents, other.nodeEvents), ("run event", runEvents, other.runEvents),
        ("call", calls, other.calls), ("count", counts, other.counts),
      ]
      for (what, mine, others) in lists where mine != others {
        let first = zip(mine, others).enumerated().first { $0.element.0 != $0.element.1 }
        return first.map { "\(what) \($0.offset): \($0.element.0) and \($0.element.1)" }
          ?? "\(mine.count) \(what)s and \(others.count)"
      }
      return "duration \(duration) and \(other.duration)"
    }
  }

  private static let catalogue: Catalogue = {
    var catalogue = Catalogue.standard
    catalogue.add(FragileNode.self)
    catalogue.add(SlowSink.self)
    return catalogue
  }()

  /// Runs a graph once and returns the results.
  /// - Parameter prepare: called before the start, to schedule actions.
  private func results(
    _ plan: GraphPlan, workers: Int, files: [String], _ prepare: (GraphRun) -> Void = { _ in }
  ) async throws -> Results {
    for file in files { try? FileManager.default.removeItem(atPath: file) }
    let engine = Engine(catalogue: Self.catalogue, clock: .virtual, workers: workers)
    var trace = engine.makeTraceReader(holdsClock: true)
    let run = try engine.prepare(plan)
    let events = run.events
    let posted = Task { await events.reduce(into: []) { $0.append($1) } }
    prepare(run)
    run.start()
    var results = Results()
    var report: RunReport?
    while report == nil {
      report = run.waitUntilStopped(timeout: .milliseconds(2))
      results.calls += trace.read().map { "\($0.graphTime ?? -1) \($0.node)" }
    }
    #expect(trace.lostCount == 0)
    let (names, list) = (Set(plan.nodes.flatMap { $0.contract.events.map(\.name) }), await posted.value)
    results.nodeEvents = list.filter { names.contains($0.name) }.map(\.json)
    results.runEvents = list.filter { !names.contains($0.name) }.map(\.json)
    for file in files {
      results.files[file] = try Data(contentsOf: URL(fileURLWithPath: file))
    }
    let final = try #require(report)
    results.duration = final.duration
    results.counts =
      final.nodes.map {
        "\($0.name) \($0.activations) \($0.packetsIn) \($0.packetsOut) \($0.blocked) \($0.starved) \($0.restarts)"
      }
      + final.links.map {
        "\($0.name) \($0.pushed) \($0.popped) \($0.dropped) \($0.discarded) \($0.highWater)"
      }
    #expect(final.lostEvents == 0)
    return results
  }

  /// Runs a graph again and again, and compares all runs with the first one, whatever the number of workers.
  @discardableResult
  private func expectSame(
    _ plan: GraphPlan, files: [String], _ prepare: (GraphRun) -> Void = { _ in },
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> [String] {
    let first = try await results(plan, workers: 1, files: files, prepare)
    #expect(!first.calls.isEmpty, sourceLocation: sourceLocation)
    for workers in [1, 2] {
      for round in 0..<Self.rounds {
        let other = try await results(plan, workers: workers, files: files, prepare)
        guard other == first else {
          Issue.record(
            "round \(round) with \(workers) workers: \(first.difference(to: other))",
            sourceLocation: sourceLocation)
          return first.runEvents
        }
      }
    }
    return first.runEvents
  }

  private func load(_ graph: GraphDescription) throws -> GraphPlan {
    try Graph.load(graph, settings: GraphSettings(clock: .virtual), catalogue: Self.catalogue)
  }

  // MARK: Graphs

  /// Graphs that cannot follow a virtual clock, because they use programs, devices, sockets or streams; graphs with a screen, which never
  /// end; and one that encodes video, whose libraries guarantee the same pictures but not the same bytes.
  private static let live: Set = [
    "through-a-program", "device-loop", "duplex-loop", "screen-sampler", "picture-in-picture",
    "talking-slides", "web-bot", "room-conference", "room-recorder", "room-relay",
    "rtc-echo", "rtc-janus-room", "rtc-whep-play", "rtc-whip-push", "rtmp-echo", "rtmp-follow", "rtp-bridge",
    "turns", "websocket-bot", "bailian-file", "bailian-live-video",
    "bailian-push-to-talk",
    "bailian-tap-to-talk", "bailian-tts", "bailian-visual-qa", "bailian-voice", "ivh-bailian-avatar",
    "ivh-text-avatar", "ivh-voice-avatar", "tuya-live-call", "tuya-multimodal", "tuya-push-to-talk",
    "tuya-sessions", "tuya-voice",
  ]

  @Test("each graph that comes with the package", arguments: Package.graphs.filter { !live.contains($0) })
  func shipped(graph: String) async throws {
    let scratch = Scratch()
    let sound = try scratch.write(Sound.made(rate: 44_100, frames: 13_000, channels: 2).wav, to: "in.wav")
    var (input, output) = (sound, scratch.file("out.wav"))
    if graph == "voice-return" {
      input = scratch.file("in.opus")
      try runGraph(Package.graph("voice-uplink"), ["input": sound, "output": input])
    }
    if graph == "voice-uplink" { output = scratch.file("out.opus") }
    // The files that come with the graph.
    if graph == "tts-play" { input = Package.root + "/graphs/reply.mp3" }
    if graph == "file-sampler" { input = Package.root + "/graphs/slide.png" }
    let given = [
      "input": input, "far": sound, "output": output, "folder": scratch.path,
      "log": scratch.file("log.jsonl"),
      "pace": "true",
    ]
    let source = try String(contentsOfFile: Package.graph(graph), encoding: .utf8)
    let values = given.filter { source.contains("\"\($0.key)\": { \"default\"") }
    let plan = try Graph.load(
      path: Package.graph(graph), settings: GraphSettings(set: values, clock: .virtual),
      catalogue: Self.catalogue)
    let files = plan.nodes.compactMap { node -> String? in
      guard node.outputs.allSatisfy({ !$0.isLinked || $0.name == "events" }),
        case .string(let path)? = node.parameters["path"]
      else { return nil }
      return path
    }
    #expect(!files.isEmpty)
    try await expectSame(plan, files: files)
  }

  @Test("paced sources of different packet lengths, mixed, fanned out, metered and logged")
  func mixed() async throws {
    let scratch = Scratch()
    var graph = GraphDescription("mixed")
    for (name, frame, rate) in [("a", 20.0, 16_000), ("b", 7.5, 48_000), ("c", 33.0, 44_100)] {
      graph.add(
        name, "audio.tone",
        ["frame": .number(frame), "rate": .integer(rate), "channels": 1, "duration": 400, "kind": "noise"])
      graph.add("\(name)16", "audio.resample", ["rate": 16_000])
    }
    graph.add("mix", "audio.mix")
    graph.add("tee", "flow.tee")
    graph.add("meter", "audio.level", ["window": 50])
    graph.add("plain", "audio.write", ["path": .string(scratch.file("plain.wav"))])
    graph.add("enc", "opus.encode")
    graph.add("ogg", "ogg.write", ["path": .string(scratch.file("out.opus"))])
    graph.add("log", "event.log", ["path": .string(scratch.file("log.jsonl"))])
    graph.link("a -> a16 -> mix.in1")
    graph.link("b -> b16 -> mix.in2")
    graph.link("c -> c16 -> mix.in3")
    graph.link("mix -> tee")
    graph.link("tee.out1 -> meter -> plain")
    graph.link("tee.out2 -> enc -> ogg")
    graph.link("meter.events -> log.in1")
    let files = ["plain.wav", "out.opus", "log.jsonl"].map { scratch.file($0) }
    try await expectSame(try load(graph), files: files)
  }

  @Test("a node that fails again and again and is restarted, with backoff in graph time")
  func restarts() async throws {
    let scratch = Scratch()
    var graph = GraphDescription("restarts")
    graph.add("tone", "audio.tone", ["rate": 16_000, "channels": 1, "duration": 1_000, "kind": "noise"])
    graph.add("fragile", "test.fragile", ["failAt": 9], onError: .restart)
    graph.add("out", "audio.write", ["path": .string(scratch.file("out.wav"))])
    graph.link("tone -> fragile -> out")
    let plan = try load(graph)
    let events = try await expectSame(plan, files: [scratch.file("out.wav")])
    #expect(events.count { $0.contains("nodeRestarted") } >= 3)
  }

  @Test("an isolated branch while the rest continues, and a link that drops")
  func isolates() async throws {
    let scratch = Scratch()
    var graph = GraphDescription("isolates")
    graph.add("tone", "audio.tone", ["rate": 16_000, "channels": 1, "duration": 600])
    graph.add("tee", "flow.tee")
    graph.add("fragile", "test.fragile", ["failAt": 9], onError: .isolate)
    graph.add("one", "audio.write", ["path": .string(scratch.file("one.wav"))])
    graph.add("two", "audio.write", ["path": .string(scratch.file("two.wav"))])
    graph.add("slow", "test.slow")
    graph.link("tone -> tee")
    graph.link("tee.out1 -> fragile -> one")
    graph.link("tee.out2 -> two")
    graph.link(from: "tee.out3", to: "slow", capacity: .packets(2), whenFull: .dropOldest)
    let plan = try load(graph)
    let events = try await expectSame(plan, files: ["one.wav", "two.wav"].map { scratch.file($0) })
    #expect(events.contains { $0.contains("nodeIsolated") })
  }

  @Test("a node that fails and stops the graph, at the same call")
  func stops() async throws {
    let scratch = Scratch()
    var graph = GraphDescription("stops")
    graph.add("tone", "audio.tone", ["rate": 16_000, "channels": 1, "duration": 600])
    graph.add("fragile", "test.fragile", ["failAt": 9])
    graph.add("out", "audio.write", ["path": .string(scratch.file("out.wav"))])
    graph.link("tone -> fragile -> out")
    let events = try await expectSame(try load(graph), files: [scratch.file("out.wav")])
    #expect(events.contains { $0.contains("nodeFailed") })
  }

  @Test("commands at graph times: parameters, an interruption, a stop")
  func commands() async throws {
    let scratch = Scratch()
    var graph = GraphDescription("commands")
    graph.add("tone", "audio.tone", ["rate": 16_000, "channels": 1])
    graph.add("gain", "audio.gain")
    graph.add("meter", "audio.level", ["window": 50])
    graph.add("out", "audio.write", ["path": .string(scratch.file("out.wav"))])
    graph.link("tone -> gain -> meter -> out")
    try await expectSame(try load(graph), files: [scratch.file("out.wav")]) { run in
      run.at(.milliseconds(105)) { try? run.set("gain", "gain", to: -20) }
      run.at(.milliseconds(200)) { run.interrupt() }
      run.at(.milliseconds(305)) { run.stop() }
    }
  }

  @Test("a reply that is ducked, resumed and interrupted while it is played")
  func replies() async throws {
    let scratch = Scratch()
    let sound = try scratch.write(Sound.made(rate: 16_000, frames: 16_000).wav, to: "in.wav")
    var graph = GraphDescription("replies")
    graph.add("voice", "audio.read", ["path": .string(sound), "reply": true, "pace": true])
    graph.add("play", "audio.play")
    graph.add("heard", "audio.write", ["path": .string(scratch.file("heard.wav"))])
    graph.add("log", "event.log", ["path": .string(scratch.file("log.jsonl"))])
    graph.link("voice -> play")
    graph.link("play.reference -> heard")
    graph.link("play.events -> log.in1")
    try await expectSame(try load(graph), files: ["heard.wav", "log.jsonl"].map { scratch.file($0) }) { run in
      run.at(.milliseconds(105)) { try? run.duck() }
      run.at(.milliseconds(200)) { try? run.resume() }
      run.at(.milliseconds(304)) { run.interrupt() }
      run.drain(at: .milliseconds(500))
    }
  }

  @Test("instances that share a worker behave like each one alone")
  func instances() async throws {
    let scratch = Scratch()
    var graph = GraphDescription("instances")
    graph.add("tone", "audio.tone", ["rate": 16_000, "channels": 1, "duration": 210, "frame": 15])
    graph.add("meter", "audio.level", ["window": 50])
    graph.add("end", "flow.null")
    graph.link("tone -> meter -> end")
    let plan = try load(graph)
    let alone = try await results(plan, workers: 1, files: [])
    for _ in 0..<Self.rounds {
      let engine = Engine(catalogue: Self.catalogue, clock: .virtual, workers: 2)
      let runs = try (0..<7).map { _ in try engine.prepare(plan) }
      for run in runs { run.start() }
      for run in runs {
        let report = try #require(run.waitUntilStopped(timeout: .milliseconds(300_000)))
        #expect(report.duration == alone.duration)
        #expect(report.nodes.map(\.activations).reduce(0, +) == alone.calls.count)
      }
    }
    _ = scratch
  }
}

/// Passes packets through and fails at one of them, again after each restart.
private struct FragileNode: Node {
  static let contract = NodeContract(
    "test.fragile", "fails", inputs: [PortContract("in", .any, text: "anything")],
    outputs: [PortContract("out", .any, text: "the same")],
    parameters: [ParameterContract("failAt", .integer(1...1_000), default: 1, text: "packet that fails")]
  ) { $0.passThrough() }
  private let failAt: Int
  private var seen = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { failAt = setup.parameters.integer("failAt") }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    seen += 1
    if seen == failAt { throw NodeFault(.custom, code: 1) }
    ports.emit(packet)
    return .done
  }
}

/// Reads one packet every 50 ms, however many arrive.
private struct SlowSink: Node {
  static let contract = NodeContract(
    "test.slow", "takes its time", inputs: [PortContract("in", .any, text: "anything")])
  private var next: Nanoseconds = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard ports.now >= next else {
      ports.wake(at: next)
      return .done
    }
    guard ports.next() != nil else { return .done }
    next = ports.now + .milliseconds(50)
    ports.wake(at: next)
    return .done
  }
}
