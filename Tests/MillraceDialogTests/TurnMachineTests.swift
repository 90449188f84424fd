import MillraceCore
import MillraceDialog
import TestSystem
import Testing

private let ms: Nanoseconds = 1_000_000

/// A machine that gets inputs 10 ms apart, and the actions it asked for.
struct Turn {
  var machine: TurnMachine
  var now: Nanoseconds = 0
  var actions: [TurnAction] = []

  init(_ mode: DialogMode, _ change: (inout TurnRules) -> Void = { _ in }) {
    var rules = TurnRules()
    rules.mode = mode
    change(&rules)
    machine = TurnMachine(rules)
  }

  var state: TurnState { machine.state }

  /// Passes inputs, each 10 ms after the one before.
  mutating func callAsFunction(_ inputs: TurnInput...) {
    for input in inputs {
      now += 10 * ms
      actions += machine.handle(input, at: now).list
    }
  }

  /// Lets time pass, with a tick at every deadline.
  mutating func pass(_ time: Nanoseconds) {
    let end = now + time
    while let deadline = machine.deadline, deadline <= end {
      now = max(now, deadline)
      actions += machine.handle(.tick, at: now).list
    }
    now = end
    actions += machine.handle(.tick, at: now).list
  }

  /// The actions since the last call, without changes of state.
  mutating func taken() -> [TurnAction] {
    defer { actions = [] }
    return actions.filter { if case .changed = $0 { false } else { true } }
  }

  /// A machine in a state, reached by the shortest way.
  static func at(_ state: TurnState, _ mode: DialogMode) -> Turn {
    var turn = Turn(mode)
    let hasButton = mode != .duplex
    switch state {
    case .idle: break
    case .connecting: turn(.start)
    case .listening: turn(.start, .serviceListening)
    case .hearing: turn(.start, .serviceListening, hasButton ? .press : .speechStarted)
    case .thinking: turn(.start, .serviceListening, .serviceThinking)
    case .responding: turn(.start, .serviceListening, .serviceThinking, .replyStarted)
    case .draining:
      turn(.start, .serviceListening, .serviceThinking, .replyStarted, .replyEnded(utterances: 1))
    case .suspecting:
      turn(
        .start, .serviceListening, .serviceThinking, .replyStarted, .audible(reply: 1), .voiceStarted(ago: 0))
    case .yielding: turn(.start, .serviceListening, .serviceThinking, .replyStarted, .interrupt())
    case .reconnecting: turn(.start, .serviceListening, .reconnecting)
    case .closing: turn(.start, .serviceListening, .hangUp)
    case .closed: turn(.start, .serviceListening, .closed)
    }
    turn.actions = []
    return turn
  }
}

/// One of every input.
let everyInput: [TurnInput] = [
  .connected, .reconnecting, .closed, .serviceListening, .serviceThinking, .serviceResponding, .speechStarted,
  .speechEnded, .replyStarted, .replyEnded(utterances: 1), .replyEnded(utterances: 0), .serviceInterrupted,
  .failed,
  .uninterruptible(true), .muted(true), .audible(reply: 1),
  .finished(reply: 1, samples: 480, milliseconds: 10),
  .cut(reply: 1, samples: 480, milliseconds: 10), .replyCancelled, .voiceStarted(ago: 0), .voiceEnded(ago: 0),
  .start,
  .press, .release, .cancel, .interrupt(), .interrupt(isForced: true), .ask(), .ask(isForced: true), .hangUp,
  .tick,
]

