public import MillraceCore
public import MillraceDialog
internal import MillraceJSON

/// One session of an avatar as a state machine: it takes what happened and when, and returns what to do.
///
/// ```
///                    stream generation:    opening ▸ arriving ▸ starting ┐
/// connecting ▸ creating ▸ preparing ▸ ┤                                  ├▸ listening ▸ thinking ▸ speaking ▸ draining ▸ listening
///     ▴              session generation:   arriving ▸ starting ▸ opening ┘                  └────┬────┘
///  waiting ◂ a loss in any phase; then resuming, where there is a session                     yielding ▸ listening
/// ```
///
/// - A session is created, prepared (its status is polled), started when its first picture is shown, and driven over a channel. After a lost
///   channel the status is queried: a running session gets a new channel, otherwise a new session is created. Nothing already sent is repeated.
/// - What is to be spoken waits its turn, as the vendor requires: a text for the end of what is spoken, and for the time between two texts; a
///   voice for the end of a text; a text for the end of a voice. `force` interrupts instead.
/// - `replyEnded`: the service has finished. `listening`: the reply was heard.
/// - The session is closed on every way out: an open session is billed until the service closes it.
///
/// Every input is legal in every phase; `Tests/MillraceIVHTests/SessionTables.swift` lists every phase with every input.
public struct IVHSession: ServiceSession {
  /// The phase of a session.
  public enum Phase: String, Sendable, Hashable, CaseIterable {
    /// Not started; preparing the connection.
    case idle, connecting
    /// The session was asked for; it is prepared.
    case creating, preparing
    /// Waiting for the first picture; for the answer to the start; for the channel.
    case arriving, starting, opening
    /// The avatar is silent.
    case listening
    /// A text or a voice was sent; the avatar speaks; it has finished, and is still heard.
    case thinking, speaking, draining
    /// What is spoken was interrupted; waiting for its end.
    case yielding
    /// Between two attempts; asking whether the session still runs.
    case waiting, resuming
    /// The end of the session was asked for.
    case closing
    /// The session has ended; `begin` creates another.
    case ended
    /// Closed for good.
    case closed
  }

  /// The rules.
  public let rules: IVHRules
  /// The current phase.
  public private(set) var phase = Phase.idle
  /// The session's id; nil: there is none.
  public private(set) var session: String?

  private var requests = IVHRequests()
  private var texts = IVHTexts()
  private var voice = IVHVoiceState()
  private var reply = IVHReply()
  private var gates = IVHGates()
  private var policy: ReconnectPolicy
  /// There is a wire, over which requests can be sent.
  private var isConnected = false
  private var isStarted = false
  private var hasPicture = false
  private var isChannelOpen = false
  /// The request that closes the session was repeated, or will be at this time.
  private var isCloseRepeated = false
  private var closeAt: Nanoseconds?
  private var hasStream = false
  /// The graph drains: the session ends with what is to be spoken.
  private var isDraining = false
  /// The sources of the graph have ended: a service that cannot be reached is not waited for.
  private var haveSourcesEnded = false
  /// The user's audio has ended.
  private var hasAudioEnded = false
  /// Why the session is not running.
  private var loss: DialogError?
  /// The interruption that ends what is spoken: it is sent once that has begun.
  private var stop = (isSent: false, isForced: false)
  /// `begin` arrived while the session before was ending.
  private var next: IVHBeginning?
  /// The user of the next session.
  private var user: String
  /// The `id` of the command being handled.
  private var commandID: String?
  private var phaseEnd: Nanoseconds?
  private var preparedBy: Nanoseconds?
  private var beatAt: Nanoseconds?
  private var now: Nanoseconds = 0
  private var actions: [IVHAction] = []

  /// Creates a session that has not started.
  public init(_ rules: IVHRules) {
    self.rules = rules
    policy = rules.reconnect
    user = rules.creation.user
  }

  // MARK: What the connection asks

  /// When to call with `tick`; nil: never.
  public var deadline: Nanoseconds? {
    [phaseEnd, beatAt, closeAt, canSpeak ? texts.dueAt : nil].compactMap { $0 }.min()
  }

  /// What to do with the user's audio now.
  public var uplink: VoiceUplink {
    switch phase {
    case .closing, .ended, .closed: return .drop
    case .listening, .thinking, .speaking, .draining, .yielding: break
    default: return isVoiceWanted ? .keep : .drop
    }
    if gates.isOn(.muted) { return rules.isBotReply ? .keep : .drop }
    guard isVoiceWanted else { return .drop }
    // With `driver` text, audio is only recognised.
    guard rules.creation.driver != .text else { return voice.isMuted ? .silence : .send }
    guard phase == .listening || phase == .draining || voice.state == .running else { return .keep }
    guard voice.state != .ending, texts.isEmpty || voice.state == .running else { return .keep }
    return voice.isMuted ? .silence : .send
  }

  private var isVoiceWanted: Bool { rules.isBotReply || rules.mode == .duplex || voice.isWanted }

