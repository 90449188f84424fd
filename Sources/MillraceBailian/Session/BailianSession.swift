public import MillraceCore
public import MillraceDialog
internal import MillraceJSON

/// One dialogue as a pure state machine: it takes what happened and when, and returns what to do.
///
/// ```
///                        Listening             SpeechStarted             SpeechEnded
/// connecting ▸ starting ───────────▸ listening ─────────────▸ talking ───────────────▸ thinking
///      ▴                                 ▴                                                │ Responding
///      │ backoff ends                    │ Listening                                      ▾
///   waiting ◂─ lost, from anywhere    yielding ◂─ played ─ draining ◂─ RespondingEnded ─ responding
/// ```
///
/// Every input is legal in every phase. The session has no socket, no clock and no thread; `BailianDialog` is the node around it, and
/// `Tests/MillraceBailianTests/SessionTables.swift` lists every phase with every input.
///
/// Where the vendor's documents leave the order of events open (a barge-in may be announced by RequestAccepted, Listening,
/// SpeechStarted or RespondingEnded first), each of them ends the reply.
public struct BailianSession: ServiceSession {
  /// The phase of a dialogue.
  public enum Phase: String, Sendable, Hashable, CaseIterable {
    /// Not started; opening the WebSocket.
    case idle, connecting
    /// Start was sent; audio is not allowed yet.
    case starting
    /// The service listens, and the user is silent.
    case listening
    /// The user is speaking: after a button or a tap, or as detected by the service.
    case talking
    /// The service prepares its reply; its audio arrives.
    case thinking, responding
    /// The reply has arrived completely, and is still playing.
    case draining
    /// The reply has ended here; waiting for the service to listen.
    case yielding
    /// Between two connections.
    case waiting
    /// Stop was sent.
    case stopping
    /// The dialogue has ended; `begin` starts another.
    case ended
    /// Closed for good.
    case closed
  }

  /// The rules.
  public let rules: BailianRules
  /// The current phase.
  public private(set) var phase = Phase.idle
  /// The id of the dialogue; a new connection resumes it.
  public private(set) var dialog: String?
  /// When to call with `tick`; nil: never.
  public var deadline: Nanoseconds? { [phaseEnd, beatAt, silentAt, drainedBy].compactMap { $0 }.min() }

  private var reply = BailianReply()
  private var speech = BailianSpeech()
  private var video = BailianVideo()
  private var commands = BailianCommands()
  private var updates = BailianUpdates()
  /// The question that waits until the service listens, and the `id` of its command.
  private var question: (request: BailianRequest.Respond, id: String?)?
  /// The `id` of the command being handled.
  private var commandID: String?
  /// RequestToSpeak was sent and not answered by Listening yet.
  private var isAsked = false
  /// The service rejected the key; waiting for a new one.
  private var expired: DialogError?
  private var hasStarted = false
  /// `begin` arrived while the dialogue before was ending.
  private var next: (beginning: BailianBeginning, id: String?)?
  /// The graph drains: no other dialogue follows.
  private var isDraining = false
  /// Why there is no dialogue.
  private var loss: DialogError?
  /// When a dialogue that drains ends even if the service never listens again; nil: it does not drain.
  private var drainedBy: Nanoseconds?
  private var isStrayReported = false
  private var policy: ReconnectPolicy
  private var phaseEnd: Nanoseconds?
  private var beatAt: Nanoseconds?
  private var silentAt: Nanoseconds?
  private var now: Nanoseconds = 0
  private var actions: [BailianAction] = []

  /// Creates a session that has not started.
  public init(_ rules: BailianRules) {
    self.rules = rules
    policy = rules.reconnect
    dialog = rules.start.dialog
    video.isWanted = rules.live == .start
  }

  private var mode: DialogMode { rules.start.upstream.mode }

  /// What to do with audio from the microphone now.
  public var uplink: VoiceUplink { speech.uplink(in: phase, mode) }

  /// How many commands of the service are kept for the end of its reply.
  var pendingCommands: Int { commands.count }

  /// The user's audio is muted.
  public var isMuted: Bool { speech.isMuted }
  /// Stop was sent.
  public var isEnding: Bool { phase == .stopping }
  /// Closed for good.
  public var isClosed: Bool { phase == .closed }

