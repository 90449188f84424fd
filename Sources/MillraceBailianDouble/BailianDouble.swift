public import MillraceCore
public import MillraceDialog
public import MillraceNet
internal import Synchronization

/// The service on this machine: speaks the same wire from the other side, plays a scenario, and names what a client does wrong.
///
/// Replies are spoken by espeak-ng and sent in the form the client asks for. It hears by loudness alone: what was said is the
/// scenario's. It shares no code with the client's messages, so that a mistake is not made on both sides.
@safe
public final class BailianDouble: Sendable {
  /// Something a client did that the service's documents forbid, or do not allow.
  public struct Violation: Sendable, Hashable, CustomStringConvertible {
    /// A word for it, such as `audioBeforeListening`.
    public var name: String
    /// What was done, with its figures.
    public var text: String
    public var description: String { "\(name): \(text)" }
  }

  /// What it has seen and done.
  public struct Report: Sendable, Hashable {
    /// Directives of the client and events of the double, in order: `> Start`, `< Listening`.
    public var lines: [String] = []
    /// What clients did wrong: the first thousand of it, and how often there was something.
    public var violations: [Violation] = []
    /// How often there was something, those that are not kept among them.
    public var violationCount = 0
    /// Connections that were asked for, refused ones among them.
    public var visits = 0
    /// Turns of the scenario that began.
    public var begun = 0
    /// Replies that were played to their end, as the client told.
    public var turns = 0
    /// Bytes of the user's sound.
    public var bytesHeard = 0
    /// Binary frames of it.
    public var framesHeard = 0
    /// Samples of PCM that came and are not silence.
    public var voiceSamples = 0
    /// Pictures of films.
    public var pictures = 0
    /// Sound of replies, as it was sent.
    public var soundSent: [UInt8] = []
    /// Of `Start`, as they came; the latest of them.
    public var starts: [JSONValue] = []
    /// Bytes of the longest Base64 text of a picture.
    public var largestPicture = 0
    /// When pictures came, on the monotonic clock.
    public var pictureTimes: [Nanoseconds] = []
    /// Frames of sound in duplex, those of them that came more than 20 ms later than the others let expect, and by how much the
    /// latest did, in milliseconds.
    public var framesTimed = 0
    public var framesLate = 0
    public var latest = 0.0
    /// Replies that began to be made, whatever they answered.
    public var replies = 0
    /// Bytes of sound of each of them that were sent.
    public var replyBytes: [Int: Int] = [:]
    /// Messages nobody knows that were sent.
    public var oddities: [JSONValue] = []
    /// Good-byes of clients: Stop.
    public var stops = 0
    var hasMisbehaved = false
    var hasExpired = false
  }

  /// Somebody who looks on: told on the thread of the sockets, before anything else is made of it.
  public struct Onlooker: Sendable {
    /// A frame of sound has come.
    public var heard: (@Sendable ([UInt8]) -> Void)?
    /// A frame of a reply goes out.
    public var sent: (@Sendable ([UInt8]) -> Void)?
    /// Nobody: sees nothing.
    public init() {}
  }

  let scenario: BailianScenario
  private let report = Locked(Report())
  private let server = Locked<WebSocketServer?>(nil)
  private let voices = Locked(Voices())
  /// Ids of tasks that began, the latest of them.
  private let tasks = Locked(Latest<String>(1_000))
  private let watch: @Sendable (String) -> Void
  let onlooker: Onlooker

  /// The port it listens on.
  public var port: Int { server.withLock { $0?.port ?? 0 } }
  /// What has happened so far. Any thread.
  public var seen: Report { report.withLock { $0 } }

