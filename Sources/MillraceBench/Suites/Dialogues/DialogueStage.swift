import CMillraceSys
import Glibc
import Millrace
import MillraceBailianDouble
import MillraceCore

/// The graphs of the suite, and how they run.
enum DialogueStage {
  static let catalogue: Catalogue = {
    var catalogue = Catalogue.standard
    catalogue.add(StampedVoice.self)
    catalogue.add(PlayedSink.self)
    catalogue.add(EventSink.self)
    return catalogue
  }()

  /// One duplex dialogue whose loudspeaker only keeps time. `more`: parameters of the service's node; `nodes`, `links`: additional ones.
  static func graph(
    mic: String, more: String = "", nodes: [String] = [], links: [String] = []
  ) -> String {
    let all =
      [
        #""mic": \#(mic)"#,
        #""bot": { "type": "bailian.dialog", "url": "${url}", "key": "none", "workspace": "llm-bench", "app": "mm_bench", "user": "bench"\#(more) }"#,
        #""turn": { "type": "dialog.turn", "bargeIn": "service" }"#,
        #""speech": { "type": "speech.play", "rate": 24000 }"#, #""speaker": { "type": "audio.play" }"#,
      ] + nodes
    let wires =
      [
        #""mic -> bot.audio""#, #""bot.audio -> speech -> speaker""#, #""bot.events -> turn.service""#,
        #""speaker.events -> turn.playback""#, #""turn.control -> bot.control""#,
      ] + links
    return """
      { "millrace": 1, "name": "dialogue", "clock": "realtime", "parameters": { "url": {} },
        "nodes": { \(all.joined(separator: ",\n")) }, "links": [\(wires.joined(separator: ", "))] }
      """
  }

  static func start(_ graph: String, port: Int, on engine: Engine) throws -> GraphRun {
    let settings = GraphSettings(set: ["url": "ws://127.0.0.1:\(port)/api-ws/v1/inference"])
    let plan = try Graph.load(text: graph, name: "dialogue.json", settings: settings, catalogue: catalogue)
    let run = try engine.prepare(plan, observesEvents: false)
    run.start()
    return run
  }

  /// A double in this process, for what only it can observe: one dialogue at a time.
  static func double(
    _ scenario: BailianScenario, _ observer: BailianDouble.AudioObserver = BailianDouble.AudioObserver(),
    watch: @escaping @Sendable (String) -> Void
  ) throws -> BailianDouble {
    let made = Promise.runBlocking { () -> Result<BailianDouble, any Error> in
      do {
        return .success(try await BailianDouble.listen(scenario, observer: observer, watch: watch))
      } catch {
        return .failure(error)
      }
    }
    return try made.get()
  }

  /// Stops a run; one that has failed is a failed measurement.
  static func stop(_ run: GraphRun) throws {
    if let failure = run.report().failure { throw MeasurementProblem("a dialogue failed: \(failure)") }
    run.stop()
    _ = try finished(run)
  }

  /// The offset from a run's time to the monotonic clock, in nanoseconds.
  static func epoch(of run: GraphRun) -> Int64 {
    (0..<50).map { _ in
      let before = millrace_monotonic_ns()
      return before - run.time.nanoseconds
    }.max() ?? 0
  }

  /// A number from the environment.
  static func setting(_ name: String, default usual: Double) -> Double {
    unsafe getenv(name).flatMap { unsafe Double(String(cString: $0)) } ?? usual
  }
}