  /// The user's audio is muted.
  public var isMuted: Bool { voice.isMuted }
  /// The service takes no images.
  public var takesPictures: Bool { false }
  /// The end of the session was asked for.
  public var isEnding: Bool { phase == .closing }
  /// Closed for good.
  public var isClosed: Bool { phase == .closed }
  /// A session was lost or refused, and none runs yet.
  public var isUnreachable: Bool { loss != nil && !isRunning }

  /// What ends the session without waiting for an answer; nil: there is none.
  var closingRequest: IVHRequest? { session.map { .call(.close($0), 0) } }

  /// WebSocket pings detect a silent service.
  public mutating func excuseSilence(at time: Nanoseconds) {}

  // MARK: Inputs

  /// Handles an input and returns the actions it causes. Time must not run backwards.
  public mutating func handle(_ input: IVHInput, at time: Nanoseconds) -> [IVHAction] {
    now = max(now, time)
    actions = []
    checkTime()
    switch input {
    case .tick, .audio, .image, .imageHeld, .delivered: break
    case .audible:
      reply.isAudible = true
      if phase == .draining { enter(.draining, limit: rules.playback) }
    case .start: if phase == .idle { start() }
    case .opened: if phase == .connecting { resume() }
    case .message(let message): take(message)
    case .invalidMessage(let text):
      if isRunning { post(.network, .continue, "invalid message: \(text)") }
    case .lost(let error):
      forgetRequests("the connection was lost")
      isConnected = false
      isChannelOpen = false
      lose(error)
    case .command(let command, let id):
      commandID = id
      take(command)
      commandID = nil
    case .firstPicture:
      hasPicture = true
      if phase == .arriving { proceed() }
    case .finished:
      if reply.isAudible || phase == .draining { reply.wasHeard = true }
      reply.isAudible = false
      if rules.followsPlayback && phase == .draining { listen() }
    case .replyCancelled: cancelled()
    case .voiceBegan:
      voiceBegan()
      // The user's audio was kept until now: this is the rest of it, and nobody else ends it.
      if hasAudioEnded { endVoice(isCut: false) }
    case .voiceEnded: endVoice(isCut: false)
    case .audioEnded:
      hasAudioEnded = true
      endVoice(isCut: false)
      if phase == .listening { enter(.listening, limit: linger) }
    case .sourcesEnded:
      haveSourcesEnded = true
      drain()
    case .drain: drain()
    }
    sendText()
    return actions
  }

  /// The session is there, and its channel was open.
  private var isRunning: Bool {
    switch phase {
    case .listening, .thinking, .speaking, .draining, .yielding: true
    default: false
    }
  }

  private mutating func post(_ event: DialogEvent) { actions.append(.post(event)) }

  private static func error(
    _ category: DialogError.Category, _ reaction: DialogError.Reaction, _ text: String,
    of scope: DialogError.Scope = .connection
  ) -> DialogError {
    DialogError(vendor: "ivh", category: category, reaction: reaction, scope: scope, text: text)
  }

  private mutating func post(
    _ category: DialogError.Category, _ reaction: DialogError.Reaction, _ text: String
  ) {
    post(.error(Self.error(category, reaction, text)))
  }

  private mutating func refuse(_ text: String) {
    actions.append(.refuse(Self.error(.request, .continue, text, of: .command)))
  }

  private mutating func enter(_ next: Phase, limit: Nanoseconds? = nil) {
    phase = next
    phaseEnd = limit.map { now &+ $0 }
  }

  private mutating func call(_ call: IVHCall, for purpose: IVHRequests.Purpose) {
    actions.append(.send(.call(call, requests.add(purpose))))
  }

  // MARK: From the start to the first text

  private mutating func start() {
    post(.state(.connecting))
    connect()
  }

  private mutating func connect() {
    enter(.connecting)
    isConnected = true
    actions.append(.connect)
  }

  private mutating func create() {
    hasPicture = false
    var creation = rules.creation
    creation.user = user
    call(.create(creation, rules.generation), for: .create)
    preparedBy = now &+ rules.prepare
    enter(.creating, limit: rules.answer)
  }

  private mutating func created(_ answer: IVHAnswer) {
    session = answer.session
    guard let session else {
      let problem = Self.error(.network, .reconnect, "the answer to a new session has no \"SessionId\"")
      return phase == .closing ? finish(problem) : lose(problem)
    }
    // It is no longer needed.
    guard phase != .closing else { return call(.close(session), for: .close) }
    prepared(answer)
  }

  /// The status of the session arrived, with its creation or queried.
  private mutating func prepared(_ answer: IVHAnswer) {
    guard !answer.isReplaced else { return replaced() }
    switch answer.status {
    case .active:
      post(.connected)
      streamBegins(answer)
      if answer.isStarted { isStarted = true }
      proceed()
    case .preparing, nil:
      // The address may be known before the session is active.
      streamBegins(answer)
      enter(.preparing, limit: rules.poll)
    case .closed:
      leaveSession()
      lose(Self.error(.request, .reconnect, "the service has closed the session"))
    case .failed:
      leaveSession()
      lose(
        answer.fault?.error()
          ?? Self.error(.internal, .reconnect, "the service could not prepare the session"))
    case .timedOut:
      leaveSession()
      lose(Self.error(.internal, .reconnect, "the service did not prepare the session in time"))
    }
  }

