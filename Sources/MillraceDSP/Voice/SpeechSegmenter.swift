/// Turns speech probabilities into the start and end of speech.
///
/// Speech starts at a probability of `start` or more and continues while it stays at `stop` or more; the start is reported once it
/// has lasted `minimumSpeech`. Speech ends at a probability below `stop`; the end is reported when no probability has reached `start`
/// for `minimumSilence`, and lies where the probability first fell. Between the thresholds nothing changes. A state machine without a
/// clock or heap: positions in, changes out.
public struct SpeechSegmenter: Sendable, Equatable {
  /// Thresholds and durations. Durations are in the unit of the positions, usually samples.
  public struct Settings: Sendable, Equatable {
    /// Probability from which speech may start. 0.5 suits a close microphone, 0.35 a distant one.
    public var start: Float
    /// Probability below which speech may end. 0.3 close, 0.2 distant; above `start` it counts as `start`.
    public var stop: Float
    /// Shorter speech is ignored.
    public var minimumSpeech: Int64
    /// Shorter pauses are ignored.
    public var minimumSilence: Int64

    /// Settings from probabilities and durations.
    public init(start: Float, stop: Float, minimumSpeech: Int64, minimumSilence: Int64) {
      self.start = start
      self.stop = stop
      self.minimumSpeech = minimumSpeech
      self.minimumSilence = minimumSilence
    }
  }

  /// A change to report.
  public enum Change: Sendable, Equatable {
    /// Speech started at a past position.
    case started(at: Int64)
    /// Speech reported to have started at `from` ended at `to`.
    case ended(from: Int64, to: Int64)
  }

  private enum State: Equatable {
    case silence
    /// Speech too short to be reported yet.
    case perhaps(since: Int64)
    case speech(since: Int64)
    /// Speech, followed by a pause too short to be reported yet.
    case pause(in: Int64, since: Int64)
  }

  /// May be changed at any time; applies from the next probability on.
  public var settings: Settings
  private var state = State.silence

  /// Starts in silence.
  public init(_ settings: Settings) { self.settings = settings }

  /// True from the reported start to the reported end of speech.
  public var isSpeech: Bool {
    switch state {
    case .silence, .perhaps: false
    case .speech, .pause: true
    }
  }

  /// Takes the probability of speech between two positions.
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

  /// Ends the stream, or marks a discontinuity: reported speech ends at `position`, or where its pause started.
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
