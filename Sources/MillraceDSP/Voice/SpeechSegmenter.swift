/// Decides from probabilities where speech begins and ends.
///
/// A start is a probability of `start` or more; what follows counts on as long as it stays at `stop` or more, and is told
/// once it has lasted `minimumSpeech`. An end is a probability below `stop`; it is told when for `minimumSilence` no
/// probability has reached `start` again, and lies where the probability first fell. Between the thresholds nothing
/// changes. A state machine without clock and memory of its own: positions in, changes out.
public struct SpeechSegmenter: Sendable, Equatable {
  /// Where the decisions lie. Lengths are in the unit of the positions, as a rule samples.
  public struct Settings: Sendable, Equatable {
    /// Probability from which speech may begin. 0.5 suits a near microphone, 0.35 a far one.
    public var start: Float
    /// Probability below which speech may end. 0.3 near, 0.2 far; above `start` it counts as `start`.
    public var stop: Float
    /// Speech shorter than this is none.
    public var minimumSpeech: Int64
    /// A pause shorter than this is none.
    public var minimumSilence: Int64

    /// Settings by probabilities and lengths.
    public init(start: Float, stop: Float, minimumSpeech: Int64, minimumSilence: Int64) {
      self.start = start
      self.stop = stop
      self.minimumSpeech = minimumSpeech
      self.minimumSilence = minimumSilence
    }
  }

  /// Something to tell.
  public enum Change: Sendable, Equatable {
    /// Speech began at a position that has passed.
    case started(at: Int64)
    /// Speech that had been told to begin at `from` ended at `to`.
    case ended(from: Int64, to: Int64)
  }

  private enum State: Equatable {
    case silence
    /// Speech that is too short yet to be told.
    case perhaps(since: Int64)
    case speech(since: Int64)
    /// Speech, and since then a pause that is too short yet to be told.
    case pause(in: Int64, since: Int64)
  }

  /// May be changed at any time; holds from the next probability on.
  public var settings: Settings
  private var state = State.silence

  /// Begins in silence.
  public init(_ settings: Settings) { self.settings = settings }

  /// True from the told start to the told end of speech.
  public var isSpeech: Bool {
    switch state {
    case .silence, .perhaps: false
    case .speech, .pause: true
    }
  }

  /// Takes the probability of speech from one position to another.
  public mutating func take(_ probability: Float, from: Int64, to: Int64) -> Change? {
    switch state {
    case .silence:
      guard probability >= settings.start else { return nil }
      state = .perhaps(since: from)
      return confirm(since: from, to: to)
    case .perhaps(let since):
      guard probability >= lower else {
        state = .silence
        return nil
      }
      return confirm(since: since, to: to)
    case .speech(let since):
      guard !(probability >= lower) else { return nil }
      state = .pause(in: since, since: from)
      return conclude(since: since, pause: from, to: to)
    case .pause(let since, let pause):
      if probability >= settings.start {
        state = .speech(since: since)
        return nil
      }
      return conclude(since: since, pause: pause, to: to)
    }
  }

  /// The stream ends or breaks off at a position: what was told to have begun ends there, or where its pause began.
  public mutating func finish(at position: Int64) -> Change? {
    defer { state = .silence }
    switch state {
    case .silence, .perhaps: return nil
    case .speech(let since): return .ended(from: since, to: position)
    case .pause(let since, let pause): return .ended(from: since, to: pause)
    }
  }

  private var lower: Float { min(settings.stop, settings.start) }

  private mutating func confirm(since: Int64, to: Int64) -> Change? {
    guard to &- since >= settings.minimumSpeech else { return nil }
    state = .speech(since: since)
    return .started(at: since)
  }

  private mutating func conclude(since: Int64, pause: Int64, to: Int64) -> Change? {
    guard to &- pause >= settings.minimumSilence else { return nil }
    state = .silence
    return .ended(from: since, to: pause)
  }
}