  /// True when images may be sent now: the service has opened the video channel.
  public var takesPictures: Bool {
    guard video.state == .on && !video.isMuted else { return false }
    switch phase {
    case .listening, .talking, .thinking, .responding, .draining, .yielding: return true
    default: return false
    }
  }

  /// Handles an input and returns the actions it causes. Time must not run backwards.
  public mutating func handle(_ input: BailianInput, at time: Nanoseconds) -> [BailianAction] {
    now = max(now, time)
    actions = []
    let before = phase
    checkTime()
    switch input {
    case .tick: break
    case .start: if phase == .idle { start() }
    // The connection requested just now can be neither open nor lost: these inputs belong to the one before.
    case .opened where before == .waiting, .lost where before == .waiting: break
    case .opened: opened()
    case .message(let message): if isOpen { take(message) }
    case .invalidMessage(let text): if isOpen { post(.network, .continue, "invalid message: \(text)") }
    case .audio: if isOpen { takeAudio() }
    case .lost(let error): lost(error)
    case .command(let command, let id):
      commandID = id
      take(command)
      commandID = nil
    case .audible: audible()
    case .finished: if rules.followsPlayback { played() }
    case .delivered: if !rules.followsPlayback { played() }
    case .replyCancelled: replyCancelled()
    case .audioEnded: audioEnded()
    case .voiceBegan, .voiceEnded, .firstPicture, .image, .imageHeld: break
    case .sourcesEnded: sourcesEnded()
    case .drain:
      isDraining = true
      if phase != .closed && phase != .stopping { drain() }
    }
    return actions
  }

  /// Restarts the timeout for silence, while nothing is read from the service because the graph has no room.
  public mutating func excuseSilence(at time: Nanoseconds) {
    if silentAt != nil { silentAt = time &+ rules.silence }
  }

  private func isConnected(_ phase: Phase) -> Bool {
    switch phase {
    case .idle, .connecting, .waiting, .ended, .closed: false
    default: true
    }
  }

  private var isOpen: Bool { isConnected(phase) }

  private mutating func post(_ event: DialogEvent) { actions.append(.post(event)) }
  private mutating func send(_ request: BailianRequest) { actions.append(.send(request)) }

  private static func error(
    _ category: DialogError.Category, _ reaction: DialogError.Reaction, _ text: String
  ) -> DialogError {
    DialogError(vendor: "bailian", category: category, reaction: reaction, text: text)
  }

  private mutating func post(
    _ category: DialogError.Category, _ reaction: DialogError.Reaction, _ text: String
  ) {
    post(.error(Self.error(category, reaction, text)))
  }

  /// Refuses the command that is being handled.
  private mutating func refuse(_ text: String) { actions.append(.refuse(Self.refusal(text))) }

  private static func refusal(_ text: String) -> DialogError {
    var result = error(.request, .continue, text)
    result.scope = .command
    return result
  }

  /// The question that waits for its turn will never be asked.
  private mutating func discardQuestion(_ reason: String) {
    guard let old = question else { return }
    question = nil
    let error = Self.refusal("question discarded: \(reason)")
    post(old.id.map { .answer(DialogAnswer($0, .failed(error))) } ?? .error(error))
  }

  /// Enters a phase, with a timeout or without.
  private mutating func enter(_ next: Phase, limit: Nanoseconds? = nil) {
    phase = next
    phaseEnd = limit.map { now &+ $0 }
    if !isConnected(next) {
      beatAt = nil
      silentAt = nil
    }
  }

  // MARK: Connection

  private mutating func start() {
    post(.state(.connecting))
    connect()
  }

  /// Begins another dialogue. Of the one before only the microphone's state is kept.
  private mutating func begin(_ beginning: BailianBeginning) {
    dialog = beginning.dialog
    reply = BailianReply()
    speech = speech.atBeginning
    video = BailianVideo()
    video.isWanted = rules.live == .start
    _ = commands.take()
    updates = BailianUpdates()
    isStrayReported = false
    loss = nil
    policy = rules.reconnect
    start()
  }

  private mutating func connect() {
    enter(.connecting)
    speech.hasListened = false
    hasStarted = false
    isAsked = false
    video.state = .off
    actions.append(.connect)
  }

