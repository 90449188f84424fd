public import MillraceCore

/// Whose turn it is: the rules of a dialogue as a pure state machine. It takes what happened and when, and returns what to do.
///
/// ```
///             serviceListening          speechStarted / press          speechEnded / release
/// connecting ────────────────▸ listening ───────────────▸ hearing ───────────────▸ thinking
///                                 ▴                                                   │ replyStarted
///                                 │ serviceListening                                  ▾
///                              yielding ◂── played to the end ─ draining ◂──── responding
///                                 ▴                                 │  replyEnded     │ voiceStarted
///                                 │ minimumSpeech of voice          ▾                 ▾
///                                 └──────────────────────────── suspecting ◂──────────┘
///                                                               (ducked; returns when it was not speech)
/// ```
///
/// Every input is legal in every state. Every waiting state has a deadline; `handle(.tick)` at or after it, or any other input,
/// applies the timeout. The machine has no clock and no thread, does not allocate, and parses nothing: `dialog.turn` is the node
/// around it.
///
/// - A reply that the service declares uninterruptible is interrupted by the button, a timeout or a command with `force`; those ask the
///   service with `force` too. A voice and any other command leave it alone, and a question waits for its end.
/// - An event about another reply than the one here, as its round shows, is ignored: it is late.
/// - After `closed` a new dialogue may follow: the service's state `connecting` begins it, and nothing of the old one is left.
///
/// It does *not* look at audio, does not decide when the user has finished a sentence (the service does), and does not repeat what
/// was lost with a connection.
public struct TurnMachine: Sendable {
  /// What the user did while the service could not take it yet.
  private enum Pending: Sendable, Hashable {
    case nothing, speech, question
  }

  /// The rules.
  public let rules: TurnRules
  /// The current state.
  public private(set) var state = TurnState.idle
  /// The number of the current reply: playback reports of older ones only say what was heard. Set it before `handle`.
  public var generation: UInt32 = 1
  /// When the current state times out; nil in states that may last.
  public private(set) var deadline: Nanoseconds?

  private var pending = Pending.nothing
  /// The reply must not be interrupted by a voice.
  private var isUninterruptible = false
  private var isMuted = false
  /// The service's latest state is listening.
  private var serviceListens = false
  /// Replies up to this number are cancelled.
  private var lastCancelled: UInt32 = 0
  /// `generation` when this reply began: once it differs, the reply has already been cancelled elsewhere.
  private var replyGeneration: UInt32 = 0
  /// The reply was cancelled elsewhere on this machine, and the service has not reported it yet: unless it does, it is asked to stop.
  private var owesInterrupt = false
  /// The reply before `yielding` was cut off: what still arrives of it is ignored.
  private var isCut = false
  private var rounds = ReplyRounds()
  /// The round of the input being handled.
  private var inputRound = TurnRound.unknown
  private var progress = ReplyProgress()
  private var bargeIn = PossibleBargeIn()
  private var actions = TurnActions()
  private var now: Nanoseconds = 0
  private var changes = TurnTrace()

  /// Creates an idle machine.
  public init(_ rules: TurnRules) { self.rules = rules }

  /// The latest 32 changes of state, oldest first. Allocates: for programs and tests.
  public var trace: [TurnChange] { changes.list }

  /// Handles an input and returns the actions it causes.
  /// - Parameters:
  ///   - input: what happened.
  ///   - round: the reply an event of the service concerns.
  ///   - time: when; must not run backwards.
  public mutating func handle(
    _ input: TurnInput, round: TurnRound = .unknown, at time: Nanoseconds
  ) -> TurnActions {
    actions.clear()
    inputRound = round
    now = max(now, time)
    if let deadline, now >= deadline { timeOut() }
    switch input {
    case .tick: break
    case .uninterruptible(let isOn):
      isUninterruptible = isOn
      if isOn && state == .suspecting { resumeReply() }
    case .muted(let isOn):
      isMuted = isOn
      if isOn && state == .suspecting { resumeReply() }
    case .audible(let reply): noteAudible(reply)
    case .finished(let reply, let samples, let time): noteFinished(reply, samples, time)
    case .cut(let reply, let samples, let time):
      if samples > 0 {
        actions.add(.heard(reply: reply, samples: samples, milliseconds: time, isWhole: false))
      }
    default: dispatch(input)
    }
    return actions
  }

