public import MillraceConformance
internal import MillraceCore
public import MillraceDialog
public import MillraceJSON
public import MillraceNet

/// What the doubles of all services share: listening, refusing clients as the scenario says, the report, and the voice.
///
/// A service's double owns one and adds the service's protocol. It shares no code with the client's messages, so that the same mistake
/// cannot be made on both sides.
///
/// All methods may be called from any thread. `Own` and `OwnTurn` are the members that the service adds to scenarios.
@safe
public final class DoubleServer<Own: ScenarioMembers, OwnTurn: ScenarioMembers>: Sendable {
  /// The scenarios that it plays.
  public typealias Scenario = DoubleScenario<Own, OwnTurn>

  /// How a client is refused.
  public struct Refusal: Sendable, Hashable {
    /// The HTTP status; a service with another wire translates it.
    public var status: Int
    /// The reason, in a few words.
    public var text: String
  }

  private struct State {
    var report = DoubleReport()
    var hasMisbehaved = false
    var hasExpired = false
    /// Ids of the latest sessions.
    var sessions = Recent<String>(1_000)
    var voices = SpeechCache()
    var port = 0
    var isSecure = false
    var stop: (@Sendable () -> Void)?
  }

  /// The scenario to play.
  public let scenario: Scenario
  /// Observes the audio.
  public let observer: AudioObserver
  private let watch: @Sendable (String) -> Void
  private let state = Locked(State())

  /// Creates a double that does not listen yet.
  /// - Parameters:
  ///   - scenario: the scenario to play.
  ///   - observer: observes the audio.
  ///   - watch: receives each line of the report as it is written, on the network thread.
  public init(
    _ scenario: Scenario, observer: AudioObserver = AudioObserver(),
    watch: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.scenario = scenario
    self.observer = observer
    self.watch = watch
  }

  /// The port it listens on; 0 before it does.
  public var port: Int { state.withLock { $0.port } }
  /// True when it listens over TLS.
  public var isSecure: Bool { state.withLock { $0.isSecure } }
  /// What has happened so far: a copy.
  public var report: DoubleReport { state.withLock { $0.report } }

  // MARK: Life

  /// Starts a WebSocket server. Messages of clients are limited to 1 MiB, and the server sends no pings.
  /// - Parameters:
  ///   - host: the address to listen on; by default loopback, which no other machine can reach.
  ///   - port: the port; 0: the system chooses a free one.
  ///   - identity: the certificate for TLS; nil: plaintext, which beyond this machine the admission rules must allow.
  ///   - admission: the admission rules; by default no foreign origins, and as many clients as a load test needs.
  ///   - decide: called on the network thread for each client, with the number of its connection, from 1. It asks `refusal(of:key:)`.
  public func listen(
    host: String = "127.0.0.1", port: Int = 0, identity: NetIdentity? = nil,
    admission: ServerAdmission = .loadTest,
    decide: @escaping @Sendable (WebSocketServer.Client, Int) -> WebSocketServer.Decision
  ) async throws(NetError) {
    var limits = WebSocketLimits()
    limits.message = 1 << 20
    limits.ping = 0
    // A double does not judge by the time that its own machine takes.
    limits.open = 60_000
    let server = try await WebSocketServer.listen(
      host: host, port: port, identity: identity, limits: limits, admission: admission,
      refused: { [self] in log($0) }
    ) { [self] client in decide(client, countConnection()) }
    listens(on: server.port, isSecure: identity != nil) { server.stop() }
  }

  /// The same for a double that a runner starts.
  /// - Throws: why it cannot listen.
  public func listen(
    _ options: DoubleOptions,
    decide: @escaping @Sendable (WebSocketServer.Client, Int) -> WebSocketServer.Decision
  ) async throws(DoubleProblem) {
    do throws(NetError) {
      try await listen(port: options.port, identity: options.identity, decide: decide)
    } catch {
      throw .listening(error)
    }
  }

  /// Starts a byte stream server on this machine. A client is refused, if the scenario says so, in the protocol's own words.
  /// - Parameters:
  ///   - options: how the double was started.
  ///   - identity: the certificate for TLS where the options give none, such as that of a `DoubleCertificate`; nil: plaintext then.
  ///   - accept: called on the network thread for each client, with its stream and the number of its connection, from 1; returns the
  ///     receiver of the stream's events.
  /// - Throws: why it cannot listen.
  public func listenForStreams(
    _ options: DoubleOptions, identity: NetIdentity? = nil,
    accept: @escaping @Sendable (ByteStream, Int) -> @Sendable (ByteStreamEvent) -> Void
  ) async throws(DoubleProblem) {
    var limits = ByteStreamLimits()
    // As for a WebSocket; and a reply may be sent in one burst.
    limits.open = 60_000
    limits.backlog = 64 << 20
    let identity = options.identity ?? identity
    do throws(NetError) {
      let server = try await ByteStreamServer.listen(
        port: options.port, identity: identity, limits: limits, admission: .loadTest,
        refused: { [self] in log($0) }
      ) { [self] _ in .accept { [self] stream in accept(stream, countConnection()) } }
      listens(on: server.port, isSecure: identity != nil) { server.stop() }
    } catch { throw .listening(error) }
  }

