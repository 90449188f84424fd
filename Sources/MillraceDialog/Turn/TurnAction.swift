/// What a turn machine asks for. Actions are carried out in order.
public enum TurnAction: Sendable, Hashable {
  /// Commands to the service.
  case startSpeech, stopSpeech, cancelSpeech
  /// The command that ends the dialogue; late: because the service was not ready in time.
  case hangUp(isLate: Bool = false)
  /// The command that interrupts the reply; forced: even where the service does not allow it.
  case interrupt(isForced: Bool = false)
  /// Send the waiting question to the service.
  case passQuestion
  /// Discard the waiting question: no service will answer it.
  case dropQuestion
  /// Cancel every reply up to now.
  case cancelReplies
  /// Duck playback; resume it with the sample after the last one played.
  case duck, resume

  // Events.
  /// The state changed.
  case changed(from: TurnState, to: TurnState)
  /// A reply was interrupted, so long after the voice began.
  case bargedIn(by: BargeInSource, afterMilliseconds: Int)
  /// A voice over the reply was not speech.
  case falseInterruption(milliseconds: Int)
  /// How much of a reply was heard: one of its utterances to the end, or up to where it was cut.
  case heard(reply: UInt32, samples: Int, milliseconds: Int, isWhole: Bool)
  /// The state timed out.
  case timedOut(TurnState)
}

/// Why a command of the user has no effect.
public enum TurnRefusal: UInt8, Sendable, Hashable, CaseIterable {
  /// The dialogue has ended.
  case ended
  /// The user speaks at any time: there is no button.
  case noButton
  /// The service does not allow this reply to be interrupted.
  case uninterruptible
}

/// What caused a barge-in.
public enum BargeInSource: UInt8, Sendable, Hashable, CaseIterable {
  /// The local voice detector.
  case voice
  /// The service: it heard the user, or stopped by itself.
  case service
  /// A button or a command.
  case manual

  /// Its name in events.
  public var name: StaticString {
    switch self {
    case .voice: "voice"
    case .service: "service"
    case .manual: "manual"
    }
  }
}

/// The actions of one step: a short list without heap allocation.
public struct TurnActions: Sendable {
  /// More than the longest list a step can produce: that of a timeout followed by that of an input.
  public static let limit = 16
  private var actions = InlineArray<16, TurnAction>(repeating: .startSpeech)
  /// The number of actions, at most `limit`.
  public private(set) var count = 0

  /// Creates an empty list.
  public init() {}

  /// The action at an index. Traps beyond `count`.
  public subscript(index: Int) -> TurnAction {
    precondition(index < count, "action index \(index) out of range, count is \(count)")
    return actions[index]
  }

  mutating func clear() { count = 0 }

  mutating func add(_ action: TurnAction) {
    actions[count] = action
    count += 1
  }

  /// The actions as an array; allocates: for tests and programs.
  public var list: [TurnAction] { (0..<count).map { actions[$0] } }
}

/// A change of state, for the trace.
public struct TurnChange: Sendable, Hashable {
  /// When, in nanoseconds on the clock passed to `handle`.
  public var time: Int64
  /// The state before.
  public var from: TurnState
  /// The state after.
  public var to: TurnState
}