  private mutating func streamBegins(_ answer: IVHAnswer) {
    guard let address = answer.playAddress, !hasStream else { return }
    hasStream = true
    actions.append(.stream(address))
  }

  /// The next step of a session that is active. The generations differ in which comes first, the start or the channel.
  private mutating func proceed() {
    guard isStarted || rules.generation == .stream && !isChannelOpen else { return awaitStart() }
    guard isChannelOpen else {
      enter(.opening, limit: rules.answer)
      if let session { actions.append(.send(.openChannel(session))) }
      return
    }
    listen()
  }

  private mutating func awaitStart() {
    guard let session else { return }
    switch rules.start {
    case .never:
      isStarted = true
      proceed()
    case .firstPicture where !hasPicture: enter(.arriving, limit: rules.picture)
    case .firstPicture, .now:
      call(.start(session), for: .start)
      enter(.starting, limit: rules.answer)
    }
  }

  private mutating func channelOpened() {
    guard phase == .opening, let session else { return }
    isChannelOpen = true
    beatAt = now &+ rules.heartBeat
    post(.conversationStarted(id: session))
    proceed()
  }

  // MARK: Answers

  private mutating func take(_ message: IVHMessage) {
    switch message {
    case .answer(let answer, let number):
      guard let purpose = requests.remove(number) else { return }
      answered(purpose, answer)
    case .refused(let fault, let number):
      guard let purpose = requests.remove(number) else { return }
      failed(purpose, fault.error(purpose.scope), fault)
    case .failed(let error, let number):
      guard let purpose = requests.remove(number) else { return }
      failed(purpose, error, nil)
    case .channelOpened: channelOpened()
    case .channelLost(let error):
      guard isChannelOpen || phase == .opening else { return }
      isChannelOpen = false
      if phase != .closing { lose(error) }
    case .push(let push): if isChannelOpen { take(push) }
    }
  }

  private mutating func answered(_ purpose: IVHRequests.Purpose, _ answer: IVHAnswer) {
    switch purpose {
    case .create: created(answer)
    case .poll: if phase == .preparing { prepared(answer) }
    case .resume: if phase == .resuming { resumed(answer) }
    case .start:
      guard phase == .starting else { return }
      isStarted = true
      proceed()
    case .close: if phase == .closing { finish(nil) }
    case .text:
      // What a program interrupted by a request is answered in its response.
      let form = JSONForm(answer.payload)
      if form["Type"] != nil, let push = try? IVHPush(payload: form, rules.generation) { take(push) }
    case .lateCreation:
      if let late = answer.session, late != session, isConnected { call(.close(late), for: .abandon) }
    case .abandon: break
    case .query(let name, let id):
      let payload = answer.withoutAddresses
      post(id.map { .answer(DialogAnswer($0, .done(payload))) } ?? .extra(name: name, payload: payload))
    case .update(let id): if let id { post(.answer(DialogAnswer(id, .done(nil)))) }
    }
  }

  /// - Parameter fault: the service's refusal; nil: the request did not reach it, or had no answer.
  private mutating func failed(
    _ purpose: IVHRequests.Purpose, _ error: DialogError, _ fault: IVHFault?
  ) {
    switch purpose {
    case .create where phase == .closing: finish(nil)
    case .create where phase == .creating, .start where phase == .starting, .resume where phase == .resuming,
      .poll where phase == .preparing:
      guard fault?.isReplaced != true else { return replaced() }
      if fault?.hasNoSession == true { leaveSession() }
      // Polls are repeated until the time for the whole preparation is over.
      if purpose == .poll && session != nil && (fault == nil || error.reaction.isRepeatable) {
        return enter(.preparing, limit: rules.poll)
      }
      lose(error.ofSetup(isCreation: purpose == .create))
    case .close where phase == .closing:
      if fault == nil || error.reaction.isRepeatable && fault?.hasNoSession != true, !isCloseRepeated {
        isCloseRepeated = true
        // A service that refuses it now may accept it in a second.
        return fault == nil ? closeSession() : (closeAt = now &+ rules.closeAgain)
      }
      // An unknown session is already closed.
      if fault?.hasNoSession != true {
        var unclosed = error
        unclosed.text = "the session was not closed, and is billed until the service closes it: \(error.text)"
        unclosed.reaction = .continue
        post(.error(unclosed))
      }
      finish(nil)
    case .text:
      if let fault, fault.hasNoSession || fault.isReplaced { return loseSession(error, fault) }
      guard phase != .closing else { return }
      // The service refuses the account: every other request would fail, too.
      if let fault, !fault.isOfRequest, fault.error().reaction != .continue { return lose(fault.error()) }
      var passing = error
      passing.reaction = .continue
      post(.error(passing))
      if phase == .thinking || phase == .yielding { listen() }
    case .query(_, let id), .update(let id):
      var error = error
      error.scope = .command
      post(id.map { .answer(DialogAnswer($0, .failed(error))) } ?? .error(error))
    default: break
    }
  }

  // MARK: Losses