  /// Begins to listen.
  /// - Parameters:
  ///   - scenario: what it plays.
  ///   - host: the address to listen at; by default this machine's own, which no other can reach.
  ///   - port: 0: the system chooses a free one.
  ///   - identity: a certificate for TLS; nil: plain, which beyond this machine the door has to allow.
  ///   - door: who may come in; by default everybody but pages of other sites, as many as a load test needs.
  ///   - onlooker: is shown the sound.
  ///   - watch: is handed each line of the report as it is written, on the thread of the sockets.
  public static func listen(
    _ scenario: BailianScenario = BailianScenario(), host: String = "127.0.0.1", port: Int = 0,
    identity: NetIdentity? = nil, door: WebSocketDoor = .crowd, onlooker: Onlooker = Onlooker(),
    watch: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws(NetProblem) -> BailianDouble {
    let double = BailianDouble(scenario, onlooker, watch)
    var limits = WebSocketLimits()
    limits.message = 1 << 20
    limits.ping = 0
    let server = try await WebSocketServer.listen(
      host: host, port: port, identity: identity, limits: limits, door: door,
      refused: { double.tell($0) }
    ) { double.decide($0) }
    double.server.withLock { $0 = server }
    return double
  }

  private init(
    _ scenario: BailianScenario, _ onlooker: Onlooker, _ watch: @escaping @Sendable (String) -> Void
  ) {
    self.scenario = scenario
    self.onlooker = onlooker
    self.watch = watch
  }

  /// Drops what is kept of what was said and sent, so that a long dialogue does not fill the memory. Counts stay.
  public func forget() {
    report.withLock { report in
      report.lines = []
      report.soundSent = []
      report.replyBytes = [:]
      report.oddities = []
    }
    voices.withLock { $0 = Voices() }
  }

  /// Listens no more.
  public func stop() { server.withLock { $0 }?.stop() }

  /// What is refused on purpose is in the report already.
  private func tell(_ refusals: WebSocketDoor.Refusals) {
    guard refusals.latest.kind != .decision else { return }
    watch("- refused \(refusals.count): \(refusals.place): \(refusals.latest)")
  }

  private func decide(_ visitor: WebSocketServer.Visitor) -> WebSocketServer.Decision {
    let visit = report.withLock { report in
      report.visits += 1
      return report.visits
    }
    guard visitor.target.prefix(while: { $0 != "?" }) == "/api-ws/v1/inference" else {
      return .refuse(status: 404, "not here")
    }
    if visit <= scenario.refusals { return .refuse(status: scenario.refusalStatus, "not now") }
    let header = visitor["Authorization"] ?? ""
    guard header.lowercased().hasPrefix("bearer ") else {
      violate("noKey", "there is no header Authorization with a Bearer key")
      return .refuse(status: 401, "no key")
    }
    guard !seen.hasExpired else { return .refuse(status: 401, "the key has expired") }
    guard scenario.keys.isEmpty || scenario.keys.contains(String(header.dropFirst(7))) else {
      return .refuse(status: 401, "wrong key")
    }
    return .accept { [self] socket in
      let visit = DoubleVisit(self, socket)
      return { visit.hear($0) }
    }
  }

  // MARK: For visits

  /// Violations that are kept: whoever makes more of them makes the same.
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

  /// Notes a dialogue's beginning. False when the task was begun before.
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

  /// The turn that begins now.
  func nextTurn() -> BailianScenario.Turn {
    let count = report.withLock { report in
      report.begun += 1
      return report.begun
    }
    return scenario.turns[min(count, scenario.turns.count) - 1]
  }

  /// The number of the reply that begins now.
  func nextReply() -> Int {
    report.withLock { report in
      report.replies += 1
      return report.replies
    }
  }

  /// The fault before the first turn, once.
  func firstFault(at place: BailianScenario.Fault.Place) -> BailianScenario.Fault? {
    guard let fault = scenario.fault, fault.place == place else { return nil }
    return report.withLock { report in
      defer { report.hasMisbehaved = true }
      return report.hasMisbehaved ? nil : fault
    }
  }

  /// Words as sound; they are spoken once. Not on the thread of the sockets.
  func speak(_ text: String, _ form: SpokenReply.Form, _ rate: Int) throws(SpeakerProblem) -> SpokenReply {
    let key = "\(form.rawValue) \(rate) \(text)"
    if let known = voices.withLock({ $0.find(key) }) { return known }
    let made = try Speaker.speak(text, voice: scenario.voice, form: form, rate: rate)
    voices.withLock { $0.keep(made, key) }
    return made
  }
}
