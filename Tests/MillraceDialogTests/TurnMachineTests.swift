import MillraceCore
import MillraceDialog
import Testing

private let ms: Nanoseconds = 1_000_000

/// A machine that is told things 10 ms apart, and what it wanted done.
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

  /// Tells it something, 10 ms after the last.
  mutating func callAsFunction(_ inputs: TurnInput...) {
    for input in inputs {
      now += 10 * ms
      actions += machine.handle(input, at: now).list
    }
  }

  /// Lets time pass, in steps as small as a node's wake-ups.
  mutating func pass(_ time: Nanoseconds) {
    let end = now + time
    while let deadline = machine.deadline, deadline <= end {
      now = max(now, deadline)
      actions += machine.handle(.tick, at: now).list
    }
    now = end
    actions += machine.handle(.tick, at: now).list
  }

  /// What was wanted since the last look, without the changes of state.
  mutating func taken() -> [TurnAction] {
    defer { actions = [] }
    return actions.filter { if case .changed = $0 { false } else { true } }
  }

  /// In a state, by the shortest way there.
  static func at(_ state: TurnState, _ mode: DialogMode) -> Turn {
    var turn = Turn(mode)
    let isHand = mode != .duplex
    switch state {
    case .idle: break
    case .connecting: turn(.start)
    case .listening: turn(.start, .serviceListening)
    case .hearing: turn(.start, .serviceListening, isHand ? .press : .speechStarted)
    case .thinking: turn(.start, .serviceListening, .serviceThinking)
    case .responding: turn(.start, .serviceListening, .serviceThinking, .replyStarted)
    case .draining:
      turn(.start, .serviceListening, .serviceThinking, .replyStarted, .replyEnded(utterances: 1))
    case .suspecting:
      turn(
        .start, .serviceListening, .serviceThinking, .replyStarted, .audible(reply: 1), .voiceStarted(ago: 0))
    case .yielding: turn(.start, .serviceListening, .serviceThinking, .replyStarted, .interrupt)
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
  .cut(reply: 1, samples: 480, milliseconds: 10), .voided, .voiceStarted(ago: 0), .voiceEnded(ago: 0), .start,
  .press, .release, .cancel, .interrupt, .ask, .hangUp, .tick,
]

/// What must hold after any input in any state.
private func check(_ machine: TurnMachine, _ actions: [TurnAction], now: Nanoseconds) {
  #expect(machine.state.isWait == (machine.deadline != nil), "\(machine.state)")
  #expect(actions.count <= TurnActions.limit)
  // Changes join up, and the last is the state.
  let changes = actions.compactMap { if case .changed(let from, let to) = $0 { (from, to) } else { nil } }
  for (one, next) in zip(changes, changes.dropFirst()) { #expect(one.1 == next.0) }
  if let last = changes.last { #expect(last.1 == machine.state) }
}

@Suite("the turn machine") struct TurnMachineTests {
  @Test("every input in every state of every mode leaves a state with a deadline, or one that is no wait")
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

  @Test("the table of the machine is the documented one", arguments: DialogMode.allCases)
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
    let expected = turnTables[mode] ?? []
    for line in lines where !expected.contains(line) { Issue.record("not in the table: \(line)") }
    for line in expected where !lines.contains(line) { Issue.record("no longer: \(line)") }
  }

  @Test("no order of inputs leaves it stuck: time alone ends every wait, and a new turn works after it")
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
          if input == .ask { questions = 1 }
          if actions.contains(.passQuestion) || actions.contains(.dropQuestion) { questions = 0 }
          check(turn.machine, actions, now: turn.now)
        }
        turn.actions = []
        turn.pass(3_600_000 * ms)
        #expect(!turn.state.isWait, "seed \(seed): \(turn.state)")
        // A question is never forgotten without a word.
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

  @Test("a whole turn in push-to-talk, and the floor is given back only when the last sample was heard")
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

  @Test("utterances beyond counting are waited for like many")
  func countless() {
    var turn = Turn.at(.responding, .pushToTalk)
    for _ in 0..<3 { turn(.replyEnded(utterances: .max), .replyStarted) }
    turn(.replyEnded(utterances: .max), .finished(reply: 1, samples: 1, milliseconds: 1))
    #expect(turn.state == .draining)
  }

  @Test("a button pressed over a reply voids it at once and speaks when the service listens")
  func pressOverReply() {
    var turn = Turn.at(.responding, .pushToTalk)
    turn(.press)
    #expect(turn.taken() == [.bargedIn(by: .hand, afterMilliseconds: 0), .voidReplies, .interrupt])
    turn(.cut(reply: 1, samples: 160, milliseconds: 10), .replyEnded(utterances: 1), .replyStarted)
    #expect(turn.taken() == [.heard(reply: 1, samples: 160, milliseconds: 10, isWhole: false)])
    #expect(turn.state == .yielding)
    turn(.serviceListening)
    #expect(turn.taken() == [.startSpeech] && turn.state == .hearing)
  }

  @Test("a button let go before the service listens says nothing to it")
  func letGo() {
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
    "a voice over a reply is ducked for, and cuts it off when it has spoken for long enough, counted from its first sample"
  )
  func bargeIn() {
    var turn = Turn.at(.responding, .duplex)
    turn(.audible(reply: 1), .voiceStarted(ago: 100 * ms))
    #expect(turn.taken() == [.duck] && turn.state == .suspecting)
    turn.pass(149 * ms)
    #expect(turn.taken() == [])
    turn.pass(1 * ms)
    #expect(
      turn.taken() == [.bargedIn(by: .voice, afterMilliseconds: 250), .voidReplies, .resume, .interrupt])
    #expect(turn.state == .yielding)
  }

  @Test("a cough is none: the reply goes on, and the window is not waited beyond")
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

  @Test("words with pauses between them add up, all of them")
  func pauses() {
    var turn = Turn.at(.responding, .duplex)
    // Twice 100 ms, then what is missing of 250.
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
    "no voice cuts off what must not be, nor one while the microphone is muted, nor when only the service decides"
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
    "a service's own barge-in voids the reply in each of the orders it may tell of it, and the user is heard",
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
      #expect(taken.count { $0 == .voidReplies } == 1, "\(start): \(taken)")
      #expect(!taken.contains(.interrupt))
      #expect(taken.contains(.resume) == (start == .suspecting))
    }
  }

  @Test("a question over a reply interrupts it, waits, and is handed on once")
  func question() {
    var turn = Turn.at(.responding, .pushToTalk)
    turn(.ask)
    #expect(turn.taken() == [.bargedIn(by: .hand, afterMilliseconds: 0), .voidReplies, .interrupt])
    turn(.serviceListening)
    #expect(turn.taken() == [.passQuestion] && turn.state == .thinking)
    turn(.serviceListening)
    #expect(!turn.taken().contains(.passQuestion))
  }

  @Test("two replies that run into one another are over when all utterances of both were heard")
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

  @Test("what playback tells of a voided reply is heard of, and ends nothing")
  func voidReports() {
    var turn = Turn.at(.responding, .duplex)
    turn(.interrupt, .serviceListening, .speechStarted, .speechEnded, .replyStarted)
    turn.machine.generation = 2
    turn.actions = []
    turn(.finished(reply: 1, samples: 9, milliseconds: 1), .replyEnded(utterances: 1))
    #expect(turn.taken() == [.heard(reply: 1, samples: 9, milliseconds: 1, isWhole: true)])
    #expect(turn.state == .draining)
    turn(.finished(reply: 2, samples: 9, milliseconds: 1))
    #expect(turn.state == .yielding)
  }

  @Test(
    "a reply that was voided already is not voided again with the beginning of the next",
    arguments: [TurnInput.serviceInterrupted, .speechStarted, .serviceListening, .failed, .interrupt])
  func voidedOnce(input: TurnInput) {
    for state in [TurnState.responding, .draining] {
      for wasVoided in [false, true] {
        var turn = Turn.at(state, .duplex)
        _ = turn.taken()
        if wasVoided { turn.machine.generation += 1 }
        turn(input)
        #expect(turn.taken().contains(.voidReplies) != wasVoided, "\(state)")
      }
    }
  }

  @Test("without playback a reply is over when it has come")
  func noPlayback() {
    var turn = Turn(.duplex) { $0.followsPlayback = false }
    turn(.start, .serviceListening, .serviceThinking, .replyStarted, .replyEnded(utterances: 3))
    #expect(turn.state == .yielding)
  }

  @Test(
    "every wait ends as it should when nothing comes",
    arguments: [
      (
        TurnState.connecting, TurnState.closed,
        [TurnAction.timedOut(.connecting), .hangUp, .timedOut(.closing)]
      ),
      (.hearing, .listening, [.timedOut(.hearing)]),
      (.thinking, .listening, [.timedOut(.thinking), .voidReplies, .interrupt, .timedOut(.yielding)]),
      (.responding, .listening, [.timedOut(.responding), .voidReplies, .interrupt, .timedOut(.yielding)]),
      (.draining, .listening, [.timedOut(.draining), .voidReplies, .interrupt, .timedOut(.yielding)]),
      (.yielding, .listening, [.timedOut(.yielding)]),
      (.reconnecting, .closed, [.timedOut(.reconnecting), .hangUp, .timedOut(.closing)]),
      (.closing, .closed, [.timedOut(.closing)]),
    ])
  func timeouts(state: TurnState, end: TurnState, actions: [TurnAction]) {
    var turn = Turn.at(state, .duplex)
    turn.pass(1_000_000 * ms)
    #expect(turn.state == end && turn.taken() == actions)
  }

  @Test("a service that is gone for a minute, and found by the next try, finds the dialogue still there")
  func goneForAMinute() {
    var turn = Turn.at(.listening, .duplex)
    turn(.reconnecting)
    // A minute, the longest wait between two tries, and one that fails.
    turn.pass((60_000 + 8_000 + 10_000) * ms)
    #expect(turn.state == .reconnecting && turn.taken() == [])
    turn(.serviceListening)
    #expect(turn.state == .listening)
  }

  @Test("an input that comes after a deadline finds the wait already over")
  func lateInput() {
    var turn = Turn.at(.thinking, .duplex)
    let actions = turn.machine.handle(.serviceListening, at: turn.now + 20_001 * ms).list
    #expect(actions.first == .timedOut(.thinking))
    #expect(turn.state == .listening)
  }

  @Test("a lost connection voids the reply and forgets what was pending; the trace tells the way")
  func trace() {
    var turn = Turn.at(.responding, .pushToTalk)
    turn(.ask)
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
