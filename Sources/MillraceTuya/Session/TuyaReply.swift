internal import MillraceDialog
internal import MillraceJSON

/// The reply of a session: whether it is delivered, its sound, and how much of that is still to be played.
struct TuyaReply: Sendable {
  enum State: Sendable, Hashable {
    case none
    /// It arrives, and is delivered.
    case open
    /// What still arrives of it is discarded.
    case cut
  }

  private(set) var state = State.none
  /// Its round.
  private(set) var round: String?
  /// The cloud has begun a stream of sound, and not ended it.
  var isStreaming = false
  /// Sound of an utterance was delivered that has not ended.
  private(set) var hasSound = false
  /// Utterances of this reply that have arrived completely.
  private(set) var utterances = 0
  /// Utterances that have arrived completely and were not played, of earlier replies too.
  private(set) var unplayed = 0

  /// There is something to cancel in the graph.
  var isAudible: Bool { hasSound || unplayed > 0 }

  mutating func begin(_ round: String?) {
    state = .open
    self.round = round
    utterances = 0
  }

  mutating func soundArrived() { hasSound = true }

  /// The utterance is complete. False when there was none.
  mutating func endUtterance() -> Bool {
    guard hasSound else { return false }
    hasSound = false
    utterances += 1
    unplayed += 1
    return true
  }

  /// It has arrived completely.
  mutating func end() { state = .none }

  /// Nothing more of it is delivered, and nothing of it is played.
  mutating func cut() {
    state = .cut
    hasSound = false
    isStreaming = false
    unplayed = 0
  }

  /// What arrives from here on is taken for another reply.
  mutating func forgive() { if state == .cut { state = .none } }

  /// An utterance was played to its end.
  mutating func played() { unplayed = max(0, unplayed - 1) }

  /// Everything was played.
  mutating func playedAll() { unplayed = 0 }

  /// The connection is gone: what was delivered is played, and not awaited.
  mutating func forget() { self = TuyaReply() }
}

/// Emotions of a reply, which come one by one.
struct TuyaEmotions: Sendable {
  /// A reply has a few; one that never ends must not exhaust memory.
  static let most = 256

  private var steps: [DialogEmotion] = []

  /// Adds a step; returns all of them once they are complete.
  /// - Parameters:
  ///   - step: nil: the last message has none.
  ///   - sequence: 1 begins a new list.
  mutating func add(_ step: DialogEmotion?, sequence: Int?, isLast: Bool) -> [DialogEmotion]? {
    if sequence == 1 { steps = [] }
    if let step, steps.count < Self.most { steps.append(step) }
    guard isLast else { return nil }
    defer { steps = [] }
    return steps.isEmpty ? nil : steps
  }

  mutating func clear() { steps = [] }
}
