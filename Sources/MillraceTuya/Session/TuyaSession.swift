public import MillraceCore
public import MillraceDialog
internal import MillraceJSON

/// An input of a session.
public typealias TuyaInput = ServiceInput<TuyaNotice>
/// An action a session asks for.
public typealias TuyaAction = ServiceAction<TuyaCall>

/// One session with an agent as a state machine: it takes what happened and when, and returns what to do.
///
/// ```
///                 session created           button, or the cloud hears speech        button, or the cloud hears its end
/// connecting ▸ ─────────────────▸ listening ──────────────────────▸ talking ──────────────────────────▸ thinking
///      ▴   └▸ renewing ▸ created ▸    ▴                                                                    │ first of the reply
///      │ backoff ends                 │ played                                                            ▾
///   waiting ◂─ lost, from anywhere  draining ◂─────────────────── EventEnd ──────────────────────── responding
/// ```
///
/// - The creation of a session is not acknowledged: it is there when the connection is, and fails later, when the cloud closes it.
/// - One event is open at a time. A turn of push-to-talk or tap-to-talk, and a question, is an event; duplex is one long event, whose sound
///   never ends, and which the cloud divides into rounds. A question ends the long event, and another begins behind it, so that a voice
///   may interrupt the answer.
/// - What is broken off, by this side or by the cloud, stays so: texts and sound of it that are still under way are discarded.
/// - `replyEnded`: the reply has arrived. `listening`: it was heard.
/// - After a loss a new session is created. Nothing that was sent is repeated, but a question that waited is asked.
///
/// Every input is legal in every phase; `Tests/MillraceTuyaTests/SessionTables.swift` lists every phase with every input.
public struct TuyaSession: ServiceSession {
  /// The phase of a session.
  public enum Phase: String, Sendable, Hashable, CaseIterable {
    /// Not started; waiting for a connection with a token.
    case idle, connecting
    /// Waiting for a new token, over a connection without a session.
    case renewing
    /// The agent listens, and the user is silent.
    case listening
    /// The user speaks: after a button, or as the cloud hears.
    case talking
    /// An answer is prepared; it arrives; it has arrived, and is still played.
    case thinking, responding, draining
    /// Between two connections.
    case waiting
    /// The dialogue has ended; `begin` starts another.
    case ended
    /// Closed for good.
    case closed
  }

  /// The rules.
  public let rules: TuyaRules
  /// The current phase.
  public private(set) var phase = Phase.idle
  /// The session's id; nil: there is none.
  public private(set) var session: String?
  /// The channels and codes of the session, as its token says.
  public private(set) var terms = TuyaTerms()

  /// Least time from the end of an event by the cloud to the next of its kind: one that ends each at once must not be asked without pause.
  static let eventGap: Nanoseconds = .milliseconds(1_000)

  let makeID: @Sendable () -> String
  var turns = TuyaTurns()
  var speech = TuyaSpeech()
  var reply = TuyaReply()
  var emotions = TuyaEmotions()
  var toolCalls = TuyaToolCalls()
  var calls = TuyaPendingCalls()
  /// The question that waits until the agent listens.
  var question: TuyaQuestion?
  /// The endpoint holds an image that was not sent.
  var hasHeldImage = false
  /// A token was asked for because the cloud had rejected the one before: its number.
  var renewal: Int?
  /// The cloud has refused a token since the last reply: a second refusal is not followed by another token at once.
  var hasRenewed = false
  /// The token was rejected, and there is no other; waiting for `refreshAuth`.
  var expired: DialogError?
  /// What is known of the present or the next session beside the rules.
  var beginning = TuyaBeginning()
  /// Bytes of the token that the program has given; nil: that of the parameters or of the provider is used.
  var tokenBytes: Int?
  /// `begin` or `createSession` arrived while it could not begin yet.
  var isStrayReported = false
  /// The graph drains: no other dialogue follows.
  var isDraining = false
  /// When a dialogue that drains ends even if nothing was answered; nil: it does not drain.
  private var drainedBy: Nanoseconds?
  /// Why there is no session.
  private var loss: DialogError?
  var policy: ReconnectPolicy
  /// The `id` of the command being handled.
  var commandID: String?
  var phaseEnd: Nanoseconds?
  /// When the event of duplex may begin again that the cloud has ended; nil: at any time.
  var voiceAt: Nanoseconds?
  var now: Nanoseconds = 0
  var actions: [TuyaAction] = []