  /// Why a command of the user would have no effect now; nil: it is carried out, or waits for its turn.
  public func refusal(of input: TurnInput) -> TurnRefusal? {
    switch input {
    case .press, .release, .cancel, .interrupt, .hangUp:
      if state == .closing || state == .closed { return .ended }
    default: return nil
    }
    switch input {
    case .press, .release: return rules.mode == .duplex ? .noButton : nil
    case .interrupt(isForced: false): return isUninterruptible && hasReply ? .uninterruptible : nil
    default: return nil
    }
  }

  /// The service is answering: there is something to interrupt.
  private var hasReply: Bool {
    switch state {
    case .thinking, .responding, .draining, .suspecting: true
    default: false
    }
  }

  private mutating func dispatch(_ input: TurnInput) {
    if isLate(input) || refusal(of: input) == .uninterruptible { return }
    noteServiceState(input)
    // The button was released before the service listened.
    if (input == .release || input == .cancel) && pending == .speech { pending = .nothing }
    if handleInAnyState(input) { return }
    switch state {
    case .idle: whenIdle(input)
    case .connecting, .reconnecting: whenConnecting(input)
    case .listening: whenListening(input)
    case .hearing: whenHearing(input)
    case .thinking: whenThinking(input)
    case .responding, .draining: whenReplying(input)
    case .suspecting: whenSuspecting(input)
    case .yielding: whenYielding(input)
    case .closing, .closed: whenOver(input)
    }
  }

  /// True for an event about another reply than the one here. In `yielding` every event may be the service's answer to an interruption.
  private func isLate(_ input: TurnInput) -> Bool {
    switch input {
    case .replyEnded, .serviceInterrupted, .failed: state != .yielding && rounds.isStale(inputRound)
    default: false
    }
  }

  /// The service's own state is recorded whatever the state here.
  private mutating func noteServiceState(_ input: TurnInput) {
    switch input {
    case .serviceListening: serviceListens = true
    case .serviceThinking, .serviceResponding, .replyStarted, .reconnecting, .closed, .start:
      serviceListens = false
    default: break
    }
  }

  /// Inputs with the same effect in every state. True when it was one.
  private mutating func handleInAnyState(_ input: TurnInput) -> Bool {
    guard state != .closed else { return false }
    switch input {
    case .closed:
      // A reply that has arrived completely is played to its end.
      if state != .draining { cancelReply() }
      dropPending()
      enter(.closed)
    case .reconnecting:
      guard state != .closing else { return true }
      if state != .draining { cancelReply() }
      dropPending()
      if state != .reconnecting { enter(.reconnecting) }
    case .hangUp:
      guard state != .closing else { return true }
      cancelReply()
      dropPending()
      actions.add(.hangUp())
      enter(.closing)
    default: return false
    }
    return true
  }

  // MARK: The inputs of each state; inputs that are not listed are ignored there

  private mutating func whenIdle(_ input: TurnInput) {
    switch input {
    case .start, .connected: enter(.connecting)
    case .serviceListening, .serviceThinking, .serviceResponding, .replyStarted: whenConnecting(input)
    case .ask: actions.add(.dropQuestion)
    default: break
    }
  }

  private mutating func whenConnecting(_ input: TurnInput) {
    switch input {
    case .serviceListening: takeFloor()
    case .serviceThinking: enter(.thinking)
    case .serviceResponding, .replyStarted: beginReply()
    case .ask: pending = .question
    case .press: pressLater()
    default: break
    }
  }

  private mutating func whenListening(_ input: TurnInput) {
    switch input {
    case .press:
      guard rules.mode != .duplex else { return }
      actions.add(.startSpeech)
      enter(.hearing)
    case .speechStarted: enter(.hearing)
    case .serviceThinking: enter(.thinking)
    case .serviceResponding, .replyStarted: beginReply()
    case .ask: passQuestion()
    default: break
    }
  }