  /// The session no longer exists, or belongs to another client.
  private mutating func loseSession(_ error: DialogError, _ fault: IVHFault) {
    guard !fault.isReplaced else { return replaced(error.text) }
    leaveSession()
    lose(error)
  }

  /// The session no longer exists.
  private mutating func leaveSession() {
    session = nil
    isStarted = false
    texts.endStream()
    endStream()
  }

  private mutating func endStream() {
    guard hasStream else { return }
    hasStream = false
    actions.append(.stream(nil))
  }

  /// The channel or its setup has failed.
  private mutating func lose(_ error: DialogError) {
    switch phase {
    case .idle, .waiting, .ended, .closed: return
    case .closing: return finish(nil)
    default: break
    }
    if phase == .draining, haveSourcesEnded, texts.isEmpty { return playRest(error) }
    post(.error(error))
    loss = error
    // What the service has finished is still played.
    if phase != .draining { closeReply(by: .service) }
    forgetReply()
    closeChannel()
    phase = .waiting
    guard !haveSourcesEnded else { return end(error) }
    switch policy.decide(error.reaction, at: now) {
    case .stop(let isFailure): end(isFailure ? error : nil)
    case .reconnect(let wait), .retry(let wait):
      post(.state(.reconnecting))
      enter(.waiting, limit: wait)
    case .continue:
      post(.state(.reconnecting))
      enter(.waiting, limit: 0)
    }
  }

  /// The channel was lost after the last reply of a graph that drains: nothing but its end is awaited.
  private mutating func playRest(_ error: DialogError) {
    var passing = error
    passing.reaction = .continue
    post(.error(passing))
    // A further part of a text would have no channel.
    texts.endStream()
    closeChannel()
  }

  private mutating func replaced(_ text: String = "the same user has begun another session") {
    post(.kicked(.replaced, text: text))
    leaveSession()
    closeReply(by: .service)
    forgetReply()
    closeChannel()
    finish(nil)
  }

  private mutating func closeChannel() {
    beatAt = nil
    guard isConnected, isChannelOpen || phase == .opening else { return }
    isChannelOpen = false
    actions.append(.send(.closeChannel))
  }

  /// What is spoken now is not followed any further; queued texts remain.
  private mutating func forgetReply() {
    discardInterruptions("the connection was lost")
    reply = IVHReply()
    forgetVoice()
    for (gate, round) in gates.openAll() { post(.gate(gate, isOn: false, round: round)) }
  }

  /// The utterance is over, however it has ended: what follows is another.
  private mutating func forgetVoice() {
    if voice.state == .running && isConnected { actions.append(.send(.beginVoice)) }
    voice.state = .none
    voice.isRecognised = false
  }

  private mutating func resume() {
    guard let session else { return create() }
    call(.status(session), for: .resume)
    enter(.resuming, limit: rules.answer)
  }

  private mutating func resumed(_ answer: IVHAnswer) {
    guard
      answer.isReplaced || answer.status == .closed || answer.status == .failed || answer.status == .timedOut
    else {
      return prepared(answer)
    }
    guard !answer.isReplaced else { return replaced() }
    leaveSession()
    create()
  }

  // MARK: The end

  /// Ends the session when what is to be spoken was spoken.
  private mutating func drain() {
    isDraining = true
    guard phase != .closing && phase != .closed else { return }
    endVoice(isCut: false)
    endIfDone()
  }

  private mutating func endIfDone() {
    guard isDraining else { return }
    switch phase {
    case .thinking, .speaking, .draining, .yielding: return
    case .ended: hangUp()
    default:
      if haveSourcesEnded && isUnreachable { return end(loss) }
      if texts.isEmpty { hangUp() }
    }
  }

  /// - Parameter isLate: `dialog.turn` has waited too long; a session that is not running has failed.
  private mutating func hangUp(isLate: Bool = false) {
    switch phase {
    case .closing, .closed: return
    case .ended: finish(nil)
    default: end(isLate && !isRunning ? loss ?? .notReady("ivh") : nil)
    }
  }

  /// Closes the session, and ends.
  private mutating func end(_ error: DialogError?) {
    discardTexts(session == nil ? "there is no session" : "the session has ended")
    closeReply(by: .local)
    forgetReply()
    closeChannel()
    isCloseRepeated = false
    closeAt = nil
    if phase == .creating && error == nil {
      // Its answer has the id that is needed to close it.
      return enter(.closing, limit: rules.close)
    }
    requests.forgetLifecycle()
    guard session != nil, isConnected else { return finish(error) }
    closeSession()
    // A failure does not wait for the answer: it is known already.
    if error != nil { return finish(error) }
    enter(.closing, limit: rules.close)
  }

  private mutating func closeSession() {
    closeAt = nil
    if let session { call(.close(session), for: .close) }
  }

  private mutating func finish(_ error: DialogError?) {
    discardTexts("the session has ended")
    leaveSession()
    forgetRequests("the session has ended")
    isConnected = false
    phaseEnd = nil
    beatAt = nil
    closeAt = nil
    if phase != .ended { post(.state(.closed)) }
    actions.append(.disconnect)
    guard rules.waitsAfterEnd && !isDraining && error == nil else {
      if let next {
        answer(next.id, Self.error(.request, .continue, "\"begin\" discarded: the node ends", of: .command))
      }
      next = nil
      enter(.closed)
      return actions.append(.end(error))
    }
    enter(.ended)
    guard let next else { return }
    self.next = nil
    answer(next.id, nil)
    begin(next)
  }