  /// Creates a session that has not started.
  /// - Parameter makeID: makes the ids of sessions and events.
  init(_ rules: TuyaRules, makeID: @escaping @Sendable () -> String) {
    self.rules = rules
    self.makeID = makeID
    policy = rules.reconnect
  }

  // MARK: What the connection asks

  /// When to call with `tick`; nil: never.
  public var deadline: Nanoseconds? {
    [phaseEnd, voiceAt, drainedBy, toolCalls.dueAt].compactMap { $0 }.min()
  }

  /// What to do with the user's audio now.
  public var uplink: VoiceUplink {
    switch phase {
    case .ended, .closed: return .drop
    case .idle, .connecting, .renewing, .waiting: return isVoiceWanted ? .keep : .drop
    case .listening, .talking, .thinking, .responding, .draining: break
    }
    guard terms.channel(.audio) != nil, !speech.isAsleep else { return .drop }
    if turns.hasVoice { return speech.isMuted ? .silence : .send }
    // With an event for each turn, what is said over a reply would be the beginning of the next turn.
    return isVoiceWanted && (rules.mode != .duplex || rules.isLong || phase == .listening) ? .keep : .drop
  }

  private var isVoiceWanted: Bool { rules.mode == .duplex || speech.isWanted }

  /// The user's audio is muted.
  public var isMuted: Bool { speech.isMuted }

  /// True when images of the input may be taken: held for the next question, or sent as a video.
  public var takesPictures: Bool {
    guard isOpen, !speech.isVideoMuted, pictureChannel != nil else { return false }
    return rules.pictures == .image || turns.open != nil
  }

  /// The end of a session is not answered.
  public var isEnding: Bool { false }
  /// Closed for good.
  public var isClosed: Bool { phase == .closed }
  /// A session was lost or refused, and there is no other yet.
  public var isUnreachable: Bool { loss != nil && !isOpen }

  /// What ends the session without waiting for anything; nil: there is none.
  public var closingCall: TuyaCall? { isOpen ? .closeSession(.ok) : nil }

  /// Nothing was read from the service, because the graph had no room: its answer is not late.
  public mutating func excuseSilence(at time: Nanoseconds) {
    if phase == .thinking || phase == .responding { phaseEnd = time &+ rules.answer }
  }

  // MARK: Inputs

  /// Handles an input and returns the actions it causes. Time must not run backwards.
  public mutating func handle(_ input: TuyaInput, at time: Nanoseconds) -> [TuyaAction] {
    now = max(now, time)
    actions = []
    let before = phase
    checkTime()
    switch input {
    case .tick, .opened, .audible, .voiceBegan, .voiceEnded, .firstPicture: break
    case .start: if phase == .idle { start() }
    // The connection requested just now can neither say anything nor be lost: these inputs belong to the one before.
    case .message where before == .waiting, .lost where before == .waiting: break
    case .message(let notice): take(notice)
    case .invalidMessage(let text):
      if isOpen { post(.common, "invalid message: \(text)", category: .network) }
    case .audio: if isOpen { takeSound() }
    case .image: if isOpen && reply.state != .cut { actions.append(.deliverImage) }
    case .imageHeld: imageHeld()
    case .lost(let error): lost(error)
    case .command(let command, let id):
      commandID = id
      take(command)
      commandID = nil
    case .finished: if rules.followsPlayback { played(all: false) }
    case .delivered: if !rules.followsPlayback { played(all: true) }
    case .replyCancelled: if reply.isAudible { interrupt(by: .local) }
    case .audioEnded: audioEnded()
    case .sourcesEnded, .drain: drain()
    }
    return actions
  }

  /// There is a session.
  var isOpen: Bool {
    switch phase {
    case .listening, .talking, .thinking, .responding, .draining: true
    case .idle, .connecting, .renewing, .waiting, .ended, .closed: false
    }
  }

  mutating func post(_ event: DialogEvent) { actions.append(.post(event)) }
  mutating func send(_ call: TuyaCall) { actions.append(.send(call)) }
  mutating func send(_ calls: [TuyaCall]) { for call in calls { send(call) } }

