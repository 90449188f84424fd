internal import MillraceCore

/// When a reply that is still being produced begins to sound, how fast it goes, and when it waits for more.
///
/// A pure state machine over what is there: it holds no sound and reads no clock. Times in nanoseconds, fills in frames of the
/// output.
///
/// It begins when `start` is there, at the utterance's end, or `patience` after the first byte. Below `comfort` the speed sinks
/// in a straight line, to `slowest` where only `start` is left, unless the utterance's end is there already. When it runs dry it
/// waits for `start` again, for twice as much the next time in the same utterance, at most for `longestWait`, but never longer
/// than that time for what is there. (Values: measurements on synthetic producers of speech, see Documentation/speech.md.)
struct ReplyPacing {
  struct Limits: Equatable {
    var start: Int
    var patience: Nanoseconds
    var comfort: Int
    var slowest: Double
    var longestWait: Int
    var longestTime: Nanoseconds
  }

  enum State: Equatable {
    case idle
    /// Nothing sounded yet; the first byte came at a time.
    case gathering(since: Nanoseconds)
    case playing
    /// Ran dry at a time; waits for so many frames.
    case dry(since: Nanoseconds, wanted: Int)
  }

  let limits: Limits
  private(set) var state = State.idle
  /// Times it ran dry in this utterance.
  private(set) var droughts = 0

  init(_ limits: Limits) { self.limits = limits }

  /// An utterance begins, whose first byte came at a time.
  mutating func begin(at time: Nanoseconds) {
    state = .gathering(since: time)
    droughts = 0
  }

  /// The utterance is over.
  mutating func end() { state = .idle }

  /// Decides whether sound goes out now. `fill` is what is there, `isComplete`: nothing more of the utterance will come.
  mutating func mayPlay(fill: Int, isComplete: Bool, now: Nanoseconds) -> Bool {
    switch state {
    case .idle: return false
    case .playing: return true
    case .gathering(let since):
      guard isComplete || fill >= limits.start || (fill > 0 && now &- since >= limits.patience) else {
        return false
      }
    case .dry(let since, let wanted):
      guard isComplete || fill >= wanted || (fill > 0 && now &- since >= limits.longestTime) else {
        return false
      }
    }
    state = .playing
    return true
  }

  /// When `mayPlay` answers otherwise though nothing comes; nil: never, as where nothing is there that could play.
  func deadline(fill: Int) -> Nanoseconds? {
    guard fill > 0 else { return nil }
    return switch state {
    case .idle, .playing: nil
    case .gathering(let since): since &+ limits.patience
    case .dry(let since, _): since &+ limits.longestTime
    }
  }

  /// Says that too little is there, and answers what is waited for.
  mutating func runDry(now: Nanoseconds) -> Int {
    droughts += 1
    let wanted = min(limits.start << min(droughts - 1, 16), limits.longestWait)
    state = .dry(since: now, wanted: wanted)
    return wanted
  }

  /// The speed to go at.
  func speed(fill: Int, isComplete: Bool) -> Double {
    guard !isComplete, fill < limits.comfort else { return 1 }
    let floor = min(limits.start, limits.comfort - 1)
    let share = Double(max(0, fill - floor)) / Double(limits.comfort - floor)
    return limits.slowest + (1 - limits.slowest) * share
  }
}