  private mutating func opened() {
    guard phase == .connecting else { return }
    post(.connected)
    enter(.starting, limit: rules.begin)
    silentAt = now &+ rules.silence
    var start = rules.start
    start.dialog = dialog
    send(.start(start))
  }

  private mutating func lost(_ error: DialogError) {
    switch phase {
    case .idle, .waiting, .ended, .closed: return
    case .stopping: finish(nil)
    default:
      let hasExpired = error.category == .auth && dialog != nil
      if hasExpired { post(.authExpired) }
      post(.error(error))
      guard hasExpired && phase == .connecting && rules.renew > 0 else { return reconnect(after: error) }
      if isDraining { return finish(error) }
      expired = error
      loss = error
      enter(.waiting, limit: rules.renew)
    }
  }

  /// The connection has to end: the service says so, or this side finds it unusable.
  private mutating func fail(_ error: DialogError) {
    post(.error(error))
    actions.append(.disconnect)
    if phase == .stopping { finish(nil) } else { reconnect(after: error) }
  }

  /// Reconnects, or ends, as the error requires.
  private mutating func reconnect(after error: DialogError) {
    // A reply that has arrived completely is played to its end.
    if phase == .draining { reply.clear() }
    cutReply(by: .service)
    reply.clear()
    // The button is still down: what is said meanwhile is kept.
    if phase == .talking && mode == .pushToTalk || speech.isTapped { speech.isWanted = true }
    speech.isTapped = false
    if video.state != .off { video.isWanted = true }
    _ = commands.take()
    loss = error
    // No more audio will follow, and what was said has no listener.
    if isDraining || speech.hasEnded && phase == .connecting {
      // A reply that has arrived completely is all that was awaited.
      return finish(isDraining && phase == .draining ? nil : error)
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

  /// Ends the dialogue; what has arrived of a reply is still played.
  private mutating func drain() {
    closeReply()
    hangUp()
  }

  /// Ends the dialogue at once, and cuts off the reply.
  /// - Parameter isLate: `dialog.turn` has waited too long; without a dialogue that is a failure.
  private mutating func hangUp(isLate: Bool = false) {
    switch phase {
    case .idle, .ended: finish(nil)
    case .starting where isLate, .connecting, .waiting:
      actions.append(.disconnect)
      finish(isLate ? loss ?? .notReady("bailian") : nil)
    default:
      cutReply(by: .local)
      reply.clear()
      send(.stop)
      enter(.stopping, limit: rules.close)
    }
  }

  private mutating func finish(_ error: DialogError?) {
    discardQuestion("the dialogue has ended")
    drainedBy = nil
    if phase != .ended { post(.state(.closed)) }
    guard rules.waitsAfterEnd && !isDraining && error == nil else {
      discardBeginning("the node ends")
      enter(.closed)
      return actions.append(.end(error))
    }
    enter(.ended)
    expired = nil
    if let next {
      self.next = nil
      if let id = next.id { post(.answer(DialogAnswer(id, .done(nil)))) }
      begin(next.beginning)
    }
  }

  /// The dialogue that waits for the end of this one will not begin.
  private mutating func discardBeginning(_ reason: String) {
    guard let old = next else { return }
    next = nil
    let error = Self.refusal("\"begin\" discarded: \(reason)")
    post(old.id.map { .answer(DialogAnswer($0, .failed(error))) } ?? .error(error))
  }

  private mutating func checkTime() {
    if let silentAt, now >= silentAt {
      return fail(
        Self.error(
          .network, .reconnect, "no message from the service for \(rules.silence / 1_000_000_000) s"))
    }
    if let beatAt, now >= beatAt {
      self.beatAt = now &+ rules.heartBeat
      send(.heartBeat)
    }
    if let drainedBy, now >= drainedBy {
      self.drainedBy = now &+ rules.drain
      if phase != .responding && phase != .draining && phase != .stopping { return hangUp() }
    }
    guard let phaseEnd, now >= phaseEnd else { return }
    self.phaseEnd = nil
    switch phase {
    case .waiting:
      if let expired { finish(expired) } else { connect() }
    case .starting:
      fail(
        Self.error(
          .network, .reconnect,
          "the service did not start the dialogue within \(rules.begin / 1_000_000) ms"))
    case .draining:
      // Playback did not report the end; the service must not wait for ever.
      cutReply(by: .local)
      reportPlayed()
    case .listening: hangUp()
    case .stopping:
      actions.append(.disconnect)
      finish(nil)
    default: break
    }
  }

  // MARK: Messages of the service

  private mutating func take(_ message: BailianMessage) {
    silentAt = now &+ rules.silence
    if let usage = message.usage { post(.usage(usage)) }
    // Before the event itself, which may end the session: nothing is posted after that.
    for member in message.rest { post(.extra(name: member.name, payload: member.value)) }
    let isActive = phase != .stopping
    switch message.event {
    case .heartBeat, .taskStarted: break
    case .started: if isActive { started(message) }
    case .state(let state): if isActive { take(state) }
    case .speechStarted: if isActive { speechStarted() }
    case .speechContent(let text, let isFinished): post(.transcript(text: text, isFinal: isFinished))
    case .speechEnded: if isActive { speechEnded() }
    case .respondingStarted: if isActive { respondingStarted() }
    case .respondingContent(let content): take(content)
    case .respondingEnded: if isActive { respondingEnded() }
    case .requestAccepted: if isActive { requestAccepted() }
    case .error(let fault): take(fault)
    case .stopped: if isActive { ended() }
    case .taskFinished: ended()
    case .unknown: post(.unknown(message.raw))
    }
  }

  private mutating func started(_ message: BailianMessage) {
    if let id = message.dialog {
      dialog = id
      post(.conversationStarted(id: id))
    }
    beatAt = now &+ rules.heartBeat
    if let merged = updates.merged, !hasStarted { send(.updateInfo(merged)) }
    hasStarted = true
  }

  /// The service has ended the dialogue.
  private mutating func ended() {
    // What has arrived is still played; a reply without audio is interrupted.
    if reply.hasAudio { closeReply() } else { cutReply(by: .service) }
    actions.append(.disconnect)
    finish(nil)
  }

  private mutating func take(_ state: BailianMessage.State) {
    switch state {
    case .listening: listening()
    case .thinking: thinking()
    case .responding:
      post(.state(.responding))
      beginReply()
    }
  }

  private mutating func listening() {
    speech.hasListened = true
    loss = nil
    if beatAt == nil { beatAt = now &+ rules.heartBeat }
    // The service repeats it while the user is speaking.
    guard phase != .talking else { return post(.state(.listening)) }
    cutReply(by: .service)
    reply.clear()
    reply.forgetStart()
    isAsked = false
    isStrayReported = false
    enter(.listening, limit: linger)
    post(.state(.listening))
    if video.state == .requested { video.state = .on }
    takeTurn()
  }

  /// The service listens: carries out what waited for it.
  private mutating func takeTurn() {
    for command in commands.take() {
      post(.command(name: command.name, payload: command.payload))
      if rules.live != .never { applyVideo(command.name) }
    }
    if speech.isWanted {
      startSpeech()
    } else if phase == .listening, let next = question {
      question = nil
      if let id = next.id { post(.answer(DialogAnswer(id, .done(nil)))) }
      ask(next.request)
    } else if video.isWanted && video.state == .off {
      openVideo()
    }
  }

  private mutating func applyVideo(_ command: String) {
    switch command {
    case "open_videochat": video.isWanted = true
    case "send_video_stream": video.state = .on
    case "quit_videochat":
      video.isWanted = false
      if video.state != .off { closeVideo() }
    case "stop_video_stream": video.state = .off
    default: break
    }
  }

  private mutating func thinking() {
    post(.state(.thinking))
    // Sent before the service knew that the user wants to speak.
    guard !isAsked else { return }
    if phase == .responding || phase == .draining { cutReply(by: .service) }
    if reply.state != .open || phase != .thinking { reply.open() }
    enter(.thinking)
  }

  private mutating func respondingStarted() {
    if !reply.isStartPosted { post(.replyStarted(round: nil)) }
    beginReply()
    reply.startPosted()
    if !rules.followsPlayback { audible() }
  }

  private mutating func beginReply() {
    // Once the reply has arrived completely, a late or repeated message must not start a wait for more.
    guard !isAsked, reply.state != .cut, phase != .draining else { return }
    if reply.state == .none { reply.open() }
    enter(.responding)
    reportAudible()
  }

  private mutating func take(_ content: BailianMessage.Content) {
    if commands.append(content.commands) {
      post(
        .internal, .continue,
        "the service sends commands without listening; \(BailianCommands.capacity) are kept, the rest are discarded"
      )
    }
    post(
      .reply(
        DialogReply(
          text: content.text, spoken: content.spoken, isFinal: content.isFinished,
          mode: rules.start.downstream.isIncremental ? .append : .replace, round: content.round)))
    for member in content.extra { post(.extra(name: member.name, payload: member.value)) }
  }

  private mutating func respondingEnded() {
    guard phase != .draining && !reply.isEndPosted else { return }
    reply.endPosted()
    guard reply.state == .open else { return post(.replyEnded(round: nil, utterances: 0)) }
    if reply.hasAudio {
      actions.append(.endUtterance)
      post(.replyEnded(round: nil, utterances: 1))
      enter(.draining, limit: rules.playback)
    } else {
      post(.replyEnded(round: nil, utterances: 0))
      reportPlayed()
    }
  }

  private mutating func speechStarted() {
    post(.speechStarted)
    // In push-to-talk only the button starts speech.
    if phase == .listening && mode != .pushToTalk { enter(.talking) }
    // While the service is thinking, the user continues the same utterance.
    guard mode == .duplex, phase == .responding || phase == .draining else { return }
    if cutReply(by: .user) { enter(.yielding) }
  }

  private mutating func speechEnded() {
    post(.speechEnded)
    speech.isTapped = false
    guard phase == .talking else { return }
    reply.clear()
    enter(.thinking)
  }

  private mutating func requestAccepted() {
    if !cutReply(by: .user) { post(.interrupted(by: .user)) }
    switch phase {
    case .thinking, .responding, .draining: enter(.yielding)
    default: break
    }
  }

  private mutating func take(_ fault: BailianFault) {
    var error = fault.error
    guard !fault.isFatal else { return fail(error) }
    // While an answer is being prepared, what the service refuses is the question.
    if phase == .talking || phase == .thinking { error.scope = .reply }
    post(.error(error))
    // A refused command leaves the reply that is being heard as it is.
    guard error.scope == .reply else { return }
    cutReply(by: nil)
    switch phase {
    case .talking, .thinking, .responding, .draining:
      speech.isTapped = false
      enter(.yielding)
    default: break
    }
  }

  private mutating func takeAudio() {
    silentAt = now &+ rules.silence
    switch (phase, reply.state) {
    case (.thinking, .none), (.responding, .none): reply.open()
    case (.thinking, .open), (.responding, .open): break
    case (_, .cut), (.stopping, _), (.yielding, _): return
    default:
      // Reported once until the service listens again.
      guard !isStrayReported else { return }
      isStrayReported = true
      return post(.internal, .continue, "audio arrived without a reply; it is discarded")
    }
    reply.audioArrived()
    actions.append(.deliver)
  }

  // MARK: The reply

  /// Cuts off the reply. Returns false when there is none.
  @discardableResult
  private mutating func cutReply(by source: InterruptionSource?) -> Bool {
    guard reply.state == .open else { return false }
    reply.cut()
    if reply.hasAudio { actions.append(.cancelReply) }
    if let source { post(.interrupted(by: source)) }
    return true
  }

  /// Nothing more arrives of the reply: what has arrived is a complete utterance, and is played to its end.
  private mutating func closeReply() {
    guard reply.state == .open else { return }
    reply.clear()
    guard reply.hasAudio && !reply.isEndPosted else { return }
    reply.endPosted()
    actions.append(.endUtterance)
    if !reply.isStartPosted { post(.replyStarted(round: nil)) }
    post(.replyEnded(round: nil, utterances: 1))
  }

  private mutating func audible() {
    guard reply.state == .open else { return }
    reply.becameAudible()
    reportAudible()
  }

  /// Audio may be played before the service announces the reply: it is informed after that.
  private mutating func reportAudible() {
    guard phase == .responding || phase == .draining, reply.takeAudible() else { return }
    send(.localRespondingStarted)
  }

  /// An utterance was played to its end.
  private mutating func played() {
    guard phase == .draining, reply.state == .open else { return }
    reportPlayed()
  }

  /// Informs the service that the reply was played.
  private mutating func reportPlayed() {
    send(.localRespondingEnded)
    reply.clear()
    reply.forgetStart()
    policy.noteSuccess()
    enter(.yielding)
  }

  /// Another node has cancelled the reply. The service is informed of an interruption, not of a reply that was played; an `interrupt`
  /// command that may follow finds this already done.
  private mutating func replyCancelled() {
    guard reply.state == .open, reply.hasAudio else { return }
    reply.cut()
    interrupt()
  }

  // MARK: Commands

  private mutating func take(_ command: DialogCommand) {
    switch (phase, command) {
    case (.closed, _): break
    case (.ended, .begin), (.stopping, .begin): obey(command)
    case (.stopping, _): break
    case (.ended, .refreshAuth), (.ended, .mute): obey(command)
    case (.ended, _): refuse("the dialogue has ended; send \"begin\" for another")
    default: obey(command)
    }
  }

  private mutating func obey(_ command: DialogCommand) {
    switch command {
    case .startSpeech: startSpeech()
    case .stopSpeech: stopSpeech()
    case .cancelSpeech: cancelSpeech()
    // No reply of this service is uninterruptible.
    case .interrupt: interrupt()
    case .say(let text, _): ask(BailianRequest.Respond(.transcript, text))
    case .ask(let text, let images, _): ask(BailianRequest.Respond(.prompt, text, images: images))
    case .update(let values): update(values)
    case .mute(.audio, let isOn, nil): speech.isMuted = isOn
    case .mute(.video, let isOn, nil): video.isMuted = isOn
    case .refreshAuth(let token?): renew(token)
    case .hangUp(nil, let reason): hangUp(isLate: reason == DialogCommand.timeout)
    case .begin(let values): begin(values)
    case .extra(let name, let payload): obey(name, payload)
    case .refreshAuth(nil): refuse("\"refreshAuth\" needs a \"token\": the node cannot fetch a key itself")
    case .setRole, .mute, .hangUp, .call, .answerCall, .publish, .subscribe, .data:
      refuse("\"\(command.name)\" is not supported by the service: there is one user, no room and no call")
    }
  }

  /// Begins another dialogue now, or as soon as the one before has ended.
  private mutating func begin(_ values: JSONValue?) {
    guard rules.waitsAfterEnd, !isDraining else {
      return refuse("\"begin\" needs a node with \"afterEnd\": \"wait\" in a graph that does not drain")
    }
    guard phase == .ended || phase == .stopping else {
      return refuse("the dialogue has not ended; send \"hangUp\" before \"begin\"")
    }
    let beginning: BailianBeginning
    do throws(JSONFormProblem) { beginning = try BailianBeginning(values) } catch {
      return refuse("\"begin\": \(error)")
    }
    guard phase != .ended else { return begin(beginning) }
    discardBeginning("another one replaced it")
    next = (beginning, commandID)
    if commandID != nil { actions.append(.answerLater) }
  }

  /// Uses a key for the next connection; connects at once when the service had rejected the old one.
  private mutating func renew(_ key: String) {
    guard !key.isEmpty, CredentialText.isHeaderValue(key) else {
      return refuse("the \"token\" of \"refreshAuth\" is empty or contains a line break; send the key alone")
    }
    actions.append(.useCredential(key))
    guard expired != nil else { return }
    expired = nil
    connect()
  }

  /// Requests under the vendor's own names: members of `biz_params`.
  private mutating func obey(_ name: String, _ payload: JSONValue) {
    switch name {
    case "videos" where payload.array?.first?["action"]?.string == "connect":
      video.isWanted = true
      if phase == .listening { openVideo() }
    case "videos" where payload.array?.first?["action"]?.string == "exit":
      video.isWanted = false
      closeVideo()
    case "videos", "commands", "command_results":
      let biz: JSONValue = .object([JSONValue.Member(name, payload)])
      ask(BailianRequest.Respond(.prompt, "", biz: biz))
    case "RequestToRespond": request(payload)
    default: refuse("\"\(name)\" is not supported by the service")
    }
  }

  /// The vendor's complete request: `type`, `text`, and `parameters` unchanged, for this request only.
  private mutating func request(_ payload: JSONValue) {
    guard let kind = BailianRequest.Respond.Kind(rawValue: payload["type"]?.string ?? "prompt") else {
      return refuse("\"RequestToRespond\": \"type\" must be prompt or transcript")
    }
    let parameters = payload["parameters"]
    guard parameters == nil || parameters?.members != nil else {
      return refuse("\"RequestToRespond\": \"parameters\" must be an object")
    }
    ask(BailianRequest.Respond(kind, payload["text"]?.string ?? "", parameters: parameters))
  }

  private mutating func startSpeech() {
    guard mode != .duplex else { return }
    switch phase {
    case .listening:
      speech.isWanted = false
      if mode == .pushToTalk { send(.sendSpeech) } else { speech.isTapped = true }
      enter(.talking)
    case .thinking, .responding, .draining:
      speech.isWanted = true
      interrupt()
    case .talking where mode == .tapToTalk: speech.isTapped = true
    case .talking: break
    default: speech.isWanted = true
    }
  }

  private mutating func stopSpeech() {
    speech.isWanted = false
    speech.isTapped = false
    guard mode == .pushToTalk, phase == .talking else { return }
    send(.stopSpeech)
    reply.clear()
    enter(.thinking)
  }

  private mutating func cancelSpeech() {
    speech.isWanted = false
    speech.isTapped = false
    guard mode != .duplex, phase == .talking else { return }
    send(.cancelSpeech)
    enter(.listening, limit: linger)
  }

  /// Interrupts the reply with one request: the service counts them.
  private mutating func interrupt() {
    switch phase {
    case .thinking, .responding, .draining: break
    default: return
    }
    cutReply(by: nil)
    reply.cut()
    isAsked = true
    send(.requestToSpeak)
    enter(.yielding)
  }

  /// The microphone has ended: silence is sent instead, and after `linger` without activity the dialogue ends.
  private mutating func audioEnded() {
    speech.hasEnded = true
    if mode == .pushToTalk { stopSpeech() }
    if phase == .listening { enter(.listening, limit: linger) }
  }

  /// How long the service may listen to silence until the dialogue ends; nil: for ever.
  private var linger: Nanoseconds? {
    if speech.hasEnded && rules.linger > 0 { return rules.linger }
    return isDraining ? 0 : nil
  }

  /// The graph drains: the reply is played to its end, and a dialogue that would wait for ever ends.
  private mutating func sourcesEnded() {
    isDraining = true
    guard phase != .closed else { return }
    drainedBy = now &+ rules.drain
    switch phase {
    case .ended: finish(nil)
    case .waiting where expired != nil: finish(expired)
    case .listening where linger == 0: hangUp()
    default: break
    }
  }

  /// Asks now, or when the service listens; a newer question replaces an older one.
  private mutating func ask(_ request: BailianRequest.Respond) {
    if let problem = request.problem { return refuse("question discarded: \(problem)") }
    guard phase == .listening || phase == .talking && mode == .duplex else {
      discardQuestion("another one replaced it")
      question = (request, commandID)
      if commandID != nil { actions.append(.answerLater) }
      return
    }
    send(.requestToRespond(request))
    reply.clear()
    enter(.thinking)
  }

  /// Sends an update now, and again on every new connection. Without a dialogue it waits for one, with the latest value of each member;
  /// images do not wait, as they show the past.
  private mutating func update(_ values: JSONValue) {
    updates.merge(values.members?.filter { $0.name != "images" } ?? [])
    guard hasStarted && isOpen else {
      if values["images"] != nil { refuse("image discarded: there is no dialogue") }
      return
    }
    send(.updateInfo(values))
  }

  private mutating func openVideo() {
    guard rules.start.upstream.hasVideo else {
      video.isWanted = false
      return refuse("a video channel needs \"AudioAndVideo\" from the start")
    }
    video.state = .requested
    ask(BailianVideo.request("connect"))
  }

  private mutating func closeVideo() {
    video.state = .off
    ask(BailianVideo.request("exit"))
  }
}