  mutating func post(
    _ code: TuyaErrorCode, _ text: String, category: DialogError.Category? = nil,
    of scope: DialogError.Scope = .connection, name: String? = nil, round: String? = nil
  ) {
    post(.error(.tuya(code, text, category: category, scope: scope, name: name, round: round)))
  }

  mutating func refuse(_ code: TuyaErrorCode, _ text: String) {
    actions.append(.refuse(.tuya(code, text, scope: .command)))
  }

  /// Answers a command that waited, or posts why it failed.
  mutating func answer(_ id: String?, _ error: DialogError?) {
    if let id {
      post(.answer(DialogAnswer(id, error.map { .failed($0) } ?? .done(nil))))
    } else if let error {
      post(.error(error))
    }
  }

  /// Enters a phase, with a timeout or without.
  mutating func enter(_ next: Phase, limit: Nanoseconds? = nil) {
    phase = next
    phaseEnd = limit.map { now &+ $0 }
  }

  // MARK: From the start to the session

  mutating func start() {
    post(.state(.connecting))
    connect()
  }

  mutating func connect() {
    enter(.connecting, limit: rules.prepare)
    actions.append(.connect)
  }

  mutating func connected(_ id: String, _ terms: TuyaTerms) {
    guard phase == .connecting else { return }
    post(.connected)
    post(.extra(name: "connection", payload: ["id": .string(id)]))
    create(terms)
  }

  mutating func create(_ terms: TuyaTerms) {
    self.terms = terms
    let id = beginning.session ?? rules.session ?? makeID()
    session = id
    turns = TuyaTurns()
    emotions.clear()
    isStrayReported = false
    renewal = nil
    loss = nil
    let data = creationData(beginning)
    send(.createSession(TuyaCreation(id: id, isShared: beginning.isShared ?? rules.isShared, userData: data)))
    post(.conversationStarted(id: id))
    post(.extra(name: "channels", payload: terms.json))
    listen()
  }

  /// User data of a new session: those of the rules, and what the program adds.
  func creationData(_ beginning: TuyaBeginning) -> JSONValue? {
    beginning.userData.map { (rules.creationData ?? .object([])).merging($0) } ?? rules.creationData
  }

  // MARK: Notices

  mutating func take(_ notice: TuyaNotice) {
    switch notice {
    case .connected(let id, let terms): return connected(id, terms)
    case .token(let terms, let number): return takeToken(terms, number)
    case .tokenFailed(let problem, let number): return tokenFailed(problem, number)
    default: break
    }
    guard isOpen || phase == .renewing else { return }
    switch notice {
    case .tokenWillExpire(let time): post(.authWillExpire(inMilliseconds: Int(max(0, time) / 1_000_000)))
    case .tokenExpired: post(.authExpired)
    case .failed(let error, let number): callFailed(error, number)
    case .sent(let number): callDone(number)
    case .progress(let progress): post(.progress(calls.naming(progress)))
    case .willDisconnect: post(.extra(name: "willDisconnect", payload: .object([])))
    case .unknown(let raw): post(.unknown(raw))
    case .unreadableText(let problem): post(.common, "a text is not readable: \(problem)", category: .network)
    case .file(let path, let name, let kind):
      post(.media(DialogMedia(kind.mediaKind, url: "file:\(path)", name: name, round: turns.current)))
      actions.append(.deliverFile(path))
    default: if isOpen { takeInSession(notice) }
    }
  }

  /// What only concerns a session that is there.
  mutating func takeInSession(_ notice: TuyaNotice) {
    switch notice {
    case .sessionAnswered(let status):
      // Success is 200, or 0 in newer versions.
      if status != .ok && status.rawValue != 0 { sessionClosed(status) }
    case .sessionClosed(let status): sessionClosed(status)
    case .sessionState(.tokenExpired):
      send(turns.abandon())
      send(.closeSession(.closedByClient))
      sessionClosed(.tokenExpired)
    case .sessionState(let status):
      post(.extra(name: "sessionState", payload: ["code": .integer(Int(status.rawValue))]))
    case .event(let event): take(event)
    case .streamBegan(let start): streamBegan(start)
    case .streamEnded(.audio):
      reply.isStreaming = false
      endUtterance()
    case .text(let text): take(text)
    default: break
    }
  }