  /// Answers a command that waited, or posts its error.
  private mutating func answer(_ id: String?, _ error: DialogError?) {
    if let id {
      post(.answer(DialogAnswer(id, error.map { .failed($0) } ?? .done(nil))))
    } else if let error {
      post(.error(error))
    }
  }

  private mutating func begin(_ beginning: IVHBeginning) {
    user = beginning.user ?? rules.creation.user
    voice = voice.atBeginning
    loss = nil
    policy = rules.reconnect
    requests = IVHRequests()
    start()
  }

  // MARK: Time

  private mutating func checkTime() {
    if let beatAt, now >= beatAt {
      policy.noteSuccess()
      self.beatAt = now &+ rules.heartBeat
      actions.append(.send(.command(.heartbeat(id: IVHID.make()))))
    }
    if let closeAt, now >= closeAt { closeSession() }
    guard let phaseEnd, now >= phaseEnd else { return }
    self.phaseEnd = nil
    switch phase {
    case .creating, .starting, .resuming:
      requests.forgetLifecycle()
      lose(
        Self.error(.network, .reconnect, "the service did not answer within \(rules.answer / 1_000_000) ms"))
    case .opening:
      lose(Self.error(.network, .reconnect, "the channel did not open within \(rules.answer / 1_000_000) ms"))
    case .preparing: poll()
    case .arriving:
      post(
        .network, .continue,
        "no first picture was reported within \(rules.picture / 1_000_000) ms; the session is started without it"
      )
      hasPicture = true
      proceed()
    case .thinking:
      post(
        .error(
          Self.error(
            .internal, .continue, "the avatar did not begin to speak within \(rules.reaction / 1_000_000) ms",
            of: .reply)))
      closeReply(by: nil)
      fallSilent()
    case .draining:
      // Playback did not report it: do not wait forever.
      reply.close()
      listen()
    case .speaking, .yielding:
      // The end was lost.
      closeReply(by: .local)
      fallSilent()
    case .waiting: if isConnected { resume() } else { connect() }
    case .listening: if texts.isEmpty { hangUp() } else { enter(.listening, limit: linger) }
    case .closing:
      // One that is still created is closed when its id is known.
      guard session != nil else { return finish(nil) }
      post(
        .network, .continue,
        "the service did not confirm the end of the session within \(rules.close / 1_000_000) ms; it closes idle sessions itself, after "
          + "10 minutes")
      finish(nil)
    default: break
    }
  }

  /// The end of what was spoken will not come any more.
  private mutating func fallSilent() {
    forgetVoice()
    for (gate, round) in gates.openAll() { post(.gate(gate, isOn: false, round: round)) }
    listen()
  }

  private mutating func poll() {
    guard let session else { return }
    if let preparedBy, now >= preparedBy {
      // Another one may be quicker.
      call(.close(session), for: .abandon)
      leaveSession()
      let text = "the session was not active within \(rules.prepare / 1_000_000_000) s"
      return lose(Self.error(.network, .reconnect, text))
    }
    call(.status(session), for: .poll)
    enter(.preparing, limit: rules.answer)
  }

  // MARK: Messages of the channel

  private mutating func take(_ push: IVHPush) {
    if rules.postsRaw { post(.extra(name: "commandChannel", payload: push.raw)) }
    if let other = push.session, other != session {
      return post(.unknown(push.raw))
    }
    switch push.event {
    case .input(let text, let interruption): take(text, interruption, push.round)
    case .newInput: post(.extra(name: "newInput", payload: .object(["round": push.round.json])))
    case .speech(let speech): take(speech, push.round)
    case .speaking(let change): take(change, push.round)
    case .moderated: failed(IVHFault(110_002), isReply: true, push.round)
    case .reasoning(let text):
      post(.extra(name: "reasoning", payload: .object(["text": .string(text), "round": push.round.json])))
    case .discarded(let text):
      post(.extra(name: "discarded", payload: .object(["text": .string(text), "round": push.round.json])))
      if phase == .thinking || phase == .yielding && !stop.isSent { listen() }
    case .failed(let fault, let isReply): failed(fault, isReply: isReply, push.round)
    case .unknown: post(.unknown(push.raw))
    }
  }

  private mutating func take(_ text: String, _ interruption: IVHPush.Interruption?, _ round: String?) {
    if let interruption { interruptionEnded(interruption, round) }
    guard !text.isEmpty else { return }
    let isEcho = text == texts.latest
    reply.transcript = isEcho ? nil : text
    post(.transcript(text: text, isFinal: isEcho, round: round))
  }

  private mutating func take(_ speech: IVHPush.Speech, _ round: String?) {
    guard !reply.isOver(round) else { return }
    finishTranscript()
    set(.uninterruptible, speech.isUninterruptible, round)
    set(.muted, speech.isMuted, round)
    for event in speech.events(round) { post(event) }
  }