  private mutating func whenHearing(_ input: TurnInput) {
    switch input {
    case .release where rules.mode == .pushToTalk, .press where rules.mode == .tapToTalk:
      actions.add(.stopSpeech)
      serviceListens = false
      enter(.thinking)
    case .cancel:
      if rules.mode != .duplex { actions.add(.cancelSpeech) }
      takeFloor()
    case .speechEnded, .serviceThinking: enter(.thinking)
    case .serviceResponding, .replyStarted: beginReply()
    case .failed: takeFloor()
    case .ask:
      if rules.mode != .duplex { actions.add(.cancelSpeech) }
      passQuestion()
    default: break
    }
  }

  private mutating func whenThinking(_ input: TurnInput) {
    switch input {
    case .serviceResponding, .replyStarted: beginReply()
    case .serviceListening:
      cancelReply()
      takeFloor()
    case .speechStarted:
      // In push-to-talk it arrives late, for speech that has already ended.
      guard rules.mode != .pushToTalk else { return }
      cancelReply()
      dropPending()
      enter(.hearing)
    case .replyEnded(let utterances): endReply(utterances)
    case .press:
      if rules.mode != .duplex { interruptReply(.manual, pending: .speech) }
    case .ask(let isForced): ask(isForced: isForced)
    case .interrupt(let isForced): interruptReply(.manual, pending: .nothing, isForced: isForced)
    case .serviceInterrupted, .failed:
      cancelReply()
      yield(isCut: true)
    case .replyCancelled: noteReplyCancelled()
    default: break
    }
  }

  private mutating func whenReplying(_ input: TurnInput) {
    switch input {
    case .replyEnded(let utterances):
      if state == .responding { endReply(utterances) }
    case .replyStarted, .serviceResponding:
      // The next reply begins while this one is still playing: for the listener they are one.
      if input == .replyStarted { rounds.announce(inputRound, isNext: state == .draining) }
      if state == .draining {
        progress.join()
        enter(.responding)
      }
    case .serviceListening: interruptedByService(.listening)
    case .speechStarted:
      guard rules.mode == .duplex, !isUninterruptible else { return }
      interruptedByService(.hearing)
    case .serviceInterrupted: interruptedByService(.yielding)
    case .failed:
      cancelReply()
      yield(isCut: true)
    case .replyCancelled: noteReplyCancelled()
    case .voiceStarted(let ago): suspect(ago)
    case .press:
      if rules.mode != .duplex { interruptReply(.manual, pending: .speech) }
    case .ask(let isForced): ask(isForced: isForced)
    case .interrupt(let isForced): interruptReply(.manual, pending: .nothing, isForced: isForced)
    default: break
    }
  }

  private mutating func whenSuspecting(_ input: TurnInput) {
    switch input {
    case .voiceStarted(let ago):
      bargeIn.voiceStarted(at: now &- max(0, ago))
      decideBargeIn()
    case .voiceEnded(let ago):
      bargeIn.voiceEnded(at: now &- max(0, ago))
      decideBargeIn()
    case .replyEnded(let utterances):
      guard bargeIn.interruptedState == .responding else { return }
      progress.replyEnded(utterances: utterances)
      bargeIn.interruptedState = .draining
      if isReplyComplete { resumeReply() }
    case .replyStarted, .serviceResponding:
      if input == .replyStarted {
        rounds.announce(inputRound, isNext: bargeIn.interruptedState == .draining)
      }
      if bargeIn.interruptedState == .draining { progress.join() }
      bargeIn.interruptedState = .responding
    default: whenReplying(input)
    }
  }