  mutating func takeToken(_ terms: TuyaTerms, _ number: Int) {
    if number == renewal, phase == .renewing {
      post(.connected)
      return create(terms)
    }
    guard let id = calls.removeToken(number) else { return }
    let payload = terms.json
    post(
      id.map { .answer(DialogAnswer($0, .done(payload))) }
        ?? .extra(name: "queryAgentToken", payload: payload))
  }

  private mutating func tokenFailed(_ problem: TuyaTokenProblem, _ number: Int) {
    var error = DialogError.tuya(
      .requestFailed, problem.text, category: problem.isFinal ? .auth : .network,
      reaction: problem.isFinal ? .refuse : .reconnect)
    guard number == renewal, phase == .renewing else {
      guard let id = calls.removeToken(number) else { return }
      error.reaction = .continue
      error.scope = .command
      return answer(id, error)
    }
    renewal = nil
    guard problem.isFinal, rules.renew > 0, !isDraining else { return fail(error) }
    post(.error(error))
    actions.append(.disconnect)
    expired = error
    loss = error
    enter(.waiting, limit: rules.renew)
  }

  private mutating func callFailed(_ error: DialogError, _ number: Int) {
    var error = error
    error.scope = .command
    error.reaction = .continue
    answer(calls.removeData(number) ?? nil, error)
  }

  private mutating func callDone(_ number: Int) {
    if let id = calls.removeData(number) { answer(id, nil) }
  }

  // MARK: The end of a session, and of a connection

  /// The cloud has closed the session.
  private mutating func sessionClosed(_ status: TuyaStatus) {
    switch status {
    case .ok, .closedByClient:
      // What has arrived is still played.
      if phase == .thinking { cutReply(by: .service) } else { completeReply() }
      actions.append(.disconnect)
      finish(nil)
    case .reused:
      actions.append(.disconnect)
      replaced(DialogError.tuya(closedWith: status, "the session").text)
    case .tokenExpired, .unauthenticated, .expired:
      let error = DialogError.tuya(closedWith: status, "the session")
      if status != .unauthenticated { post(.authExpired) }
      // A second refusal is not followed by another token at once.
      if status == .expired || hasRenewed { fail(error) } else { renew(error) }
    default: fail(.tuya(closedWith: status, "the session"))
    }
  }

  /// Asks for another token, over the same connection.
  private mutating func renew(_ error: DialogError) {
    var told = error
    told.reaction = .reconnect
    post(.error(told))
    leave()
    hasRenewed = true
    loss = told
    guard !isDraining else {
      actions.append(.disconnect)
      return finish(told)
    }
    post(.state(.reconnecting))
    let number = calls.number()
    renewal = number
    send(.requestToken(number, rejectsPresent: true))
    enter(.renewing, limit: rules.prepare)
  }

  private mutating func lost(_ error: DialogError) {
    switch phase {
    case .idle, .waiting, .ended, .closed: return
    default: break
    }
    switch error.tuyaStatus {
    case .reused: return replaced(error.text)
    case .expired: post(.authExpired)
    default: break
    }
    post(.error(error))
    reconnect(after: error)
  }

  /// The connection is of no use any more: the cloud says so, or this side finds out.
  private mutating func fail(_ error: DialogError) {
    post(.error(error))
    actions.append(.disconnect)
    reconnect(after: error)
  }

  /// The same identity is connected elsewhere. Connecting again would close that client, which would then close this one.
  mutating func replaced(_ text: String) {
    post(.kicked(.replaced, text: text))
    leave()
    finish(nil)
  }

  /// Reconnects, or ends, as the error requires.
  private mutating func reconnect(after error: DialogError) {
    let isAnswered = phase == .draining
    leave()
    loss = error
    // No more audio will follow, and what was said has no listener.
    if isDraining || speech.hasEnded && phase == .connecting {
      // A reply that has arrived completely is all that was awaited.
      return finish(isDraining && isAnswered ? nil : error)
    }
    switch policy.decide(error.reaction, at: now) {
    case .stop(let isFailure): finish(isFailure ? error : nil)
    case .reconnect(let wait), .retry(let wait):
      post(.state(.reconnecting))
      enter(.waiting, limit: wait)
    case .continue:
      post(.state(.reconnecting))
      enter(.waiting, limit: 0)
    }
  }

