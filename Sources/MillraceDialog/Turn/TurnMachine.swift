public import MillraceCore

/// Whose turn it is: the rules of one dialogue as a pure value. Told what happened and when, it answers what is to be done.
///
/// ```
///             serviceListening          speechStarted / press          speechEnded / release
/// connecting ────────────────▸ listening ───────────────▸ hearing ───────────────▸ thinking
///                                 ▴                                                   │ replyStarted
///                                 │ serviceListening                                  ▾
///                              yielding ◂── heard to the end ── draining ◂──── responding
///                                 ▴                                 │  replyEnded     │ voiceStarted
///                                 │ minimumSpeech of voice          ▾                 ▾
///                                 └──────────────────────────── suspecting ◂──────────┘
///                                                               (ducked; back when it was none)
/// ```
///
/// Every input is legal in every state. Every state that is a wait has a deadline; `handle(.tick)` at or after it, or any
/// other input, carries out what follows. It has no clock, no thread and no heap, and does not parse anything: `dialog.turn`
/// is the node around it.
///
/// What it does *not* do: it does not look at sound, does not decide when a user has finished a sentence (the service does), and
/// does not repeat what a lost connection swallowed.
public struct TurnMachine: Sendable {
  /// What a user did while the service could not take it yet.
  enum Pending: Sendable, Hashable {
    case nothing, speech, question
  }

  /// How it behaves.
  public let rules: TurnRules
  /// Whose the floor is now.
  public internal(set) var state = TurnState.idle
  /// The number of the reply that is valid: playback reports of older ones only tell what was heard. Set it before `handle`.
  public var generation: UInt32 = 1

  /// When the present wait is over; nil in states that are none.
  public private(set) var deadline: Nanoseconds?

  var pending = Pending.nothing
  /// A voice must not cut the reply off now.
  var isUninterruptible = false
  var isMuted = false
  /// The last state the service told of was listening.
  var serviceListens = false
  /// Replies up to this one were voided.
  var voided: UInt32 = 0
  /// The number that was valid when this reply began: when another is, somebody has voided it already.
  var begun: UInt32 = 0
  /// Somebody else voided the reply, and the service has not shown yet that it was itself: it is asked to stop, a little later.
  var owesInterrupt = false
  /// Utterances of this reply that were heard to their end; how many there are, once all have come.
  var finishedUtterances = 0
  var dueUtterances: Int?
  /// Utterances owed by a reply that came before and was still heard when this one began.
  var carriedUtterances = 0
  /// What is yielded after was cut off: what still comes of it means nothing.
  var isCut = false
  /// The state a suspicion arose in, when its voice began, and how long it has spoken in pieces that are over.
  var suspectedIn = TurnState.responding
  var suspectedAt: Nanoseconds = 0
  var voiceSince: Nanoseconds?
  var voiceTime: Nanoseconds = 0

  var actions = TurnActions()
  var now: Nanoseconds = 0
  private var changes = InlineArray<32, TurnChange>(
    repeating: TurnChange(time: 0, from: .idle, to: .idle))
  private var changeCount = 0

  /// A machine at rest.
  public init(_ rules: TurnRules) { self.rules = rules }

  /// The last changes of state, oldest first; 32 at most. Costs the heap: for programs and tests.
  public var trace: [TurnChange] {
    (max(0, changeCount - 32)..<changeCount).map { changes[$0 % 32] }
  }

  /// Tells the machine of something that happened now. Time does not run backwards.
  public mutating func handle(_ input: TurnInput, at time: Nanoseconds) -> TurnActions {
    actions.clear()
    now = max(now, time)
    if let deadline, now >= deadline { expire() }
    switch input {
    case .tick: break
    case .uninterruptible(let isOn): setUninterruptible(isOn)
    case .muted(let isOn): setMuted(isOn)
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

  private mutating func dispatch(_ input: TurnInput) {
    noteService(input)
    if input == .release || input == .cancel { forgetSpeech() }
    if handleAnywhere(input) { return }
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

  /// What the service says of itself holds whatever follows from it here.
  private mutating func noteService(_ input: TurnInput) {
    switch input {
    case .serviceListening: serviceListens = true
    case .serviceThinking, .serviceResponding, .replyStarted, .reconnecting, .closed, .start:
      serviceListens = false
    default: break
    }
  }

  /// What means the same in every state. True when it was that.
  private mutating func handleAnywhere(_ input: TurnInput) -> Bool {
    guard state != .closed else { return false }
    switch input {
    case .closed:
      // What has come in full may be heard to its end.
      if state != .draining { endReply() }
      dropPending()
      enter(.closed)
    case .reconnecting:
      guard state != .closing else { return true }
      if state != .draining { endReply() }
      dropPending()
      if state != .reconnecting { enter(.reconnecting) }
    case .hangUp:
      guard state != .closing else { return true }
      endReply()
      dropPending()
      actions.add(.hangUp)
      enter(.closing)
    default: return false
    }
    return true
  }

  // MARK: States

  /// Goes to a state and begins its wait.
  mutating func enter(_ next: TurnState) {
    if next != state {
      actions.add(.changed(from: state, to: next))
      changes[changeCount % 32] = TurnChange(time: now, from: state, to: next)
      changeCount += 1
    }
    state = next
    owesInterrupt = false
    deadline = wait(of: next).map { now &+ $0 }
    if next == .thinking { begun = generation }
  }

  /// Moves the deadline of a suspicion.
  mutating func setDeadline(_ time: Nanoseconds) { deadline = time }

  /// How long a state may last; nil: for ever.
  private func wait(of state: TurnState) -> Nanoseconds? {
    switch state {
    case .idle, .listening, .closed: nil
    case .connecting: rules.connect
    case .hearing: rules.speech
    case .thinking: rules.answer
    case .responding, .draining: rules.reply
    case .suspecting: rules.minimumSpeech
    case .yielding: rules.listen
    case .reconnecting: rules.reconnect
    case .closing: rules.close
    }
  }

  /// The present wait is over.
  private mutating func expire() {
    guard state != .suspecting else {
      judgeVoice()
      return
    }
    guard !owesInterrupt else {
      actions.add(.interrupt)
      return enter(.yielding)
    }
    actions.add(.timedOut(state))
    switch state {
    case .idle, .listening, .closed: deadline = nil
    case .connecting, .reconnecting:
      actions.add(.hangUp)
      dropPending()
      enter(.closing)
    case .hearing:
      if rules.mode == .duplex {
        takeFloor()
      } else {
        actions.add(.stopSpeech)
        enter(.thinking)
      }
    case .thinking, .responding, .draining: breakOff(nil, pending: .nothing)
    case .suspecting: break
    case .yielding: takeFloor()
    case .closing: enter(.closed)
    }
  }
}