  private mutating func set(_ gate: DialogGate, _ isOn: Bool, _ round: String?) {
    if gates.set(gate, isOn, round) { post(.gate(gate, isOn: isOn, round: round)) }
  }

  private mutating func finishTranscript() {
    guard let text = reply.transcript else { return }
    reply.transcript = nil
    post(.transcript(text: text, isFinal: true))
  }

  private mutating func take(_ change: IVHPush.Speaking, _ round: String?) {
    // After a channel is opened again, the service repeats states.
    guard !reply.isOver(round) else { return }
    switch change {
    case .waiting, .other: break
    case .started: began(round)
    case .over(let end): over(end, round)
    case .sentenceNext: post(.extra(name: "SentenceNext", payload: .object(["round": round.json])))
    case .sentenceStarted: post(.extra(name: "SentenceStart", payload: .object(["round": round.json])))
    case .sentenceOver: post(.extra(name: "SentenceOver", payload: .object(["round": round.json])))
    case .failed: failed(IVHFault(-111_005), isReply: true, round)
    }
  }

  private mutating func began(_ round: String?) {
    finishTranscript()
    switch phase {
    case .arriving, .starting:
      // The opening line, by the service's own clock or before its answer: the session is started.
      isStarted = true
      requests.forgetLifecycle()
      listen()
    case .speaking:
      reply.round = round
      return
    case .yielding:
      // It was interrupted before it began, which the service does not accept before now.
      reply.round = round
      if !stop.isSent, voice.state == .none || rules.generation == .stream { sendInterruption() }
      return enter(.yielding, limit: rules.reaction)
    case .listening, .thinking, .draining: break
    default: return
    }
    post(.state(.responding))
    reply.begin(round)
    post(.replyStarted(round: round))
    // A live voice has no limit.
    enter(.speaking, limit: voice.state == .running ? nil : rules.playback)
  }

  private mutating func over(_ end: IVHPush.End, _ round: String?) {
    for (gate, old) in gates.open(round) { post(.gate(gate, isOn: false, round: old)) }
    reply.end(round)
    // A late end of an earlier sentence.
    if phase == .speaking, let round, let present = reply.round, round != present { return }
    // What was spoken before a text that has interrupted it, or an end that comes twice.
    let isUnspoken = phase == .thinking && (reply.isSent(round) || voice.state != .none)
    guard phase == .speaking || phase == .yielding || isUnspoken, !reply.isEarlier(round) else { return }
    policy.noteSuccess()
    forgetVoice()
    guard phase == .speaking else { return listen() }
    if end == .interrupted {
      closeReply(by: .service)
      return listen()
    }
    reply.close()
    post(.replyEnded(round: round, utterances: 0))
    guard rules.followsPlayback else { return listen() }
    enter(.draining, limit: reply.isAudible ? rules.playback : reply.wasHeard ? rules.lag : rules.silence)
  }

  /// The avatar is silent, and what it said was heard.
  private mutating func listen() {
    enter(.listening, limit: linger)
    loss = nil
    // A text that waits is sent now, or in a moment.
    if texts.isEmpty { post(.state(.listening)) }
    endIfDone()
  }

  /// How long the avatar may be silent after the end of the user's audio.
  private var linger: Nanoseconds? { hasAudioEnded && rules.linger > 0 ? rules.linger : nil }

  private mutating func failed(_ fault: IVHFault, isReply: Bool, _ round: String?) {
    if fault.isReplaced || fault.hasNoSession { return loseSession(fault.error(), fault) }
    // A refusal that names nothing is of what was sent last, where it is not of the account.
    let isUnnamed = !isReply && isRunning && fault.isOfRequest
    let isReply = isReply || isUnnamed && (phase == .thinking || voice.state != .none)
    let error = fault.error(isReply ? .reply : isUnnamed ? .command : nil, round: round)
    guard isReply || isUnnamed || error.reaction == .continue else { return lose(error) }
    var passing = error
    passing.reaction = .continue
    post(.error(passing))
    guard isReply, phase == .thinking || phase == .speaking || phase == .yielding else { return }
    reply.end(round)
    forgetVoice()
    for (gate, old) in gates.open(round) { post(.gate(gate, isOn: false, round: old)) }
    closeReply(by: nil)
    listen()
  }

  // MARK: Interruptions

  /// Cuts off what is heard.
  /// - Parameter source: nil: an error, which says so itself.
  private mutating func closeReply(by source: InterruptionSource?) {
    guard reply.isOpen || phase == .draining || phase == .thinking else { return }
    let round = reply.round
    if reply.isOpen || phase == .draining { actions.append(.cancelReply) }
    reply.close()
    if let source { post(.interrupted(by: source, round: round)) }
  }