  /// What was under way in the session is over.
  mutating func leave() {
    // What has arrived completely is played to its end.
    if phase != .draining { cutReply(by: .service) }
    // The button is still down: what is said meanwhile is kept.
    if phase == .talking && rules.mode != .duplex { speech.isWanted = true }
    wake()
    endHeard()
    let error = DialogError.tuya(.invalidSession, "the session has ended", scope: .command)
    for id in calls.removeAll() { answer(id, error) }
    turns = TuyaTurns()
    voiceAt = nil
    reply.forget()
    emotions.clear()
    toolCalls.removeAll()
    session = nil
  }

  /// Ends the dialogue at once, and cuts off the reply.
  /// - Parameters:
  ///   - isLate: `dialog.turn` has waited too long; without a session that is a failure.
  ///   - status: what the session is closed with.
  mutating func hangUp(isLate: Bool = false, with status: TuyaStatus = .ok) {
    switch phase {
    case .idle, .ended: finish(nil)
    case .connecting, .waiting, .renewing:
      actions.append(.disconnect)
      finish(isLate ? loss ?? .notReady("tuya") : nil)
    default:
      cutReply(by: .local)
      send(turns.abandon())
      send(.closeSession(status))
      actions.append(.disconnect)
      finish(nil)
    }
  }

  private mutating func finish(_ error: DialogError?) {
    wake()
    discardQuestion("the dialogue has ended")
    let ended = DialogError.tuya(.invalidSession, "the dialogue has ended", scope: .command)
    for id in calls.removeAll() { answer(id, ended) }
    drainedBy = nil
    voiceAt = nil
    session = nil
    toolCalls.removeAll()
    if phase != .ended { post(.state(.closed)) }
    guard rules.waitsAfterEnd && !isDraining && error == nil else {
      enter(.closed)
      return actions.append(.end(error))
    }
    enter(.ended)
    expired = nil
  }

  /// Begins another dialogue. Of the one before only the microphone's state is kept.
  mutating func begin(_ beginning: TuyaBeginning) {
    self.beginning = beginning
    speech = speech.atBeginning
    speech.isWanted = false
    reply.forget()
    turns = TuyaTurns()
    loss = nil
    hasRenewed = false
    policy = rules.reconnect
    start()
  }

  /// The sources of the graph have ended: what is under way is finished, and then the dialogue ends.
  ///
  /// Nobody ends what is open any more. What was said ends as by the button, and is answered; see also `endProgramsEvent`.
  mutating func drain() {
    let isFirst = !isDraining
    isDraining = true
    guard phase != .closed else { return }
    if isFirst { drainedBy = now &+ rules.drain }
    speech.isWanted = false
    if phase == .talking, rules.mode != .duplex { endSpeech(isHeard: false) }
    let hasBrokenOff = phase == .listening && turns.open?.owner == .program && !endProgramsEvent()
    switch phase {
    case .idle, .ended: finish(nil)
    case .waiting, .renewing, .connecting:
      guard isUnreachable else { return }
      actions.append(.disconnect)
      finish(expired ?? loss)
    case .listening where linger == 0: hangUp()
    // A question waited behind the event.
    case .listening where hasBrokenOff: listen()
    default: break
    }
  }

  /// The graph drains within an event of the program: it ends if something was sent in it, and is broken off otherwise.
  /// - Returns: true when it is answered now.
  private mutating func endProgramsEvent() -> Bool {
    guard turns.open?.hasData == true else {
      send(turns.breakOpen())
      return false
    }
    endEvent()
    return true
  }

