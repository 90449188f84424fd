import CMillraceSys
import Glibc
import Millrace
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceJSON
import MillraceNet

/// The graphs of the suite, and how they run.
struct DialogueStage {
  /// The service that is measured.
  let service: any ServiceProgram.Type
  /// The node types of the graphs.
  let catalogue: Catalogue
  /// The certificate of its doubles; nil: dialogues are in plaintext.
  let certificate: DoubleCertificate?

  /// - Parameters:
  ///   - service: the service that is measured.
  ///   - catalogue: the node types, its own among them.
  ///   - certificate: the certificate of its doubles; nil: dialogues are in plaintext.
  init(
    of service: any ServiceProgram.Type, _ catalogue: Catalogue, _ certificate: DoubleCertificate? = nil
  ) {
    var catalogue = catalogue
    catalogue.add(StampedVoice.self)
    catalogue.add(PlayedSink.self)
    catalogue.add(EventSink.self)
    catalogue.add(SeenSink.self)
    catalogue.add(PictureCommands.self)
    self.service = service
    self.catalogue = catalogue
    self.certificate = certificate
  }

  /// True when the service's node can be used for that.
  func supports(_ use: NodeUse) -> Bool { members(port: 0, use) != nil }

  /// The members of the service's node; nil: it cannot be used for that.
  func members(port: Int, _ use: NodeUse) -> [JSONValue.Member]? {
    guard let certificate else { return service.nodeMembers(port: port, for: use) }
    return service.nodeMembers(port: port, trusting: certificate.identity.certificate, for: use)
  }

  /// Members of a node as JSON, with some that replace others or are added, given as JSON.
  func json(_ members: [JSONValue.Member], _ others: KeyValuePairs<String, JSONValue> = [:]) -> String {
    let kept = members.filter { member in !others.contains { $0.key == member.name } }
    return JSONValue.object(kept + others.map { JSONValue.Member($0.key, $0.value) }).text
  }

  /// One duplex dialogue whose loudspeaker only keeps time.
  /// - Parameters:
  ///   - port: the port of the double.
  ///   - mic: the node of the microphone, as JSON.
  ///   - use: what the service's node is for.
  ///   - nodes: additional nodes, as members of a JSON object.
  ///   - links: additional links, as JSON strings.
  /// - Returns: nil: the service's node cannot be used for that.
  func graph(
    port: Int, mic: String, use: NodeUse = .voice, nodes: [String] = [], links: [String] = []
  ) -> String? {
    guard let bot = members(port: port, use) else { return nil }
    let all =
      [
        #""mic": \#(mic)"#, #""bot": \#(JSONValue.object(bot).text)"#,
        #""turn": { "type": "dialog.turn", "bargeIn": "service" }"#,
        #""speech": { "type": "speech.play", "rate": 24000 }"#, #""speaker": { "type": "audio.play" }"#,
      ] + nodes
    let wires =
      [
        #""mic -> bot.audio""#, #""bot.audio -> speech -> speaker""#, #""bot.events -> turn.service""#,
        #""speaker.events -> turn.playback""#, #""turn.control -> bot.control""#,
      ] + links
    return """
      { "millrace": 1, "name": "dialogue", "clock": "realtime",
        "nodes": { \(all.joined(separator: ",\n")) }, "links": [\(wires.joined(separator: ", "))] }
      """
  }

  /// Starts a graph; one that the service's node cannot be used for is a measurement that is left out.
  func start(_ graph: String?, on engine: Engine) throws -> GraphRun {
    guard let graph else {
      throw MissingPiece(text: "the node of \(service.name) cannot hold such a dialogue")
    }
    let plan = try Graph.load(text: graph, name: "dialogue.json", catalogue: catalogue)
    let run = try engine.prepare(plan, observesEvents: false)
    run.start()
    return run
  }

  /// A double in a process of its own.
  /// - Parameters:
  ///   - scenario: its scenario, as JSON.
  ///   - folder: for its files; must exist until its end.
  ///   - port: the port to listen on; 0: any.
  func process(_ scenario: String, in folder: borrowing Workspace, port: Int = 0) throws -> DoubleProcess {
    try DoubleProcess(of: service, scenario, in: folder, port: port, identity: certificate?.identity)
  }

  /// A double in this process, for what only it can observe: one dialogue at a time.
  /// - Parameters:
  ///   - scenario: its scenario, as JSON.
  ///   - observer: observes the audio.
  ///   - watch: receives each line of the double's report, on the network thread.
  func double(
    _ scenario: String, _ observer: AudioObserver = AudioObserver(),
    watch: @escaping @Sendable (String) -> Void = { _ in }
  ) throws -> any RunningDouble {
    var options = DoubleOptions()
    options.scenario = .text(scenario, name: "scenario")
    options.identity = certificate?.identity
    options.keeps = true
    options.observer = observer
    options.watch = watch
    let service = service
    let made = Promise.runBlocking { [options] () -> Result<any RunningDouble, DoubleProblem> in
      do throws(DoubleProblem) {
        return .success(try await service.start(options))
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

  /// A text from the environment.
  static func text(_ name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }

  /// A number from the environment.
  static func setting(_ name: String, default usual: Double) -> Double {
    text(name).flatMap { Double($0) } ?? usual
  }
}
