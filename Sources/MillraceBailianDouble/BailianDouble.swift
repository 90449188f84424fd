public import MillraceCore
public import MillraceDialog
public import MillraceNet
internal import Synchronization

/// A local double of the service: it implements the server side of the protocol, plays a scenario, and reports a client's mistakes.
///
/// Replies are spoken by espeak-ng and sent in the format the client asks for. It detects speech by energy alone: what was said is set by
/// the scenario. It shares no code with the client's messages, so that the same mistake cannot be made on both sides.
@safe
public final class BailianDouble: Sendable {
  /// Something a client did that the service's documentation forbids, or does not allow.
  public struct Violation: Sendable, Hashable, CustomStringConvertible {
    /// Its name, such as `audioBeforeListening`.
    public var name: String
    /// What was done, with figures.
    public var text: String
    public var description: String { "\(name): \(text)" }
  }

  /// What the double has observed and done.
  public struct Report: Sendable, Hashable {
    /// Messages of the client and events of the double, in order: `> Start`, `< Listening`.
    public var lines: [String] = []
    /// The first thousand violations.
    public var violations: [Violation] = []
    /// The number of violations, including those that are not kept.
    public var violationCount = 0
    /// Connections attempted, including refused ones.
    public var connections = 0
    /// Turns of the scenario that have begun.
    public var begun = 0
    /// Replies that were played to their end, as the client reported.
    public var turns = 0
    /// Bytes of the user's audio.
    public var bytesHeard = 0
    /// Binary messages with the user's audio.
    public var framesHeard = 0
    /// PCM samples that are not silence.
    public var speechSamples = 0
    /// Images of the video channel.
    public var pictures = 0
    /// The audio of replies, as it was sent.
    public var soundSent: [UInt8] = []
    /// The content of `Start` messages; without `keeps` only the latest.
    public var starts: [JSONValue] = []
    /// Bytes of the longest image in Base64.
    public var largestPicture = 0
    /// When images arrived, on the monotonic clock.
    public var pictureTimes: [Nanoseconds] = []
    /// Audio messages in duplex.
    public var framesTimed = 0
    /// Audio messages in duplex that arrived more than 20 ms later than the others suggest.
    public var framesLate = 0
    /// The delay of the latest of these in milliseconds.
    public var latest = 0.0
    /// Replies that were started.
    public var replies = 0
    /// Bytes of audio sent for each reply.
    public var replyBytes: [Int: Int] = [:]
    /// Unknown messages that were sent.
    public var unknownMessages: [JSONValue] = []
    /// Sessions closed by clients with Stop.
    public var stops = 0
    var hasMisbehaved = false
    var hasExpired = false
  }

  /// Observes the audio. Called on the network thread, before anything else is done with it.
  public struct AudioObserver: Sendable {
    /// Called for each audio message received.
    public var received: (@Sendable ([UInt8]) -> Void)?
    /// Called for each audio message sent.
    public var sent: (@Sendable ([UInt8]) -> Void)?
    /// Creates an observer without callbacks.
    public init() {}
  }

  let scenario: BailianScenario
  private let report = Locked(Report())
  private let server = Locked<WebSocketServer?>(nil)
  private let voices = Locked(SpeechCache())
  /// The latest task ids.
  private let tasks = Locked(Latest<String>(1_000))
  private let watch: @Sendable (String) -> Void
  let observer: AudioObserver

  /// The port it listens on.
  public var port: Int { server.withLock { $0?.port ?? 0 } }
  /// What has happened so far. Any thread.
  public var seen: Report { report.withLock { $0 } }