  private mutating func checkTime() {
    for id in toolCalls.takeDue(at: now) {
      sendTool(TuyaTools.error(id, -32_000, "the tool did not answer in time"))
    }
    if let drainedBy, now >= drainedBy {
      self.drainedBy = now &+ rules.drain
      switch phase {
      // These have limits of their own.
      case .thinking, .responding, .draining: break
      default: return hangUp()
      }
    }
    if let voiceAt, now >= voiceAt {
      self.voiceAt = nil
      if phase == .listening || phase == .draining && rules.isLong { beginVoiceEvent() }
    }
    guard let phaseEnd, now >= phaseEnd else { return }
    self.phaseEnd = nil
    switch phase {
    case .waiting: if let expired { finish(expired) } else { connect() }
    case .connecting, .renewing:
      let what = phase == .connecting ? "no connection" : "no new token"
      fail(
        .tuya(.notConnected, "\(what) within \(rules.prepare / 1_000_000) ms", reaction: .reconnect))
    case .talking:
      endHeard()
      listen()
    case .thinking, .responding: answerIsMissing()
    case .draining:
      // Playback did not report the end.
      cutReply(by: .local)
      listen()
    case .listening: hangUp()
    case .idle, .ended, .closed: break
    }
  }

  mutating func answerIsMissing() {
    let round = reply.state == .open ? reply.round : turns.current
    post(
      .common, "no answer within \(rules.answer / 1_000_000) ms", category: .llm, of: .reply, round: round)
    breakRound()
    cutReply(by: nil)
    listen()
  }

  // MARK: Whose turn it is

  /// The agent listens: carries out what waited for it.
  mutating func listen() {
    // It waited, and this session takes less than was thought.
    if let waiting = question, let problem = waiting.problem(terms) {
      question = nil
      answer(waiting.id, problem)
    }
    if isDraining, turns.open?.owner == .program {
      enter(.listening)
      if endProgramsEvent() { return }
    }
    enter(.listening, limit: linger)
    post(.state(.listening))
    if speech.isWanted && rules.mode != .duplex { return startSpeech() }
    if let next = question, canAsk {
      question = nil
      if let id = next.id { answer(id, nil) }
      return pose(next)
    }
    beginVoiceEvent()
  }

  /// How long the agent may listen to silence until the dialogue ends; nil: for ever.
  var linger: Nanoseconds? {
    guard question == nil, turns.open?.owner != .program else { return nil }
    if speech.hasEnded && rules.linger > 0 { return rules.linger }
    return isDraining ? 0 : nil
  }

  mutating func think() {
    // Where the cloud does not announce its rounds, what comes from here on is the answer.
    if !turns.announces { reply.forgive() }
    speech.isTranscribed = false
    enter(.thinking, limit: rules.answer)
    post(.state(.thinking))
  }

  /// Begins the event of duplex, unless it is there.
  mutating func beginVoiceEvent() {
    guard rules.mode == .duplex, voiceAt == nil, turns.open == nil, terms.channel(.audio) != nil else {
      return
    }
    // Nothing more is said.
    if speech.hasEnded && (!rules.sendsSilenceAfterEnd || isDraining) { return }
    send(turns.begin(makeID(), .voice, rules.startData(hasVoice: true)))
    beginVoice()
  }

  mutating func beginVoice() {
    if let channel = terms.channel(.audio) { send(turns.beginVoice(channel)) }
  }

  /// The event is complete: it is answered now.
  mutating func endEvent(_ userData: JSONValue? = nil) {
    send(turns.end(userData))
    think()
    // The user may speak over the answer.
    if rules.isLong { beginVoiceEvent() }
  }

  /// What was said ends: by the button, or as the cloud heard.
  mutating func endSpeech(isHeard: Bool) {
    guard let event = turns.open, turns.hasVoice else { return }
    // After it has heard the end, the cloud takes no more sound.
    send(turns.endVoice(isCut: isHeard))
    endHeard()
    // The program that has begun an event ends it.
    if event.owner == .program { return enter(.listening) }
    endEvent()
  }

  /// Breaks off what is answered, unless the cloud has ended it.
  mutating func breakRound(_ userData: JSONValue? = nil) {
    let round = reply.state == .open ? reply.round ?? turns.current : turns.current
    if let id = turns.awaited ?? round, id != turns.open?.id {
      send(.breakEvent(id, userData: userData))
      turns.breakOff(id, isWhole: id == turns.awaited)
    } else if turns.open?.owner == .voice {
      send(turns.breakOpen(userData))
    }
  }

  /// The cloud takes sound again.
  mutating func wake() {
    guard speech.isAsleep else { return }
    speech.isAsleep = false
    post(.gate(.muted, isOn: false, round: nil))
  }
}