  private mutating func interrupt(isForced: Bool) {
    switch phase {
    case .draining:
      closeReply(by: .local)
      listen()
    case .thinking, .speaking:
      guard gates.isOn(.uninterruptible) else {
        closeReply(by: .local)
        return stopSpeaking(isForced: isForced)
      }
      guard isForced else {
        return refuse("the service does not allow this sentence to be interrupted; \"force\" interrupts it")
      }
      // The service says whether it obeys: until then the sentence is heard.
      guard rules.generation == .stream, phase == .speaking else {
        closeReply(by: .local)
        return stopSpeaking(isForced: true)
      }
      if commandID != nil { actions.append(.answerLater) }
      reply.interruptions.append(commandID)
      send(IVHCommand.interruption(id: IVHID.make(), isForced: true, rules.generation))
    case .yielding:
      guard isForced && !stop.isForced else { return }
      stop.isForced = true
      // The session generation knows one kind.
      if stop.isSent && rules.generation == .stream { sendInterruption() }
    default: break
    }
  }

  private mutating func interruptionEnded(_ interruption: IVHPush.Interruption, _ round: String?) {
    guard !reply.interruptions.isEmpty else { return }
    let id = reply.interruptions.removeFirst()
    guard interruption.isDone else {
      let reason = interruption.text.isEmpty ? "the service gave no reason" : interruption.text
      return answer(
        id, Self.error(.request, .continue, "the sentence was not interrupted: \(reason)", of: .command))
    }
    if let id { answer(id, nil) }
    guard phase == .thinking || phase == .speaking else { return }
    closeReply(by: .user)
    stop = (isSent: true, isForced: true)
    enter(.yielding, limit: rules.reaction)
  }

  /// Asks the service to stop, and waits for the end of what it spoke.
  private mutating func stopSpeaking(isForced: Bool) {
    let isVoice = voice.state == .running
    if isVoice { endVoice(isCut: true) }
    // In the session generation the last packet of a voice interrupts it.
    stop = (isSent: isVoice && rules.generation == .session, isForced: isForced)
    // Only what has begun can be interrupted.
    if !stop.isSent && (isVoice || phase == .speaking) { sendInterruption() }
    enter(.yielding, limit: rules.reaction)
  }

  private mutating func sendInterruption() {
    stop.isSent = true
    send(texts.interruption(isForced: stop.isForced, rules.generation))
  }

  /// Another node cancelled what is heard.
  private mutating func cancelled() {
    switch phase {
    case .draining:
      reply.close()
      post(.interrupted(by: .local, round: reply.round))
      listen()
    case .thinking, .speaking:
      reply.close()
      post(.interrupted(by: .local, round: reply.round))
      // It is not heard any more, whatever the service allows.
      stopSpeaking(isForced: gates.isOn(.uninterruptible))
    default: break
    }
  }

  // MARK: Texts and voice

  /// A text may be sent: the avatar is silent, and no voice drives it.
  private var canSpeak: Bool {
    (phase == .listening || phase == .draining) && (voice.state == .none || rules.creation.driver == .text)
  }

  /// Sends the text that waits, when it may be sent.
  private mutating func sendText() {
    if !texts.isEmpty, voice.state == .running, !rules.isBotReply, rules.creation.driver != .text, isRunning {
      endVoice(isCut: false)
    }
    guard canSpeak, let due = texts.dueAt, now >= due else { return }
    let sent = texts.take(at: now, gap: rules.textGap)
    for entry in sent {
      send(entry.message)
      if let id = entry.command { answer(id, nil) }
    }
    if let id = sent.first?.message.id { thinks(id) }
  }

  private mutating func send(_ command: IVHCommand) {
    guard rules.sendsTextsByHTTP, command.name == .text, let session else {
      return actions.append(.send(.command(command)))
    }
    call(.command(session, command), for: .text)
  }

  private mutating func thinks(_ id: String) {
    reply.send(id)
    post(.state(.thinking))
    enter(.thinking, limit: rules.reaction)
  }

  private mutating func voiceBegan() {
    guard rules.creation.driver != .text else {
      voice.isRecognised = true
      return
    }
    guard phase == .listening || phase == .draining else { return }
    voice.state = .running
    // The first status message brings its id.
    thinks("")
  }

  private mutating func endVoice(isCut: Bool) {
    guard voice.state == .running || voice.isRecognised && isRunning else { return }
    voice.isRecognised = false
    actions.append(.send(.endVoice(isCut: isCut)))
    guard voice.state == .running else { return }
    voice.state = .ending
    if phase == .speaking { phaseEnd = now &+ rules.playback }
  }

  private mutating func discardTexts(_ reason: String) {
    for id in texts.clear() {
      answer(id, Self.error(.request, .continue, "text discarded: \(reason)", of: .command))
    }
    discardInterruptions(reason)
  }

  private mutating func forgetRequests(_ reason: String) {
    for id in requests.forgetAll() {
      answer(id, Self.error(.network, .continue, "not answered: \(reason)", of: .command))
    }
  }

  private mutating func discardInterruptions(_ reason: String) {
    for id in reply.interruptions {
      answer(id, Self.error(.request, .continue, "not interrupted: \(reason)", of: .command))
    }
    reply.interruptions = []
  }

  // MARK: Commands