  /// Starts a server of requests and WebSockets on this machine. Connections are counted by the double, with `countConnection`: what one is
  /// depends on the service.
  /// - Parameters:
  ///   - options: how the double was started.
  ///   - decide: called on the network thread for each request.
  /// - Throws: why it cannot listen.
  public func listenForRequests(
    _ options: DoubleOptions, decide: @escaping @Sendable (HTTPServer.Request) -> HTTPServer.Decision
  ) async throws(DoubleProblem) {
    var limits = HTTPServer.Limits()
    // As for WebSockets; and every client of a load test keeps a connection for its requests.
    limits.patience = 60_000
    limits.connections = 4_096
    limits.body = 1 << 20
    limits.webSocket.message = 1 << 20
    limits.webSocket.ping = 0
    do throws(NetError) {
      let server = try await HTTPServer.listen(
        port: options.port, identity: options.identity, on: .shared, limits: limits, admission: .loadTest,
        refused: { [self] in log($0) }, decide: decide)
      listens(on: server.port, isSecure: options.identity != nil) { server.stopListening() }
    } catch { throw .listening(error) }
  }

  /// Records that the double listens, for a service on any other wire: it counts connections with `countConnection`.
  /// - Parameters:
  ///   - port: the port.
  ///   - isSecure: true: over TLS.
  ///   - stop: stops listening; called once, by `stop`.
  public func listens(on port: Int, isSecure: Bool = false, stop: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.port = port
      state.isSecure = isSecure
      state.stop = stop
    }
  }

  /// Stops listening.
  public func stop() {
    let stop = state.withLock { state in
      defer { state.stop = nil }
      return state.stop
    }
    stop?()
  }

  /// Discards what the report lists of a dialogue, and synthesised speech, so that what a client costs can be measured in the same process.
  /// Kept are counts, violations, and what sessions were opened with.
  public func forget() {
    state.withLock { state in
      state.report.forget()
      state.voices = SpeechCache()
    }
  }

  // MARK: Clients

  /// Counts a connection, and returns its number, from 1.
  public func countConnection() -> Int {
    change { report in
      report.connections += 1
      return report.connections
    }
  }

  /// Why the scenario refuses a client; nil: it does not. A missing key is a violation.
  /// - Parameters:
  ///   - connection: the number of the connection.
  ///   - key: the key the client presents.
  public func refusal(of connection: Int, key: String?) -> Refusal? {
    if connection <= scenario.refusals { return Refusal(status: scenario.refusalStatus, text: "busy") }
    guard let key else {
      violate("noKey", "missing header Authorization with a Bearer key")
      return Refusal(status: 401, text: "missing key")
    }
    if state.withLock({ $0.hasExpired }) { return Refusal(status: 401, text: "the key has expired") }
    guard scenario.keys.isEmpty || scenario.keys.contains(key) else {
      return Refusal(status: 401, text: "invalid key")
    }
    return nil
  }

  /// From here on every key is refused with 401.
  public func expireKeys() { state.withLock { $0.hasExpired = true } }

  /// True after `expireKeys`; for a service whose keys are not in a header.
  public var haveKeysExpired: Bool { state.withLock { $0.hasExpired } }

  /// Records the beginning of a session. False when its id was used before, among the latest thousand.
  /// - Parameters:
  ///   - id: the id the client gave it.
  ///   - start: what it was opened with.
  public func begin(session id: String, _ start: JSONValue) -> Bool {
    state.withLock { state in
      if !scenario.keeps { state.report.starts = [] }
      state.report.starts.append(start)
      defer { state.sessions.add(id) }
      return !state.sessions.all.contains(id)
    }
  }

  /// Refusals by the scenario are in the report already.
  private func log(_ refusals: ServerAdmission.Refusals) {
    guard refusals.latest.kind != .decision else { return }
    watch("- refused \(refusals.count): \(refusals.peer): \(refusals.latest)")
  }

  // MARK: The report

  /// Records a violation.
  public func violate(_ name: String, _ text: String) { violate(Violation(name, text)) }

  /// Records a violation.
  public func violate(_ violation: Violation) {
    change { $0.add(violation) }
    watch("! \(violation)")
  }

  /// Records a line: `> ` and a message of the client, `< ` and one of the double, `# ` and a remark.
  public func note(_ line: String) {
    if scenario.keeps { change { $0.lines.append(line) } }
    watch(line)
  }

  /// Changes the report. The closure must not call the server.
  @discardableResult
  public func change<Answer>(_ body: (inout DoubleReport) -> Answer) -> Answer {
    state.withLock { body(&$0.report) }
  }

  // MARK: The scenario

  /// Starts the next turn of the scenario; the last is repeated.
  public func nextTurn() -> Scenario.Turn {
    let count = change { report in
      report.begun += 1
      return report.begun
    }
    return scenario.turns[min(count, scenario.turns.count) - 1]
  }

  /// The number of the next reply, from 1.
  public func nextReply() -> Int {
    change { report in
      report.replies += 1
      return report.replies
    }
  }

  /// The scenario's fault before the first turn, when its place is reached for the first time.
  public func firstFault(at place: ServiceFault.Place) -> ServiceFault? {
    guard let fault = scenario.fault, fault.place == place else { return nil }
    return state.withLock { state in
      defer { state.hasMisbehaved = true }
      return state.hasMisbehaved ? nil : fault
    }
  }

  /// Runs a closure on the network thread.
  public func later(_ milliseconds: Int, _ body: @escaping @Sendable () -> Void) {
    _ = NetLoop.shared.run(after: .milliseconds(Int64(milliseconds)), body)
  }

  // MARK: The voice

  /// Prepares the audio of a turn's reply, waits for as long as the turn thinks, and calls back on the network thread.
  ///
  /// Speech is synthesised on a thread of its own, which takes tens of milliseconds; a repeated text is spoken once.
  /// - Parameters:
  ///   - turn: the turn.
  ///   - number: the number of the reply, which its samples are when the scenario is `numbered`.
  ///   - format: the format of the audio; nil: the reply has none.
  ///   - rate: the sample rate in Hz.
  ///   - done: receives the audio, nil without a format.
  public func prepare(
    _ turn: Scenario.Turn, number: Int, format: SpeechFormat?, rate: Int,
    done: @escaping @Sendable (Result<SpokenReply?, SynthesisError>) -> Void
  ) {
    guard let format, !scenario.isNumbered else {
      let words = turn.says.split(separator: " ").count
      let made = format == nil ? nil : SpokenReply(number: number, words: words, rate: rate)
      return later(turn.thinks) { done(.success(made)) }
    }
    let status = DetachedThread.start("double voice") { [self] in
      let made = Result { () throws(SynthesisError) -> SpokenReply? in try speak(turn.says, format, rate) }
      later(turn.thinks) { done(made) }
    }
    if status != 0 { done(.failure(SynthesisError(description: "cannot start a thread"))) }
  }

  /// Speaks a text, or returns it from the cache. Not on the network thread.
  private func speak(_ text: String, _ format: SpeechFormat, _ rate: Int) throws(SynthesisError)
    -> SpokenReply
  {
    let key = "\(format) \(rate) \(text)"
    if let known = state.withLock({ $0.voices.find(key) }) { return known }
    let made = try SpeechSynthesizer.speak(text, voice: scenario.voice, format: format, rate: rate)
    state.withLock { $0.voices.keep(made, key) }
    return made
  }

  /// Records a message with the user's audio, and passes it to the observer.
  public func noteReceived(_ bytes: [UInt8]) {
    observer.received?(bytes)
    change { report in
      report.bytesHeard += bytes.count
      report.framesHeard += 1
    }
  }

  /// Records what the double heard in the user's audio.
  public func note(_ heard: DoubleEar.Heard) {
    change { $0.speechSamples += heard.speechSamples }
    for violation in heard.violations { violate(violation) }
  }

  /// Records the delay of an audio message in milliseconds.
  public func note(delay: Double) {
    change { report in
      report.framesTimed += 1
      if delay > FrameTiming.tolerance { report.framesLate += 1 }
      report.latest = max(report.latest, delay)
    }
  }

  /// Records an audio message that was sent, and passes it to the observer.
  /// - Parameters:
  ///   - bytes: the message.
  ///   - reply: the number of the reply.
  public func noteSent(_ bytes: [UInt8], of reply: Int) {
    observer.sent?(bytes)
    guard scenario.keeps else { return }
    change { report in
      report.soundSent += bytes
      report.replyBytes[reply, default: 0] += bytes.count
    }
  }

  /// Records what is reported to the client besides states, speech and replies: its node has to post it, unchanged.
  public func noteReported(_ event: DialogEvent) {
    if scenario.keeps { change { $0.events.append(event) } }
  }

  /// Records the address of a stream with replies, as it is reported.
  public func noteStream(_ address: String) {
    if scenario.keeps { change { $0.streams.append(address) } }
  }

  /// Records an unknown message that was sent.
  public func noteUnknown(_ message: JSONValue) {
    if scenario.keeps { change { $0.unknownMessages.append(message) } }
  }
}

extension WebSocketServer.Client {
  /// The key in the header `Authorization: Bearer …`; nil: there is none.
  public var bearerKey: String? {
    guard let header = self["Authorization"], header.lowercased().hasPrefix("bearer ") else { return nil }
    return String(header.dropFirst(7))
  }
}