/// What must hold after every input in every state.
private func check(_ machine: TurnMachine, _ actions: [TurnAction], now: Nanoseconds) {
  #expect(machine.state.isWait == (machine.deadline != nil), "\(machine.state)")
  #expect(actions.count <= TurnActions.limit)
  // Changes are contiguous, and the last leads to the current state.
  let changes = actions.compactMap { if case .changed(let from, let to) = $0 { (from, to) } else { nil } }
  for (one, next) in zip(changes, changes.dropFirst()) { #expect(one.1 == next.0) }
  if let last = changes.last { #expect(last.1 == machine.state) }
}

@Suite("turn machine") struct TurnMachineTests {
  @Test(
    "every input in every state of every mode leads to a state that has a deadline exactly if it is a wait")
  func everything() {
    for mode in DialogMode.allCases {
      for state in TurnState.allCases where mode == .duplex || state != .suspecting {
        let turn = Turn.at(state, mode)
        #expect(turn.state == state, "\(mode) \(state)")
        for input in everyInput {
          var machine = turn.machine
          let actions = machine.handle(input, at: turn.now + 1).list
          check(machine, actions, now: turn.now + 1)
        }
      }
    }
  }

  @Test("the transitions are those of the documented table", arguments: DialogMode.allCases)
  func table(mode: DialogMode) {
    var lines: [String] = []
    for state in TurnState.allCases where mode == .duplex || state != .suspecting {
      let turn = Turn.at(state, mode)
      for input in everyInput {
        var machine = turn.machine
        let actions = machine.handle(input, at: turn.now + 1).list.filter {
          if case .changed = $0 { false } else { true }
        }
        guard machine.state != state || !actions.isEmpty else { continue }
        let words = actions.map { String("\($0)".prefix { $0 != "(" }) }.joined(separator: " ")
        lines.append(
          "\(state) \(input): \(machine.state)\(words.isEmpty ? "" : " [\(words)]")")
      }
    }
    let rows = turnTables[mode] ?? []
    // Without a gate `force` changes nothing but what the service is sent.
    let expected =
      rows
      + rows.compactMap { row in
        let forced = row.replacing("(isForced: false)", with: "(isForced: true)")
        return forced == row ? nil : forced
      }
    for line in lines where !expected.contains(line) { Issue.record("not in the table: \(line)") }
    for line in expected where !lines.contains(line) { Issue.record("no longer: \(line)") }
  }

  @Test("no sequence of inputs leaves it stuck: time alone ends every wait, and a new turn works afterwards")
  func neverStuck() {
    for mode in DialogMode.allCases {
      for seed in 0..<400 as Range<UInt64> {
        var dice = Dice(seed: seed)
        var turn = Turn(mode)
        var questions = 0
        for _ in 0..<dice.below(120) {
          turn.machine.generation = UInt32(1 + dice.below(3))
          let input = everyInput[dice.below(everyInput.count)]
          turn.now += Nanoseconds(dice.below(400)) * ms
          let actions = turn.machine.handle(input, at: turn.now).list
          if input == .ask() || input == .ask(isForced: true) { questions = 1 }
          if actions.contains(.passQuestion) || actions.contains(.dropQuestion) { questions = 0 }
          check(turn.machine, actions, now: turn.now)
        }
        turn.actions = []
        turn.pass(3_600_000 * ms)
        #expect(!turn.state.isWait, "seed \(seed): \(turn.state)")
        // A question is never dropped silently.
        if turn.actions.contains(.passQuestion) || turn.actions.contains(.dropQuestion) { questions = 0 }
        if questions > 0 && turn.state != .idle {
          turn(.closed)
          #expect(
            turn.actions.contains(.dropQuestion) || turn.state == .closed && turn.actions.isEmpty,
            "seed \(seed)")
          continue
        }
        if turn.state == .closed || turn.state == .idle { turn(.start, .serviceListening) }
        turn(.uninterruptible(false), .muted(false), mode == .duplex ? .speechStarted : .press)
        #expect(turn.state == .hearing, "seed \(seed)")
        turn(.speechEnded, .replyStarted, .replyEnded(utterances: 0))
        #expect(turn.state == .yielding || turn.state == .listening, "seed \(seed)")
      }
    }
  }

  @Test("a complete push-to-talk turn returns the floor only when the last sample was played")
  func pushToTalk() {
    var turn = Turn(.pushToTalk)
    turn(.start, .connected, .serviceListening)
    #expect(turn.state == .listening)
    turn(.press)
    #expect(turn.taken() == [.startSpeech])
    turn(.speechStarted, .release)
    #expect(turn.taken() == [.stopSpeech])
    turn(.speechEnded, .serviceThinking, .serviceResponding, .replyStarted, .audible(reply: 1))
    #expect(turn.state == .responding)
    turn(.replyEnded(utterances: 1))
    #expect(turn.state == .draining)
    turn.pass(5_000 * ms)
    #expect(turn.state == .draining)
    turn(.finished(reply: 1, samples: 48_000, milliseconds: 3000))
    #expect(turn.state == .yielding)
    turn(.serviceListening)
    #expect(turn.state == .listening)
    #expect(turn.taken() == [.heard(reply: 1, samples: 48_000, milliseconds: 3000, isWhole: true)])
  }

  @Test("an absurd number of utterances does not overflow")
  func countless() {
    var turn = Turn.at(.responding, .pushToTalk)
    for _ in 0..<3 { turn(.replyEnded(utterances: .max), .replyStarted) }
    turn(.replyEnded(utterances: .max), .finished(reply: 1, samples: 1, milliseconds: 1))
    #expect(turn.state == .draining)
  }

  @Test("a button pressed over a reply cancels it at once and starts speech when the service listens")
  func pressOverReply() {
    var turn = Turn.at(.responding, .pushToTalk)
    turn(.press)
    #expect(turn.taken() == [.bargedIn(by: .manual, afterMilliseconds: 0), .cancelReplies, .interrupt()])
    turn(.cut(reply: 1, samples: 160, milliseconds: 10), .replyEnded(utterances: 1), .replyStarted)
    #expect(turn.taken() == [.heard(reply: 1, samples: 160, milliseconds: 10, isWhole: false)])
    #expect(turn.state == .yielding)
    turn(.serviceListening)
    #expect(turn.taken() == [.startSpeech] && turn.state == .hearing)
  }

  @Test("a button released before the service listens sends nothing")
  func releasedEarly() {
    var turn = Turn.at(.responding, .pushToTalk)
    turn(.press, .release)
    turn.actions = []
    turn(.serviceListening)
    #expect(turn.taken() == [] && turn.state == .listening)
  }

  @Test("a second tap ends what the first began")
  func taps() {
    var turn = Turn.at(.listening, .tapToTalk)
    turn(.press, .release)
    #expect(turn.taken() == [.startSpeech] && turn.state == .hearing)
    turn(.press)
    #expect(turn.taken() == [.stopSpeech] && turn.state == .thinking)
  }

  @Test(
    "a voice over a reply ducks it, and interrupts it after enough speech, counted from its first sample"
  )
  func bargeIn() {
    var turn = Turn.at(.responding, .duplex)
    turn(.audible(reply: 1), .voiceStarted(ago: 100 * ms))
    #expect(turn.taken() == [.duck] && turn.state == .suspecting)
    turn.pass(149 * ms)
    #expect(turn.taken() == [])
    turn.pass(1 * ms)
    #expect(
      turn.taken() == [.bargedIn(by: .voice, afterMilliseconds: 250), .cancelReplies, .resume, .interrupt()])
    #expect(turn.state == .yielding)
  }

  @Test("a cough is a false interruption: the reply resumes at the end of the confirm window")
  func cough() {
    var turn = Turn.at(.draining, .duplex)
    turn(.voiceStarted(ago: 0), .voiceEnded(ago: 0))
    turn.pass(679 * ms)
    #expect(turn.state == .suspecting)
    turn.pass(11 * ms)
    #expect(turn.taken() == [.duck, .falseInterruption(milliseconds: 700), .resume])
    #expect(turn.state == .draining)
    turn(.finished(reply: 1, samples: 1, milliseconds: 1))
    #expect(turn.state == .yielding)
  }

  @Test("speech with pauses adds up")
  func pauses() {
    var turn = Turn.at(.responding, .duplex)
    // Twice 100 ms, then what is missing to 250.
    for _ in 0..<2 {
      turn(.voiceStarted(ago: 0))
      turn.pass(90 * ms)
      turn(.voiceEnded(ago: 0))
      turn.pass(100 * ms)
    }
    turn(.voiceStarted(ago: 0))
    turn.pass(49 * ms)
    #expect(turn.state == .suspecting)
    turn.pass(1 * ms)
    #expect(turn.state == .yielding)
  }

  @Test(
    "a voice does not interrupt while barge-in is forbidden, the microphone is muted, or only the service decides"
  )
  func gates() {
    for gate in [TurnInput.uninterruptible(true), .muted(true)] {
      var turn = Turn.at(.responding, .duplex)
      turn(gate, .voiceStarted(ago: 500 * ms))
      #expect(turn.taken() == [] && turn.state == .responding)
      var late = Turn.at(.responding, .duplex)
      late(.voiceStarted(ago: 0), gate)
      #expect(late.taken() == [.duck, .falseInterruption(milliseconds: 10), .resume])
      #expect(late.state == .responding)
    }
    var turn = Turn(.duplex) { $0.listensForVoice = false }
    turn(.start, .serviceListening, .serviceThinking, .replyStarted, .voiceStarted(ago: 500 * ms))
    #expect(turn.state == .responding)
  }

  @Test(
    "a barge-in by the service cancels the reply in every order of its events, and the user is heard",
    arguments: [
      [TurnInput.serviceInterrupted, .serviceListening, .speechStarted], [.serviceListening, .speechStarted],
      [.speechStarted, .serviceListening], [.replyEnded(utterances: 1), .serviceListening, .speechStarted],
    ])
  func serviceBargeIn(order: [TurnInput]) {
    for start in [TurnState.responding, .draining, .suspecting] {
      var turn = Turn.at(start, .duplex)
      for input in order { turn(input) }
      #expect(turn.state == .hearing, "\(start)")
      let taken = turn.taken()
      #expect(taken.count { $0 == .cancelReplies } == 1, "\(start): \(taken)")
      #expect(!taken.contains(.interrupt()))
      #expect(taken.contains(.resume) == (start == .suspecting))
    }
  }

  @Test("a question over a reply interrupts it, waits, and is sent once")
  func question() {
    var turn = Turn.at(.responding, .pushToTalk)
    turn(.ask())
    #expect(turn.taken() == [.bargedIn(by: .manual, afterMilliseconds: 0), .cancelReplies, .interrupt()])
    turn(.serviceListening)
    #expect(turn.taken() == [.passQuestion] && turn.state == .thinking)
    turn(.serviceListening)
    #expect(!turn.taken().contains(.passQuestion))
  }

  @Test("two replies without a pause end when all utterances of both were played")
  func joined() {
    var turn = Turn.at(.draining, .duplex)
    turn(.replyStarted)
    #expect(turn.state == .responding)
    turn(.finished(reply: 1, samples: 1, milliseconds: 1), .replyEnded(utterances: 2))
    #expect(turn.state == .draining)
    turn(.finished(reply: 1, samples: 1, milliseconds: 1))
    #expect(turn.state == .draining)
    turn(.finished(reply: 1, samples: 1, milliseconds: 1))
    #expect(turn.state == .yielding)
  }

  @Test("playback reports of a cancelled reply are recorded, and end nothing")
  func staleReports() {
    var turn = Turn.at(.responding, .duplex)
    turn(.interrupt(), .serviceListening, .speechStarted, .speechEnded, .replyStarted)
    turn.machine.generation = 2
    turn.actions = []
    turn(.finished(reply: 1, samples: 9, milliseconds: 1), .replyEnded(utterances: 1))
    #expect(turn.taken() == [.heard(reply: 1, samples: 9, milliseconds: 1, isWhole: true)])
    #expect(turn.state == .draining)
    turn(.finished(reply: 2, samples: 9, milliseconds: 1))
    #expect(turn.state == .yielding)
  }

  @Test(
    "a reply that was already cancelled is not cancelled again together with the beginning of the next",
    arguments: [TurnInput.serviceInterrupted, .speechStarted, .serviceListening, .failed, .interrupt()])
  func cancelledOnce(input: TurnInput) {
    for state in [TurnState.responding, .draining] {
      for wasCancelled in [false, true] {
        var turn = Turn.at(state, .duplex)
        _ = turn.taken()
        if wasCancelled { turn.machine.generation += 1 }
        turn(input)
        #expect(turn.taken().contains(.cancelReplies) != wasCancelled, "\(state)")
      }
    }
  }

  @Test("without playback reports a reply ends when it has arrived")
  func noPlayback() {
    var turn = Turn(.duplex) { $0.followsPlayback = false }
    turn(.start, .serviceListening, .serviceThinking, .replyStarted, .replyEnded(utterances: 3))
    #expect(turn.state == .yielding)
  }

  @Test(
    "every timeout leads where it should",
    arguments: [
      (
        TurnState.connecting, TurnState.closed,
        [TurnAction.timedOut(.connecting), .hangUp(isLate: true), .timedOut(.closing)]
      ),
      (.hearing, .listening, [.timedOut(.hearing)]),
      (.thinking, .listening, [.timedOut(.thinking), .cancelReplies, .interrupt(), .timedOut(.yielding)]),
      (
        .responding, .listening, [.timedOut(.responding), .cancelReplies, .interrupt(), .timedOut(.yielding)]
      ),
      (.draining, .listening, [.timedOut(.draining), .cancelReplies, .interrupt(), .timedOut(.yielding)]),
      (.yielding, .listening, [.timedOut(.yielding)]),
      (.reconnecting, .closed, [.timedOut(.reconnecting), .hangUp(isLate: true), .timedOut(.closing)]),
      (.closing, .closed, [.timedOut(.closing)]),
    ])
  func timeouts(state: TurnState, end: TurnState, actions: [TurnAction]) {
    var turn = Turn.at(state, .duplex)
    turn.pass(1_000_000 * ms)
    #expect(turn.state == end && turn.taken() == actions)
  }

  @Test("the dialogue survives an outage of a minute and the backoff after it")
  func goneForAMinute() {
    var turn = Turn.at(.listening, .duplex)
    turn(.reconnecting)
    // A minute, the longest backoff delay, and one failed attempt.
    turn.pass((60_000 + 8_000 + 10_000) * ms)
    #expect(turn.state == .reconnecting && turn.taken() == [])
    turn(.serviceListening)
    #expect(turn.state == .listening)
  }

  @Test("an input after a deadline finds the timeout already applied")
  func lateInput() {
    var turn = Turn.at(.thinking, .duplex)
    let actions = turn.machine.handle(.serviceListening, at: turn.now + 20_001 * ms).list
    #expect(actions.first == .timedOut(.thinking))
    #expect(turn.state == .listening)
  }

  @Test("a lost connection cancels the reply and drops what was pending; the trace shows the states")
  func trace() {
    var turn = Turn.at(.responding, .pushToTalk)
    turn(.ask())
    turn.actions = []
    turn(.reconnecting)
    #expect(turn.taken() == [.dropQuestion])
    turn(.serviceListening)
    #expect(turn.taken() == [] && turn.state == .listening)
    #expect(
      turn.machine.trace.map(\.to) == [
        .connecting, .listening, .thinking, .responding, .yielding, .reconnecting, .listening,
      ])
  }
}