  private mutating func whenYielding(_ input: TurnInput) {
    switch input {
    case .serviceListening: takeFloor()
    // The service has stopped by itself, and listens soon.
    case .serviceInterrupted, .failed: if owesInterrupt { enter(.yielding) }
    case .speechStarted:
      guard rules.mode == .duplex else { return }
      dropPending()
      enter(.hearing)
    case .serviceThinking:
      // With something pending it belongs to the old answer: the service did not yet know of the interruption.
      if pending == .nothing { enter(.thinking) }
    case .press: pressLater()
    case .serviceResponding, .replyStarted:
      if !isCut { beginReply() }
    case .ask: pending = .question
    default: break
    }
  }

  private mutating func whenOver(_ input: TurnInput) {
    switch input {
    case .start where state == .closed: enter(.connecting)
    case .closed where state == .closing: enter(.closed)
    case .ask: actions.add(.dropQuestion)
    default: break
    }
  }

  // MARK: Replies

  private mutating func beginReply() {
    if state != .thinking { replyGeneration = generation }
    progress.begin()
    rounds.begin(inputRound)
    enter(.responding)
  }

  private var isReplyComplete: Bool { progress.isComplete(followsPlayback: rules.followsPlayback) }

  /// The reply has arrived completely.
  private mutating func endReply(_ utterances: Int) {
    if state == .thinking {
      progress.begin()
      rounds.begin(inputRound)
    }
    progress.replyEnded(utterances: utterances)
    if isReplyComplete { yield(isCut: false) } else { enter(.draining) }
  }

  private mutating func noteAudible(_ reply: UInt32) {
    guard !isCancelled(reply) else { return }
    // A service that starts a reply without announcing it.
    if state == .listening || state == .thinking { beginReply() }
  }

  private mutating func noteFinished(_ reply: UInt32, _ samples: Int, _ milliseconds: Int) {
    actions.add(.heard(reply: reply, samples: samples, milliseconds: milliseconds, isWhole: true))
    guard !isCancelled(reply) else { return }
    switch state {
    case .responding, .draining:
      progress.utterancePlayed()
      if isReplyComplete { yield(isCut: false) }
    case .suspecting:
      progress.utterancePlayed()
      if isReplyComplete { resumeReply() }
    default: break
    }
  }

  private func isCancelled(_ reply: UInt32) -> Bool {
    lastCancelled != 0 && !Packet.isNewer(reply, than: lastCancelled)
  }

  // MARK: Interruptions

  /// Cancels the rest of the reply, if there is one. While the service is thinking, audio may already be here: it can arrive before the
  /// event that announces it.
  private mutating func cancelReply() {
    let isDucked = state == .suspecting
    guard isDucked || state == .responding || state == .draining || state == .thinking else { return }
    lastCancelled = generation
    // Cancelling a second time would discard the beginning of the next reply.
    if generation == replyGeneration { actions.add(.cancelReplies) }
    if isDucked { actions.add(.resume) }
    bargeIn.end()
  }

  /// Interrupts the reply from this side; without a source after a timeout. The service is asked with `force` where it would refuse
  /// otherwise, since the reply has ended here.
  private mutating func interruptReply(
    _ source: BargeInSource?, pending next: Pending, isForced: Bool = false
  ) {
    if let source, state != .thinking { actions.add(.bargedIn(by: source, afterMilliseconds: voiceTime)) }
    cancelReply()
    actions.add(.interrupt(isForced: isForced || isUninterruptible))
    serviceListens = false
    if next != .nothing {
      // A newer question has already taken the place of an older one.
      if next != pending { dropPending() }
      pending = next
    }
    yield(isCut: true)
  }

  /// A question over a reply interrupts it, or waits for its end where it must not be interrupted.
  private mutating func ask(isForced: Bool) {
    guard isUninterruptible && !isForced else {
      return interruptReply(.manual, pending: .question, isForced: isForced)
    }
    if pending != .question { dropPending() }
    pending = .question
  }

  /// Another node has cancelled the reply. If the service caused it, its event follows; otherwise the service has to be interrupted.
  private mutating func noteReplyCancelled() {
    lastCancelled = generation
    if state == .suspecting { actions.add(.resume) }
    bargeIn.end()
    yield(isCut: true)
    guard state == .yielding else { return }
    owesInterrupt = true
    deadline = now &+ rules.serviceGrace
  }

