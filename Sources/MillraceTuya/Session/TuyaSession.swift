public import MillraceCore
public import MillraceDialog
internal import MillraceJSON
internal import MillraceService

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
  private static let eventGap: Nanoseconds = .milliseconds(1_000)

  private let makeID: @Sendable () -> String
  private var turns = TuyaTurns()
  private var speech = TuyaSpeech()
  private var reply = TuyaReply()
  private var emotions = TuyaEmotions()
  private var toolCalls = TuyaToolCalls()
  private var calls = TuyaPendingCalls()
  /// The question that waits until the agent listens.
  private var question: TuyaQuestion?
  /// The endpoint holds an image that was not sent.
  private var hasHeldImage = false
  /// A token was asked for because the cloud had rejected the one before: its number.
  private var renewal: Int?
  /// The cloud has refused a token since the last reply: a second refusal is final.
  private var hasRenewed = false
  /// The token was rejected, and there is no other; waiting for `refreshAuth`.
  private var expired: DialogError?
  /// What is known of the present or the next session beside the rules.
  private var beginning = TuyaBeginning()
  /// `begin` or `createSession` arrived while it could not begin yet.
  private var isStrayReported = false
  /// The graph drains: no other dialogue follows.
  private var isDraining = false
  /// When a dialogue that drains ends even if nothing was answered; nil: it does not drain.
  private var drainedBy: Nanoseconds?
  /// Why there is no session.
  private var loss: DialogError?
  private var policy: ReconnectPolicy
  /// The `id` of the command being handled.
  private var commandID: String?
  private var phaseEnd: Nanoseconds?
  /// When the event of duplex may begin again that the cloud has ended; nil: at any time.
  private var voiceAt: Nanoseconds?
  private var now: Nanoseconds = 0
  private var actions: [TuyaAction] = []

  /// Creates a session that has not started. The ids of sessions and events are random.
  public init(_ rules: TuyaRules) { self.init(rules) { RandomID.uuid() } }

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
  private var isOpen: Bool {
    switch phase {
    case .listening, .talking, .thinking, .responding, .draining: true
    case .idle, .connecting, .renewing, .waiting, .ended, .closed: false
    }
  }

  private mutating func post(_ event: DialogEvent) { actions.append(.post(event)) }
  private mutating func send(_ call: TuyaCall) { actions.append(.send(call)) }
  private mutating func send(_ calls: [TuyaCall]) { for call in calls { send(call) } }

  private mutating func post(
    _ code: TuyaErrorCode, _ text: String, category: DialogError.Category? = nil,
    of scope: DialogError.Scope = .connection, name: String? = nil, round: String? = nil
  ) {
    post(.error(.tuya(code, text, category: category, scope: scope, name: name, round: round)))
  }

  private mutating func refuse(_ code: TuyaErrorCode, _ text: String) {
    actions.append(.refuse(.tuya(code, text, scope: .command)))
  }

  /// Answers a command that waited, or posts why it failed.
  private mutating func answer(_ id: String?, _ error: DialogError?) {
    if let id {
      post(.answer(DialogAnswer(id, error.map { .failed($0) } ?? .done(nil))))
    } else if let error {
      post(.error(error))
    }
  }

  /// Enters a phase, with a timeout or without.
  private mutating func enter(_ next: Phase, limit: Nanoseconds? = nil) {
    phase = next
    phaseEnd = limit.map { now &+ $0 }
  }

  // MARK: From the start to the session

  private mutating func start() {
    post(.state(.connecting))
    connect()
  }

  private mutating func connect() {
    enter(.connecting, limit: rules.prepare)
    actions.append(.connect)
  }

  private mutating func connected(_ id: String, _ terms: TuyaTerms) {
    guard phase == .connecting else { return }
    post(.connected)
    post(.extra(name: "connection", payload: ["id": .string(id)]))
    create(terms)
  }

  private mutating func create(_ terms: TuyaTerms) {
    self.terms = terms
    let id = beginning.session ?? rules.session ?? makeID()
    session = id
    turns = TuyaTurns()
    emotions.clear()
    isStrayReported = false
    renewal = nil
    loss = nil
    let data =
      beginning.userData.map { (rules.creationData ?? .object([])).merging($0) } ?? rules.creationData
    send(.createSession(TuyaCreation(id: id, isShared: beginning.isShared ?? rules.isShared, userData: data)))
    post(.conversationStarted(id: id))
    post(.extra(name: "channels", payload: terms.json))
    listen()
  }

  // MARK: Notices

  private mutating func take(_ notice: TuyaNotice) {
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
  private mutating func takeInSession(_ notice: TuyaNotice) {
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

  private mutating func takeToken(_ terms: TuyaTerms, _ number: Int) {
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
  private mutating func replaced(_ text: String) {
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
  private mutating func leave() {
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
  private mutating func hangUp(isLate: Bool = false, with status: TuyaStatus = .ok) {
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
  private mutating func begin(_ beginning: TuyaBeginning) {
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
  private mutating func drain() {
    let isFirst = !isDraining
    isDraining = true
    guard phase != .closed else { return }
    if isFirst { drainedBy = now &+ rules.drain }
    switch phase {
    case .idle, .ended: finish(nil)
    case .waiting, .renewing, .connecting:
      guard isUnreachable else { return }
      actions.append(.disconnect)
      finish(expired ?? loss)
    case .listening where linger == 0: hangUp()
    default: break
    }
  }

  private mutating func checkTime() {
    for id in toolCalls.takeDue(at: now) {
      sendTool(TuyaTools.error(id, -32_000, "the tool did not answer in time"))
    }
    if let drainedBy, now >= drainedBy {
      self.drainedBy = now &+ rules.drain
      if phase != .responding && phase != .draining { return hangUp() }
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

  private mutating func answerIsMissing() {
    let round = reply.state == .open ? reply.round : turns.current
    post(
      .common, "no answer within \(rules.answer / 1_000_000) ms", category: .llm, of: .reply, round: round)
    breakRound()
    cutReply(by: nil)
    listen()
  }

  // MARK: Whose turn it is

  /// The agent listens: carries out what waited for it.
  private mutating func listen() {
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
  private var linger: Nanoseconds? {
    guard question == nil, turns.open?.owner != .program else { return nil }
    if speech.hasEnded && rules.linger > 0 { return rules.linger }
    return isDraining ? 0 : nil
  }

  private mutating func think() {
    // Where the cloud does not announce its rounds, what comes from here on is the answer.
    if !turns.announces { reply.forgive() }
    speech.isTranscribed = false
    enter(.thinking, limit: rules.answer)
    post(.state(.thinking))
  }

  /// Begins the event of duplex, unless it is there.
  private mutating func beginVoiceEvent() {
    guard rules.mode == .duplex, voiceAt == nil, turns.open == nil, terms.channel(.audio) != nil else {
      return
    }
    // Nothing more is said.
    if speech.hasEnded && (!rules.sendsSilenceAfterEnd || isDraining) { return }
    send(turns.begin(makeID(), .voice, rules.startData(hasVoice: true)))
    beginVoice()
  }

  private mutating func beginVoice() {
    if let channel = terms.channel(.audio) { send(turns.beginVoice(channel)) }
  }

  /// The event is complete: it is answered now.
  private mutating func endEvent(_ userData: JSONValue? = nil) {
    send(turns.end(userData))
    think()
    // The user may speak over the answer.
    if rules.isLong { beginVoiceEvent() }
  }

  /// What was said ends: by the button, or as the cloud heard.
  private mutating func endSpeech(isHeard: Bool) {
    guard let event = turns.open, turns.hasVoice else { return }
    // After it has heard the end, the cloud takes no more sound.
    send(turns.endVoice(isCut: isHeard))
    endHeard()
    // The program that has begun an event ends it.
    if event.owner == .program { return enter(.listening) }
    endEvent()
  }

  /// Breaks off what is answered, unless the cloud has ended it.
  private mutating func breakRound(_ userData: JSONValue? = nil) {
    let round = reply.state == .open ? reply.round ?? turns.current : turns.current
    if let id = turns.awaited ?? round, id != turns.open?.id {
      send(.breakEvent(id, userData: userData))
      turns.breakOff(id, isWhole: id == turns.awaited)
    } else if turns.open?.owner == .voice {
      send(turns.breakOpen(userData))
    }
  }

  /// The cloud takes sound again.
  private mutating func wake() {
    guard speech.isAsleep else { return }
    speech.isAsleep = false
    post(.gate(.muted, isOn: false, round: nil))
  }

  // MARK: Events of the cloud

  private mutating func take(_ event: TuyaCloudEvent) {
    if rules.postsRaw { post(.extra(name: "raw", payload: event.json)) }
    // What is still under way of an event that was broken off.
    if turns.isBroken(event.id) && event.type != .mcpCommand { return }
    switch event.type {
    case .start:
      // Rounds that nobody has asked for come between those of a long event.
      guard !turns.isForeign(event.id) || rules.isLong && (phase == .listening || phase == .draining) else {
        return
      }
      turns.announce(event.id)
      reply.forgive()
      if phase == .thinking { beginReply(turns.current ?? (event.id.isEmpty ? nil : event.id)) }
    case .payloadsEnd: post(.extra(name: "EventPayloadsEnd", payload: event.json))
    case .end: ended(event.id)
    case .chatBreak: broken(event.id)
    case .serverVAD: speechEnded(event.id)
    case .mcpCommand: takeToolRequest(event)
    case .serverTimeover: timedOut(event.id)
    case .sleep:
      guard !speech.isAsleep else { return }
      speech.isAsleep = true
      post(.gate(.muted, isOn: true, round: event.id.isEmpty ? nil : event.id))
    case .oneShot, .clearDataCache, .updateContext, .trigger: post(.extra(name: "event", payload: event.json))
    default: post(.unknown(event.json))
    }
  }

  /// The cloud has ended a round, or an event.
  private mutating func ended(_ id: String) {
    let isOpenEvent = turns.open.map { $0.id == id || !rules.isLong && turns.isOwn(id) } ?? false
    guard isOpenEvent || !turns.isForeign(id) else { return }
    // An earlier round than the one that is prepared, or answered.
    let isLate = rules.isLong && !isOpenEvent && !id.isEmpty && turns.round.map { $0 != id } ?? false
    let isReply = id.isEmpty || reply.round == nil || id == reply.round || !rules.isLong
    wake()
    if isOpenEvent {
      endHeard()
      send(turns.abandon())
      voiceAt = now &+ Self.eventGap
    }
    turns.ended(id)
    switch phase {
    case .responding where isReply || isOpenEvent: closeReply()
    case .thinking where !isLate: listen()
    case .talking where isOpenEvent: listen()
    case .listening, .draining: beginVoiceEvent()
    default: break
    }
  }

  /// The cloud breaks a round off.
  private mutating func broken(_ id: String) {
    let isReply = reply.state == .open || phase == .thinking || phase == .draining
    let round = phase == .draining || reply.state == .open ? reply.round : turns.current
    let isHere = isReply && (id.isEmpty || round == nil || id == round || id == turns.open?.id)
    if let open = turns.open, open.id == id, open.owner != .voice || !rules.isLong {
      // An event of a turn: this side stops sending, too.
      send(turns.abandon())
      turns.breakOff(id, isWhole: true)
      speech.isWanted = false
      guard !isHere else { return interruptedByCloud(round ?? id) }
      post(.interrupted(by: .service, round: id))
      return listen()
    }
    guard isHere else {
      if !id.isEmpty && id != turns.open?.id { turns.breakOff(id, isWhole: false) }
      return post(.extra(name: "EventChatBreak", payload: ["eventId": .string(id)]))
    }
    if let own = turns.awaited ?? round, own != turns.open?.id {
      turns.breakOff(own, isWhole: own == turns.awaited || turns.open == nil)
    }
    interruptedByCloud(round ?? (id.isEmpty ? nil : id))
  }

  private mutating func interruptedByCloud(_ round: String?) {
    cutReply(by: .service, round: round)
    guard speech.isHeard && turns.hasVoice else { return listen() }
    enter(.talking, limit: rules.answer)
  }

  /// The cloud heard the end of speech.
  private mutating func speechEnded(_ id: String) {
    guard !turns.isForeign(id) || rules.isLong else { return }
    if rules.isLong { turns.note(id) }
    // It may repeat it.
    if speech.isHeard || phase != .thinking { post(.speechEnded) }
    speech.isHeard = false
    guard phase == .listening || phase == .talking, turns.hasVoice else { return }
    if rules.isLong { think() } else { endSpeech(isHeard: true) }
  }

  private mutating func endHeard() {
    guard speech.isHeard else { return }
    speech.isHeard = false
    post(.speechEnded)
  }

  /// The cloud has waited too long.
  private mutating func timedOut(_ id: String) {
    guard !turns.isForeign(id) else { return }
    let round = id.isEmpty ? turns.current : id
    post(
      .common, "the cloud has waited too long for this turn", category: .internal, of: .reply,
      name: "ServerTimeover", round: round)
    if let open = turns.open, open.id == id || id.isEmpty || !rules.isLong {
      send(turns.abandon())
    }
    if !id.isEmpty { turns.ended(id) }
    guard phase != .draining else { return beginVoiceEvent() }
    cutReply(by: nil)
    wake()
    endHeard()
    listen()
  }

  // MARK: Texts

  private mutating func take(_ text: TuyaText) {
    if rules.postsRaw { post(.extra(name: "raw", payload: text.raw)) }
    let id = text.bizID ?? ""
    guard !turns.isBroken(text: id) else { return }
    switch text.content {
    case .unknown: return post(.unknown(text.raw))
    case .speech(let words): return recognised(words, id, isFinal: text.isFinal)
    case .reply, .emotion, .skill: break
    }
    guard acceptsReply(id) else { return }
    // What comes late of a reply that has ended begins no other.
    let isLate = reply.state == .none && turns.hasEnded(text: id)
    let round = turns.round(ofText: id)
    switch text.content {
    case .reply(let part):
      if !part.isEmpty && !isLate { beginReply(round) }
      for event in part.events(isFinal: text.isFinal, round: round) { post(event) }
    case .emotion(let step, let sequence):
      if let steps = emotions.add(step, sequence: sequence, isLast: text.isFinal) {
        post(.emotion(steps, round: round))
      }
    case .skill(let code, let data): for event in TuyaSkill.events(code, data, round: round) { post(event) }
    case .speech, .unknown: break
    }
  }

  /// False for a text that belongs to the reply that was cut off.
  private mutating func acceptsReply(_ id: String) -> Bool {
    guard reply.state == .cut else { return true }
    // Its id names another round than the one that is broken.
    guard turns.isOwn(id), turns.isOther(id, than: reply.round) else {
      turns.breakText(id)
      return false
    }
    reply.forgive()
    return true
  }

  /// The user's words, as far as they were recognised.
  private mutating func recognised(_ words: String, _ id: String, isFinal: Bool) {
    // Before the words of a round are final, all that come are of that round, unless their id says something else.
    let isOther = turns.isOther(
      id, than: phase == .thinking ? turns.round : reply.round,
      isTranscribed: speech.isTranscribed || phase == .draining)
    let begins = !words.isEmpty && speech.begins(id, isFinal: isFinal)
    if begins { speechBegan(isOther: isOther) }
    post(.transcript(text: words, isFinal: isFinal, round: turns.round(ofText: id)))
    guard isFinal else {
      if phase == .talking && rules.mode == .duplex { phaseEnd = now &+ rules.answer }
      return
    }
    if rules.isLong { endHeard() }
    defer { speech.isTranscribed = true }
    switch phase {
    // Nothing was understood, or nothing is answered.
    case .thinking where words.isEmpty || rules.onlyASR: listen()
    case .talking where rules.isLong, .listening where rules.isLong:
      if words.isEmpty || rules.onlyASR {
        if phase == .talking { listen() }
      } else {
        think()
      }
    default: break
    }
  }

  /// The first text of an utterance.
  /// - Parameter isOther: it belongs to another round than the reply.
  private mutating func speechBegan(isOther: Bool) {
    switch phase {
    case .listening where rules.mode == .duplex && turns.hasVoice: break
    case .talking: break
    // In a long event the user may speak over a reply. The cloud breaks it off, if it still arrives.
    case .responding where rules.isLong && rules.interrupt && isOther,
      .draining where rules.isLong && rules.interrupt && isOther:
      // A question is an event of its own, with which the cloud does not connect what is said.
      let broken = turns.breakAwaited()
      if broken.isEmpty, let round = reply.round, phase == .responding {
        turns.breakOff(round, isWhole: false)
      }
      cutReply(by: .user)
      send(broken)
    case .thinking where rules.isLong && isOther && turns.awaited != nil:
      cutReply(by: .user)
      send(turns.breakAwaited())
    case .thinking where rules.isLong && isOther && turns.round != nil: break
    default: return
    }
    speech.isHeard = true
    post(.speechStarted)
    enter(.talking, limit: rules.mode == .duplex ? rules.answer : nil)
    sendHeldImage()
  }

  // MARK: The reply

  private mutating func beginReply(_ round: String?) {
    guard reply.state != .cut else { return }
    if reply.state == .open {
      if phase == .responding { phaseEnd = now &+ rules.answer }
      guard let round, let old = reply.round, round != old else { return }
      // The next round begins without an end of this one.
      completeReply()
    }
    switch phase {
    case .thinking, .listening, .responding, .draining: break
    case .talking where rules.mode == .duplex: break
    case .talking where rules.hasVAD: send(turns.endVoice(isCut: true))
    default: return
    }
    reply.begin(round)
    post(.state(.responding))
    post(.replyStarted(round: round))
    enter(.responding, limit: rules.answer)
  }

  private mutating func streamBegan(_ start: TuyaStreamStart) {
    guard case .audio = start else { return }
    reply.isStreaming = true
    beginReply(turns.current)
  }

  private mutating func takeSound() {
    switch reply.state {
    case .cut: return
    case .open: break
    case .none:
      if reply.isStreaming || phase == .thinking { beginReply(turns.current) }
      guard reply.state == .open else {
        // Reported once a session.
        guard !isStrayReported else { return }
        isStrayReported = true
        return post(.common, "sound arrived without a reply; it is discarded", of: .reply)
      }
    }
    if phase == .responding { phaseEnd = now &+ rules.answer }
    reply.soundArrived()
    actions.append(.deliver)
  }

  private mutating func endUtterance() {
    if reply.endUtterance() { actions.append(.endUtterance) }
  }

  /// The reply has arrived completely.
  private mutating func completeReply() {
    guard reply.state == .open else { return }
    endUtterance()
    post(.replyEnded(round: reply.round, utterances: reply.utterances))
    reply.end()
    policy.noteSuccess()
    hasRenewed = false
  }

  /// The reply has arrived completely, and nothing follows it.
  private mutating func closeReply() {
    completeReply()
    guard phase == .responding else { return }
    guard reply.unplayed > 0 else { return listen() }
    enter(.draining, limit: rules.playback)
    // The user may speak over what is still played.
    if rules.isLong { beginVoiceEvent() }
  }

  /// Cuts off the reply that is prepared, arrives or is played. Does nothing when there is none.
  /// - Parameter isCancelled: by the graph already, which must not do it again.
  private mutating func cutReply(
    by source: InterruptionSource?, round: String? = nil, isCancelled: Bool = false
  ) {
    guard reply.state == .open || reply.isAudible || phase == .thinking else { return }
    let round = round ?? (phase == .thinking ? turns.current : reply.round)
    if reply.isAudible && !isCancelled { actions.append(.cancelReply) }
    reply.cut()
    emotions.clear()
    if let source { post(.interrupted(by: source, round: round)) }
  }

  private mutating func played(all: Bool) {
    if all { reply.playedAll() } else { reply.played() }
    if phase == .draining && reply.unplayed == 0 { listen() }
  }

  /// Interrupts what is prepared, arrives or is played.
  private mutating func interrupt(by source: InterruptionSource) {
    wake()
    switch phase {
    case .thinking, .responding, .draining: break
    default: return
    }
    let round = reply.state == .open || phase == .draining ? reply.round : turns.current
    let isArriving = phase != .draining
    cutReply(by: source, round: round, isCancelled: source == .local)
    if isArriving { breakRound() }
    listen()
  }

  // MARK: Commands

  private mutating func take(_ command: DialogCommand) {
    if phase == .closed { return }
    if let reason = rules.refusal(of: command) { return refuse(.invalidParameter, reason) }
    switch (phase, command) {
    case (.ended, .begin), (.ended, .refreshAuth), (.ended, .mute), (.ended, .hangUp),
      (.ended, .extra("createSession", _)):
      obey(command)
    case (.ended, _): refuse(.invalidSession, "the dialogue has ended; send \"begin\" for another")
    default: obey(command)
    }
  }

  private mutating func obey(_ command: DialogCommand) {
    switch command {
    case .startSpeech: startSpeech()
    case .stopSpeech: stopSpeech()
    case .cancelSpeech: cancelSpeech()
    // No reply of this service is uninterruptible.
    case .interrupt: interrupt(by: .user)
    case .ask(let text, let images, _): ask(text, images)
    case .update(let values): obey("updateContext", ["data": values])
    case .mute(.audio, let isOn, _):
      speech.isMuted = isOn
      if !isOn { wake() }
    case .mute(.video, let isOn, _): speech.isVideoMuted = isOn
    case .refreshAuth(let token): refreshAuth(token)
    case .hangUp(_, let reason): if phase != .ended { hangUp(isLate: reason == DialogCommand.timeout) }
    case .begin(let values):
      do throws(JSONFormProblem) { begin(again: try TuyaBeginning(values)) } catch {
        refuse(.invalidParameter, "\"begin\": \(error)")
      }
    case .extra(let name, let payload): obey(name, payload)
    default: break
    }
  }

  private mutating func begin(again beginning: TuyaBeginning) {
    guard rules.waitsAfterEnd, !isDraining else {
      return refuse(
        .invalidParameter, "\"begin\" needs a node with \"afterEnd\": \"wait\" in a graph that does not drain"
      )
    }
    guard phase == .ended else {
      return refuse(.invalidParameter, "the dialogue has not ended; send \"hangUp\" before \"begin\"")
    }
    begin(beginning)
  }

  private mutating func refreshAuth(_ token: String?) {
    guard let token else {
      guard isOpen else {
        return refuse(.notConnected, "there is no connection over which to ask for a token")
      }
      return queryToken(isNew: true)
    }
    actions.append(.useCredential(token))
    if phase == .renewing {
      // The program was quicker than the answer of the provider.
      renewal = nil
      actions.append(.disconnect)
    } else if expired == nil {
      return
    }
    expired = nil
    connect()
  }

  private mutating func queryToken(isNew: Bool) {
    let number = calls.add(.token(commandID))
    send(.requestToken(number, rejectsPresent: isNew))
    if commandID != nil { actions.append(.answerLater) }
  }

  private mutating func startSpeech() {
    wake()
    guard rules.mode != .duplex else { return }
    switch phase {
    case .listening:
      speech.isWanted = false
      guard terms.channel(.audio) != nil else { return refuse(.invalidChannel, "the agent takes no audio") }
      if turns.open == nil {
        send(turns.begin(makeID(), .voice, rules.startData(hasVoice: true)))
      }
      beginVoice()
      enter(.talking)
      sendHeldImage()
    case .thinking, .responding, .draining:
      speech.isWanted = true
      interrupt(by: .user)
    case .talking: break
    default: speech.isWanted = true
    }
  }

  private mutating func stopSpeech() {
    speech.isWanted = false
    guard rules.mode != .duplex, phase == .talking else { return }
    endSpeech(isHeard: false)
  }

  /// Discards what is being said.
  private mutating func cancelSpeech() {
    speech.isWanted = false
    guard phase == .talking else { return }
    send(turns.breakOpen())
    endHeard()
    listen()
  }

  private mutating func audioEnded() {
    speech.hasEnded = true
    switch phase {
    case .talking where rules.mode != .duplex || !rules.sendsSilenceAfterEnd: endSpeech(isHeard: false)
    case .listening:
      enter(.listening, limit: linger)
      guard rules.mode == .duplex, !rules.sendsSilenceAfterEnd else { return }
      // What was said last may not be recognised yet.
      if turns.hasVoice { endEvent() }
    default: speech.isWanted = false
    }
  }

  // MARK: Questions

  /// Where pictures of the input go.
  private var pictureChannel: TuyaChannelName? {
    rules.pictures == .video ? terms.channel(.video) ?? terms.channel(.image) : terms.channel(.image)
  }

  /// The image that the endpoint holds goes with the event that is open.
  private mutating func sendHeldImage() {
    guard hasHeldImage, rules.pictures == .image, let channel = pictureChannel, turns.open != nil else {
      return
    }
    hasHeldImage = false
    turns.note(channel)
    send(.heldImage(channel, userData: nil))
  }

  /// The endpoint holds another image.
  private mutating func imageHeld() {
    hasHeldImage = true
    guard isOpen, turns.open != nil, let channel = pictureChannel else { return }
    switch rules.pictures {
    case .video:
      guard !speech.isVideoMuted else { return }
      hasHeldImage = false
      turns.note(channel)
      send(.heldImage(channel, userData: nil))
    case .image: if phase == .talking && !turns.hasImage { sendHeldImage() }
    }
  }

  /// Nothing is open that a question would disturb.
  private var canAsk: Bool { phase == .listening && turns.open?.owner != .program }

  /// Asks now, or when the agent listens; a newer question replaces an older one.
  private mutating func ask(_ text: String, _ images: [DialogImage]) {
    do throws(DialogError) {
      let next = try TuyaQuestion(text, images, hasImage: hasHeldImage, id: commandID, isOpen ? terms : nil)
      wake()
      guard !canAsk else { return pose(next) }
      discardQuestion("another one replaced it")
      question = next
      if phase == .listening { phaseEnd = nil }
      if commandID != nil { actions.append(.answerLater) }
    } catch { actions.append(.refuse(error)) }
  }

  private mutating func discardQuestion(_ reason: String) {
    guard let old = question else { return }
    question = nil
    answer(old.id, .tuya(.invalidEvent, "question discarded: \(reason)", scope: .command))
  }

  /// A question is an event of its own.
  private mutating func pose(_ question: TuyaQuestion) {
    guard question.problem(terms) == nil else {
      // It waited, and this session takes less than was thought.
      if let problem = question.problem(terms) { post(.error(problem)) }
      return beginVoiceEvent()
    }
    // Nothing was said in the long event.
    send(turns.breakOpen())
    send(turns.begin(makeID(), .question, rules.startData(hasVoice: false)))
    for (bytes, format) in question.images {
      guard let channel = terms.channel(.image) else { continue }
      turns.note(channel)
      send(.image(bytes, format: format, channel, userData: nil, call: calls.add(.data(nil))))
    }
    if rules.pictures == .image { sendHeldImage() }
    if let channel = terms.channel(.text), !question.text.isEmpty {
      turns.note(channel)
      send(.text(question.text, channel, userData: nil))
    }
    endEvent()
  }

  // MARK: The vendor's own commands

  private mutating func obey(_ name: String, _ payload: JSONValue) {
    if name != "createSession" || phase != .ended {
      guard TuyaOrder.names.contains(name) else {
        return refuse(
          .invalidParameter,
          "\"\(name)\" is not known; known are \(TuyaOrder.names.joined(separator: ", "))")
      }
      guard isOpen else { return refuse(.notConnected, "\"\(name)\": there is no connection with a session") }
      if let id = payload["sessionId"]?.string, id != session, name != "createSession" {
        return refuse(.invalidSession, "\"\(name)\": \"sessionId\" is not that of this node's session")
      }
    }
    do throws(DialogError) { obey(try TuyaOrder(name, payload, terms)) } catch {
      actions.append(.refuse(error))
    }
  }

  private mutating func obey(_ order: TuyaOrder) {
    switch order {
    case .queryToken(let isNew): queryToken(isNew: isNew)
    case .createSession(let beginning): create(beginning)
    case .closeSession(let status): hangUp(with: status)
    case .startEvent(let id, let userData): startEvent(named: id, userData)
    case .endPayloads(let id, let channel, let userData):
      guard isEvent(id) else { return }
      send(turns.endPayloads(channel, userData))
    case .endEvent(let id, let userData):
      guard isEvent(id) else { return }
      // A long event may end while a round of it is answered.
      if phase == .responding || phase == .draining { return send(turns.end(userData)) }
      endEvent(userData)
    case .breakEvent(let id, let userData): breakEvent(id, userData)
    case .event(let type, let id, let data, let userData):
      wake()
      send(.event(type, id: id ?? makeID(), data: data, userData: userData))
    case .text, .image, .file: sendData(order)
    case .toolResult(let id, let payload): answerTool(id, payload)
    }
  }

  /// Closes the session and creates another, over the same connection.
  private mutating func create(_ beginning: TuyaBeginning) {
    guard phase != .ended else { return begin(again: beginning) }
    cutReply(by: .local)
    send(turns.abandon())
    send(.closeSession(.ok))
    enter(.listening)
    leave()
    self.beginning = beginning
    create(terms)
    guard let id = commandID, let session else { return }
    actions.append(.answerLater)
    post(.answer(DialogAnswer(id, .done(["sessionId": .string(session)]))))
  }

  /// Refuses the command when it names no event that is open.
  private mutating func isEvent(_ id: String?) -> Bool {
    guard let open = turns.open, id == nil || id == open.id else {
      refuse(
        .invalidEvent, turns.open == nil ? "no event is open" : "\"eventId\" is not that of the open event")
      return false
    }
    return true
  }

  /// A program begins an event of its own.
  private mutating func startEvent(named id: String?, _ userData: JSONValue?) {
    wake()
    switch phase {
    case .thinking, .responding, .draining: interrupt(by: .user)
    default: break
    }
    // The long event gives way, unless somebody is speaking.
    if turns.open?.owner == .voice, phase == .listening { send(turns.breakOpen()) }
    guard turns.open == nil, phase == .listening else {
      return refuse(.invalidEvent, "an event is open; end it or break it off before another begins")
    }
    let id = id ?? makeID()
    send(turns.begin(id, .program, rules.startData(hasVoice: false, userData)))
    enter(.listening)
    guard let command = commandID else { return }
    actions.append(.answerLater)
    post(.answer(DialogAnswer(command, .done(["eventId": .string(id)]))))
  }

  private mutating func breakEvent(_ id: String?, _ userData: JSONValue?) {
    wake()
    let answered = reply.state == .open ? reply.round ?? turns.current : turns.current
    if let open = turns.open, id == open.id || id == nil && (open.owner == .program || phase == .talking) {
      send(turns.breakOpen(userData))
      cutReply(by: .user)
      endHeard()
      return listen()
    }
    guard phase == .thinking || phase == .responding, let answered,
      id ?? answered == answered || id == turns.main
    else { return refuse(.invalidEvent, "no such event is open or answered") }
    let round = reply.state == .open ? reply.round : turns.current
    cutReply(by: .user, round: round)
    breakRound(userData)
    listen()
  }

  /// Sends data in the event that is open; without one it is a question of its own.
  private mutating func sendData(_ order: TuyaOrder) {
    wake()
    // A text in a long event would never be answered: it has no end.
    var isOwn = turns.open == nil
    if case .text = order, turns.open?.owner == .voice, rules.isLong { isOwn = true }
    if isOwn {
      guard canAsk else {
        return refuse(.invalidEvent, "no event is open, and a question is being answered")
      }
      send(turns.breakOpen())
      send(turns.begin(makeID(), .question, rules.startData(hasVoice: false)))
    }
    switch order {
    case .text(let text, let channel, let userData):
      turns.note(channel)
      send(.text(text, channel, userData: userData))
    case .image(let bytes, let format, let channel, let userData):
      turns.note(channel)
      send(.image(bytes, format: format, channel, userData: userData, call: calls.add(.data(commandID))))
      if commandID != nil { actions.append(.answerLater) }
    case .file(let path, let name, let channel, let userData):
      turns.note(channel)
      send(.file(path: path, name: name, channel, userData: userData, call: calls.add(.data(commandID))))
      if commandID != nil { actions.append(.answerLater) }
    default: break
    }
    if isOwn { endEvent() }
  }

  // MARK: Tools

  private mutating func takeToolRequest(_ event: TuyaCloudEvent) {
    switch TuyaTools.reply(to: event.data, rules.tools) {
    case .answer(let json): sendTool(json)
    case .none: post(.extra(name: "McpCmd", payload: event.json))
    case .call(let id, let tool, let arguments):
      guard toolCalls.add(id, until: now &+ rules.tool) else {
        return sendTool(TuyaTools.error(id, -32_000, "too many calls wait, or one with the same id"))
      }
      let payload: JSONValue = ["id": id, "tool": .string(tool), "arguments": arguments]
      post(.command(name: "McpCmd", payload: payload, round: event.id.isEmpty ? nil : event.id))
    }
  }

  private mutating func sendTool(_ json: JSONValue) {
    send(.event(.mcpCommand, id: makeID(), data: json, userData: nil))
  }

  private mutating func answerTool(_ id: JSONValue, _ payload: JSONValue) {
    guard let id = toolCalls.take(id) else {
      return refuse(.invalidParameter, "\"mcpResult\": no call with this \"id\" waits")
    }
    guard let answer = TuyaTools.answer(id, payload) else {
      sendTool(TuyaTools.error(id, -32_603, "the tool failed"))
      return refuse(
        .invalidParameter,
        "\"mcpResult\" needs \"result\", \"text\", or \"error\" with \"code\" and \"message\"")
    }
    sendTool(answer)
  }
}