  /// Starts listening.
  /// - Parameters:
  ///   - scenario: the scenario to play.
  ///   - host: the address to listen on; by default loopback, which no other machine can reach.
  ///   - port: the port; 0: the system chooses a free one.
  ///   - identity: the certificate for TLS; nil: plaintext, which beyond this machine the admission rules must allow.
  ///   - admission: the admission rules; by default no foreign origins, and as many clients as a load test needs.
  ///   - observer: observes the audio.
  ///   - watch: receives each line of the report as it is written, on the network thread.
  public static func listen(
    _ scenario: BailianScenario = BailianScenario(), host: String = "127.0.0.1", port: Int = 0,
    identity: NetIdentity? = nil, admission: ServerAdmission = .loadTest,
    observer: AudioObserver = AudioObserver(),
    watch: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws(NetError) -> BailianDouble {
    let double = BailianDouble(scenario, observer, watch)
    var limits = WebSocketLimits()
    limits.message = 1 << 20
    limits.ping = 0
    let server = try await WebSocketServer.listen(
      host: host, port: port, identity: identity, limits: limits, admission: admission,
      refused: { double.log($0) }
    ) { double.decide($0) }
    double.server.withLock { $0 = server }
    return double
  }

  private init(
    _ scenario: BailianScenario, _ observer: AudioObserver, _ watch: @escaping @Sendable (String) -> Void
  ) {
    self.scenario = scenario
    self.observer = observer
    self.watch = watch
  }

  /// Discards recorded audio and messages, so that a long dialogue does not exhaust memory. Counts are kept.
  public func forget() {
    report.withLock { report in
      report.lines = []
      report.soundSent = []
      report.replyBytes = [:]
      report.unknownMessages = []
    }
    voices.withLock { $0 = SpeechCache() }
  }

  /// Stops listening.
  public func stop() { server.withLock { $0 }?.stop() }

  /// Refusals by the scenario are in the report already.
  private func log(_ refusals: ServerAdmission.Refusals) {
    guard refusals.latest.kind != .decision else { return }
    watch("- refused \(refusals.count): \(refusals.peer): \(refusals.latest)")
  }

  private func decide(_ client: WebSocketServer.Client) -> WebSocketServer.Decision {
    let connection = report.withLock { report in
      report.connections += 1
      return report.connections
    }
    guard client.target.prefix(while: { $0 != "?" }) == "/api-ws/v1/inference" else {
      return .refuse(status: 404, "not found")
    }
    if connection <= scenario.refusals { return .refuse(status: scenario.refusalStatus, "busy") }
    let header = client["Authorization"] ?? ""
    guard header.lowercased().hasPrefix("bearer ") else {
      violate("noKey", "missing header Authorization with a Bearer key")
      return .refuse(status: 401, "missing key")
    }
    guard !seen.hasExpired else { return .refuse(status: 401, "the key has expired") }
    guard scenario.keys.isEmpty || scenario.keys.contains(String(header.dropFirst(7))) else {
      return .refuse(status: 401, "invalid key")
    }
    return .accept { [self] socket in
      let connection = DoubleConnection(self, socket)
      return { connection.handle($0) }
    }
  }

  // MARK: For connections

  /// The most violations kept: further ones of the same client are alike.
  private static let mostViolations = 1_000

  func violate(_ name: String, _ text: String) {
    report.withLock { report in
      report.violationCount += 1
      guard report.violations.count < Self.mostViolations else { return }
      report.violations.append(Violation(name: name, text: text))
    }
    watch("! \(name): \(text)")
  }

  func note(_ line: String) {
    if scenario.keeps { report.withLock { $0.lines.append(line) } }
    watch(line)
  }

  func change(_ body: (inout Report) -> Void) { report.withLock(body) }

  /// Records the start of a dialogue. False when the task id was used before.
  func begin(task: String, _ payload: JSONValue) -> Bool {
    let keeps = scenario.keeps
    change { report in
      if !keeps { report.starts = [] }
      report.starts.append(["task": .string(task), "payload": payload])
    }
    return tasks.withLock { tasks in
      defer { tasks.add(task) }
      return !tasks.all.contains(task)
    }
  }

  /// Starts the next turn of the scenario.
  func nextTurn() -> BailianScenario.Turn {
    let count = report.withLock { report in
      report.begun += 1
      return report.begun
    }
    return scenario.turns[min(count, scenario.turns.count) - 1]
  }

  /// The number of the next reply.
  func nextReply() -> Int {
    report.withLock { report in
      report.replies += 1
      return report.replies
    }
  }

  /// The scenario's fault before the first turn, once.
  func firstFault(at place: BailianScenario.Fault.Place) -> BailianScenario.Fault? {
    guard let fault = scenario.fault, fault.place == place else { return nil }
    return report.withLock { report in
      defer { report.hasMisbehaved = true }
      return report.hasMisbehaved ? nil : fault
    }
  }

  /// Speaks a text, or returns it from the cache. Not on the network thread.
  func speak(_ text: String, _ form: SpokenReply.Form, _ rate: Int) throws(SynthesisError) -> SpokenReply {
    let key = "\(form.rawValue) \(rate) \(text)"
    if let known = voices.withLock({ $0.find(key) }) { return known }
    let made = try SpeechSynthesizer.speak(text, voice: scenario.voice, form: form, rate: rate)
    voices.withLock { $0.keep(made, key) }
    return made
  }
}
