internal import MillraceCore

/// A voice over a reply that may become a barge-in: how long it has spoken, and when to decide. A value without a clock.
struct PossibleBargeIn: Sendable {
  enum Verdict {
    /// It spoke for `minimumSpeech`: a barge-in.
    case speech
    /// It did not within `confirmWindow`.
    case noSpeech
    /// Not decided yet; check again at this time.
    case undecided(until: Nanoseconds)
  }

  /// The state to return to when it was not speech.
  var interruptedState = TurnState.responding
  private var start: Nanoseconds = 0
  private var voiceStart: Nanoseconds?
  /// Speech in earlier stretches, without the pauses between them.
  private var spoken: Nanoseconds = 0

  mutating func begin(in state: TurnState, at time: Nanoseconds) {
    interruptedState = state
    start = time
    voiceStart = time
    spoken = 0
  }

  mutating func voiceStarted(at time: Nanoseconds) {
    if voiceStart == nil { voiceStart = time }
  }

  mutating func voiceEnded(at time: Nanoseconds) {
    if let start = voiceStart.take() { spoken &+= max(0, time &- start) }
  }

  mutating func end() { voiceStart = nil }

  func verdict(at now: Nanoseconds, _ rules: TurnRules) -> Verdict {
    if spoken &+ (voiceStart.map { now &- $0 } ?? 0) >= rules.minimumSpeech { return .speech }
    if let voiceStart { return .undecided(until: voiceStart &+ rules.minimumSpeech &- spoken) }
    return now &- start >= rules.confirmWindow ? .noSpeech : .undecided(until: start &+ rules.confirmWindow)
  }

  /// Milliseconds since the voice began.
  func milliseconds(at now: Nanoseconds) -> Int { Int((now &- start) / 1_000_000) }
}

/// Counts how many utterances of a reply were played to their end. Replies that follow each other without a pause count as one.
struct ReplyProgress: Sendable {
  private var played = 0
  /// The number of utterances, once the reply has arrived completely.
  private var total: Int?
  /// Utterances of an earlier reply that was still playing when this one began.
  private var carried = 0

  mutating func begin() { self = ReplyProgress() }

  /// Another reply begins before the last one was played to its end.
  mutating func join() {
    carried = total ?? carried
    total = nil
  }

  mutating func replyEnded(utterances: Int) { total = carried.addingClamped(max(0, utterances)) }

  mutating func utterancePlayed() { played += 1 }

  /// True when the reply has arrived and, where playback is followed, was played to its end.
  func isComplete(followsPlayback: Bool) -> Bool {
    guard let total else { return false }
    return !followsPlayback || played >= total
  }
}

/// The latest changes of state.
struct TurnTrace: Sendable {
  private static let capacity = 32
  private var changes = InlineArray<32, TurnChange>(repeating: TurnChange(time: 0, from: .idle, to: .idle))
  private var count = 0

  mutating func append(_ change: TurnChange) {
    changes[count % Self.capacity] = change
    count += 1
  }

  /// Oldest first. Allocates.
  var list: [TurnChange] { (max(0, count - Self.capacity)..<count).map { changes[$0 % Self.capacity] } }
}