  /// The service has interrupted its reply.
  private mutating func interruptedByService(_ next: TurnState) {
    actions.add(.bargedIn(by: .service, afterMilliseconds: voiceTime))
    cancelReply()
    switch next {
    case .listening: takeFloor()
    case .yielding: yield(isCut: true)
    default:
      dropPending()
      enter(next)
    }
  }

  /// Milliseconds since the voice over the reply began; 0 without one.
  private var voiceTime: Int { state == .suspecting ? bargeIn.milliseconds(at: now) : 0 }

  // MARK: A voice over a reply

  private mutating func suspect(_ ago: Nanoseconds) {
    guard rules.mode == .duplex, rules.listensForVoice, !isUninterruptible, !isMuted else { return }
    bargeIn.begin(in: state, at: now &- max(0, ago))
    actions.add(.duck)
    enter(.suspecting)
    decideBargeIn()
  }

  private mutating func decideBargeIn() {
    switch bargeIn.verdict(at: now, rules) {
    case .speech: interruptReply(.voice, pending: .nothing)
    case .noSpeech: resumeReply()
    case .undecided(let time): deadline = time
    }
  }

  /// It was not speech: the reply resumes where it was ducked.
  private mutating func resumeReply() {
    actions.add(.falseInterruption(milliseconds: bargeIn.milliseconds(at: now)))
    actions.add(.resume)
    bargeIn.end()
    if isReplyComplete { yield(isCut: false) } else { enter(bargeIn.interruptedState) }
  }

  // MARK: The floor

  /// The reply has ended here: wait for the service to listen, unless it already does.
  private mutating func yield(isCut: Bool) {
    self.isCut = isCut
    if serviceListens { takeFloor() } else { enter(.yielding) }
  }

  /// The service listens: carries out what the user did meanwhile.
  private mutating func takeFloor() {
    let next = pending
    pending = .nothing
    switch next {
    case .nothing: enter(.listening)
    case .speech:
      actions.add(.startSpeech)
      enter(.hearing)
    case .question: passQuestion()
    }
  }

  private mutating func passQuestion() {
    actions.add(.passQuestion)
    serviceListens = false
    enter(.thinking)
  }

  /// A press that takes effect when the service listens.
  private mutating func pressLater() {
    guard rules.mode != .duplex else { return }
    dropPending()
    pending = .speech
  }

  private mutating func dropPending() {
    if pending == .question { actions.add(.dropQuestion) }
    pending = .nothing
  }

  // MARK: States and timeouts

  private mutating func enter(_ next: TurnState) {
    if next != state {
      actions.add(.changed(from: state, to: next))
      changes.append(TurnChange(time: now, from: state, to: next))
    }
    state = next
    owesInterrupt = false
    switch next {
    case .responding, .draining, .suspecting: break
    // Another session may number its rounds from the beginning.
    case .closed, .reconnecting: rounds = ReplyRounds()
    default: rounds.end()
    }
    if next == .closed {
      // A new dialogue may follow.
      isUninterruptible = false
      isMuted = false
    }
    deadline = rules.timeout(of: next).map { now &+ $0 }
    if next == .thinking { replyGeneration = generation }
  }

  private mutating func timeOut() {
    guard state != .suspecting else { return decideBargeIn() }
    guard !owesInterrupt else {
      actions.add(.interrupt(isForced: isUninterruptible))
      return enter(.yielding)
    }
    actions.add(.timedOut(state))
    switch state {
    case .idle, .listening, .closed: deadline = nil
    case .connecting, .reconnecting:
      actions.add(.hangUp(isLate: true))
      dropPending()
      enter(.closing)
    case .hearing:
      if rules.mode == .duplex {
        takeFloor()
      } else {
        actions.add(.stopSpeech)
        enter(.thinking)
      }
    case .thinking, .responding, .draining: interruptReply(nil, pending: .nothing)
    case .suspecting: break
    case .yielding: takeFloor()
    case .closing: enter(.closed)
    }
  }
}
