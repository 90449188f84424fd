internal import MillraceCore

/// Decides when a reply that is still being produced starts to play, how fast it plays, and when it waits for more.
///
/// A pure state machine over buffer levels: it holds no audio and reads no clock. Times are in nanoseconds, fills in frames of the output.
///
/// Playback starts when `start` is buffered, at the end of the utterance, or `patience` after the first byte. Below `comfort` the speed
/// decreases linearly to `slowest` at `start`, unless the end of the utterance has arrived. After an underrun it waits for
/// `start` again, twice as much after each further underrun in the utterance, up to `longestWait`, but never longer than that in
/// time. (Values: measurements on synthetic producers of speech, see Documentation/speech.md.)
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
    /// Nothing was played yet; the first byte arrived at this time.
    case prebuffering(since: Nanoseconds)
    case playing
    /// After an underrun at this time; waits for this many frames.
    case rebuffering(since: Nanoseconds, wanted: Int)
  }

  let limits: Limits
  private(set) var state = State.idle
  /// Underruns in this utterance.
  private(set) var underruns = 0

  init(_ limits: Limits) { self.limits = limits }

  /// Starts an utterance whose first byte arrived at a time.
  mutating func begin(at time: Nanoseconds) {
    state = .prebuffering(since: time)
    underruns = 0
  }

  /// Ends the utterance.
  mutating func end() { state = .idle }

  /// Decides whether to play now. `fill`: frames buffered; `isComplete`: nothing more of the utterance will arrive.
  mutating func mayPlay(fill: Int, isComplete: Bool, now: Nanoseconds) -> Bool {
    switch state {
    case .idle: return false
    case .playing: return true
    case .prebuffering(let since):
      guard isComplete || fill >= limits.start || (fill > 0 && now &- since >= limits.patience) else {
        return false
      }
    case .rebuffering(let since, let wanted):
      guard isComplete || fill >= wanted || (fill > 0 && now &- since >= limits.longestTime) else {
        return false
      }
    }
    state = .playing
    return true
  }

  /// When the result of `mayPlay` changes without new input; nil: never, as when nothing is buffered.
  func deadline(fill: Int) -> Nanoseconds? {
    guard fill > 0 else { return nil }
    return switch state {
    case .idle, .playing: nil
    case .prebuffering(let since): since &+ limits.patience
    case .rebuffering(let since, _): since &+ limits.longestTime
    }
  }

  /// Records an underrun, and returns how many frames to wait for.
  mutating func underrun(now: Nanoseconds) -> Int {
    underruns += 1
    let wanted = min(limits.start << min(underruns - 1, 16), limits.longestWait)
    state = .rebuffering(since: now, wanted: wanted)
    return wanted
  }

  /// The playback speed.
  func speed(fill: Int, isComplete: Bool) -> Double {
    guard !isComplete, fill < limits.comfort else { return 1 }
    let floor = min(limits.start, limits.comfort - 1)
    let share = Double(max(0, fill - floor)) / Double(limits.comfort - floor)
    return limits.slowest + (1 - limits.slowest) * share
  }
}