  private mutating func take(_ command: DialogCommand) {
    switch (phase, command) {
    case (.closed, _): break
    case (_, .begin(let values)): begin(values, named: "begin")
    case (_, .extra("newSession", let payload)): begin(payload.isNull ? nil : payload, named: "newSession")
    case (_, .mute(.audio, let isOn, nil)): voice.isMuted = isOn
    case (_, .refreshAuth(let token?)) where !token.isEmpty: actions.append(.useCredential(token))
    case (.closing, .hangUp(nil, _)), (.ended, .hangUp(nil, _)): break
    case (.closing, _): refuse("the session is ending")
    case (.ended, _): refuse("the session has ended; send \"begin\" for another")
    default: if let reason = rules.refusal(of: command) { refuse(reason) } else { obey(command) }
    }
  }

  private mutating func obey(_ command: DialogCommand) {
    switch command {
    case .say(let text, let isForced): speak(text, isVerbatim: true, isForced: isForced)
    case .ask(let text, _, let isForced): speak(text, isVerbatim: false, isForced: isForced)
    case .interrupt(let isForced): interrupt(isForced: isForced)
    case .hangUp(nil, let reason): hangUp(isLate: reason == DialogCommand.timeout)
    case .startSpeech: if rules.mode == .pushToTalk { voice.isWanted = true }
    case .stopSpeech:
      voice.isWanted = rules.mode == .duplex
      if rules.mode == .pushToTalk { endVoice(isCut: false) }
    case .cancelSpeech:
      voice.isWanted = rules.mode == .duplex
      if rules.mode == .pushToTalk && voice.state == .running { interrupt(isForced: false) }
    case .update(let values): update(values)
    case .extra("statSession", _):
      guard let session else { return refuse("there is no session") }
      query("statSession", .status(session))
    case .extra("listSession", let payload): list(payload)
    case .extra("queryConfig", _): query("queryConfig", .queryConfig)
    case .extra("streamText", let payload): streamText(payload)
    default: break
    }
  }

  private mutating func begin(_ values: JSONValue?, named name: String) {
    guard rules.waitsAfterEnd, !isDraining else {
      return refuse(
        isDraining
          ? "the graph is draining; no other session is begun" : "\"\(name)\" needs \"afterEnd\": \"wait\"")
    }
    guard phase == .ended || phase == .closing else {
      return refuse("a session is running; send \"hangUp\" before \"\(name)\"")
    }
    let beginning: IVHBeginning
    do throws(JSONFormProblem) { beginning = try IVHBeginning(values, id: commandID) } catch {
      return refuse("\"\(name)\": \(error)")
    }
    guard phase != .ended else { return begin(beginning) }
    if let next {
      answer(
        next.id, Self.error(.request, .continue, "\"\(name)\" discarded: another replaced it", of: .command))
    }
    next = beginning
    if commandID != nil { actions.append(.answerLater) }
  }

  private mutating func speak(_ text: String, isVerbatim: Bool, isForced: Bool) {
    queue(
      IVHCommand.text(text, id: IVHID.make(), isVerbatim: isVerbatim, isForced: isForced, rules.generation),
      saying: text, isForced: isForced)
  }

  /// - Parameter isMore: a further part of a text that was accepted.
  private mutating func queue(
    _ message: IVHCommand, saying text: String, isForced: Bool, isMore: Bool = false
  ) {
    guard !isDraining || isMore else { return refuse("the graph is draining; no more texts are accepted") }
    let entry = IVHTexts.Entry(message: message, text: text, command: commandID, isForced: isForced)
    guard texts.add(entry) else {
      return refuse("\(IVHTexts.most) texts are queued; wait until one is spoken")
    }
    if commandID != nil { actions.append(.answerLater) }
    guard isForced, phase == .thinking || phase == .speaking || phase == .draining else { return }
    let isSpoken = phase != .draining
    closeReply(by: .local)
    // A text interrupts a text by itself, if it may be sent now.
    if isSpoken && (voice.state == .running || texts.dueAt ?? 0 > now) {
      stopSpeaking(isForced: true)
    } else {
      enter(.listening)
    }
  }

  private mutating func update(_ values: JSONValue) {
    guard let session, isRunning, isConnected else { return refuse("there is no session to change") }
    do throws(JSONFormProblem) {
      call(.configure(session, try IVHPictureUpdate(values)), for: .update(commandID))
      if commandID != nil { actions.append(.answerLater) }
    } catch { refuse("\(error)") }
  }

  private mutating func list(_ payload: JSONValue) {
    do throws(JSONFormProblem) {
      query("listSession", .list(try IVHCall.Scope(payload, rules.generation), rules.generation))
    } catch { refuse("\"listSession\": \(error)") }
  }

  private mutating func query(_ name: String, _ request: IVHCall) {
    guard isConnected, phase != .connecting else { return refuse("there is no connection yet") }
    call(request, for: .query(name, commandID))
    if commandID != nil { actions.append(.answerLater) }
  }

  /// A part of a text that is being written, such as the output of a language model.
  private mutating func streamText(_ payload: JSONValue) {
    do throws(JSONFormProblem) {
      let (message, text, isFirst) = try texts.part(payload)
      guard !isFirst, !texts.isQueued(message.id), isRunning else {
        return queue(message, saying: text, isForced: false, isMore: !isFirst)
      }
      texts.latest = text
      send(message)
    } catch { refuse("\"streamText\": \(error)") }
  }
}
